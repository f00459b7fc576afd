/* A run with another_round: the targets alternate, so that slow changes (clocks, temperature)
 * affect all of them equally. One worker at a time is busy. */
#include "supervision.h"

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
