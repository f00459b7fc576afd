/* P3: dropout's mask read out of answers that were given one; and the windows that
 * read-outs look through. */
#include "checking.h"
#include "numbers/check/judge_keep.h"

#define P 0.1

/* A kernel's mistake: another mask, or no 1/(1-p). */
typedef enum mistake { NONE, STALE, UNSCALED } mistake;

typedef struct mask_read {
    facts_keep keep;
    facts_held held;
    int64_t differ; /* from the mask that was given */
} mask_read;

static void answer(world *w, bool backward, mistake m)
{
    const facts_tensor_id id = backward ? FACTS_TENSOR_DV : FACTS_TENSOR_O;
    uint8_t *const given = w->given;
    w->given += m == STALE;
    world_answer(w);
    w->given = given;
    for (facts_walk k = facts_walk_of(w->p.tensor[id].dim); m == UNSCALED && facts_walk_on(&k);)
        facts_view_put(&w->view, id, k.at, facts_view_get(&w->view, id, k.at) * (1.0 - P));
}

/* Reads the mask through four windows, of forward or backward. */
static mask_read read_mask(const char *shape, mistake m)
{
    char text[200];
    snprintf(text, sizeof text, "%s dropout=0.1 dropout_mask=1", shape);
    const facts_problem asked = problem_asked(text);
    const bool backward = asked.ask.pass == FATTN_BACKWARD;
    mask_read out = { .keep = { .dim = { asked.ask.batch, asked.ask.heads_q, asked.ask.seq_q,
                                         asked.ask.seq_kv } } };
    const int64_t *dim = out.keep.dim, n = dim[0] * dim[1] * dim[2] * dim[3];
    out.keep.bit = malloc((size_t)n);
    for (int number = 0; number < FACTS_CHECK_RUNS; number++) {
        world w = { .p = asked };
        world_fill(&w);
        facts_keep_write(&w.view, backward, number);
        w.p.fill = FACTS_FILL_OTHER;
        world_given(&w);
        answer(&w, backward, m);
        memset(out.keep.bit, 7, (size_t)n);
        facts_keep_read(&out.keep, &out.held, &w.view, backward, number, P);
        for (int64_t i = 0; i < n; i++)
            out.differ += out.keep.bit[i] != 7 && out.keep.bit[i] != w.given[i];
        world_leave(&w);
    }
    free(out.keep.bit);
    return out;
}

static const char *const cases[] = { "pass=fwd dtype=bf16 b=2 h=4/2 s=130/200 d=64 mask=causal",
                                     "pass=fwd dtype=f16 b=3 h=2 s=64/100 d=32 padding=random",
                                     "pass=bwd dtype=bf16 b=2 h=4/2 s=130/200 d=64",
                                     "pass=bwd dtype=f16 b=2 h=2 s=100/64 d=32 mask=causal_br" };

Test(probe, a_mask_is_read_bit_for_bit_forward_and_backward)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mask_read r = read_mask(cases[i], NONE);
        cr_expect(r.differ == 0 && r.held.wrong == 0, "%s: %d bits differ, %d values: %s ratio %g",
                  cases[i], (int)r.differ, (int)r.held.wrong, r.held.law, r.held.ratio);
        cr_expect(r.keep.seen > 5000 && facts_keep_is_likely(&r.keep, P), "%s: %d of %d kept",
                  cases[i], (int)r.keep.kept, (int)r.keep.seen);
        cr_expect_not(facts_keep_is_likely(&r.keep, P + 0.1), "%s", cases[i]);
    }
}

/* cuDNN decides the fate of four scores at once: six deviations of a binomial are three of its own.
 */
Test(probe, scores_that_share_their_fate_in_fours_are_no_fault)
{
    cr_expect(facts_keep_is_likely(&(facts_keep){ .seen = 10000, .kept = 9000 - 180 }, P));
    cr_expect_not(facts_keep_is_likely(&(facts_keep){ .seen = 10000, .kept = 9000 - 302 }, P));
}

Test(probe, another_mask_and_another_scale_are_seen)
{
    const mask_read unscaled = read_mask(cases[0], UNSCALED);
    cr_expect_gt(read_mask(cases[0], STALE).differ, 100);
    cr_expect_gt(read_mask(cases[2], STALE).differ, 100);
    cr_expect(unscaled.differ == 0 && unscaled.held.wrong > 100, "%d %d", (int)unscaled.differ,
              (int)unscaled.held.wrong);
}

/* Whether every key is seen through the windows of four runs, for one head. */
static int64_t keys_unseen(int64_t keys, int64_t channels, int64_t head)
{
    int64_t unseen = 0;
    for (int64_t j = 0; j < keys; j++) {
        bool seen = false;
        for (int r = 0; r < FACTS_CHECK_RUNS; r++) {
            int64_t start = facts_window_start(keys, keys, channels, head, r);
            cr_assert(start >= 0 && start < keys);
            seen = seen || (j >= start && j < start + channels);
        }
        unseen += !seen;
    }
    return unseen;
}

Test(probe, windows_cover_all_keys_where_four_can_and_edges_where_not)
{
    for (int64_t head = 0; head < 9; head++) {
        cr_expect_eq(keys_unseen(200, 64, head), 0);
        cr_expect_eq(keys_unseen(256, 64, head), 0);
        cr_expect_eq(keys_unseen(7, 64, head), 0);
    }
    cr_expect_eq(facts_window_start(1000, 900, 64, 3, 0), 836, "the end that the length makes");
    cr_expect_eq(facts_window_start(1000, 900, 64, 3, 1), 96, "around the first tile's edge");
    cr_expect_eq(facts_window_start(1000, 900, 64, 3, 2), 864, "around the last tile's edge");
    cr_expect_neq(facts_window_start(1000, 900, 64, 3, 3), facts_window_start(1000, 900, 64, 4, 3),
                  "other heads look elsewhere");
}
