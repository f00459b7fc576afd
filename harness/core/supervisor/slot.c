/* One worker: it starts, opens its target, answers case after case, and ends. If it dies, the
 * current case is the cause. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervision.h"
#include "words/worker_exit.h"

#define START_TIMEOUT_S 120.0
#define PROBE_TIMEOUT_S 20.0 /* loads the kernels and launches a small one */
#define EXIT_TIMEOUT_S                                                                             \
    60.0 /* at most: with sixty others, a worker took more than ten to release its GPU */

static double ms_since(uint64_t then)
{
    return (double)(uv_hrtime() - then) / 1e6;
}

static void await_end(facts_slot *slot)
{
    facts_process_end_input(slot->process);
    facts_process_deadline(slot->process, slot->run->timeout_s < EXIT_TIMEOUT_S
                                              ? slot->run->timeout_s
                                              : EXIT_TIMEOUT_S);
}

void facts_slot_close(facts_slot *slot)
{
    slot->phase = FACTS_PHASE_CLOSING;
    await_end(slot);
}

/* A case in another worker may lead to more work. */
static bool more_may_come(const facts_supervision *run)
{
    bool busy = false;
    for (const facts_slot *slot = run->slots; slot; slot = slot->next)
        busy |= slot->phase == FACTS_PHASE_BUSY;
    return busy && run->order->more && !run->stopping;
}

/* All rows of its case are written. */
static void facts_slot_finish(facts_slot *slot)
{
    facts_item_done(slot->run, slot->target, slot->work);
    slot->finished = slot->work + 1;
}

/* The end of the worker now does not change the result of the finished case. */
static void let_go(facts_slot *slot)
{
    if (slot->finished)
        facts_item_free(slot->run, slot->target, slot->finished - 1);
    slot->finished = 0;
}

/* The start is written to the record before the worker gets the request. */
void facts_slot_ask(facts_slot *slot, size_t work)
{
    facts_supervision *run = slot->run;
    facts_target_state *state = &run->targets[slot->target];
    free(slot->held);
    slot->held = NULL;
    let_go(slot);
    slot->keeps = slot->in_turn = slot->had_company = false;
    facts_item *item = &state->items[work];
    const char *name = run->order->work[work].name;
    if (item->attempts < UINT8_MAX)
        item->attempts++;
    slot->work = work;
    slot->id = ++run->next_id;
    slot->config = -1;
    slot->stage[0] = '\0';
    slot->phase = FACTS_PHASE_BUSY;
    facts_text_clear(&run->text);
    facts_compose_start(&run->text, run->order->run_id, name, state->target->build.name,
                        state->device, state->target->gpus > 1 ? slot->gpu : FACTS_NO_GPU,
                        item->attempts, item->from_config);
    facts_write_line(run, &run->text);
    if (run->counts->record_failed)
        return;
    facts_text_clear(&run->text);
    facts_compose_request(&run->text, run->order, slot->id, name, item->from_config, item->fresh);
    slot->since = uv_hrtime();
    facts_process_send(slot->process, run->text.data, run->text.length);
    facts_process_deadline(slot->process, run->timeout_s);
}

void facts_slot_take_turn(facts_slot *slot, size_t work)
{
    facts_supervision *run = slot->run;
    slot->id = ++run->next_id;
    slot->in_turn = true;
    slot->phase = FACTS_PHASE_BUSY;
    slot->since = uv_hrtime();
    facts_text_clear(&run->text);
    facts_compose_turn(&run->text, slot->id, run->order->work[work].name);
    facts_process_send(slot->process, run->text.data, run->text.length);
    facts_process_deadline(slot->process, run->timeout_s);
}

/* The next case, or the end. */
static void ask_next(facts_slot *slot)
{
    facts_supervision *run = slot->run;
    slot->phase = FACTS_PHASE_IDLE;
    if (run->order->another_round)
        facts_turns_go_on(run);
    else if (!facts_gpus_are_proved(slot))
        facts_process_deadline(slot->process, 0);
    else if (facts_next_item(run, slot))
        facts_slot_ask(slot, slot->work);
    else if (!more_may_come(run))
        facts_slot_close(slot);
}

static void on_ready(facts_slot *slot, facts_span ready)
{
    facts_supervision *run = slot->run;
    facts_target_state *state = &run->targets[slot->target];
    state->starting--;
    state->start_failures = state->starts_without_room = 0;
    if (!state->ready) {
        state->ready = true;
        state->start_ms = ms_since(slot->since);
        facts_target_ready(run, slot->target, ready);
        if (state->target->kind == FACTS_TARGET_GPU)
            facts_look_up(run, slot->target);
    }
    facts_worker_ready(slot, ready);
    if (run->counts->record_failed)
        return;
    ask_next(slot);
    facts_schedule(run);
}

/* Other workers use the GPU's memory and will release it. If work is added as answers come, only
 * workers of the target itself are certain to continue. Without such workers another process has
 * the memory. */
static bool waits_for_room(facts_slot *slot, const char *class_word)
{
    facts_supervision *run = slot->run;
    int live = facts_gpu_live(slot);
    if (strcmp(class_word, "no_memory") != 0 || slot->gpu == FACTS_NO_GPU)
        return false;
    for (const facts_slot *other = run->slots; other && run->order->more; other = other->next)
        live -= other->gpu == slot->gpu && other->target != slot->target;
    if (live <= 1)
        return facts_gpu_wait_for_room(slot);
    run->gpus[slot->gpu].no_room = true;
    return true;
}

static void on_failed(facts_slot *slot, facts_span failed)
{
    char class_word[32] = "environment", text[512] = "", remedy[512] = "";
    slot->run->targets[slot->target].starting--;
    slot->phase = FACTS_PHASE_FAILED;
    await_end(slot);
    facts_json_string(facts_json_member(failed, "class"), class_word, sizeof class_word);
    facts_json_string(facts_json_member(failed, "text"), text, sizeof text);
    facts_json_string(facts_json_member(failed, "remedy"), remedy, sizeof remedy);
    if (!waits_for_room(slot, class_word))
        facts_fail_target(slot->run, slot->target, class_word,
                          text[0] ? text : "the worker could not start", remedy);
}

/* Is the worker in code of FACTS, the reference or the comparison? A timeout there says nothing
 * about cuDNN. */
static bool facts_slot_is_in_facts(const facts_slot *slot)
{
    return strcmp(slot->stage, "start") == 0 || strcmp(slot->stage, "reference") == 0 ||
           strcmp(slot->stage, "judge") == 0;
}

/* The time of FACTS is not the engine's. */
static void on_stage(facts_slot *slot, const facts_line *reply, facts_span stage)
{
    int64_t config;
    const bool was_ours = facts_slot_is_in_facts(slot);
    facts_json_string(stage, slot->stage, sizeof slot->stage);
    if (strcmp(slot->stage, "start") == 0)
        facts_process_deadline(slot->process, START_TIMEOUT_S);
    else if (was_ours && !facts_slot_is_in_facts(slot))
        facts_process_deadline(slot->process, slot->run->timeout_s);
    slot->config =
        facts_json_int(facts_line_get(reply, "config"), &config) && config >= 0 && config < 1000000
            ? (int)config
            : -1;
}

/* The reply is not a row: the worker gets no other case. */
static void nonsense(facts_slot *slot)
{
    slot->run->counts->noise++;
    slot->nonsense = true;
    facts_process_kill(slot->process);
}

static void hold_row(facts_slot *slot, facts_span row, double wall_ms)
{
    slot->held = malloc(row.length);
    memcpy(slot->held, row.at, row.length);
    slot->held_length = row.length;
    slot->held_ms = wall_ms;
}

/* It ends by itself. */
static void wait_for_end(facts_slot *slot)
{
    slot->phase = FACTS_PHASE_BYE;
    await_end(slot);
}

static int config_in_hand(const facts_slot *slot)
{
    const int from = slot->run->targets[slot->target].items[slot->work].from_config;
    return slot->config > from ? slot->config : from;
}

/* The worker's context died before it launched the engine of this case: `again` is not an answer,
 * and another worker is asked. The cause may be an earlier case, or this case's own launch for the
 * dropout mask. In the second case every worker dies that has run other cases. So from now on the
 * case needs a worker that has launched no engine: that worker answers with a row. */
static void on_again(facts_slot *slot)
{
    slot->run->targets[slot->target].items[slot->work].fresh = true;
    facts_item_again(slot->run, slot->target, slot->work, config_in_hand(slot));
    wait_for_end(slot);
}

/* It ends after this row, which is not the last of its case: the next worker continues after this
 * row. */
static void on_leave(facts_slot *slot, facts_span row)
{
    facts_supervision *run = slot->run;
    const double wall_ms = ms_since(slot->since);
    run->targets[slot->target].busy_ms += wall_ms;
    run->targets[slot->target].answers++;
    if (!facts_write_row(run, slot->target, slot->work, row.at, row.length,
                         (facts_row_extra){ .wall_ms = wall_ms, .more = true })) {
        nonsense(slot);
        return;
    }
    if (run->counts->record_failed)
        return;
    facts_item_again(run, slot->target, slot->work, slot->config + 1);
    wait_for_end(slot);
}

static void go_on(facts_slot *slot, bool bye, bool final)
{
    if (bye) {
        wait_for_end(slot);
    } else if (final) {
        facts_slot_close(slot);
    } else {
        ask_next(slot);
        facts_slot_wake_all(slot->run);
    }
}

/* Did the case lack memory on a GPU that others use, or used until now? Then it is asked once more
 * without them. Cases that are added as answers come do not wait. */
static bool had_no_room(facts_slot *slot, facts_span row)
{
    const facts_supervision *run = slot->run;
    if (!row.at || run->stopping || run->order->more || run->order->another_round ||
        (facts_gpu_live(slot) < 2 && !slot->had_company))
        return false;
    return facts_verdict_parse(facts_json_member(row, "verdict")) == FACTS_VERDICT_INCONCLUSIVE &&
           facts_json_is(facts_json_member(facts_json_member(row, "reason"), "class"), "no_memory");
}

static bool write_row(facts_slot *slot, facts_span row, facts_row_extra extra)
{
    facts_supervision *run = slot->run;
    bool loaded = false;
    if (!facts_write_row(run, slot->target, slot->work, row.at, row.length, extra))
        return false;
    facts_json_bool(facts_line_get(run->row, "plan_loaded"), &loaded);
    if (!loaded && facts_line_get(run->row, "plan_ms").at && facts_gpu_compiled(slot) &&
        !run->counts->record_failed)
        facts_schedule(run);
    return true;
}

/* A row that is not the last of its case. A worker cannot leave out the configurations that follow:
 * one that had no room is ended, and the case continues from this configuration when the others
 * have gone. */
static void on_row(facts_slot *slot, facts_span row)
{
    facts_supervision *run = slot->run;
    if (had_no_room(slot, row) &&
        facts_item_again_alone(run, slot->target, slot->work, config_in_hand(slot))) {
        wait_for_end(slot);
        facts_process_kill(slot->process);
    } else if (!write_row(slot, row,
                          (facts_row_extra){ .wall_ms = ms_since(slot->since), .more = true })) {
        nonsense(slot);
    } else if (!run->counts->record_failed) {
        facts_process_deadline(slot->process, run->timeout_s);
    }
}

/* The last reply to a request. The worker's very last row is kept until the worker has ended: a bad
 * end belongs to it. */
static void on_last(facts_slot *slot, facts_span row, bool bye)
{
    facts_supervision *run = slot->run;
    facts_target_state *state = &run->targets[slot->target];
    double wall_ms = ms_since(slot->since);
    const bool goes_on = run->order->more || run->order->another_round;
    const bool feeds = goes_on && !run->order->work[slot->work].alone,
               nothing_left = state->todo == (slot->alone ? 0 : state->crowded);
    const bool final =
        !bye && (run->stopping || (nothing_left && !goes_on) || run->order->work[slot->work].alone);
    state->busy_ms += wall_ms;
    state->answers++;
    facts_process_deadline(slot->process, 0);
    if (had_no_room(slot, row) &&
        facts_item_again_alone(run, slot->target, slot->work, config_in_hand(slot))) {
        go_on(slot, bye, false);
        return;
    }
    if (row.at && final) {
        hold_row(slot, row, wall_ms);
    } else if (row.at && !write_row(slot, row, (facts_row_extra){ .wall_ms = wall_ms })) {
        nonsense(slot);
        return;
    }
    if (run->counts->record_failed)
        return;
    if (!slot->held)
        facts_slot_finish(slot);
    slot->reported = feeds && !slot->held && row.at;
    if (slot->reported)
        hold_row(slot, row, wall_ms);
    slot->keeps = run->order->another_round && !bye;
    go_on(slot, bye, final);
}

/* A worker without memory of the case takes no part in the later rounds: a new worker, or one that
 * could launch nothing of the case. */
static void on_turn(facts_slot *slot, const facts_line *reply, bool bye)
{
    const facts_span turn = facts_line_get(reply, "time");
    facts_process_deadline(slot->process, 0);
    slot->in_turn = false;
    slot->keeps = turn.at && *turn.at == '{' && !bye;
    if (slot->keeps)
        facts_write_turn(slot->run, slot->target, slot->work, turn);
    if (!slot->run->counts->record_failed)
        go_on(slot, bye, false);
}

static void on_reply(facts_slot *slot, const facts_line *reply)
{
    facts_supervision *run = slot->run;
    int64_t id = 0;
    bool last = false, bye = false, none = false, again = false;
    if (slot->phase != FACTS_PHASE_BUSY || !facts_json_int(facts_line_get(reply, "id"), &id) ||
        id != slot->id) {
        run->counts->noise++;
        return;
    }
    facts_span stage = facts_line_get(reply, "stage"), row = facts_line_get(reply, "row");
    facts_json_bool(facts_line_get(reply, "last"), &last);
    facts_json_bool(facts_line_get(reply, "bye"), &bye);
    facts_json_bool(facts_line_get(reply, "none"), &none);
    facts_json_bool(facts_line_get(reply, "again"), &again);
    if (slot->in_turn && last) {
        on_turn(slot, reply, bye);
    } else if (row.at && !last && bye &&
               slot->config >= run->targets[slot->target].items[slot->work].from_config) {
        on_leave(slot, row);
    } else if (row.at && !last && !bye) {
        on_row(slot, row);
    } else if (row.at || (last && none)) {
        on_last(slot, row, bye);
    } else if (again) {
        on_again(slot);
    } else if (stage.at) {
        on_stage(slot, reply, stage);
    } else {
        run->counts->noise++;
    }
}

static void on_line(void *owner, const char *text, size_t length)
{
    facts_slot *slot = owner;
    facts_supervision *run = slot->run;
    facts_line *reply = run->line;
    size_t count;
    if (run->counts->record_failed || facts_process_doomed(slot->process))
        return;
    if (!facts_scan_object(text, length, reply->members, FACTS_ROW_MEMBERS, &count)) {
        run->counts->noise++;
        return;
    }
    reply->count = count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS;
    if (slot->phase != FACTS_PHASE_STARTING) {
        on_reply(slot, reply);
        return;
    }
    facts_span ready = facts_line_get(reply, "ready"), failed = facts_line_get(reply, "failed");
    if (facts_json_is(facts_line_get(reply, "stage"), "probe"))
        facts_process_deadline(slot->process, PROBE_TIMEOUT_S);
    else if (ready.at && *ready.at == '{')
        on_ready(slot, ready);
    else if (failed.at && *failed.at == '{')
        on_failed(slot, failed);
    else
        run->counts->noise++;
}

static void unlink_slot(facts_slot *slot)
{
    facts_slot **at = &slot->run->slots;
    while (*at != slot)
        at = &(*at)->next;
    *at = slot->next;
    slot->run->live--;
    facts_gpus_leave(slot);
    slot->run->targets[slot->target].live--;
    slot->run->targets[slot->target].queues[slot->queue].workers--;
}

static void on_gone(void *owner, const facts_death *death)
{
    facts_slot *slot = owner;
    facts_supervision *run = slot->run;
    unlink_slot(slot);
    facts_slot_died(slot, death);
    let_go(slot);
    free(slot->held);
    free(slot);
    facts_schedule(run);
}

/* The turns of a run with another_round do not take from queues. */
static int queue_of_new(const facts_supervision *run, const facts_target_state *state, bool alone)
{
    const int queue = run->order->another_round ? 0 : facts_queue_next(run, state, alone, NULL);
    return queue < 0 ? 0 : queue;
}

bool facts_slot_start(facts_supervision *run, size_t target, int gpu)
{
    facts_target_state *state = &run->targets[target];
    facts_slot *slot = calloc(1, sizeof *slot);
    facts_error error = { 0 };
    if (!state->links.folder[0] && state->target->kind != FACTS_TARGET_CPU)
        facts_links_make(&state->links, &state->target->build);
    const bool alone = state->crowded && state->todo == state->crowded;
    const int queue = queue_of_new(run, state, alone);
    char **environment =
        facts_worker_environment(state->target, state->links.folder, run->threads,
                                 run->order->language->process_variable, run->environments[queue]);
    *slot = (facts_slot){ .run = run,
                          .target = target,
                          .queue = queue,
                          .gpu = gpu,
                          .alone = alone,
                          .config = -1,
                          .since = uv_hrtime() };
    slot->process = facts_process_start(&run->loop, run->order->worker, environment,
                                        (facts_process_hooks){ .line = on_line, .gone = on_gone },
                                        slot, &error);
    free(environment);
    if (!slot->process) {
        free(slot);
        facts_fail_target(run, target, "environment", error.text, "");
        return false;
    }
    slot->next = run->slots;
    run->slots = slot;
    run->live++;
    state->live++;
    facts_gpu_enter(slot);
    state->queues[slot->queue].workers++;
    state->starting++;
    facts_text_clear(&run->text);
    facts_compose_target(&run->text, run->order, state->target, gpu, run->driver, run->threads);
    facts_process_send(slot->process, run->text.data, run->text.length);
    facts_process_deadline(slot->process, START_TIMEOUT_S);
    return true;
}

void facts_slot_wake_all(facts_supervision *run)
{
    if (run->order->another_round) {
        facts_turns_go_on(run);
        return;
    }
    for (facts_slot *slot = run->slots; slot; slot = slot->next)
        if (slot->phase == FACTS_PHASE_IDLE)
            ask_next(slot);
}

void facts_slot_kill_all(facts_supervision *run)
{
    for (facts_slot *slot = run->slots; slot; slot = slot->next)
        facts_process_kill(slot->process);
}

/* What the end of a worker means: for its target, for the case that it had in hand, and for its
 * last row. */

#define MOST_KILLS_AT_START 20

/* It died before it was ready: after two attempts the target is given up. */
static void lost_at_start(facts_slot *slot, const facts_death *death)
{
    facts_supervision *run = slot->run;
    facts_target_state *state = &run->targets[slot->target];
    char how[512], text[640];
    state->starting--;
    /* A kill from outside is no fault of the target, and may happen many times. A worker that ended
     * by itself will do so again. */
    int tries = death->signal == SIGKILL && !death->late ? MOST_KILLS_AT_START : 2;
    if (run->stopping || state->failed || ++state->start_failures < tries)
        return;
    facts_describe_death(how, sizeof how, death);
    snprintf(text, sizeof text, "the worker was not ready after %d tries: %s", tries, how);
    facts_fail_target(run, slot->target, "environment", text,
                      "`facts doctor` shows what is missing");
}

static bool had_no_memory(const facts_death *death)
{
    return !death->signal && !death->late && death->status == FACTS_WORKER_NO_MEMORY;
}

static bool had_no_channel(const facts_death *death)
{
    return death->cut_off ||
           (!death->signal && !death->late && death->status == FACTS_WORKER_NO_CHANNEL);
}

/* A worker that replaces itself opens its target again before it looks at the case. */
static const char *ended_at_restart(const facts_slot *slot, const facts_death *death)
{
    if (strcmp(slot->stage, "start") != 0)
        return NULL;
    return death->late ? "the worker did not start again in time"
                       : "the worker ended when it started again";
}

static const char *timed_out_in_facts(const facts_slot *slot, const facts_death *death)
{
    if (!death->late || !facts_slot_is_in_facts(slot))
        return NULL;
    return strcmp(slot->stage, "judge") == 0 ? "judging took too long"
                                             : "the reference was not ready in time";
}

/* An end that is not cuDNN's fault is not a crash of cuDNN. */
static void blame_ourselves(facts_evidence *out, const facts_slot *slot, const facts_death *death)
{
    const char *restart = ended_at_restart(slot, death), *late = timed_out_in_facts(slot, death);
    if (had_no_memory(death))
        out->class_word = "no_memory", out->text = "the worker ran out of memory",
        out->remedy =
            "give the machine more memory, or --jobs fewer workers; --resume asks it again";
    else if (had_no_channel(death))
        out->class_word = "environment",
        out->text = "a request or an answer of the worker could not be read or written",
        out->remedy = "--resume asks it again";
    else if (restart)
        out->class_word = "environment", out->text = restart,
        out->remedy = "--resume asks it again";
    else if (late)
        out->class_word = "internal", out->text = late,
        out->remedy = "use --timeout SECONDS; --resume asks it again";
    else if (death->abandoned && slot->run->targets[slot->target].hung)
        out->class_word = "environment",
        out->text =
            "the worker did not answer, and could not be killed, after a hang of another case",
        out->remedy = "restart the machine; --resume asks it again";
    else
        return;
    out->verdict = "inconclusive";
    if (!out->stage[0])
        strcpy(out->stage, "request"); /* with a stage it is no answer: --resume asks again */
}

static void lost_in_flight(facts_slot *slot, const facts_death *death)
{
    facts_supervision *run = slot->run;
    bool by_order = death->stopped && (run->signals_seen > 1 || run->counts->record_failed);
    if (by_order)
        return; /* no verdict: --resume asks again */
    const char *name = run->order->work[slot->work].name;
    facts_item *item = &run->targets[slot->target].items[slot->work];
    bool goes_on = slot->config >= item->from_config && slot->config >= 0 &&
                   strstr(name, "engine=all") != NULL;
    facts_evidence evidence = { .verdict = death->late ? "hang" : "crash",
                                .config = slot->config,
                                .death = death };
    memcpy(evidence.stage, slot->stage, sizeof evidence.stage);
    blame_ourselves(&evidence, slot, death);
    run->targets[slot->target].hung |= strcmp(evidence.verdict, "hang") == 0;
    if (slot->nonsense)
        evidence.text = "its reply was no row; it was killed";
    facts_text_clear(&run->evidence);
    facts_compose_evidence(&run->evidence, &evidence);
    facts_write_row(run, slot->target, slot->work, run->evidence.data, run->evidence.length,
                    (facts_row_extra){ .wall_ms = (double)(uv_hrtime() - slot->since) / 1e6,
                                       .more = goes_on && !slot->in_turn });
    if (slot->in_turn)
        ; /* its row was there: the case is not asked again */
    else if (goes_on)
        facts_item_again(run, slot->target, slot->work, slot->config + 1);
    else
        facts_slot_finish(slot);
    if (death->abandoned)
        facts_fail_target(run, slot->target, "environment",
                          "a worker could not be killed; the device is out of use",
                          "restart the machine");
}

/* A bad end changes only a verdict that is not a finding. */
static bool exit_matters(const facts_slot *slot)
{
    const facts_span held = { slot->held, slot->held_length };
    return !facts_verdict_is_finding(facts_verdict_parse(facts_json_member(held, "verdict")));
}

static void closed_well_or_not(facts_slot *slot, const facts_death *death)
{
    facts_supervision *run = slot->run;
    char how[512], note[600];
    facts_row_extra extra = { .wall_ms = slot->held_ms };
    bool by_order = death->stopped && run->signals_seen > 1;
    bool bad = (death->signal || death->status || death->late) && !by_order &&
               !had_no_memory(death) && !had_no_channel(death);
    if (!slot->held || (slot->reported && !(bad && exit_matters(slot))))
        return;
    if (bad && exit_matters(slot)) {
        facts_describe_death(how, sizeof how, death);
        snprintf(note, sizeof note, "after its last row, while the worker ended: %s", how);
        extra.verdict = "exit_crash";
        extra.note = note;
    }
    if (!facts_write_row(run, slot->target, slot->work, slot->held, slot->held_length, extra)) {
        facts_text_clear(&run->evidence);
        facts_compose_evidence(
            &run->evidence,
            &(facts_evidence){ .verdict = "crash", .config = -1, .text = "its reply was no row" });
        facts_write_row(run, slot->target, slot->work, run->evidence.data, run->evidence.length,
                        (facts_row_extra){ .wall_ms = slot->held_ms });
    }
    if (!slot->reported)
        facts_slot_finish(slot);
}

void facts_slot_died(facts_slot *slot, const facts_death *death)
{
    if (slot->phase == FACTS_PHASE_STARTING)
        lost_at_start(slot, death);
    else if (slot->phase == FACTS_PHASE_BUSY)
        lost_in_flight(slot, death);
    else if (slot->phase == FACTS_PHASE_CLOSING)
        closed_well_or_not(slot, death);
}
