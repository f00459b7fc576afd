#include <stdio.h>
#include <string.h>

#include "supervision.h"

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
