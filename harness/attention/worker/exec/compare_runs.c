/* Compares the first run with the expected values, and every later run with the first. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fattn/device.h"
#include "judging.h"
#include "numbers/check/judge_keep.h"
#include "numbers/expect/expect_whole.h"
#include "runs.h"

/* ---- later runs
 * ----------------------------------------------------------------------------------------------------------
 */

/* Here: the expected values of a huge problem are computed in parts. */
static void judged(facts_runs *r, fattn_status status, double since)
{
    if (status == FATTN_INTERNAL && r->forward)
        facts_runs_blame_forward(r);
    else
        facts_runs_check(r, status, NULL);
    r->out->judge_ms += facts_now_ms() - since;
}

/* Of the different elements, counts those that differ by more than another order of a sum explains.
 * dQ may be summed by atomics, and dBias over the batch, unless the case requires the same bits. */
static int64_t unlike(facts_runs *r, facts_tensor_id id, int64_t different, int64_t at[4])
{
    double share;
    int64_t far = 0;
    switch (facts_expect_alike(r->problem, id, &share)) {
    case FACTS_ALIKE_BITS:
        return different;
    case FACTS_ALIKE_SUMS:
        facts_runs_check(r, facts_judging_close(&far, r->reference, id, share, at), NULL);
        return far;
    default:
        return 0;
    }
}

/* The plain run is judged separately: an error that only the graph makes is the graph's. */
static facts_verdict later_verdict(const facts_runs *r, const facts_judgement *found)
{
    const facts_verdict verdict = facts_judgement_verdict(found);
    const bool graph = r->otherwise == FACTS_VERDICT_GRAPH_MISMATCH;
    return verdict != FACTS_VERDICT_PASS && graph ? FACTS_VERDICT_GRAPH_MISMATCH : verdict;
}

static void judge_again(facts_runs *r, facts_tensor_id id)
{
    facts_judgement found;
    const double since = facts_now_ms();
    judged(r, facts_judging_of(&found, r->reference, id, FACTS_PATTERN_B), since);
    const facts_verdict both = facts_verdict_worse(r->second[id], later_verdict(r, &found));
    if (both != r->second[id])
        r->judgement[id] = found;
    r->second[id] = both;
}

/* Equal numbers are as correct as those of the first run, which is compared with the expected
 * values. */
static bool is_same_array(const facts_runs *r, facts_array_id id,
                          const bool differs[FACTS_TENSOR_COUNT])
{
    const facts_tensor_id of = facts_amax_of(id);
    facts_memory *m = &r->reference->memory;
    return (of == FACTS_TENSOR_COUNT || !differs[of]) &&
           memcmp(facts_memory_array(m, id, FACTS_PATTERN_A),
                  facts_memory_array(m, id, FACTS_PATTERN_B),
                  (size_t)r->problem->array[id].count * sizeof(float)) == 0;
}

/* Numbers of a call over poison B must be correct too, but a sum may differ. `differs`: the tensors
 * that differ from the first run; NULL: all are compared. */
static void judge_arrays_again(facts_runs *r, const bool *differs)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        facts_judgement found;
        if (!r->problem->array[id].output || r->problem->array[id].count == 0 ||
            (differs && is_same_array(r, id, differs)) ||
            !facts_runs_check(r, facts_judging_array(&found, r->reference, id, FACTS_PATTERN_B),
                              NULL))
            continue;
        const facts_verdict verdict = later_verdict(r, &found);
        if (verdict != FACTS_VERDICT_PASS)
            facts_runs_find(r, verdict, "%s over other memory: %.9g, not %.9g within %.3g",
                            facts_array_words[id], found.got, found.want, found.bound);
    }
}

void facts_runs_compare(facts_runs *r, const char *how)
{
    bool differs[FACTS_TENSOR_COUNT] = { false };
    facts_rerun repeats = { .asked = { false } };
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        repeats.asked[id] = facts_tensor_is_output(r->problem, id) ||
                            (r->forward && (id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS));
    if (!facts_runs_check(r, facts_judging_repeat(&repeats, r->reference), NULL))
        return;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        int64_t different = repeats.different[id], *at = repeats.at[id];
        if (!different)
            continue;
        differs[id] = true;
        if (facts_tensor_is_output(r->problem, id))
            judge_again(r, id);
        if (id == FACTS_TENSOR_RNG_DUMP) /* the call may write anything where no key is read */
            continue;
        int64_t far = unlike(r, id, different, at);
        if (far || r->second[id] == FACTS_VERDICT_GRAPH_MISMATCH)
            facts_runs_find(r, r->otherwise,
                            "%s: %" PRId64 " elements differ between %s, the first at b %" PRId64
                            " h %" PRId64 " s %" PRId64 " d %" PRId64,
                            facts_tensor_word(id), far ? far : different, how, at[0], at[1], at[2],
                            at[3]);
    }
    judge_arrays_again(r, differs);
}

void facts_runs_judge_all(facts_runs *r, const char *how)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!facts_tensor_is_output(r->problem, id))
            continue;
        judge_again(r, id);
        if (r->second[id] != FACTS_VERDICT_PASS)
            facts_runs_find(r, r->second[id], "%s: %s", facts_tensor_word(id), how);
    }
    judge_arrays_again(r, NULL);
}

/* ---- the first run
 * ----------------------------------------------------------------------------------------------------------
 */

static facts_verdict verdict_of(facts_runs *r, facts_tensor_id id)
{
    facts_trial *out = r->out;
    out->judged[id] = true;
    facts_verdict first = facts_judgement_verdict(&out->judgement[id]),
                  verdict = facts_verdict_worse(first, r->second[id]);
    if (verdict != first)
        out->judgement[id] = r->judgement[id];
    if (verdict == FACTS_VERDICT_PASS && r->reference->untrusted[id]) {
        verdict = FACTS_VERDICT_MISTRUSTED;
        snprintf(out->text, sizeof out->text,
                 "%s: an answer of zeros, or of the neighbouring row, would pass too",
                 facts_tensor_word(id));
    }
    return verdict;
}

static void judge_array(facts_runs *r, facts_array_id id)
{
    facts_judgement *found = &r->out->array[id];
    facts_runs_check(r, facts_judging_array(found, r->reference, id, FACTS_PATTERN_A), NULL);
    const facts_verdict verdict = facts_judgement_verdict(found);
    if (verdict != FACTS_VERDICT_PASS &&
        facts_verdict_worse(r->out->verdict, verdict) != r->out->verdict)
        facts_runs_find(r, verdict, "%s: %.9g, not %.9g within %.3g", facts_array_words[id],
                        found->got, found->want, found->bound);
}

static void judge_overruns(facts_runs *r)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!r->overrun[id])
            continue;
        facts_judgement_overrun(&r->out->judgement[id], r->overrun[id]);
        r->out->judged[id] = true;
        r->out->verdict = FACTS_VERDICT_OVERRUN;
        snprintf(r->out->text, sizeof r->out->text, "%s: %" PRId64 " %s changed",
                 facts_tensor_word(id), r->overrun[id],
                 r->memory->block[id].output ? "elements of its guards and gaps"
                                             : "bytes of an input");
    }
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (r->overrun[FACTS_PLACE_ARRAYS + id]) {
            r->out->verdict = FACTS_VERDICT_OVERRUN;
            snprintf(r->out->text, sizeof r->out->text, "%s: %" PRId64 " bytes %s changed",
                     facts_array_words[id], r->overrun[FACTS_PLACE_ARRAYS + id],
                     r->problem->array[id].output ? "around it" : "of an input");
        }
    if (r->overrun[FACTS_PLACE_WORKSPACE]) {
        r->out->verdict = FACTS_VERDICT_OVERRUN;
        snprintf(r->out->text, sizeof r->out->text,
                 "workspace: %" PRId64 " bytes around it changed",
                 r->overrun[FACTS_PLACE_WORKSPACE]);
    }
}

/* Does dropout keep as many scores as it should, if each is kept independently? */
static void judge_dropout(facts_runs *r)
{
    const facts_kept *keep = &r->reference->keep;
    const facts_repeat *repeat = &keep->repeat;
    const double p = r->problem->ask.dropout;
    if (repeat->ratio > 1)
        facts_runs_find(r, FACTS_VERDICT_WRONG,
                        "dropout: %s keep %s keys: %.4g %% of %" PRId64
                        " bits agree, expected %.4g %%",
                        repeat->what, repeat->agree > repeat->chance ? "the same" : "opposite",
                        100 * repeat->agree, repeat->pairs, 100 * repeat->chance);
    if (p > 0 && keep->here && facts_rate_of(p, keep->kept, keep->of) == FACTS_RATE_NEITHER)
        facts_runs_find(
            r, FACTS_VERDICT_WRONG,
            "dropout: %" PRId64 " of %" PRId64
            " scores were kept; expected a share of 1 - %g, exact or rounded to sixteenths",
            keep->kept, keep->of, p);
}

void facts_runs_judge(facts_runs *r)
{
    facts_runs_say(r, "judge");
    const double since = facts_now_ms();
    judged(r, facts_judging_all(r->out->judgement, r->out->bits, r->reference), since);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(r->problem, id))
            r->out->verdict = facts_verdict_worse(r->out->verdict, verdict_of(r, id));
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (r->problem->array[id].output && r->problem->array[id].count)
            judge_array(r, id);
    judge_dropout(r);
    judge_overruns(r);
}

/* Each timed launch overwrites the answers of the previous one, so only the last answers can be
 * compared. */
void facts_runs_time(facts_runs *r, fattn_status (*launch)(void *, struct CUstream_st *),
                     void *argument)
{
    char how[80];
    snprintf(how, sizeof how, "the first run and the last of %d timed launches",
             FACTS_TIMED_LAUNCHES);
    if (facts_runs_check(r,
                         fattn_stream_time(r->worker->context, r->worker->stream, launch, argument,
                                           FACTS_TIMED_LAUNCHES, &r->out->exec_us),
                         NULL) &&
        facts_runs_fetch(r, FACTS_PATTERN_B))
        facts_runs_compare(r, how);
}
