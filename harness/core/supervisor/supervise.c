/* The schedule: the target of the next worker, the case of the next question, and the end of the
 * run. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervision.h"

#define TICK_MS 100
#define AS_SECONDS(symbol, word, seconds) [FACTS_TASK_##symbol] = seconds,
static const double default_timeout_s[FACTS_TASK_COUNT] = { FACTS_TASK_LIST(AS_SECONDS) };
#undef AS_SECONDS

static void count_todo(facts_target_state *state, const facts_item *item, int by)
{
    state->todo += (size_t)by;
    state->crowded += item->had_no_room ? (size_t)by : 0;
    state->queues[item->queue].todo += (size_t)by;
    state->queues[item->queue].crowded += item->had_no_room ? (size_t)by : 0;
}

void facts_look_up(facts_supervision *run, size_t target)
{
    facts_target_state *state = &run->targets[target];
    const facts_resume *resume = run->order->resume;
    for (size_t work = 0; resume && work < state->item_count; work++) {
        facts_item *item = &state->items[work];
        if (item->state != FACTS_ITEM_TODO)
            continue;
        const facts_resume_state was = facts_resume_get(resume, run->order->work[work].name,
                                                        state->target->build.name, state->device);
        item->attempts = was.attempts < UINT8_MAX ? (uint8_t)was.attempts : UINT8_MAX;
        item->from_config = was.from_config;
        if (was.done) {
            count_todo(state, item, -1);
            facts_item_done(run, target, work);
        }
    }
}

/* A run that adds cases as answers come has no end at which a case could be alone. */
static void begin_item(facts_supervision *run, facts_target_state *state, size_t work)
{
    const facts_order *order = run->order;
    const facts_work *w = &order->work[work];
    const bool waits = state->target->kind == FACTS_TARGET_GPU && order->task == FACTS_TASK_RUN &&
                       !order->more && !order->another_round;
    facts_item *item = &state->items[work];
    facts_error error;
    facts_case c = { .language = order->language };
    (void)facts_case_read(order->language, &c, w->name, &error);
    *item = (facts_item){ .from_config = w->from_config,
                          .queue = facts_queue_of(run, &c),
                          .had_no_room = waits && facts_case_is_alone(&c),
                          .serial = (uint32_t)run->counts->planned };
    count_todo(state, item, 1);
    if (work < state->queues[item->queue].cursor)
        state->queues[item->queue].cursor = work;
    run->counts->planned++;
}

/* Makes an item for each case added since, in a new place or in the place of a finished one. */
static void fit_items(facts_supervision *run)
{
    size_t count = run->order->work_count;
    for (size_t i = 0; i < run->order->target_count; i++) {
        facts_target_state *state = &run->targets[i];
        size_t room = state->item_count > 32 ? state->item_count : 32;
        for (size_t work = 0; run->order->on_free && work < state->item_count; work++)
            if (state->items[work].state == FACTS_ITEM_FREE && run->order->work[work].name)
                begin_item(run, state, work);
        if (count <= state->item_count)
            continue;
        while (room < count)
            room *= 2;
        state->items = realloc(state->items, room * sizeof *state->items);
        for (size_t work = state->item_count; work < count; work++)
            begin_item(run, state, work);
        state->item_count = count;
    }
}

/* Asks for more work, if work is added as answers come. */
static bool ask_for_more(facts_supervision *run)
{
    bool any = false;
    for (size_t i = 0; i < run->order->target_count; i++)
        any |= !run->targets[i].failed;
    if (!any || run->stopping || run->counts->record_failed || !run->order->more ||
        !run->order->more(run->order->context))
        return false;
    fit_items(run);
    for (size_t i = 0; i < run->order->target_count; i++)
        if (run->targets[i].failed)
            facts_fail_target(run, i, "environment", "the target was given up", "");
    return true;
}

/* Takes this item of the target. False: it is not to be done. */
static bool facts_take_item(facts_supervision *run, size_t target, size_t work)
{
    facts_target_state *state = &run->targets[target];
    facts_item *item = &state->items[work];
    if (state->failed || item->state != FACTS_ITEM_TODO)
        return false;
    item->state = FACTS_ITEM_BUSY;
    count_todo(state, item, -1);
    return true;
}

/* A case that lacked memory is for a worker that has the GPU alone. If places are reused, the case
 * that was added first is taken: a search asks its most useful question first. */
static bool take_from(facts_target_state *state, int queue, bool alone, bool reuses, size_t *work)
{
    facts_queue *q = &state->queues[queue];
    facts_item *first = NULL;
    for (size_t i = alone || reuses ? 0 : q->cursor;
         q->todo > 0 && i < state->item_count && (reuses || !first); i++) {
        facts_item *item = &state->items[i];
        if (!alone)
            q->cursor = i + 1;
        if (item->queue == queue && item->state == FACTS_ITEM_TODO &&
            (!item->had_no_room || alone) && (!first || item->serial < first->serial))
            first = item;
    }
    if (!first)
        return false;
    first->state = FACTS_ITEM_BUSY;
    count_todo(state, first, -1);
    *work = (size_t)(first - state->items);
    return true;
}

static bool take_item(facts_supervision *run, facts_slot *slot)
{
    facts_target_state *state = &run->targets[slot->target];
    bool tried[FACTS_QUEUES] = { false };
    if (run->stopping || state->failed)
        return false;
    for (int from = facts_queue_first(state, slot->queue); from >= 0;
         from = facts_queue_next(run, state, slot->alone, tried)) {
        if (take_from(state, from, slot->alone, run->order->on_free != NULL, &slot->work)) {
            state->queues[slot->queue].workers--;
            state->queues[from].workers++;
            slot->queue = from;
            return true;
        }
        tried[from] = true;
    }
    return false;
}

bool facts_next_item(facts_supervision *run, facts_slot *slot)
{
    while (!take_item(run, slot))
        if (run->stopping || run->targets[slot->target].failed || !ask_for_more(run))
            return false;
    return true;
}

void facts_item_done(facts_supervision *run, size_t target, size_t work)
{
    run->targets[target].items[work].state = FACTS_ITEM_DONE;
    run->counts->done++;
    if (run->order->on_done)
        run->order->on_done(run->order->context, work);
}

void facts_item_free(facts_supervision *run, size_t target, size_t work)
{
    if (!run->order->on_free)
        return;
    run->targets[target].items[work].state = FACTS_ITEM_FREE;
    run->order->on_free(run->order->context, work);
}

void facts_item_again(facts_supervision *run, size_t target, size_t work, int from_config)
{
    facts_target_state *state = &run->targets[target];
    facts_item *item = &state->items[work];
    item->state = FACTS_ITEM_TODO;
    item->from_config = from_config;
    count_todo(state, item, 1);
    if (work < state->queues[item->queue].cursor)
        state->queues[item->queue].cursor = work;
    if (state->failed)
        facts_fail_target(run, target, "environment", "the target was given up", "");
}

bool facts_item_again_alone(facts_supervision *run, size_t target, size_t work, int from_config)
{
    facts_item *item = &run->targets[target].items[work];
    if (item->had_no_room)
        return false;
    item->had_no_room = true;
    facts_item_again(run, target, work, from_config);
    return true;
}

void facts_fail_target(facts_supervision *run, size_t target, const char *class_word,
                       const char *text, const char *remedy)
{
    facts_target_state *state = &run->targets[target];
    facts_evidence evidence = { .verdict = "inconclusive",
                                .config = -1,
                                .class_word = class_word,
                                .text = text,
                                .remedy = remedy };
    const char *file = state->target->described.file;
    if (!run->counts->target_failed)
        snprintf(run->counts->trouble, sizeof run->counts->trouble, "%s on %s%s%.200s%s: %s%s%s",
                 state->target->build.name, state->device, *file ? " (" : "", file,
                 *file ? ")" : "", text, *remedy ? "; " : "", remedy);
    run->counts->target_failed = true;
    state->failed = true;
    for (size_t work = 0; work < state->item_count && !run->counts->record_failed && !run->stopping;
         work++) {
        facts_item *item = &state->items[work];
        if (item->state != FACTS_ITEM_TODO)
            continue;
        count_todo(state, item, -1);
        facts_text_clear(&run->evidence);
        facts_compose_evidence(&run->evidence, &evidence);
        facts_write_row(run, target, work, run->evidence.data, run->evidence.length,
                        (facts_row_extra){ .wall_ms = -1 });
        facts_item_done(run, target, work);
    }
}

/* Is there enough work to justify another worker's start? */
static bool worth_another(const facts_supervision *run, const facts_target_state *state)
{
    if (run->order->more)
        return state->todo >
               (size_t)state->starting; /* each starting worker takes a case, and asks for more */
    return facts_queue_next(run, state, false, NULL) >= 0;
}

/* Targets without a worker first, in their order; then the target with most work. *gpu is the
 * worker's GPU. */
static facts_target_state *pick_target(const facts_supervision *run, int *gpu)
{
    facts_target_state *best = NULL;
    for (size_t i = 0; i < run->order->target_count; i++) {
        facts_target_state *state = &run->targets[i];
        int with_room;
        if (!state->todo || state->failed || !facts_gpu_choose(run, state, &with_room))
            continue;
        if (state->live && (!worth_another(run, state) || (best && state->todo <= best->todo)))
            continue;
        best = state;
        *gpu = with_room;
        if (!state->live)
            return state;
    }
    return best;
}

static void close_all(facts_supervision *run)
{
    run->closing = true;
    uv_close((uv_handle_t *)&run->tick, NULL);
    for (size_t i = 0; i < sizeof run->signals / sizeof run->signals[0]; i++)
        uv_close((uv_handle_t *)&run->signals[i], NULL);
}

void facts_schedule(facts_supervision *run)
{
    const bool waits = facts_gpus_wait(run);
    facts_target_state *state;
    int gpu;
    if (!run->live)
        ask_for_more(run);
    while (!run->stopping && run->live < run->jobs && (state = pick_target(run, &gpu)) != NULL)
        facts_slot_start(run, (size_t)(state - run->targets), gpu);
    facts_slot_wake_all(run);
    if (!run->live && !run->closing && !waits)
        close_all(run);
}

static void facts_stop(facts_supervision *run)
{
    run->stopping = true;
    for (facts_slot *slot = run->slots; slot; slot = slot->next)
        if (slot->phase == FACTS_PHASE_STARTING)
            facts_process_kill(slot->process); /* it has nothing in hand */
    facts_slot_wake_all(run);
}

static void on_signal(uv_signal_t *handle, int number)
{
    facts_supervision *run = handle->data;
    (void)number;
    run->counts->interrupted = true;
    run->signals_seen++;
    facts_stop(run);
    if (run->signals_seen > 1)
        facts_slot_kill_all(run);
}

static void on_tick(uv_timer_t *handle)
{
    facts_supervision *run = handle->data;
    if (!run->live) /* it waits for the memory of a GPU */
        facts_schedule(run);
    if (run->order->on_tick)
        run->order->on_tick(run->order->context, run->counts->done, run->counts->planned,
                            run->live);
}

static int cores(void)
{
    cpu_set_t mine; /* uv_available_parallelism needs libuv 1.44 */
    return sched_getaffinity(0, sizeof mine, &mine) == 0 ? CPU_COUNT(&mine)
                                                         : (int)sysconf(_SC_NPROCESSORS_ONLN);
}

static void prepare(facts_supervision *run)
{
    const facts_order *order = run->order;
    run->jobs = order->jobs > 0 ? order->jobs
                                : cores(); /* a GPU takes as many of them as its memory allows */
    if (order->another_round)
        run->jobs = (int)order->target_count;
    run->threads = cores() / run->jobs > 0 ? cores() / run->jobs : 1;
    run->timeout_s = order->timeout_s > 0 ? order->timeout_s : default_timeout_s[order->task];
    run->targets = calloc(order->target_count, sizeof *run->targets);
    run->line = malloc(sizeof *run->line);
    run->row = malloc(sizeof *run->row);
    for (size_t i = 0; i < order->target_count; i++) {
        facts_target_state *state = &run->targets[i];
        state->target = &order->targets[i];
        snprintf(state->device, sizeof state->device, "%s", state->target->device);
        if (state->target->kind == FACTS_TARGET_DESCRIBED)
            state->sm = state->target->described.sm;
    }
    facts_gpus_prepare(run);
    fit_items(run);
    char folder[FACTS_PATH];
    if (facts_home_path("nulldriver", folder))
        facts_join(run->driver, folder, "libcuda.so.1");
}

static void release(facts_supervision *run)
{
    for (size_t i = 0; i < run->order->target_count; i++) {
        facts_links_remove(&run->targets[i].links);
        free(run->targets[i].items);
        facts_text_free(&run->targets[i].libraries);
    }
    free(run->targets);
    free(run->gpus);
    free(run->line);
    free(run->row);
    facts_text_free(&run->text);
    facts_text_free(&run->evidence);
    free(run);
}

/* Returns 0, or why there is no loop (libuv's number). */
static int start_loop(facts_supervision *run)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    int failed = uv_loop_init(&run->loop);
    if (!failed)
        failed = uv_timer_init(&run->loop, &run->tick);
    for (size_t i = 0; i < 3 && !failed; i++) {
        failed = uv_signal_init(&run->loop, &run->signals[i]);
        run->signals[i].data = run;
        if (!failed)
            failed = uv_signal_start(&run->signals[i], on_signal, numbers[i]);
    }
    run->tick.data = run;
    return failed ? failed : uv_timer_start(&run->tick, on_tick, TICK_MS, TICK_MS);
}

int facts_supervise(const facts_order *order, facts_outcome_counts *out)
{
    *out = (facts_outcome_counts){ 0 };
    facts_supervision *run = calloc(1, sizeof *run);
    *run = (facts_supervision){ .order = order, .counts = out, .queue_count = 1 };
    prepare(run);
    signal(SIGPIPE, SIG_IGN);
    const int failed = start_loop(run);
    if (failed) {
        snprintf(out->trouble, sizeof out->trouble, "the workers cannot be watched: %s",
                 uv_strerror(failed));
        release(run);
        return 3;
    }
    for (size_t i = 0; i < order->target_count; i++)
        if (order->targets[i].kind !=
            FACTS_TARGET_GPU) /* a GPU's name is known once its first worker is ready */
            facts_look_up(run, i);
    facts_schedule(run);
    uv_run(&run->loop, UV_RUN_DEFAULT);
    uv_loop_close(&run->loop);
    release(run);
    return 0;
}

/* A run with another_round: the targets alternate, so that slow changes (clocks, temperature)
 * affect all of them equally. One worker at a time is busy. */

static facts_slot *slot_of(const facts_supervision *run, size_t target)
{
    for (facts_slot *slot = run->slots; slot; slot = slot->next)
        if (slot->target == target && slot->phase == FACTS_PHASE_IDLE)
            return slot;
    return NULL;
}

/* A worker that starts or ends disturbs a measurement, too. */
static bool is_anyone_busy(const facts_supervision *run)
{
    for (const facts_slot *slot = run->slots; slot; slot = slot->next)
        if (slot->phase != FACTS_PHASE_IDLE)
            return true;
    return false;
}

static void close_idle(facts_supervision *run)
{
    for (facts_slot *slot = run->slots; slot; slot = slot->next)
        if (slot->phase == FACTS_PHASE_IDLE)
            facts_slot_close(slot);
}

/* Is there a target without a row of the case? It is asked if its worker runs; otherwise the
 * schedule starts one. */
static bool ask_case(facts_supervision *run, size_t work)
{
    for (size_t target = 0; target < run->order->target_count; target++) {
        const facts_target_state *state = &run->targets[target];
        if (state->failed || state->items[work].state == FACTS_ITEM_DONE)
            continue;
        facts_slot *slot = slot_of(run, target);
        if (slot && facts_take_item(run, target, work))
            facts_slot_ask(slot, work);
        return true;
    }
    return false;
}

static bool take_turn(facts_supervision *run, facts_turns *turns)
{
    const size_t count = run->order->target_count;
    while (turns->next < count) {
        const size_t place = turns->next++;
        facts_slot *slot = slot_of(run, turns->round % 2 ? count - 1 - place : place);
        if (!slot || !slot->keeps || slot->work != turns->work)
            continue;
        turns->any = true;
        facts_slot_take_turn(slot, turns->work);
        return true;
    }
    return false;
}

void facts_turns_go_on(facts_supervision *run)
{
    facts_turns *turns = &run->turns;
    if (run->stopping) {
        close_idle(run);
        return;
    }
    if (is_anyone_busy(run))
        return;
    for (; turns->work < run->order->work_count;
         *turns = (facts_turns){ .work = turns->work + 1 }) {
        if (ask_case(run, turns->work))
            return;
        do {
            if (take_turn(run, turns))
                return;
            if (!turns->any ||
                !run->order->another_round(run->order->context, turns->work, turns->round))
                break;
            *turns = (facts_turns){ .work = turns->work, .round = turns->round + 1 };
        } while (true);
    }
    close_idle(run);
}

void facts_record_ends(facts_supervision *run, const char *why)
{
    run->counts->record_failed = true;
    snprintf(run->counts->trouble, sizeof run->counts->trouble, "%s", why);
    facts_stop(run);
    facts_slot_kill_all(run);
}

void facts_write_line(facts_supervision *run, const facts_text *line)
{
    facts_writer *writer = run->order->writer;
    if (!run->counts->record_failed && writer &&
        !facts_writer_line(writer, line->data, line->length))
        facts_record_ends(run, facts_writer_error(writer));
}

/* Ran where numbers are made, or only asked? */
static const char *grade_of(const facts_order *order, const facts_target *target)
{
    return order->task == FACTS_TASK_RUN && target->kind != FACTS_TARGET_DESCRIBED ? "measured"
                                                                                   : "decided";
}

static facts_frame frame_of(const facts_supervision *run, size_t target, size_t work,
                            const facts_row_extra *extra)
{
    const facts_order *order = run->order;
    const facts_target_state *state = &run->targets[target];
    return (facts_frame){
        .name = order->work[work].name,
        .group = order->work[work].group,
        .calls = order->work[work].calls,
        .cudnn = state->target->build.version,
        .build = state->target->build.name,
        .device = state->device,
        .grade = grade_of(order, state->target),
        .backend = facts_target_backend(state->target),
        .run = order->run_id,
        .expectation = "",
        .verdict = extra->verdict ? extra->verdict : "",
        .note = extra->note ? extra->note : "",
        .sm = state->sm,
        .wall_ms = extra->wall_ms,
        .attempt = state->items[work].attempts,
        .more = extra->more,
    };
}

bool facts_write_row(facts_supervision *run, size_t target, size_t work, const char *text,
                     size_t length, facts_row_extra extra)
{
    const facts_order *order = run->order;
    facts_line *row = run->row;
    size_t count;
    if (!facts_scan_object(text, length, row->members, FACTS_ROW_MEMBERS, &count) ||
        count > FACTS_ROW_MEMBERS)
        return false;
    row->count = count;
    facts_verdict verdict = facts_verdict_parse(facts_line_get(row, "verdict"));
    if (verdict == FACTS_VERDICT_COUNT)
        return false;
    facts_frame frame = frame_of(run, target, work, &extra);
    if (extra.verdict)
        verdict = FACTS_VERDICT_EXIT_CRASH;
    facts_expected_row expected = { .unexpected = facts_verdict_is_finding(verdict) };
    if (order->expect)
        order->expect(order->context, target, work, verdict, row, &expected);
    frame.expectation = expected.json;
    frame.known = expected.known;
    facts_text_clear(&run->text);
    facts_compose_row(&run->text, row, &frame);
    facts_write_line(run, &run->text);
    if (run->counts->record_failed)
        return true;
    run->counts->rows++;
    if (order->on_row)
        order->on_row(order->context, &(facts_outcome){ .target = target,
                                                        .work = work,
                                                        .line = row,
                                                        .text = run->text.data,
                                                        .length = run->text.length,
                                                        .verdict = verdict,
                                                        .expected = &expected });
    if (order->fail_fast && expected.unexpected && !run->stopping) {
        run->counts->stopped_early = true;
        facts_stop(run);
    }
    return true;
}

void facts_write_turn(facts_supervision *run, size_t target, size_t work, facts_span turn)
{
    const facts_frame frame = frame_of(run, target, work, &(facts_row_extra){ .wall_ms = -1 });
    facts_text_clear(&run->text);
    facts_compose_time(&run->text, &frame, target, run->turns.round, turn);
    facts_write_line(run, &run->text);
    if (!run->counts->record_failed)
        run->order->on_turn(run->order->context, target, work, turn);
}
