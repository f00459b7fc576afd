#include "recipe.h"

#include <math.h>
#include <string.h>

#include "places.h"

bool facts_fill_tensor(const facts_problem *problem, facts_tensor_id id, void *storage)
{
    facts_recipe r;
    if (facts_mx_makes(problem, id))
        return facts_mx_fill(problem, id, storage);
    bool ok = facts_recipe_make(&r, problem, id);
    const int64_t channels = r.extent[3],
                  rows = channels > 0 ? facts_recipe_places(&r) / channels : 0;
    if (ok) {
#pragma omp parallel for schedule(static)
        for (int64_t n = 0; n < rows; n++) {
            int64_t at[4] = { 0 };
            facts_recipe_place(&r, n * channels, at);
            for (at[3] = 0; at[3] < channels; at[3]++)
                facts_recipe_store(&r, at, storage);
        }
    }
    facts_recipe_destroy(&r);
    return ok;
}

void facts_fill_gaps(const facts_problem *problem, int32_t dtype, void *storage, int64_t elements)
{
    const facts_gaps g = facts_gaps_of(problem, dtype);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < elements; i++)
        facts_store(dtype, storage, i, facts_gap_code(&g, i));
}

#define TILE_LINES 128
#define TILE_BLOCKS 4
#define COPY_GAIN                                                                                  \
    1.25 /* of the copies along the rows that a backward reads: detects an engine that reads the   \
            other copy */
#define NEUTRAL 0x85 /* 64: for a block that does not exist */

int64_t facts_mx_place(int64_t line, int64_t block, int64_t blocks)
{
    const int64_t tiles = (blocks + TILE_BLOCKS - 1) / TILE_BLOCKS;
    return (line / TILE_LINES * tiles + block / TILE_BLOCKS) * (TILE_LINES * TILE_BLOCKS) +
           line % 32 * 16 + line / 32 % 4 * 4 + block % TILE_BLOCKS;
}

double facts_mx_factor(uint8_t factor)
{
    return ldexp(1.0, factor - 127);
}

bool facts_mx_makes(const facts_problem *p, facts_tensor_id id)
{
    return facts_is_mx(p->tensor[id].dtype) || id == FACTS_TENSOR_DO_16;
}

static int step_of(const facts_recipe *r, facts_lane lane, const int64_t at[4], int64_t row,
                   int64_t column)
{
    const int64_t number = ((at[0] * r->dim[1] + at[1]) * r->dim[2] + row) * r->dim[3] + column;
    return (int)facts_pick(facts_draw_at(r->seed, FACTS_STREAM_BLOCK_SCALES, lane,
                                         (uint64_t)number * 16 + (uint64_t)r->stream)
                               .r[0],
                           4) -
           2;
}

double facts_mx_value(const facts_problem *p, const facts_recipe *r, const int64_t at[4])
{
    const double value = facts_element_value(r, at);
    if (!facts_fill_is_dense(p->fill))
        return value;
    return ldexp(value, step_of(r, FACTS_LANE_VALUE, at, at[2], at[3] / FACTS_MX_BLOCK) +
                            step_of(r, FACTS_LANE_CHOICE, at, at[2] / FACTS_MX_BLOCK, at[3]));
}

bool facts_mx_factors_of(const facts_problem *p, facts_tensor_id id, facts_array_id *out,
                         bool *along_rows)
{
    const bool forward = p->ask.pass == FATTN_FORWARD;
    const struct {
        facts_tensor_id id;
        facts_array_id array;
        bool along_rows;
    } rows[] = { { FACTS_TENSOR_Q, FACTS_ARRAY_SF_Q, false },
                 { FACTS_TENSOR_K, FACTS_ARRAY_SF_K, false },
                 { FACTS_TENSOR_V, FACTS_ARRAY_SF_V, forward },
                 { FACTS_TENSOR_DO, FACTS_ARRAY_SF_DO, false },
                 { FACTS_TENSOR_Q_T, FACTS_ARRAY_SF_Q_T, true },
                 { FACTS_TENSOR_K_T, FACTS_ARRAY_SF_K_T, true },
                 { FACTS_TENSOR_DO_T, FACTS_ARRAY_SF_DO_T, true } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].id == id && p->array[rows[i].array].count > 0) {
            *out = rows[i].array;
            *along_rows = rows[i].along_rows;
            return true;
        }
    return false;
}

/* One tensor in blocks: lines of blocks of at most 32 elements. */
typedef struct blocked {
    const facts_problem *problem;
    facts_recipe recipe;
    bool along_rows;
    double gain;
    int64_t lines, blocks, columns; /* columns: elements of a line */
} blocked;

static bool open_blocks(blocked *out, const facts_problem *p, facts_tensor_id id,
                        facts_array_id *array)
{
    *out = (blocked){ .problem = p };
    if (!facts_mx_factors_of(p, id, array, &out->along_rows) ||
        !facts_recipe_make(&out->recipe, p, id))
        return false;
    out->gain = id >= FACTS_TENSOR_Q_T ? COPY_GAIN : 1.0;
    const int64_t *dim = out->recipe.dim;
    out->lines = dim[out->along_rows ? 3 : 2];
    out->columns = dim[out->along_rows ? 2 : 3];
    out->blocks = (out->columns + FACTS_MX_BLOCK - 1) / FACTS_MX_BLOCK;
    return true;
}

/* The place of element i of a block of a line. */
static void place_in(const blocked *x, int64_t head, int64_t line, int64_t column, int64_t at[4])
{
    at[0] = head / x->recipe.dim[1];
    at[1] = head % x->recipe.dim[1];
    at[x->along_rows ? 3 : 2] = line;
    at[x->along_rows ? 2 : 3] = column;
    for (int i = 0; i < 3; i++)
        at[i] = x->recipe.stride[i] == 0
                    ? 0
                    : at[i]; /* a shared place has the value of the first of them */
}

static uint8_t factor_of(const blocked *x, int64_t head, int64_t line, int64_t block)
{
    const int most =
        x->recipe.dtype == FATTN_MXE4M3 ? 8 : 15; /* 448 and 57344 are 1.75 times 2^most */
    double largest = 0;
    for (int64_t c = block * FACTS_MX_BLOCK; c < x->columns && c < (block + 1) * FACTS_MX_BLOCK;
         c++) {
        int64_t at[4];
        place_in(x, head, line, c, at);
        largest = fmax(largest, fabs(facts_mx_value(x->problem, &x->recipe, at) * x->gain));
    }
    int exponent = 127;
    if (largest > 0 && isfinite(largest))
        exponent += ilogb(largest) - most;
    return (uint8_t)(exponent < 0 ? 0 : exponent > 254 ? 254 : exponent);
}

static void fill_line(const blocked *x, int64_t head, int64_t line, void *storage)
{
    const facts_recipe *r = &x->recipe;
    for (int64_t block = 0; block < x->blocks; block++) {
        const double unit = 1.0 / facts_mx_factor(factor_of(x, head, line, block));
        for (int64_t c = block * FACTS_MX_BLOCK; c < x->columns && c < (block + 1) * FACTS_MX_BLOCK;
             c++) {
            int64_t at[4];
            place_in(x, head, line, c, at);
            const int64_t row = facts_recipe_row(r, at[0], at[2]);
            const bool poisoned = r->poisoned && facts_recipe_pads(r, at);
            if (row >= 0)
                facts_store(r->dtype, storage, row + at[1] * r->stride[1] + at[3] * r->stride[3],
                            poisoned ? r->poison
                                     : facts_encode(r->dtype, facts_mx_value(x->problem, r, at) *
                                                                  x->gain * unit));
        }
    }
}

/* The 16 bit copy. */
static bool fill_wide(const facts_problem *p, facts_tensor_id id, void *storage)
{
    facts_recipe r;
    const bool good = facts_recipe_make(&r, p, id);
    if (good) {
#pragma omp parallel for schedule(static)
        for (int64_t n = 0; n < facts_recipe_places(&r); n++) {
            int64_t at[4];
            facts_recipe_place(&r, n, at);
            const int64_t row = facts_recipe_row(&r, at[0], at[2]);
            const bool poisoned = r.poisoned && facts_recipe_pads(&r, at);
            if (row >= 0)
                facts_store(r.dtype, storage, row + at[1] * r.stride[1] + at[3] * r.stride[3],
                            poisoned ? r.poison : facts_encode(r.dtype, facts_mx_value(p, &r, at)));
        }
    }
    facts_recipe_destroy(&r);
    return good;
}

bool facts_mx_fill(const facts_problem *p, facts_tensor_id id, void *storage)
{
    if (!facts_is_mx(p->tensor[id].dtype))
        return fill_wide(p, id, storage);
    blocked x;
    facts_array_id array;
    bool good = open_blocks(&x, p, id, &array);
    if (good) {
        const int64_t lines = x.recipe.dim[0] * x.recipe.dim[1] * x.lines;
#pragma omp parallel for schedule(static)
        for (int64_t n = 0; n < lines; n++)
            fill_line(&x, n / x.lines, n % x.lines, storage);
    }
    facts_recipe_destroy(&x.recipe);
    return good;
}

bool facts_mx_fill_factors(const facts_problem *p, facts_array_id id, uint8_t *out)
{
    blocked x = { .problem = p };
    facts_array_id array = FACTS_ARRAY_COUNT;
    bool along_rows, good = false;
    memset(out, NEUTRAL, facts_array_bytes(&p->array[id]));
    for (facts_tensor_id t = 0; t < FACTS_TENSOR_COUNT; t++)
        if (p->tensor[t].present && facts_mx_factors_of(p, t, &array, &along_rows) && array == id) {
            good = open_blocks(&x, p, t, &array);
            break;
        }
    if (good) {
        const int64_t heads = x.recipe.dim[0] * x.recipe.dim[1], each = p->array[id].count / heads;
#pragma omp parallel for schedule(static)
        for (int64_t n = 0; n < heads * x.lines; n++)
            for (int64_t block = 0; block < x.blocks; block++)
                out[n / x.lines * each + facts_mx_place(n % x.lines, block, x.blocks)] =
                    factor_of(&x, n / x.lines, n % x.lines, block);
    }
    facts_recipe_destroy(&x.recipe);
    return good;
}

void facts_mx_decode(const facts_problem *p, facts_tensor_id id, const void *storage,
                     const uint8_t *factors, float *out)
{
    const facts_tensor *t = &p->tensor[id];
    const int64_t *dim = t->dim;
    facts_array_id array = FACTS_ARRAY_COUNT;
    bool along_rows = false;
    if (!facts_mx_factors_of(p, id, &array, &along_rows))
        return;
    const int64_t each = p->array[array].count / (dim[0] * dim[1]),
                  blocks = (dim[along_rows ? 2 : 3] + FACTS_MX_BLOCK - 1) / FACTS_MX_BLOCK;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < dim[0] * dim[1] * dim[2]; row++) {
        const int64_t s = row % dim[2], head = row / dim[2],
                      at = facts_row_at(p, id, head / dim[1], s) + head % dim[1] * t->stride[1];
        for (int64_t c = 0; c < dim[3]; c++) {
            const int64_t place =
                facts_mx_place(along_rows ? c : s, (along_rows ? s : c) / FACTS_MX_BLOCK, blocks);
            out[row * dim[3] + c] =
                (float)(facts_decode(t->dtype,
                                     facts_load(t->dtype, storage, at + c * t->stride[3])) *
                        facts_mx_factor(factors[head * each + place]));
        }
    }
}
