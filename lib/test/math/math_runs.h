/* One problem on the math backend and on the cpu backend, which lib/test/cpu holds against the
 * oracle, compared element by element; every byte that is no element must be as it was. */
#ifndef FATTN_TEST_MATH_RUNS_H
#define FATTN_TEST_MATH_RUNS_H

#include "fattn/device.h"
#include "fattn/score_mod.h"
#include "math_scene.h"

/* Who computes; the math backend within limits (0: its own). */
typedef struct side {
    fattn_context *context;
    const fattn__engine *engine;
    int64_t score_bytes, most_keys;
} side;

typedef struct tally {
    int problems, elements_wrong;
    double worst; /* of the differences allowed */
} tally;

static inline fattn_plan plan_of(const side *who, const fattn_problem *p)
{
    fattn_plan plan = { .engine = who->engine, .context = who->context, .problem = *p };
    const fattn_plan_options options = FATTN_PLAN_OPTIONS_INIT;
    cr_assert_eq(who->engine->setup(&plan, &options), FATTN_OK, "%s", fattn_last_error());
    if (who->score_bytes > 0) {
        fattn__math_state *state = plan.state;
        fattn__chunks_within(&state->chunks, p, who->score_bytes, who->most_keys);
        plan.workspace_bytes = state->chunks.bytes;
    }
    return plan;
}

/* Runs the scene; what is written replaces its memory. The workspace is dirty and guarded. */
static inline void run_scene(const side *who, scene *s)
{
    fattn_plan plan = plan_of(who, &s->p);
    void *buffers[MOST_TENSORS + 2 * FATTN_MOD_MAX_TENSORS];
    const void *mod_tensors[FATTN_MOD_MAX_TENSORS] = { NULL };
    void *mod_gradients[FATTN_MOD_MAX_TENSORS] = { NULL };
    fattn_tensors t = FATTN_TENSORS_INIT;
    t.mod_tensors = mod_tensors, t.mod_gradients = mod_gradients;
    for (int i = 0; i < s->count; i++) {
        cr_assert_eq(fattn_buffer_create(&buffers[i], who->context, s->at[i].count), FATTN_OK, "%s",
                     fattn_last_error());
        cr_assert_eq(fattn_buffer_write(who->context, buffers[i], s->at[i].bytes, s->at[i].count),
                     FATTN_OK, "%s", fattn_last_error());
        void *at = (char *)buffers[i] + GUARD;
        if (s->place[i] < 0)
            memcpy((char *)&t + s->offset[i], &at, sizeof at);
        else if (s->offset[i] == offsetof(fattn_tensors, mod_tensors))
            mod_tensors[s->place[i]] = at;
        else
            mod_gradients[s->place[i]] = at;
    }
    /* Under a sanitizer that looks for what was never written the workspace is left as it came. */
    const bool dirty = getenv("FACTS_TEST_MATH_UNWRITTEN") == NULL;
    const size_t bytes = plan.workspace_bytes + 2 * GUARD;
    char *dirt = malloc(bytes);
    memset(dirt, POISON, bytes);
    void *workspace;
    cr_assert_eq(fattn_buffer_create(&workspace, who->context, bytes), FATTN_OK, "%s",
                 fattn_last_error());
    if (dirty)
        cr_assert_eq(fattn_buffer_write(who->context, workspace, dirt, bytes), FATTN_OK);
    t.workspace = (char *)workspace + GUARD, t.workspace_bytes = plan.workspace_bytes;
    cr_assert_eq(who->engine->run(&plan, &t, NULL), FATTN_OK, "%s", fattn_last_error());
    cr_assert_eq(fattn_stream_synchronize(who->context, NULL), FATTN_OK, "%s", fattn_last_error());
    if (dirty)
        cr_assert_eq(fattn_buffer_read(who->context, dirt, workspace, bytes), FATTN_OK);
    for (int i = 0; i < GUARD; i++)
        cr_assert(dirt[i] == (char)POISON && dirt[bytes - 1 - (size_t)i] == (char)POISON,
                  "the workspace's guard was overwritten");
    for (int i = 0; i < s->count; i++) {
        char *before = s->at[i].bytes;
        char *after = malloc(s->at[i].count);
        cr_assert_eq(fattn_buffer_read(who->context, after, buffers[i], s->at[i].count), FATTN_OK);
        if (s->at[i].written) {
            s->at[i].bytes = after;
            free(before);
        } else {
            cr_assert_eq(memcmp(before, after, s->at[i].count), 0, "%s is an input and was written",
                         s->at[i].name);
            free(after);
        }
        fattn_buffer_destroy(who->context, buffers[i]);
    }
    fattn_buffer_destroy(who->context, workspace);
    free(dirt);
    who->engine->done(&plan);
}

/* ---- comparison
 * -------------------------------------------------------------------------------------------------------------------
 */

typedef struct comparison {
    const memory *other;
    float *largest; /* magnitude of the tensor */
    double allowed, worst;
    int64_t worst_at[4];
    float worst_pair[2];
    char *gaps; /* 1 where an element lies */
    int64_t wrong;
} comparison;

static inline void measure_one(const memory *m, const int64_t at[4], int64_t offset, void *user)
{
    comparison *c = user;
    (void)at;
    const float x = fabsf(element(data_of(m), m->dtype, offset));
    if (isfinite(x) && x > *c->largest)
        *c->largest = x;
    memset(c->gaps + offset * fattn__dtype_bytes(m->dtype), 1,
           (size_t)fattn__dtype_bytes(m->dtype));
}

static inline void compare_one(const memory *m, const int64_t at[4], int64_t offset, void *user)
{
    comparison *c = user;
    const float want = element(data_of(m), m->dtype, offset),
                got = element(data_of(c->other), m->dtype, offset);
    double ratio = fabs((double)want - (double)got) / c->allowed;
    if (isnan(want) || isnan(got))
        ratio = isnan(want) && isnan(got) ? 0 : 1e30;
    if (isinf(want) || isinf(got))
        ratio = want == got ? 0 : 1e30;
    c->wrong += ratio > 1;
    if (ratio > c->worst) {
        c->worst = ratio;
        memcpy(c->worst_at, at, sizeof c->worst_at);
        c->worst_pair[0] = want, c->worst_pair[1] = got;
    }
}

/* What is left of sums that cancel: the roundings of their terms dS_ij = P_ij (f dP_ij - D_i), f what dropout multiplies with. The elements of dO and V
 * lie evenly in [-1, 1], with variance 1/3: dP_ij, a sum of d_v products, deviates by sqrt(d_v) / 3, D_i by f times that at most, and P_i sums to 1. So
 * sum_j |dS_ij| is 2 f sqrt(d_v) / 3 or so, four times that in the worst of some hundred rows.
 *   keys that are all the same: dQ_i = scale k sum_j dS_ij, whose terms were cast to the inputs' type; one dK of them all adds up the rows, where a
 *     rounding of at most u has u / sqrt(3) and q 1 / sqrt(3);
 *   a score_mod's number for all rows and keys: in fp32, but each term may be multiplied with its j - i (relative position), and it is a sum of rows. */
static inline double cancelled_of(const scene *s, const memory *m, double unit, double kept)
{
    const fattn_problem *p = &s->p;
    const memory *k = find(s, offsetof(fattn_tensors, k)),
                 *scale = find(s, offsetof(fattn_tensors, attn_scale));
    const double row = 2 * kept * sqrt((double)p->dim_v) / 3;
    const bool same = p->dtype != FATTN_F32 && k->dim[2] > 1 && k->strides[2] == 0,
               of_keys = strcmp(m->name, "dk") == 0;
    if (same && (of_keys || strcmp(m->name, "dq") == 0)) {
        const double rows = of_keys ? (double)(p->heads_q / p->heads_k * p->seq_q) : 1;
        return unit / 2 * 4 * row *
               fabs(scale != NULL ? (double)*(const float *)data_of(scale) : p->attn_scale) *
               fmax(1, sqrt(rows) / 3);
    }
    if (strcmp(m->name, "mod_gradient") == 0 && m->dim[2] == 1 && m->dim[3] == 1) {
        const int64_t heads = m->dim[1] == 1 ? p->heads_q : 1,
                      batch = m->dim[0] == 1 ? p->batch : 1,
                      most = p->seq_q > p->seq_kv ? p->seq_q : p->seq_kv;
        return 0x1p-23 * row * sqrt((double)(batch * heads * p->seq_q)) * (double)most;
    }
    return 0;
}

/* Rounding: of the inputs' type in the weights, of the tensor's in what is stored; fp32 otherwise.
 * Not a bound from analysis, which is the harness's: enough to tell a mistake from rounding. */
static inline double allowed_of(const scene *s, const memory *m, float largest)
{
    const double unit[] = { 0, 0x1p-8, 0x1p-11, 0x1p-23 };
    const bool row = strcmp(m->name, "stats") == 0 || strcmp(m->name, "max") == 0 ||
                     strcmp(m->name, "sum_exp") == 0;
    const double weights =
        row ? 0x1p-23
            : unit[s->p.dtype] + unit[s->p.o_dtype] * (s->p.pass == FATTN_BACKWARD ? 1 : 0);
    /* Where the terms of a gradient cancel their rounding stays. What dropout keeps it makes
     * larger. */
    const double kept = s->p.dropout_mask ? 1.25 : 1 / (1 - s->p.dropout);
    const double cancelled =
        s->p.pass == FATTN_BACKWARD && s->p.dtype != FATTN_F32 ? unit[s->p.dtype] * kept : 0;
    const double all = s->p.pass == FATTN_BACKWARD
                           ? fmax(cancelled, cancelled_of(s, m, unit[s->p.dtype], kept))
                           : 0;
    return 4e-5 * kept + all + (4 * weights + 2 * unit[m->dtype] + 2e-5) * largest;
}

static inline double compare(const scene *s, const memory *want, const memory *got, char *text,
                             size_t capacity)
{
    float largest = 0;
    comparison c = { .other = got, .largest = &largest, .gaps = calloc(1, want->count) };
    each(want, measure_one, &c);
    c.allowed = allowed_of(s, want, largest);
    each(want, compare_one, &c);
    int64_t outside = 0;
    for (size_t i = 0; i < want->count; i++) {
        const bool inside = i >= GUARD && i < want->count - GUARD && c.gaps[i - GUARD];
        outside += !inside && got->bytes[i] != (char)POISON;
    }
    free(c.gaps);
    if (c.wrong == 0 && outside == 0)
        return c.worst;
    snprintf(text, capacity,
             "%s: %lld elements wrong, %lld bytes outside written; worst at %lld,%lld,%lld,%lld: "
             "want %.9g, got %.9g, allowed %.3g",
             want->name, (long long)c.wrong, (long long)outside, (long long)c.worst_at[0],
             (long long)c.worst_at[1], (long long)c.worst_at[2], (long long)c.worst_at[3],
             (double)c.worst_pair[0], (double)c.worst_pair[1], c.allowed);
    return outside > 0 ? 1e30 : c.worst;
}

static inline void copy_scene(scene *to, const scene *from)
{
    *to = *from;
    for (int i = 0; i < to->count; i++) {
        to->at[i].bytes = malloc(from->at[i].count);
        memcpy(to->at[i].bytes, from->at[i].bytes, from->at[i].count);
    }
}

/* Both sides on one scene, the math backend twice: its bits must repeat. The scene keeps what the
 * cpu wrote. */
static inline void compare_scene(const side *cpu, const side *math, scene *s, tally *out)
{
    scene first, again;
    char text[512];
    copy_scene(&first, s);
    copy_scene(&again, s);
    run_scene(cpu, s);
    run_scene(math, &first);
    run_scene(math, &again);
    for (int i = 0; i < s->count; i++) {
        if (!s->at[i].written)
            continue;
        const double worst = compare(s, &s->at[i], &first.at[i], text, sizeof text);
        out->worst = worst > out->worst ? worst : out->worst;
        if (worst > 1) {
            printf("%s\n", text);
            out->elements_wrong++;
        }
        cr_expect_leq(worst, 1, "%s", text);
        cr_expect_eq(memcmp(first.at[i].bytes, again.at[i].bytes, first.at[i].count), 0,
                     "%s does not repeat bit for bit", s->at[i].name);
    }
    free_scene(&first);
    free_scene(&again);
}

/* ---- precision
 * --------------------------------------------------------------------------------------------------------------------
 */

static inline void refine_one(const memory *m, const int64_t at[4], int64_t offset, void *user)
{
    (void)at;
    ((float *)data_of(m))[offset] += ((float)draw(user) * 0x1p-31F - 0.5F) * 0x1p-6F;
}

/* f32 with all of its 24 bits: the largest difference of both passes, in parts of the tensor's
 * largest element. TF32 leaves 2^-11, fp32 2^-23. */
static inline double worst_of_f32(const side *cpu, const side *math, fattn_problem p, generator *g)
{
    static scene want, got;
    double worst = 0;
    for (int32_t pass = FATTN_FORWARD; pass <= FATTN_BACKWARD; pass++) {
        p.pass = pass;
        make_scene(&want, &p, g);
        for (int i = 0; i < want.count; i++)
            if (!want.at[i].written) { /* stats too: any will do */
                each(&want.at[i], fill_one, g);
                each(&want.at[i], refine_one, g);
            }
        copy_scene(&got, &want);
        run_scene(cpu, &want);
        run_scene(math, &got);
        for (int i = 0; i < want.count; i++) {
            float largest = 0;
            comparison c = { .other = &got.at[i],
                             .largest = &largest,
                             .gaps = calloc(1, want.at[i].count),
                             .allowed = 1 };
            each(&want.at[i], measure_one, &c);
            each(&want.at[i], compare_one, &c);
            free(c.gaps);
            cr_assert_gt(largest, 0, "%s is nothing", want.at[i].name);
            worst = c.worst / (double)largest > worst ? c.worst / (double)largest : worst;
        }
        free_scene(&want);
        free_scene(&got);
    }
    return worst;
}

/* A NaN that a band hides from some rows: it may reach those alone that see it. What a mask, a
 * modification or dropout takes away either side may multiply by 0, which is a NaN. */
static inline void spoil(scene *s, size_t offset, generator *g)
{
    memory *m = find(s, offset);
    int64_t at = between(g, 0, m->dim[2] - 1);
    const bool taken_away = s->p.dropout != 0 || s->p.dropout_mask || s->p.block_mask ||
                            s->p.bias_dtype == FATTN_BOOL || s->p.score_mod != NULL;
    if ((s->p.has_left || s->p.has_right) && m->strides[2] != 0 && chance(g, 30) && !taken_away)
        each(m, spoil_one, &at);
}

/* Forward, and backward from the cpu's forward. */
static inline void compare_problem(const side *cpu, const side *math, fattn_problem p, generator *g,
                                   tally *out)
{
    static scene forward, backward;
    const generator inputs = *g;
    p.pass = FATTN_FORWARD;
    if ((p.outputs & FATTN_WANT_STATS_LOG2) == 0)
        p.outputs |= FATTN_WANT_STATS;
    make_scene(&forward, &p, g);
    spoil(&forward, offsetof(fattn_tensors, v), g);
    compare_scene(cpu, math, &forward, out);
    out->problems++;
    if ((p.outputs & FATTN_WANT_STATS_LOG2) != 0 || p.page_size_k != 0 ||
        p.page_size_v != 0) { /* there is no backward */
        free_scene(&forward);
        return;
    }
    *g = inputs; /* the same inputs where they are the same tensors: drawn in the same order up to
                    dO */
    p.pass = FATTN_BACKWARD;
    make_scene(&backward, &p, g);
    for (int i = 0; i < forward.count; i++)
        for (int j = 0; j < backward.count; j++)
            if (forward.offset[i] == backward.offset[j] && forward.place[i] == backward.place[j] &&
                !backward.at[j].written && forward.offset[i] != offsetof(fattn_tensors, max) &&
                forward.offset[i] != offsetof(fattn_tensors, sum_exp))
                memcpy(backward.at[j].bytes, forward.at[i].bytes, forward.at[i].count);
    spoil(&backward, offsetof(fattn_tensors, d_o), g);
    compare_scene(cpu, math, &backward, out);
    free_scene(&forward);
    free_scene(&backward);
}

#endif
