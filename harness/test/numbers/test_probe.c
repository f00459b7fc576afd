/* P3: dropout's mask read out of the answers of a kernel that was given one; and the windows that
 * read-outs look through. */
#include "case/problem/philox.h"
#include "checking.h"
#include "numbers/check/probe_keep.h"

#define P 0.1

/* The mask of the standard stream, unless it is another kernel's. */
static uint8_t *make_mask(const facts_problem *p, uint64_t seed)
{
    int64_t n = p->ask.batch * p->ask.heads_q * p->ask.seq_q * p->ask.seq_kv;
    uint8_t *keep = malloc((size_t)n);
    for (int64_t e = 0; e < n; e++)
        keep[e] = facts_draw_at(seed, FACTS_STREAM_KEEP, FACTS_LANE_VALUE, (uint64_t)e).r[0] >=
                  P * 0x1p32;
    return keep;
}

typedef struct mask_read {
    facts_keep keep;
    facts_held held;
    int64_t differ; /* from the mask that was given */
} mask_read;

/* Reads the mask through four windows, of forward or backward. */
static mask_read read_mask(const char *text, const facts_kernel *kernel, double dropped)
{
    world w = { .p = case_of(text), .keep_scale = (double)(float)(1.0 / (1.0 - P)) };
    const facts_problem asked = w.p;
    uint8_t *mask = make_mask(&w.p, w.p.seed);
    bool backward = w.p.ask.pass == FATTN_BACKWARD;
    int64_t n = w.p.ask.batch * w.p.ask.heads_q * w.p.ask.seq_q * w.p.ask.seq_kv;
    mask_read out = { .keep = { .dim = { w.p.ask.batch, w.p.ask.heads_q, w.p.ask.seq_q,
                                         w.p.ask.seq_kv } } };
    out.keep.bit = malloc((size_t)n);
    memset(out.keep.bit, 7, (size_t)n);
    w.keep = mask;
    for (int number = 0; number < FACTS_CHECK_RUNS; number++) {
        w.p = asked;
        world_fill(&w);
        facts_keep_write(&w.view, backward, number);
        w.p.fill = FACTS_FILL_OTHER;
        world_given(&w);
        world_answer(&w, kernel);
        facts_keep_read(&out.keep, &out.held, &w.view, backward, number, dropped);
        world_leave(&w);
    }
    for (int64_t i = 0; i < n; i++)
        out.differ += out.keep.bit[i] != 7 && out.keep.bit[i] != mask[i];
    free(out.keep.bit);
    free(mask);
    return out;
}

static const char *const cases[] = { "pass=fwd dtype=bf16 b=2 h=4/2 s=130/200 d=64 mask=causal",
                                     "pass=fwd dtype=f16 b=3 h=2 s=64/100 d=32 padding=random",
                                     "pass=bwd dtype=bf16 b=2 h=4/2 s=130/200 d=64",
                                     "pass=bwd dtype=f16 b=2 h=2 s=100/64 d=32 mask=causal_br" };

Test(probe, a_mask_is_read_bit_for_bit_forward_and_backward)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mask_read r = read_mask(cases[i], &(facts_kernel){ .tile = 64 }, P);
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
    mask_read stale = read_mask(cases[0], &(facts_kernel){ .liar = FACTS_LIAR_DROPOUT_STALE }, P);
    mask_read unscaled =
        read_mask(cases[0], &(facts_kernel){ .liar = FACTS_LIAR_DROPOUT_NOSCALE }, P);
    mask_read back = read_mask(cases[2], &(facts_kernel){ .liar = FACTS_LIAR_B_DROPOUT_STALE }, P);
    cr_expect_gt(stale.differ, 100);
    cr_expect_gt(back.differ, 100);
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
