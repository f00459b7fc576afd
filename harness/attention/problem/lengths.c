#include "lengths.h"

#include <stdio.h>
#include <string.h>

#include "keys/key_values.h"
#include "keys/keys.h"
#include "keys/layout_word.h"
#include "philox.h"
#include "words/case_text.h"

_Static_assert(FACTS_MAX_LENGTHS == FACTS_MAX_BATCH_LENS, "one bound for lengths");

/* Draws the lengths of an entry: 1..s for each side, from the first two words. Returns all words.
 */
static facts_draw draw(facts_problem *problem, int64_t b)
{
    facts_draw drawn =
        facts_draw_at(problem->seed, FACTS_STREAM_LENGTHS, FACTS_LANE_VALUE, (uint64_t)b);
    problem->len_q[b] = 1 + (int32_t)facts_pick(drawn.r[0], (uint32_t)problem->ask.seq_q);
    problem->len_kv[b] = 1 + (int32_t)facts_pick(drawn.r[1], (uint32_t)problem->ask.seq_kv);
    return drawn;
}

static void by_kind(facts_problem *problem, const char *kind)
{
    int64_t batch = problem->ask.len_broadcast ? 1 : problem->ask.batch, empty = 0;
    for (int64_t b = 0; b < batch; b++) {
        facts_draw drawn = draw(problem, b);
        if (b == 0)
            empty = facts_pick(drawn.r[2], (uint32_t)batch);
        if (strcmp(kind, "full") == 0) {
            problem->len_q[b] = (int32_t)problem->ask.seq_q;
            problem->len_kv[b] = (int32_t)problem->ask.seq_kv;
        } else if (strcmp(kind, "one") == 0) {
            problem->len_q[b] = problem->len_kv[b] = 1;
        }
    }
    if (strcmp(kind, "zero:q") == 0 || strcmp(kind, "zero:both") == 0)
        problem->len_q[empty] = 0;
    if (strcmp(kind, "zero:kv") == 0 || strcmp(kind, "zero:both") == 0)
        problem->len_kv[empty] = 0;
}

static const char *given(facts_problem *problem, facts_span text)
{
    static _Thread_local char message[160];
    facts_span keys = text;
    facts_span queries = facts_span_cut(&keys, '/');
    if (queries.length == text.length)
        keys = queries;
    const struct {
        facts_span text;
        int32_t *out;
        int64_t most;
        const char *side;
    } side[2] = { { queries, problem->len_q, problem->ask.seq_q, "queries" },
                  { keys, problem->len_kv, problem->ask.seq_kv, "keys" } };
    for (int i = 0; i < 2; i++) {
        size_t count = facts_lengths_read(side[i].text, side[i].out, FACTS_MAX_BATCH_LENS);
        int64_t expects = problem->ask.len_broadcast ? 1 : problem->ask.batch;
        if ((int64_t)count != expects) {
            snprintf(message, sizeof message, "%zu lengths of %s for %lld batch entries%s", count,
                     side[i].side, (long long)problem->ask.batch,
                     problem->ask.len_broadcast ? " that share one" : "");
            return message;
        }
        for (size_t b = 0; b < count; b++) {
            problem->unused[b] |= side[i].out[b] < 0;
            if (side[i].out[b] <= side[i].most)
                continue;
            snprintf(message, sizeof message, "length %d of %s is above s=%lld", side[i].out[b],
                     side[i].side, (long long)side[i].most);
            return message;
        }
    }
    return NULL;
}

/* A length of -1 means that the sequence is unused; XLA fills unused segments with it. Only for
 * ragged tensors, for queries and keys.
 */
static const char *take_unused(facts_problem *problem, const facts_case *c)
{
    bool any = false, packed = false;
    for (int64_t b = 0; b < problem->ask.batch; b++) {
        any |= problem->unused[b];
        if (problem->unused[b] && problem->len_q[b] != problem->len_kv[b])
            return "-1 marks an unused sequence: give it for the queries and for the keys";
        if (problem->unused[b])
            problem->len_q[b] = problem->len_kv[b] = 0;
    }
    for (facts_key key = FACTS_KEY_Q; key <= FACTS_KEY_V; key++)
        packed |= facts_layout_ragged(facts_span_of(facts_case_get(c, key)));
    if (any && (!packed || problem->ask.len_broadcast ||
                strcmp(facts_case_get(c, FACTS_KEY_CU), "none") != 0))
        return "-1 marks an unused ragged sequence: it needs a layout with t (thd), a length for "
               "each entry, and cu=none";
    return NULL;
}

/* Sequences of Q, K and V in one storage: as long as the shorter of the two that were drawn. */
static void join_sides(facts_problem *problem)
{
    for (int64_t b = 0; b < problem->ask.batch; b++) {
        int32_t least =
            problem->len_q[b] < problem->len_kv[b] ? problem->len_q[b] : problem->len_kv[b];
        problem->len_q[b] = problem->len_kv[b] = least;
    }
}

/* lens_shape=bcast: the first entry's lengths are everybody's. */
static void share_first(facts_problem *problem)
{
    for (int64_t b = 1; b < problem->ask.batch; b++) {
        problem->len_q[b] = problem->len_q[0];
        problem->len_kv[b] = problem->len_kv[0];
    }
}

const char *facts_lengths_resolve(facts_problem *problem, const facts_case *c)
{
    const char *padding = facts_case_get(c, FACTS_KEY_PADDING),
               *lens = facts_case_get(c, FACTS_KEY_LENS);
    bool explicit = strcmp(lens, "none") != 0;
    problem->has_lengths = explicit || strcmp(padding, "none") != 0;
    problem->ask.padding = problem->has_lengths;
    if (!problem->has_lengths)
        return NULL;
    problem->ask.len_broadcast = strcmp(facts_case_get(c, FACTS_KEY_LENS_SHAPE), "bcast") == 0;
    const char *wrong = NULL;
    if (explicit)
        wrong = given(problem, facts_span_of(lens));
    if (explicit && wrong == NULL)
        wrong = take_unused(problem, c);
    else
        by_kind(problem, padding);
    facts_span q = facts_span_of(facts_case_get(c, FACTS_KEY_Q));
    if (!explicit && facts_layout_ragged(q) && facts_layout_packs(q) == 3)
        join_sides(problem);
    if (wrong == NULL && problem->ask.len_broadcast)
        share_first(problem);
    return wrong;
}
