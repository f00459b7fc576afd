#include "../case/resolved.h"

#include <math.h>

#include "numbers/fill/recipe.h"

Test(mx, factors_fill_their_tiles_once)
{
    for (int64_t blocks = 1; blocks <= 9; blocks += 4) {
        const int64_t wide = (blocks + 3) / 4 * 4;
        unsigned char *taken = calloc((size_t)(256 * wide), 1);
        for (int64_t line = 0; line < 256; line++)
            for (int64_t block = 0; block < wide; block++) {
                const int64_t at = facts_mx_place(line, block, blocks);
                cr_assert(at >= 0 && at < 256 * wide && !taken[at]++, "%ld %ld", (long)line,
                          (long)block);
            }
        free(taken);
    }
    cr_expect(facts_mx_place(1, 0, 4) == 16 && facts_mx_place(32, 0, 4) == 4 &&
              facts_mx_place(0, 3, 4) == 3 && facts_mx_place(33, 2, 4) == 22);
    cr_expect(facts_mx_place(0, 4, 8) == 512 && facts_mx_place(128, 0, 8) == 1024 &&
              facts_mx_factor(127) == 1.0 && facts_mx_factor(120) == 0x1p-7);
}

static float *decoded(const facts_problem *p, facts_tensor_id id, const void *storage)
{
    const int64_t *dim = p->tensor[id].dim;
    float *out = malloc((size_t)(dim[0] * dim[1] * dim[2] * dim[3]) * sizeof *out);
    facts_array_id array;
    bool along_rows;
    cr_assert(facts_mx_factors_of(p, id, &array, &along_rows));
    uint8_t *factors = made(p, array);
    facts_mx_decode(p, id, storage, factors, out);
    free(factors);
    return out;
}

/* What codes and factors are is within half a step of what the fill says. */
static void check_values(const char *text)
{
    static const facts_tensor_id ids[] = { FACTS_TENSOR_Q,   FACTS_TENSOR_K,   FACTS_TENSOR_V,
                                           FACTS_TENSOR_DO,  FACTS_TENSOR_Q_T, FACTS_TENSOR_K_T,
                                           FACTS_TENSOR_DO_T };
    facts_problem *p = resolved(text);
    facts_storages in = stored(p);
    const double u = p->ask.dtype == FATTN_MXE4M3 ? 0x1p-4 : 0x1p-3;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        facts_recipe recipe;
        if (!p->tensor[ids[i]].present)
            continue;
        cr_assert(facts_recipe_make(&recipe, p, ids[i]));
        const int64_t *dim = p->tensor[ids[i]].dim;
        float *values = decoded(p, ids[i], in.at[ids[i]]);
        for (int64_t n = 0; n < dim[0] * dim[1] * dim[2] * dim[3]; n++) {
            const int64_t at[4] = { n / (dim[1] * dim[2] * dim[3]), n / (dim[2] * dim[3]) % dim[1],
                                    n / dim[3] % dim[2], n % dim[3] };
            const double expects =
                facts_mx_value(p, &recipe, at) *
                (ids[i] >= FACTS_TENSOR_Q_T ? 1.25 : 1.0); /* a copy is told apart by a gain */
            /* the largest of a block may lie above 1.75 * 2^most: it saturates, by an eighth at most; small ones have the block's
             * floor */
            cr_assert(fabs((double)values[n] - expects) <= fabs(expects) * (0.125 + u) + 0x1p-12,
                      "%s: tensor %d: %g for %g", text, (int)ids[i], (double)values[n], expects);
        }
        facts_recipe_destroy(&recipe);
        free(values);
    }
    freed(p, &in), free(p);
}

Test(mx, codes_and_factors_are_the_values)
{
    check_values("pass=bwd b=2 h=4/2 s=70/40 d=48/80 dtype=mxe4m3");
    check_values("b=2 h=4/2 s=70/200 d=48/80 dtype=mxe4m3 layout=bhsd");
    check_values("b=2 h=4/2 s=70/200 d=48/80 dtype=mxe4m3 fill=needle");
    check_values("pass=bwd b=2 h=2 s=130 d=64 dtype=mxe5m2 layout=bs3hd");
}

Test(mx, factors_differ_along_both_axes)
{
    facts_problem *p = resolved("pass=bwd b=1 h=1 s=256 d=64 dtype=mxe4m3");
    static const facts_array_id arrays[] = { FACTS_ARRAY_SF_Q, FACTS_ARRAY_SF_Q_T };
    for (int i = 0; i < 2; i++) {
        uint8_t *factors = made(p, arrays[i]);
        const int64_t lines = i == 0 ? 256 : 64, blocks = i == 0 ? 2 : 8;
        int along = 0, across = 0;
        for (int64_t line = 1; line < lines; line++)
            for (int64_t block = 1; block < blocks; block++) {
                along += factors[facts_mx_place(line, block, blocks)] !=
                         factors[facts_mx_place(line, block - 1, blocks)];
                across += factors[facts_mx_place(line, block, blocks)] !=
                          factors[facts_mx_place(line - 1, block, blocks)];
            }
        const int64_t half = (lines - 1) * (blocks - 1) / 2;
        cr_expect(along > half && across > half, "%d, %d of %ld", along, across, (long)half);
        free(factors);
    }
    free(p);
}

Test(mx, the_two_directions_differ)
{
    facts_problem *p = resolved("pass=bwd b=1 h=1 s=128 d=64 dtype=mxe4m3");
    facts_storages in = stored(p);
    float *along = decoded(p, FACTS_TENSOR_Q, in.at[FACTS_TENSOR_Q]),
          *across = decoded(p, FACTS_TENSOR_Q_T, in.at[FACTS_TENSOR_Q_T]);
    int different = 0;
    for (int i = 0; i < 128 * 64; i++)
        different += along[i] != across[i];
    cr_expect(different > 128 * 64 / 2, "%d", different);
    free(along), free(across), freed(p, &in), free(p);
}

Test(mx, a_padded_row_may_be_poison)
{
    facts_problem *p = resolved("b=2 h=2 s=70 d=64 dtype=mxe4m3 lens=70+3 poison=nan");
    facts_storages in = stored(p);
    cr_expect(isnan(
        number_at(p, FACTS_TENSOR_K, in.at[FACTS_TENSOR_K], (const int64_t[4]){ 1, 0, 3, 9 })));
    cr_expect(isfinite(
        number_at(p, FACTS_TENSOR_K, in.at[FACTS_TENSOR_K], (const int64_t[4]){ 1, 0, 2, 9 })));
    freed(p, &in), free(p);
}
