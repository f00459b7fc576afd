/* A target that is ready: what it is called, and its line of the record. */
#include <stdio.h>
#include <string.h>

#include "supervision.h"

/* The first GPU of a kind takes the plain name; with several in one run the number tells them apart. */
static void name_device(facts_supervision *run, size_t target, const facts_line *ready)
{
    facts_target_state *state = &run->targets[target];
    char full[128], label[96];
    if (state->target->kind != FACTS_TARGET_GPU || !facts_slice_string(facts_line_get(ready, "device_name"), full, sizeof full))
        return;
    bool several = false;
    for (size_t i = 0; i < run->order->target_count; i++)
        several |= run->order->targets[i].kind == FACTS_TARGET_GPU && run->order->targets[i].ordinal != state->target->ordinal;
    facts_device_label(label, sizeof label, full);
    if (!label[0])
        return;
    if (several)
        snprintf(state->device, sizeof state->device, "%s#%d", label, state->target->ordinal);
    else
        snprintf(state->device, sizeof state->device, "%s", label);
}

void facts_target_ready(facts_supervision *run, size_t target, facts_slice ready)
{
    const facts_order *order = run->order;
    facts_target_state *state = &run->targets[target];
    facts_line *inner = run->row;
    size_t count;
    int64_t sm;
    if (state->told || !facts_scan_object(ready.at, ready.length, inner->members, FACTS_ROW_MEMBERS, &count))
        return;
    inner->count = count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS;
    state->told = true;
    if (facts_slice_int(facts_line_get(inner, "sm"), &sm) && sm >= 0 && sm < 10000)
        state->sm = (int)sm;
    name_device(run, target, inner);
    if (order->on_ready)
        order->on_ready(order->context, target, state->device, inner);
    facts_write_target(run, target, ready);
}
