#include "fill.h"

#include <math.h>
#include <stdlib.h>

#include "dtype.h"
#include "oracle.h"
#include "philox.h"

/* What the rows of one tensor share: computed once, on the host. */
typedef struct recipe {
    const facts_problem *problem;
    const facts_tensor *tensor;
    facts_stream stream;
    int64_t origin[4]; /* 0 where the dimension is broadcast, else 1: multiplies a logical index */
    double scale;
    float needle_gain, neglse_gain;
    int64_t stair_channels;
} recipe;

bool facts_fill_is_dense(facts_fill fill)
{
    return fill == FACTS_FILL_GAUSS || fill == FACTS_FILL_UNIFORM || fill == FACTS_FILL_SPIKY;
}

double facts_needle_gain(int64_t dim, int64_t keys, double scale)
{
    double best = 1.0, best_lift = -INFINITY, d = (double)dim;
    for (int octave = 0; octave < 6; octave++)
        for (int step = 4; step < 8; step++) {
            double a = ldexp(step, octave - 2), lift = a * d * scale - (log((double)keys) + a * a * d * scale * scale / 2);
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

static uint64_t element_of(const int64_t dim[4], int64_t b, int64_t h, int64_t s, int64_t d)
{
    return (uint64_t)(((b * dim[1] + h) * dim[2] + s) * dim[3] + d);
}

static facts_draw draw_of(const recipe *r, facts_lane lane, int64_t b, int64_t h, int64_t s, int64_t d)
{
    return facts_draw_at(r->problem->seed, r->stream, lane, element_of(r->tensor->dim, b, h, s, d));
}

static float sign_of(facts_draw draw)
{
    return draw.r[0] >> 31 ? -1.0f : 1.0f;
}

/* The key's sign pattern in channel d, at the place that the key head's element really has. */
static float needle_value(const recipe *r, const int64_t key_dim[4], int64_t b, int64_t h, int64_t s, int64_t d)
{
    return sign_of(facts_draw_at(r->problem->seed, FACTS_STREAM_K, FACTS_LANE_VALUE, element_of(key_dim, b, h, s, d)));
}

static void needle_row(const recipe *r, int64_t b, int64_t h, int64_t s, float *row)
{
    const facts_problem *p = r->problem;
    const facts_tensor *k = &p->tensor[FACTS_TENSOR_K];
    int64_t dim = r->tensor->dim[3], key = s, head = h, batch = b;
    float gain = 1.0f;
    if (r->stream == FACTS_STREAM_Q) {
        key = facts_needle_key(p, b, h, s);
        head = h / (p->ask.heads_q / p->ask.heads_k);
        gain = r->needle_gain;
    }
    batch = k->stride[0] == 0 ? 0 : batch;
    head = k->stride[1] == 0 ? 0 : head;
    key = k->stride[2] == 0 ? 0 : key;
    for (int64_t d = 0; d < dim; d++)
        row[d] = gain * needle_value(r, k->dim, batch, head, key, d);
}

static bool neglse_row_is_far(const recipe *r, int64_t b, int64_t h, int64_t s)
{
    const int64_t *dim = r->tensor->dim;
    if (s == 0 || s == dim[2] - 1)
        return true;
    uint64_t row = (uint64_t)((b * dim[1] + h) * dim[2] + s);
    return facts_draw_at(r->problem->seed, FACTS_STREAM_ROW, FACTS_LANE_VALUE, row).r[0] < UINT32_C(1) << 30;
}

static void neglse_row(const recipe *r, int64_t b, int64_t h, int64_t s, float *row)
{
    bool far = r->stream == FACTS_STREAM_Q && neglse_row_is_far(r, b, h, s);
    for (int64_t d = 0; d < r->tensor->dim[3]; d++) {
        float u = sign_of(facts_draw_at(r->problem->seed, FACTS_STREAM_DIRECTION, FACTS_LANE_VALUE, (uint64_t)d));
        float n = facts_normal(draw_of(r, FACTS_LANE_VALUE, b, h, s, d));
        if (r->stream == FACTS_STREAM_K)
            row[d] = fminf(fmaxf(rintf(n), -2.0f), 2.0f) + 2.0f * u;
        else
            row[d] = far ? -r->neglse_gain * u : n;
    }
}

static void stair_row(const recipe *r, int64_t b, int64_t h, int64_t s, float *row)
{
    const int64_t *dim = r->tensor->dim;
    for (int64_t d = 0; d < dim[3]; d++)
        row[d] = 0.3f * facts_normal(draw_of(r, FACTS_LANE_VALUE, b, h, s, d));
    double steps = dim[2] > 1 ? (double)(dim[2] - 1) : 1.0;
    int64_t place = r->problem->fill == FACTS_FILL_STAIR_UP ? s : dim[2] - 1 - s;
    double height = 40.0 * (double)place / (steps * r->scale * (double)r->stair_channels);
    for (int64_t d = 0; d < r->stair_channels; d++)
        row[d] = r->stream == FACTS_STREAM_Q ? 1.0f : (float)height;
}

static void noise_row(const recipe *r, int64_t b, int64_t h, int64_t s, float *row)
{
    for (int64_t d = 0; d < r->tensor->dim[3]; d++) {
        facts_draw draw = draw_of(r, FACTS_LANE_VALUE, b, h, s, d);
        row[d] = r->problem->fill == FACTS_FILL_UNIFORM ? facts_uniform(draw) : facts_normal(draw);
        if (r->problem->fill == FACTS_FILL_SPIKY && draw_of(r, FACTS_LANE_CHOICE, b, h, s, d).r[0] < UINT32_C(42949672))
            row[d] *= 10.0f;
    }
}

static void make_row(const recipe *r, int64_t b, int64_t h, int64_t s, float *row)
{
    bool scored = r->stream == FACTS_STREAM_Q || r->stream == FACTS_STREAM_K;
    if (scored && r->problem->fill == FACTS_FILL_NEEDLE)
        needle_row(r, b, h, s, row);
    else if (scored && r->problem->fill == FACTS_FILL_NEGLSE)
        neglse_row(r, b, h, s, row);
    else if (scored && (r->problem->fill == FACTS_FILL_STAIR_UP || r->problem->fill == FACTS_FILL_STAIR_DN))
        stair_row(r, b, h, s, row);
    else
        noise_row(r, b, h, s, row);
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

/* q = -m u gives scores around -2 m d scale: m is the power of two that brings them to about -300. */
static float neglse_gain(int64_t dim, double scale)
{
    double size = 2.0 * (double)dim * fabs(scale);
    return size > 0 ? (float)copysign(exp2(round(log2(300.0 / size))), scale) : 1.0f;
}

/* The step in logits must fit the type: a narrow one spreads it over several channels. */
static int64_t stair_channels(int32_t dtype, int64_t dim, double scale)
{
    double room = dtype == FATTN_E4M3 || dtype == FATTN_E5M2 ? 200.0 : dtype == FATTN_F16 ? 32768.0 : 1e30;
    double channels = ceil(40.0 / (room * fabs(scale)));
    return channels < 1 ? 1 : channels < (double)dim ? (int64_t)channels : dim;
}

static recipe recipe_of(const facts_problem *problem, facts_tensor_id id)
{
    const facts_tensor *t = &problem->tensor[id];
    double scale = facts_oracle_scale(problem);
    recipe r = { .problem = problem, .tensor = t, .scale = fabs(scale) > 0 ? scale : 1.0 };
    r.stream = id == FACTS_TENSOR_Q   ? FACTS_STREAM_Q
               : id == FACTS_TENSOR_K ? FACTS_STREAM_K
               : id == FACTS_TENSOR_V ? FACTS_STREAM_V
                                      : FACTS_STREAM_DO;
    for (int i = 0; i < 4; i++)
        r.origin[i] = t->stride[i] != 0;
    r.needle_gain = (float)facts_needle_gain(problem->ask.dim_qk, problem->ask.seq_kv, r.scale);
    r.neglse_gain = neglse_gain(problem->ask.dim_qk, r.scale);
    r.stair_channels = stair_channels(t->dtype, problem->ask.dim_qk, r.scale);
    return r;
}

/* No batch entry that reads this place has it among its live rows. */
static bool row_is_padded(const recipe *r, int64_t b, int64_t s)
{
    bool query = r->stream == FACTS_STREAM_Q || r->stream == FACTS_STREAM_DO, shared = r->tensor->stride[0] == 0;
    for (int64_t n = shared ? 0 : b; n < (shared ? r->tensor->dim[0] : b + 1); n++)
        if (s < (query ? facts_live_q(r->problem, n) : facts_live_kv(r->problem, n)))
            return false;
    return true;
}

/* `row` is scratch for one row. */
static void store_row(const recipe *r, int64_t b, int64_t h, int64_t s, float *row, void *storage)
{
    const facts_tensor *t = r->tensor;
    bool poisoned = r->problem->poison != FACTS_POISON_FILL && row_is_padded(r, b, s);
    int64_t at = t->first + b * t->stride[0] + h * t->stride[1] + s * t->stride[2];
    if (!poisoned)
        make_row(r, b, h, s, row);
    for (int64_t d = 0; d < t->dim[3]; d++) {
        uint32_t code = poisoned ? poison_code(r->problem->poison, t->dtype) : facts_encode(t->dtype, (double)row[d]);
        facts_store(t->dtype, storage, at + d * t->stride[3], code);
    }
}

bool facts_fill_tensor(const facts_problem *problem, facts_tensor_id id, void *storage)
{
    if (id >= FACTS_TENSOR_BIAS) {
        facts_fill_scores(problem, id, storage);
        return true;
    }
    const recipe r = recipe_of(problem, id);
    const int64_t *dim = r.tensor->dim;
    /* Only the first of the elements that share a place is written. */
    int64_t batches = r.origin[0] ? dim[0] : 1, heads = r.origin[1] ? dim[1] : 1, rows = r.origin[2] ? dim[2] : 1;
    if (dim[0] * dim[1] * dim[2] * dim[3] == 0)
        return true;
    bool ok = true;
#pragma omp parallel reduction(&& : ok)
    {
        float *row = malloc((size_t)dim[3] * sizeof *row);
        ok = row != NULL;
#pragma omp for schedule(static)
        for (int64_t n = 0; n < batches * heads * rows; n++)
            if (ok)
                store_row(&r, n / (heads * rows), n / rows % heads, n % rows, row, storage);
        free(row);
    }
    return ok;
}

void facts_fill_gaps(const facts_problem *problem, int32_t dtype, void *storage, int64_t elements)
{
    bool poisoned = problem->poison != FACTS_POISON_FILL;
    uint32_t code = poisoned ? poison_code(problem->poison, dtype) : 0;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < elements; i++) {
        facts_draw draw = { { 0 } };
        if (!poisoned)
            draw = facts_draw_at(problem->seed, FACTS_STREAM_PAD, FACTS_LANE_VALUE, (uint64_t)i);
        facts_store(dtype, storage, i, poisoned ? code : facts_encode(dtype, (double)facts_normal(draw)));
    }
}
