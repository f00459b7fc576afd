/* Masks of dropout that repeat, and masks that chance made. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "../numbers/checking.h"
#include "numbers/check/judge_keep.h"

/* splitmix64: nothing of the generators on trial. */
static uint64_t drawn(uint64_t n)
{
    n += 0x9E3779B97F4A7C15u;
    n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9u;
    n = (n ^ (n >> 27)) * 0x94D049BB133111EBu;
    return n ^ (n >> 31);
}

/* Which scores share a draw. */
typedef enum sharing { ALONE, FOUR_ROWS, FOUR_KEYS, TWO_BY_TWO, SHARINGS } sharing;

typedef struct mask {
    facts_problem p;
    uint8_t *bit;
    uint64_t seed;
    double chance; /* to keep */
    sharing how;
} mask;

/* As cuDNN shares: rows i, i + 2, i + 4, i + 6 of eight. */
static uint64_t draw_of(sharing how, uint64_t i, uint64_t j)
{
    switch (how) {
    case FOUR_ROWS:
        return (i / 8 * 2 + i % 2) << 24 | j;
    case FOUR_KEYS:
        return i << 24 | j / 4;
    case TWO_BY_TWO:
        return (i / 16 * 8 + i % 8) << 24 | j / 2;
    default:
        return i << 24 | j;
    }
}

static bool kept(const mask *m, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const uint64_t head = drawn(m->seed * 4096 + (uint64_t)b * 64 + (uint64_t)h),
                   word = drawn(head ^ drawn(draw_of(m->how, (uint64_t)i, (uint64_t)j)));
    return (double)(word >> 11) * 0x1p-53 < m->chance;
}

/* Where the bit of a score is taken from: a mistake. */
typedef void bend(int64_t at[4]);

static void straight(int64_t at[4])
{
    (void)at;
}

static mask mask_of(const char *text, uint64_t seed, double chance, sharing how, bend *from)
{
    mask m = { .p = problem_asked(text), .seed = seed, .chance = chance, .how = how };
    const int64_t dim[4] = { m.p.ask.batch, m.p.ask.heads_q, m.p.ask.seq_q, m.p.ask.seq_kv };
    m.bit = malloc((size_t)(dim[0] * dim[1] * dim[2] * dim[3]));
    uint8_t *bit = m.bit;
    for (facts_walk w = facts_walk_of(dim); facts_walk_on(&w);) {
        int64_t at[4] = { w.at[0], w.at[1], w.at[2], w.at[3] };
        from(at);
        *bit++ = kept(&m, at[0], at[1], at[2], at[3]);
    }
    return m;
}

static const char *const shapes[] = { "pass=fwd b=2 h=2 s=40/56 d=8 dropout=0.1",
                                      "pass=fwd b=3 h=3 s=7/33 d=8 dropout=0.1",
                                      "pass=fwd b=1 h=1 s=130/70 d=8 dropout=0.1 mask=causal",
                                      "pass=fwd b=2 h=1 s=40/140 d=8 dropout=0.1 padding=random",
                                      "pass=fwd b=2 h=1 s=24 d=8 dropout=0.1 window=3:2",
                                      "pass=fwd b=1 h=1 s=1/40 d=8 dropout=0.1" };
static const double chances[] = { 0.5, 0.9, 0.99, 0.2, 0.999 };

Test(keep_repeats, chance_is_never_called_a_repeat)
{
    facts_repeat worst = { .pairs = 0 };
    int masks = 0;
    for (uint64_t n = 0; n < 20; n++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t c = 0; c < sizeof chances / sizeof *chances; c++)
                for (sharing how = ALONE; how < SHARINGS; how++, masks++) {
                    mask m = mask_of(shapes[s], n, chances[c], how, straight),
                         other = mask_of(shapes[s], n + 1000, chances[c], how, straight);
                    const facts_repeat within = facts_repeat_within(&m.p, m.bit),
                                       between =
                                           facts_repeat_between(&m.p, m.bit, other.bit, "seeds");
                    worst = within.ratio > worst.ratio ? within : worst;
                    worst = between.ratio > worst.ratio ? between : worst;
                    cr_expect(within.ratio <= 1.0 && between.ratio <= 1.0,
                              "%s, %g, sharing %d: %s %g, seeds %g", shapes[s], chances[c],
                              (int)how, within.what, within.ratio, between.ratio);
                    free(m.bit);
                    free(other.bit);
                }
    cr_expect(masks >= 2000 && worst.ratio > 0.2, "%d masks, the worst %g", masks, worst.ratio);
    cr_log_info("%d masks, the worst %s, %g", masks, worst.what, worst.ratio);
}

/* ---- mistakes
 * ------------------------------------------------------------------------------------------------------------------
 */

static void one_batch(int64_t at[4])
{
    at[0] = 0;
}

static void one_head(int64_t at[4])
{
    at[1] = 0;
}

static void head_of_group(int64_t at[4])
{
    at[1] /= 2;
}

static void one_row(int64_t at[4])
{
    at[2] = 0;
}

static void row_of_tile(int64_t at[4])
{
    at[2] %= 32;
}

static void key_of_64(int64_t at[4])
{
    at[3] %= 64;
}

static void quads_of_rows(int64_t at[4])
{
    at[2] = at[2] / 32 * 32;
}

/* One counter for entries and heads, of two key heads. */
static void head_of_next_entry(int64_t at[4])
{
    at[1] += 2 * at[0];
    at[0] = 0;
}

static void head_of_5(int64_t at[4])
{
    at[1] %= 5;
}

static void row_of_256(int64_t at[4])
{
    at[2] %= 256;
}

static void key_of_256(int64_t at[4])
{
    at[3] %= 256;
}

static void row_and_key(int64_t at[4])
{
    at[3] += at[2];
    at[2] = 0;
}

Test(keep_repeats, distant_and_slanted_mistakes_are_found_and_named)
{
    static const struct {
        bend *from;
        const char *what;
    } lies[] = { { head_of_next_entry, "batch entries 1, heads -2 apart" },
                 { head_of_5, "heads 5 apart" },
                 { row_of_256, "rows 256 apart" },
                 { key_of_256, "keys 256 apart" },
                 { row_and_key, "rows 16, keys -16 apart" } };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        mask m = mask_of("pass=fwd b=2 h=6/2 s=260/520 d=8 dropout=0.1", i, 0.9, FOUR_ROWS,
                         lies[i].from);
        const facts_repeat found = facts_repeat_within(&m.p, m.bit);
        cr_expect(found.ratio > 1.0, "%s: %g", lies[i].what, found.ratio);
        cr_expect_str_eq(found.what, lies[i].what);
        free(m.bit);
    }
}

Test(keep_repeats, each_mistake_is_found_and_named)
{
    static const struct {
        bend *from;
        const char *axis;
        double agree; /* at least */
    } lies[] = { { one_batch, "batch entries", 1.0 }, { one_head, "heads", 1.0 },
                 { head_of_group, "heads 1", 0.6 },   { one_row, "rows", 1.0 },
                 { row_of_tile, "rows", 1.0 },        { key_of_64, "keys", 1.0 },
                 { quads_of_rows, "rows", 0.5 } };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        for (size_t c = 0; c < 3; c++)
            for (sharing how = ALONE; how <= FOUR_ROWS; how++) {
                mask m = mask_of("pass=fwd b=2 h=4/2 s=80/200 d=8 dropout=0.1", i, chances[c], how,
                                 lies[i].from);
                const facts_repeat found = facts_repeat_within(&m.p, m.bit);
                cr_expect(found.ratio > 1.0, "lie %d, %g, sharing %d: %g", (int)i, chances[c],
                          (int)how, found.ratio);
                cr_expect(strncmp(found.what, lies[i].axis, strlen(lies[i].axis)) == 0 &&
                              found.agree >= lies[i].agree,
                          "lie %d, %g, sharing %d: %s agree in %g", (int)i, chances[c], (int)how,
                          found.what, found.agree);
                free(m.bit);
            }
}

Test(keep_repeats, an_ignored_seed_is_found)
{
    for (size_t c = 0; c < 3; c++) {
        mask m = mask_of("pass=fwd b=2 h=4/2 s=40/200 d=8 dropout=0.1", 5, chances[c], FOUR_ROWS,
                         straight);
        const facts_repeat found = facts_repeat_between(&m.p, m.bit, m.bit, "seeds 1 apart");
        cr_expect(found.ratio > 1.0 && found.agree == 1.0 && found.pairs == 2 * 4 * 40 * 200,
                  "%g: %g", chances[c], found.ratio);
        cr_expect_str_eq(found.what, "seeds 1 apart");
        free(m.bit);
    }
}

/* Where all bits are equal, more pairs than docs/numerics.md says; a quarter of them says nothing.
 */
Test(keep_repeats, few_pairs_say_nothing)
{
    static const struct {
        double chance;
        int64_t pairs;
    } from[] = { { 0.5, 800 }, { 0.9, 1200 }, { 0.99, 8000 } };
    for (size_t c = 0; c < 3; c++)
        for (int few = 0; few < 2; few++) {
            char text[120];
            snprintf(text, sizeof text, "pass=fwd b=1 h=2 s=10/%d d=8 dropout=0.1",
                     (int)(from[c].pairs / 10 / (1 + 3 * few)));
            mask m = mask_of(text, 3, from[c].chance, ALONE, one_head);
            const facts_repeat found = facts_repeat_within(&m.p, m.bit);
            cr_expect(few ? found.ratio <= 1.0 : found.ratio > 1.0, "%s of %g: %s %g", text,
                      from[c].chance, found.what, found.ratio);
            free(m.bit);
        }
}

Test(keep_repeats, scores_that_no_row_may_see_are_not_read)
{
    mask m = mask_of("pass=fwd b=2 h=4 s=64 d=8 dropout=0.1 mask=causal", 3, 0.5, ALONE, straight);
    for (int64_t n = 0; n < 2 * 4 * 64 * 64; n++)
        if (n % 64 > n / 64 % 64)
            m.bit[n] = 1;
    const facts_repeat found = facts_repeat_within(&m.p, m.bit);
    cr_expect(found.ratio <= 1.0, "%s: %g", found.what, found.ratio);
    cr_expect_eq(facts_repeat_between(&m.p, m.bit, m.bit, "").pairs, 2 * 4 * 64 * 65 / 2);
    free(m.bit);
}
