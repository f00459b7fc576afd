/* What the end of a worker means: for its target, for the case that it had in hand, and for its
 * last row. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "case/words/worker_exit.h"
#include "supervision.h"

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
    facts_member members[FACTS_ROW_MEMBERS];
    size_t count;
    if (!facts_scan_object(slot->held, slot->held_length, members, FACTS_ROW_MEMBERS, &count))
        return false;
    count = count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS;
    return !facts_verdict_is_finding(
        facts_verdict_parse(facts_member_find(members, count, "verdict")));
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
