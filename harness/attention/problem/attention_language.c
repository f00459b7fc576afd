#include <stdlib.h>

#include "case_problem.h"
#include "keys/keys.h"
#include "keys/normal_form.h"
#include "rescale.h"
#include "simpler_attention.h"

/* The multiplications of a case, about: what the reference needs its time for. */
static double work_of(const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    return (double)ask->batch * (double)ask->heads_q * (double)ask->seq_q * (double)ask->seq_kv *
           (double)(ask->dim_qk + ask->dim_v) * (double)problem->repeat;
}

static bool resolves(const facts_case *c, double *work)
{
    facts_error ignored;
    facts_problem *problem = malloc(sizeof *problem);
    const bool done = problem && facts_problem_resolve(problem, c, &ignored) == FACTS_RESOLVED;
    *work = done ? work_of(problem) : 0;
    free(problem);
    return done;
}

static void unguard(facts_case *c)
{
    facts_error ignored;
    if (c->at[FACTS_KEY_GUARDS] == 0 && c->at[FACTS_KEY_POLICY] == 0)
        (void)facts_case_set(c, FACTS_KEY_GUARDS, "off", &ignored);
}

#define AS_BACKEND(symbol, value, word) word " "
const facts_language facts_attention_language = {
    .keys = facts_keys,
    .count = FACTS_KEY_COUNT,
    .always = FACTS_KEY_DTYPE + 1,
    .parts = facts_key_parts,
    .part_count = FACTS_KEY_PARTS,
    .known = true,
    .backends = FATTN_BACKEND_LIST(AS_BACKEND),
    .follows = facts_follows,
    .normalise = facts_normalise,
    .unfold = facts_unfold,
    .resolves = resolves,
    .unguard = unguard,
    .simpler = &facts_simpler_attention,
    .process_variable = FACTS_RESCALE,
    .process_key = FACTS_KEY_RESCALE,
};

bool facts_case_parse(facts_case *out, const char *text, facts_error *error)
{
    return facts_case_read(&facts_attention_language, out, text, error);
}
