#include "recipe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "places.h"
#include "score_inputs.h"

/* Bias, and the tensors of score modifications. */

#define STREAM_OF_MOD FACTS_STREAM_SINK /* no case has both */

static void make_bias(facts_recipe *r, const facts_problem *p)
{
    static const facts_element elements[FACTS_BIAS_FILL_COUNT] = {
        [FACTS_BIAS_RANDN] = FACTS_ELEMENT_NORMAL,
        [FACTS_BIAS_ZERO] = FACTS_ELEMENT_ZERO,
        [FACTS_BIAS_RANDOM] = FACTS_ELEMENT_HIDDEN,
        [FACTS_BIAS_ROWS_MASKED] = FACTS_ELEMENT_HIDDEN_ROW,
        [FACTS_BIAS_WINDOW] = FACTS_ELEMENT_BAND,
        [FACTS_BIAS_FINITE_MIN] = FACTS_ELEMENT_HIDDEN,
        [FACTS_BIAS_ROWS_LOW] = FACTS_ELEMENT_HIDDEN_ROW,
        [FACTS_BIAS_ALL_TRUE] = FACTS_ELEMENT_CONSTANT,
        [FACTS_BIAS_MINUS_INF] = FACTS_ELEMENT_CONSTANT,
    };
    const bool mask = r->dtype == FATTN_BOOL;
    r->stream = FACTS_STREAM_BIAS;
    r->element = elements[p->bias_fill];
    r->hidden = mask                                    ? 0.0
                : p->bias_fill == FACTS_BIAS_FINITE_MIN ? -facts_dtype_max(r->dtype)
                : p->bias_fill == FACTS_BIAS_ROWS_LOW   ? -20000.0
                                                        : -INFINITY;
    r->shown = p->bias_fill == FACTS_BIAS_MINUS_INF ? r->hidden : mask ? 1.0 : 0.0;
    r->left = p->bias_parameter[0];
    r->right = p->bias_parameter[1];
}

/* A head's slope, the document of a row or a key. */
static double listed(const facts_problem *p, facts_tensor_id id, const int64_t at[4])
{
    if (p->mod == FACTS_MOD_RELPOS)
        return facts_mod_slope(p->tensor[id].dim[1], at[1]);
    return (double)facts_mod_document(p, at[0], id == FACTS_TENSOR_MOD_A ? at[2] : at[3],
                                      id == FACTS_TENSOR_MOD_B);
}

static bool make_list(facts_recipe *r, const facts_problem *p, facts_tensor_id id)
{
    const int64_t count = facts_elements(r->dim);
    double *list = malloc((size_t)count * sizeof *list + 1);
    r->element = FACTS_ELEMENT_LIST;
    r->list = list;
    for (int64_t n = 0; list && n < count; n++) {
        int64_t at[4];
        facts_index_of(r->dim, n, at);
        list[n] = listed(p, id, at);
    }
    return list != NULL;
}

/* The same for bias (bias_fill) and the tensors of score modifications (mod.h); facts_recipe_make
 * calls it. */
static bool facts_recipe_scores(facts_recipe *r, const facts_problem *p, facts_tensor_id id)
{
    if (id == FACTS_TENSOR_BIAS) {
        make_bias(r, p);
        return true;
    }
    if (id == FACTS_TENSOR_DROPOUT_MASK) {
        r->stream = FACTS_STREAM_KEEP;
        r->element = FACTS_ELEMENT_KEEP;
        r->steps = p->drop;
        return true;
    }
    r->stream = STREAM_OF_MOD;
    r->element = FACTS_ELEMENT_NORMAL;
    return (p->mod != FACTS_MOD_RELPOS && p->mod != FACTS_MOD_DOCUMENT) || make_list(r, p, id);
}

bool facts_fill_is_dense(facts_fill fill)
{
    return fill == FACTS_FILL_GAUSS || fill == FACTS_FILL_UNIFORM || fill == FACTS_FILL_SPIKY;
}

double facts_needle_gain(int64_t dim, int64_t keys, double scale)
{
    double best = 1.0, best_lift = -INFINITY, d = (double)dim;
    for (int octave = 0; octave < 6; octave++)
        for (int step = 4; step < 8; step++) {
            double a = ldexp(step, octave - 2),
                   lift = a * d * scale - (log((double)keys) + a * a * d * scale * scale / 2);
            if (lift >= 5)
                return a;
            if (lift > best_lift) {
                best_lift = lift;
                best = a;
            }
        }
    return best;
}

int64_t facts_needle_key(const facts_problem *problem, int64_t b, int64_t h, int64_t i)
{
    const fattn_problem *ask = &problem->ask;
    int64_t first = 0, last = 0, key = 0;
    if (i < facts_live_q(problem, b))
        facts_oracle_keys_of_row(problem, b, i, &first, &last);
    if (last <= first)
        return 0; /* a dead or padded row */
    uint64_t row = (uint64_t)((b * ask->heads_q + h) * ask->seq_q + i);
    facts_draw draw = facts_draw_at(problem->seed, FACTS_STREAM_ROW, FACTS_LANE_VALUE, row);
    switch (facts_pick(draw.r[0], 6)) {
    case 0:
    case 1:
        key = last - 1;
        break;
    case 2:
        key = last;
        break;
    case 3:
        key = first;
        break;
    case 4:
        key = first - 1;
        break;
    default:
        key = facts_pick(draw.r[1], (uint32_t)ask->seq_kv);
    }
    return key < 0 ? 0 : key >= ask->seq_kv ? ask->seq_kv - 1 : key;
}

static uint32_t poison_code(facts_poison poison, int32_t dtype)
{
    switch (poison) {
    case FACTS_POISON_NAN:
        return facts_dtype_nan(dtype);
    case FACTS_POISON_INF:
        return facts_dtype_inf(dtype);
    default:
        return facts_encode(dtype, facts_dtype_max(dtype));
    }
}

/* q = -m u gives scores around -2 m d scale: m is the power of two that brings them to about -300.
 */
static float neglse_gain(int64_t dim, double scale)
{
    double size = 2.0 * (double)dim * fabs(scale);
    return size > 0 ? (float)copysign(exp2(round(log2(300.0 / size))), scale) : 1.0f;
}

/* The step in logits must fit the type: a narrow one spreads it over several channels. `unit`: what
 * a code is worth. */
static int64_t stair_channels(int32_t dtype, double unit, int64_t dim, double scale)
{
    double room = facts_dtype_is_8_bit(dtype) ? 200.0 * unit : dtype == FATTN_F16 ? 32768.0 : 1e30;
    double channels = ceil(40.0 / (room * fabs(scale)));
    return channels < 1 ? 1 : channels < (double)dim ? (int64_t)channels : dim;
}

/* The values of K's rows at the needles' places: Q's and K's needles read the same signs. */
static facts_key_place key_place(const facts_problem *problem)
{
    const facts_tensor *k = &problem->tensor[FACTS_TENSOR_K];
    facts_key_place place;
    memcpy(place.dim, k->dim, sizeof place.dim);
    for (int i = 0; i < 3; i++)
        place.origin[i] = k->stride[i] != 0;
    return place;
}

/* The five places of amax_plant, in turn by seed / 2; odd seeds plant a negative number. */
enum {
    PLANT_LAST_ROW,
    PLANT_LAST_HEAD,
    PLANT_LAST_BATCH,
    PLANT_LAST_CHANNEL,
    PLANT_FIRST_ROW,
    PLANTS
};

/* The planted row, and the last key that it may read. If a batch entry has no live rows or keys,
 * the previous entry is used. */
static void make_plant(facts_recipe *r, const facts_problem *problem, bool query)
{
    const fattn_problem *ask = &problem->ask;
    int turn = (int)(problem->seed / 2 % PLANTS);
    int64_t b = turn == PLANT_LAST_BATCH ? ask->batch - 1 : 0,
            h = turn == PLANT_LAST_HEAD ? ask->heads_q - 1 : 0, first = 0, last = 0;
    while (b > 0 && (facts_live_q(problem, b) == 0 || facts_live_kv(problem, b) == 0))
        b--;
    int64_t row = turn == PLANT_FIRST_ROW ? 0 : facts_live_q(problem, b) - 1;
    if (row >= 0)
        facts_oracle_keys_of_row(problem, b, row, &first, &last);
    int64_t key = last > first ? last - 1 : 0;
    const int64_t q_place[4] = { b, h, row, key },
                  v_place[4] = { b, h / (ask->heads_q / ask->heads_v), key,
                                 turn == PLANT_LAST_CHANNEL ? ask->dim_v - 1 : 0 };
    const int64_t nowhere[4] = { -1, -1, -1, -1 };
    bool output = r->stream == FACTS_STREAM_DO;
    memcpy(r->plant, query ? q_place : output ? nowhere : v_place, sizeof r->plant);
    r->element = query ? FACTS_ELEMENT_PLANT_ROW : FACTS_ELEMENT_PLANT;
    r->gain = query
                  ? (float)facts_needle_gain(ask->dim_qk, ask->seq_kv, facts_oracle_scale(problem))
              : problem->seed % 2 ? -16.0f
                                  : 16.0f;
    r->group = ask->heads_q / ask->heads_k;
    r->key = key_place(problem);
}

/* The key that each row points at. */
static bool make_needles(facts_recipe *r, const facts_problem *problem)
{
    int64_t heads = r->dim[1], rows = r->dim[2], count = r->dim[0] * heads * rows;
    int32_t *key = malloc((size_t)count * sizeof *key + 1);
    r->row = key;
    if (!key)
        return false;
#pragma omp parallel for schedule(static)
    for (int64_t n = 0; n < count; n++)
        key[n] = (int32_t)facts_needle_key(problem, n / (heads * rows), n / rows % heads, n % rows);
    return true;
}

/* The first row of each batch entry that is padded for every reader. */
static bool make_live(facts_recipe *r, const facts_problem *problem)
{
    bool query = r->stream == FACTS_STREAM_Q || r->stream == FACTS_STREAM_DO;
    bool shared = r->stride[0] == 0 || (!query && r->place && problem->table == FACTS_TABLE_SHARED);
    int32_t *live = calloc((size_t)r->dim[0] + 1, sizeof *live);
    r->live = live;
    for (int64_t b = 0; live && b < r->dim[0]; b++) {
        for (int64_t n = shared ? 0 : b; n < (shared ? r->dim[0] : b + 1); n++) {
            int64_t length = query ? facts_live_q(problem, n) : facts_live_kv(problem, n);
            live[b] = length > live[b] ? (int32_t)length : live[b];
        }
    }
    return live != NULL;
}

static void make_needle(facts_recipe *r, const facts_problem *problem, bool query, double scale)
{
    r->element = FACTS_ELEMENT_NEEDLE;
    r->gain =
        query ? (float)facts_needle_gain(problem->ask.dim_qk, problem->ask.seq_kv, scale) : 1.0f;
    r->group = query ? problem->ask.heads_q / problem->ask.heads_k : 1;
    r->key = key_place(problem);
}

static void make_scaled(facts_recipe *r, double gain)
{
    r->element = FACTS_ELEMENT_SCALED;
    r->gain = (float)gain;
}

/* Both Q and K are N times this, so that a score is N(0, size) and more. */
static double logit_gain(const facts_problem *problem, double size, double scale)
{
    return sqrt(size / (fabs(scale) * sqrt((double)problem->ask.dim_qk)));
}

/* The fill's values of Q and K. */
static bool make_scored(facts_recipe *r, const facts_problem *problem, bool query, double scale)
{
    switch (problem->fill) {
    case FACTS_FILL_NEEDLE:
        make_needle(r, problem, query, scale);
        return !query || make_needles(r, problem);
    case FACTS_FILL_NEGLSE:
        r->element = query ? FACTS_ELEMENT_NEGLSE_Q : FACTS_ELEMENT_NEGLSE_K;
        r->gain = neglse_gain(problem->ask.dim_qk, scale);
        return true;
    case FACTS_FILL_STAIR_UP:
    case FACTS_FILL_STAIR_DN:
        r->element = FACTS_ELEMENT_STAIR;
        r->gain = query ? 1.0f : 0.0f;
        r->down = problem->fill == FACTS_FILL_STAIR_DN;
        r->channels =
            stair_channels(r->dtype, r->unit > 0 ? 1.0 / r->unit : 1.0, problem->ask.dim_qk, scale);
        r->steps = (r->dim[2] > 1 ? (double)(r->dim[2] - 1) : 1.0) * scale * (double)r->channels;
        return true;
    case FACTS_FILL_BIGLOGIT:
    case FACTS_FILL_HUGELOGIT:
        make_scaled(
            r, logit_gain(problem, problem->fill == FACTS_FILL_BIGLOGIT ? 8.0 : 1000.0, scale));
        return true;
    case FACTS_FILL_OFFSET_K:
        r->element = query ? FACTS_ELEMENT_NORMAL : FACTS_ELEMENT_OFFSET;
        return true;
    case FACTS_FILL_UNIP:
        r->element = query ? FACTS_ELEMENT_ZERO : FACTS_ELEMENT_NORMAL;
        return true;
    case FACTS_FILL_AMAX_PLANT:
        if (query)
            make_plant(r, problem, true);
        else
            make_needle(r, problem, false, scale);
        return true;
    default:
        return true;
    }
}

/* The fill's values of V and dO. */
static void make_summed(facts_recipe *r, const facts_problem *problem, bool value)
{
    if (problem->fill == FACTS_FILL_OFFSET_V &&
        value == (problem->ask.pass == FATTN_FORWARD)) /* the factor of P */
        r->element = FACTS_ELEMENT_MEAN;
    if (problem->fill == FACTS_FILL_AMAX_PLANT)
        make_plant(r, problem, false);
    if (problem->fill == FACTS_FILL_HUGEGRAD && !value)
        make_scaled(r, 0x1p14);
}

static void shape_recipe(facts_recipe *r, const facts_tensor *t)
{
    r->dtype = t->dtype;
    r->first = t->first;
    for (int i = 0; i < 4; i++) {
        r->dim[i] = t->dim[i];
        r->stride[i] = t->stride[i];
        r->extent[i] = t->stride[i] == 0 && t->dim[i] > 1
                           ? 1
                           : t->dim[i]; /* only the first of those that share a place is written */
    }
}

/* The values of all four inputs, unless the fill says otherwise. */
static void make_noise(facts_recipe *r, const facts_problem *problem)
{
    static const facts_element elements[FACTS_FILL_OTHER + 1] = {
        [FACTS_FILL_UNIFORM] = FACTS_ELEMENT_UNIFORM,
        [FACTS_FILL_SPIKY] = FACTS_ELEMENT_SPIKY,
        [FACTS_FILL_SPARSE_INT] = FACTS_ELEMENT_SPARSE,
    };
    r->element = elements[problem->fill]; /* NORMAL is 0, and so is OTHER: a run that only dumps the
                                             dropout mask */
}

/* The starts of a tensor's sequences or pages. */
static bool make_places(facts_recipe *r, const facts_problem *problem, facts_tensor_id id)
{
    const facts_tensor *t = &problem->tensor[id];
    if (t->packed == FACTS_PACKED_NOT && t->page == 0)
        return true;
    r->exact = t->packed != FACTS_PACKED_NOT;
    r->run = t->page != 0 ? t->page : t->dim[2];
    r->runs = (t->dim[2] + r->run - 1) / r->run;
    int64_t *place = malloc((size_t)(r->dim[0] * r->runs) * sizeof *place + 1);
    r->place = place;
    for (int64_t i = 0; place && i < r->dim[0] * r->runs; i++) {
        int64_t b = i / r->runs, n = i % r->runs;
        bool skipped = t->page != 0 &&
                       (facts_page_owner(problem, id, b, n) != b ||
                        (problem->ask.packed_table && n >= facts_pages_of_entry(problem, id, b)));
        place[i] = skipped ? -1 : facts_row_at(problem, id, b, n * r->run);
    }
    return place != NULL;
}

/* The value of a number in the tensor's codes. */
static void make_units(facts_recipe *r, const facts_problem *problem, facts_tensor_id id)
{
    static const struct {
        facts_tensor_id id;
        facts_array_id descale;
    } rows[] = { { FACTS_TENSOR_Q, FACTS_ARRAY_DESCALE_Q },
                 { FACTS_TENSOR_K, FACTS_ARRAY_DESCALE_K },
                 { FACTS_TENSOR_V, FACTS_ARRAY_DESCALE_V },
                 { FACTS_TENSOR_DO, FACTS_ARRAY_DESCALE_DO } };
    r->narrow = problem->high_backward ? problem->narrow : 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].id == id && facts_is_fp8(r->dtype))
            r->unit = 1.0 / facts_array_scalar(problem, rows[i].descale);
}

/* The copies of Q, K and dO have the same values. */
static facts_tensor_id original_of(facts_tensor_id id)
{
    return id == FACTS_TENSOR_Q_T    ? FACTS_TENSOR_Q
           : id == FACTS_TENSOR_K_T  ? FACTS_TENSOR_K
           : id >= FACTS_TENSOR_DO_T ? FACTS_TENSOR_DO
                                     : id;
}

bool facts_recipe_make(facts_recipe *out, const facts_problem *problem, facts_tensor_id copy)
{
    const facts_tensor_id id = original_of(copy);
    double scale = facts_oracle_scale(problem);
    *out = (facts_recipe){ .seed = problem->seed };
    shape_recipe(out, &problem->tensor[copy]);
    if (id >= FACTS_TENSOR_BIAS)
        return facts_recipe_scores(out, problem, id);
    make_units(out, problem, id);
    if (!make_places(out, problem, copy))
        return false;
    out->stream = id == FACTS_TENSOR_Q   ? FACTS_STREAM_Q
                  : id == FACTS_TENSOR_K ? FACTS_STREAM_K
                  : id == FACTS_TENSOR_V ? FACTS_STREAM_V
                                         : FACTS_STREAM_DO;
    out->poison = poison_code(problem->poison, out->dtype);
    out->poisoned = problem->poison != FACTS_POISON_FILL;
    make_noise(out, problem);
    if ((out->poisoned || out->exact || problem->fill == FACTS_FILL_AMAX_PLANT) &&
        !make_live(out, problem))
        return false;
    if (id == FACTS_TENSOR_Q || id == FACTS_TENSOR_K)
        return make_scored(out, problem, id == FACTS_TENSOR_Q, fabs(scale) > 0 ? scale : 1.0);
    make_summed(out, problem, id == FACTS_TENSOR_V);
    return true;
}

void facts_recipe_destroy(facts_recipe *r)
{
    free((int32_t *)(uintptr_t)r->live);
    free((int32_t *)(uintptr_t)r->row);
    free((double *)(uintptr_t)r->list);
    free((int64_t *)(uintptr_t)r->place);
    *r = (facts_recipe){ 0 };
}

facts_gaps facts_gaps_of(const facts_problem *problem, int32_t dtype)
{
    facts_gaps g = { .seed = problem->seed,
                     .dtype = dtype,
                     .poisoned = problem->poison != FACTS_POISON_FILL };
    g.poison = poison_code(problem->poison, dtype);
    return g;
}
