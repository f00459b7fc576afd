#include "further_plans.h"

#include <stdlib.h>

#include "dropout_kept.h"
#include "own_forward.h"

static void make_forward(const facts_worker *worker, const facts_problem *problem)
{
    const fattn_problem forward = facts_own_forward(&problem->ask);
    fattn_plan *plan = NULL;
    if (facts_plan_get(&plan, worker->plans, worker->context, &forward, NULL, NULL) == FATTN_OK)
        fattn_plan_destroy(plan);
}

static void make_dump(const facts_worker *worker, const facts_problem *problem,
                      fattn_backend backend)
{
    fattn_plan *plan = NULL;
    facts_problem *asked = malloc(sizeof *asked);
    if (asked &&
        (facts_kept_plan(&plan, asked, worker, problem, (int)backend, true) == FATTN_OK ||
         (problem->ask.pass == FATTN_BACKWARD &&
          facts_kept_plan(&plan, asked, worker, problem, (int)backend, false) == FATTN_OK)))
        fattn_plan_destroy(plan);
    free(asked);
}

void facts_further_plans(const facts_worker *worker, const facts_problem *problem,
                         fattn_backend backend)
{
    if (facts_has_own_forward(problem))
        make_forward(worker, problem);
    if (facts_kept_by_engine(problem))
        make_dump(worker, problem, backend);
}
