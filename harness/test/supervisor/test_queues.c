/* In which order workers take the cases of several queues, and how often they start again for it.
 */
#include <criterion/criterion.h>

#include "supervisor/supervision.h"

#define CASE_MS 25.0
#define START_MS 1000.0
#define WORKERS 8

typedef struct plan {
    facts_order order;
    facts_target_state state;
    facts_supervision run;
} plan;

static void prepare(plan *p, const size_t todo[FACTS_QUEUES])
{
    *p = (plan){ .order = { .task = FACTS_TASK_RUN },
                 .state = {
                     .ready = true, .start_ms = START_MS, .answers = 1, .busy_ms = CASE_MS } };
    p->run = (facts_supervision){ .order = &p->order };
    for (int i = 0; i < FACTS_QUEUES; i++)
        p->state.queues[i].todo = todo[i];
}

static int next_of(const plan *p, int own)
{
    bool tried[FACTS_QUEUES] = { false };
    int from = facts_queue_first(&p->state, own);
    while (from >= 0 && p->state.queues[from].todo == 0) {
        tried[from] = true;
        from = facts_queue_next(&p->run, &p->state, false, tried);
    }
    return from;
}

/* How long the run takes, and how often a worker starts again. The worker that is free first takes
 * the next case. */
static double simulate(plan *p, int workers, int *restarts)
{
    double free_at[WORKERS] = { 0 }, end = 0;
    int own[WORKERS];
    *restarts = 0;
    for (int i = 0; i < workers; i++) {
        own[i] = facts_queue_next(&p->run, &p->state, false, NULL);
        cr_assert_geq(own[i], 0);
        p->state.queues[own[i]].workers++;
    }
    for (;;) {
        int worker = -1;
        for (int i = 0; i < workers; i++)
            if (own[i] >= 0 && (worker < 0 || free_at[i] < free_at[worker]))
                worker = i;
        if (worker < 0)
            return end;
        const int from = next_of(p, own[worker]);
        p->state.queues[own[worker]].workers--;
        if (from >= 0) {
            free_at[worker] += CASE_MS + (from == own[worker] ? 0 : START_MS);
            *restarts += from != own[worker];
            p->state.queues[from].workers++;
            p->state.queues[from].todo--;
            end = free_at[worker] > end ? free_at[worker] : end;
        }
        own[worker] = from;
    }
}

/* As in peers-fe: most cases have no threshold. */
Test(queues, each_other_threshold_costs_one_start)
{
    for (int workers = 2; workers <= WORKERS; workers += 2) {
        plan p;
        int restarts;
        prepare(&p, (const size_t[FACTS_QUEUES]){ 2000, 80, 80, 80 });
        const double ms = simulate(&p, workers, &restarts), least = 2240 * CASE_MS / workers;
        cr_expect_leq(restarts, 4, "%d workers: %d restarts", workers, restarts);
        cr_expect_leq(ms, least + 2 * START_MS, "%d workers: %g ms, and %g without a start",
                      workers, ms, least);
    }
}

Test(queues, workers_start_for_the_queue_with_most_work)
{
    plan p;
    int restarts;
    prepare(&p, (const size_t[FACTS_QUEUES]){ 0, 1000, 900 });
    simulate(&p, 2, &restarts);
    cr_expect_leq(restarts, 1, "%d", restarts);
}

/* Nobody starts again for the last cases of a queue that has a worker. */
Test(queues, a_little_work_is_worth_no_start)
{
    plan p;
    prepare(&p, (const size_t[FACTS_QUEUES]){ 0, 60 });
    p.state.queues[1].workers = 1;
    cr_expect_eq(facts_queue_next(&p.run, &p.state, false, NULL), -1);
    p.state.queues[1].todo = 100;
    cr_expect_eq(facts_queue_next(&p.run, &p.state, false, NULL), 1);
    p.state.queues[1].todo = 1;
    p.state.queues[1].workers = 0;
    cr_expect_eq(facts_queue_next(&p.run, &p.state, false, NULL), 1,
                 "a queue without a worker needs one");
}

/* What had no memory waits for a worker that has its GPU alone. */
Test(queues, crowded_cases_bring_no_other_worker)
{
    plan p;
    prepare(&p, (const size_t[FACTS_QUEUES]){ 3 });
    p.state.queues[0].crowded = 3;
    cr_expect_eq(facts_queue_next(&p.run, &p.state, false, NULL), -1);
    cr_expect_eq(facts_queue_next(&p.run, &p.state, true, NULL), 0);
}
