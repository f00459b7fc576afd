/* Any bytes as an attention problem and a call of it. Whatever is asked: an answer with a status,
 * and a sentence when it is no. What the cpu backend says yes to is run, forward or backward, with
 * every tensor in memory of exactly its own size: the sanitizers see the first byte beside it.
 * Bytes between an output's rows stay as they were; with finite inputs and no score_mod no output
 * is NaN; a wrong address or length is refused and nothing is written. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/plan.h"
#include "fattn/cache.h"
#include "fattn/score_mod.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 18, MOST_WORKSPACE = 1 << 24, LOOKED_AT = 4096, PATTERN = 0xcb };

static const uint8_t *at, *end;

static void check(bool ok)
{
    if (!ok)
        abort();
}

static uint8_t take(void)
{
    return at < end ? *at++ : 0;
}

static int64_t below(int n)
{
    return take() % n;
}

static void take_bytes(void *out, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)out)[i] = take();
}

/* ---- contexts
 * --------------------------------------------------------------------------------------------------------------------------
 */

static fattn_context *cpu;

static void open_context(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_cache_limits limits = FATTN_CACHE_LIMITS_INIT;
    if (cpu != NULL)
        return;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 1;
    check(fattn_context_create(&cpu, &options) == FATTN_OK);
    limits.entries = 16;
    check(fattn_cache_limit(&limits) == FATTN_OK);
}

/* ---- a problem out of bytes
 * -------------------------------------------------------------------------------------------------------------
 */

static void take_strides(int64_t strides[4], int64_t dim)
{
    static const int64_t some[] = { 0, 1, 4, 8, 16, 64, 128, 256, 512, 1024, 2048, 4096 };
    if (below(4) != 0)
        return;
    for (int i = 0; i < 3; i++)
        strides[i] = below(3) == 0 ? dim * below(32) : some[below(12)];
    strides[3] = below(16) == 0 ? below(3) : 1;
}

static int64_t broadcast(int64_t extent)
{
    return below(2) ? extent : 1;
}

/* The callback takes the rest of its operations from the same bytes. */
static fattn_value record(fattn_recorder *recorder, fattn_value score, void *user)
{
    static const char *const names[] = { "a", "b", "c", "d" };
    const fattn_problem *p = user;
    fattn_value values[24] = { score };
    int count = 1;
    for (int64_t left = 1 + below(16); left > 0; left--) {
        const fattn_value a = values[below(count)], b = values[below(count)],
                          c = values[below(count)];
        const int64_t dim[4] = { broadcast(p->batch), broadcast(p->heads_q), broadcast(p->seq_q),
                                 broadcast(p->seq_kv) };
        switch (below(5)) {
        case 0:
            values[count] = fattn_record_constant(recorder, (double)(int8_t)take() / 8);
            break;
        case 1:
            values[count] = fattn_record_index(recorder, (fattn_mod_axis)below(4));
            break;
        case 2:
            values[count] = fattn_record_tensor(recorder, names[below(4)],
                                                (fattn_dtype)(1 + below(3)), dim, NULL);
            break;
        default:
            values[count] = fattn_record(recorder, (fattn_mod_op)(1 + below(36)), a, b, c);
        }
        if (values[count] >= 0 && count < 23)
            count++;
    }
    return values[count - 1];
}

static void take_small(fattn_problem *p)
{
    p->pass = (int32_t)below(2);
    p->dtype = (int32_t)below(4);
    p->o_dtype = below(4) ? 0 : (int32_t)below(4);
    p->grad_dtype = below(4) ? 0 : (int32_t)below(4);
    p->batch = 1 + below(3);
    p->heads_k = 1 + below(2);
    p->heads_q = p->heads_k * (1 + below(3));
    p->heads_v = below(3) ? 0 : p->heads_q;
    p->seq_q = 1 + below(20);
    p->seq_kv = 1 + below(20);
    p->dim_qk = 1 + below(40);
    p->dim_v = below(2) ? 0 : 1 + below(40);
    p->has_attn_scale = (int32_t)below(2);
    p->attn_scale = (double)(int8_t)take() / 64;
    p->has_left = (int32_t)below(2);
    p->has_right = (int32_t)below(2);
    p->window_left = (int64_t)(int8_t)take();
    p->window_right = (int64_t)(int8_t)take();
    p->align = (int32_t)below(2);
    p->padding = (int32_t)below(2);
    p->len_broadcast = (int32_t)below(2);
    p->outputs = (uint32_t)below(8);
    p->deterministic = (int32_t)below(2);
    p->guards_off = below(8) == 0;
    p->training = below(4) == 0;
    p->has_bias = below(3) == 0;
    p->bias_dtype = (int32_t)below(4);
    p->dbias = p->has_bias && below(2);
    if (p->has_bias && below(2))
        memcpy(p->bias_dim,
               (int64_t[4]){ broadcast(p->batch), broadcast(p->heads_q), broadcast(p->seq_q),
                             broadcast(p->seq_kv) },
               sizeof p->bias_dim);
    int64_t *const all[] = { p->q_strides,     p->k_strides,    p->v_strides,    p->o_strides,
                             p->do_strides,    p->dq_strides,   p->dk_strides,   p->dv_strides,
                             p->stats_strides, p->bias_strides, p->dbias_strides };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        take_strides(all[i], p->dim_qk);
    p->mod_gradients = (uint32_t)below(4) ? 0 : (uint32_t)take();
}

/* Every byte as it comes, in a struct of any size. */
static void take_wild(fattn_problem *p)
{
    take_bytes((char *)p + sizeof p->struct_size, sizeof *p - sizeof p->struct_size);
    p->score_mod = NULL;
    if (below(4) == 0)
        p->struct_size = (size_t)take() * 8;
}

/* ---- memory
 * ------------------------------------------------------------------------------------------------------------------------------
 */

typedef struct memory {
    fattn_tensors tensors;
    void *block[FATTN__MAX_ARGUMENTS];
    void *mod_tensors[FATTN_MOD_MAX_TENSORS], *mod_gradients[FATTN_MOD_MAX_TENSORS];
} memory;

static void fill_finite(void *out, int64_t bytes)
{
    static uint32_t state;
    state ^= take();
    /* Each half of a float is a bf16 and an f16 below 2 in magnitude, too. */
    for (int64_t i = 0; i + 2 <= bytes; i += 2) {
        state = state * 1664525u + 1013904223u;
        const uint16_t half = (uint16_t)(0x3800u | (state >> 16 & 0x83ffu));
        memcpy((char *)out + i, &half, sizeof half);
    }
}

static void set_address(memory *m, const fattn__argument *a, void *address)
{
    void **list = a->offset == (int32_t)offsetof(fattn_tensors, mod_tensors) ? m->mod_tensors
                                                                             : m->mod_gradients;
    if (a->place >= 0)
        list[a->place] = address;
    else
        memcpy((char *)&m->tensors + a->offset, &address, sizeof address);
}

/* False when a tensor is too large to be made here. */
static bool allocate(memory *m, const fattn_plan *plan, bool finite)
{
    *m = (memory){ .tensors = FATTN_TENSORS_INIT };
    const fattn__arguments *a = &plan->arguments;
    m->tensors.workspace_bytes = a->workspace_bytes;
    m->tensors.mod_tensors = (const void *const *)m->mod_tensors;
    m->tensors.mod_gradients = m->mod_gradients;
    for (int i = 0; i < a->count; i++) {
        const bool workspace = a->at[i].offset == (int32_t)offsetof(fattn_tensors, workspace);
        if (a->at[i].footprint.span > (workspace ? MOST_WORKSPACE : MOST_BYTES))
            return false;
        m->block[i] = malloc((size_t)a->at[i].footprint.span);
        check(m->block[i] != NULL);
        memset(m->block[i], PATTERN, (size_t)a->at[i].footprint.span);
        if (!a->at[i].written && finite)
            fill_finite(m->block[i], a->at[i].footprint.span);
        else if (!a->at[i].written)
            take_bytes(m->block[i], (size_t)a->at[i].footprint.span);
        set_address(m, &a->at[i], m->block[i]);
    }
    return true;
}

static void release(memory *m)
{
    for (int i = 0; i < FATTN__MAX_ARGUMENTS; i++)
        free(m->block[i]);
}

/* Lengths, most of them right. Returns whether all are. */
static bool take_lengths(memory *m, const fattn_problem *p)
{
    bool right = true;
    for (int64_t i = 0; p->padding && i < (p->len_broadcast ? 1 : p->batch); i++) {
        const bool wild = below(32) == 0;
        const int32_t q = wild ? (int8_t)take() : (int32_t)(take() % (p->seq_q + 1));
        const int32_t kv = wild ? (int8_t)take() : (int32_t)(take() % (p->seq_kv + 1));
        ((int32_t *)(uintptr_t)m->tensors.seq_len_q)[i] = q;
        ((int32_t *)(uintptr_t)m->tensors.seq_len_kv)[i] = kv;
        right = right && q >= 0 && q <= p->seq_q && kv >= 0 && kv <= p->seq_kv;
    }
    return right;
}

/* ---- what must hold
 * ------------------------------------------------------------------------------------------------------------------------
 */

static void check_untouched(const memory *m, const fattn_plan *plan)
{
    for (int i = 0; i < plan->arguments.count; i++) {
        const fattn__argument *a = &plan->arguments.at[i];
        for (int64_t k = 0; a->written && k < a->footprint.span && k < LOOKED_AT; k++)
            check(((const uint8_t *)m->block[i])[k] == PATTERN);
    }
}

static bool is_nan(const uint8_t *element, int32_t dtype)
{
    uint32_t bits = 0;
    memcpy(&bits, element, (size_t)fattn__dtype_bytes(dtype));
    if (dtype == FATTN_F16)
        return (bits & 0x7fff) > 0x7c00;
    return dtype == FATTN_F32 ? (bits & 0x7fffffff) > 0x7f800000 : (bits & 0x7fff) > 0x7f80;
}

/* Elements are not NaN (when `finite`), and what lies between them is as it was. */
static void check_output(uint8_t *bytes, const fattn__argument *a, const fattn__shape *shape,
                         bool finite)
{
    const int64_t element = fattn__dtype_bytes(shape->dtype);
    uint8_t *own = calloc(1, (size_t)a->footprint.span);
    for (int64_t b = 0; b < shape->dim[0]; b++)
        for (int64_t h = 0; h < shape->dim[1]; h++)
            for (int64_t s = 0; s < shape->dim[2]; s++)
                for (int64_t d = 0; d < shape->dim[3]; d++) {
                    const int64_t *st = shape->strides,
                                  from = (b * st[0] + h * st[1] + s * st[2] + d * st[3]) * element;
                    check(from + element <= a->footprint.span);
                    memset(own + from, 1, (size_t)element);
                    check(!finite || !is_nan(bytes + from, shape->dtype));
                }
    for (int64_t i = 0; i < a->footprint.span; i++)
        check(own[i] != 0 || bytes[i] == PATTERN);
    free(own);
}

static void check_outputs(const memory *m, const fattn_plan *plan, bool finite)
{
    for (int i = 0; i < plan->arguments.count; i++) {
        const fattn__argument *a = &plan->arguments.at[i];
        for (fattn__role role = 0; a->written && a->place < 0 && role < FATTN__ROLE_COUNT; role++) {
            if (strcmp(fattn__role_name(role), a->name) != 0)
                continue;
            const fattn__shape shape = fattn__problem_shape(&plan->problem, role);
            check_output(m->block[i], a, &shape, finite);
        }
    }
}

static fattn_status call(const fattn_plan *plan, const fattn_tensors *tensors)
{
    return plan->problem.pass == FATTN_FORWARD ? fattn_forward(plan, tensors, NULL)
                                               : fattn_backward(plan, tensors, NULL);
}

/* One address becomes NULL, or crooked, or another tensor's: refused, unless two inputs are one. */
static void call_wrongly(memory *m, const fattn_plan *plan)
{
    const int i = (int)below(plan->arguments.count), j = (int)below(plan->arguments.count);
    const fattn__argument *one = &plan->arguments.at[i], *other = &plan->arguments.at[j];
    const int how = (int)below(3);
    if ((how == 2 && (i == j || (!one->written && !other->written))) ||
        (how > 0 && plan->problem.guards_off))
        return;
    set_address(m, one,
                how == 0   ? NULL
                : how == 1 ? (char *)m->block[i] + 1 + below(15)
                           : m->block[j]);
    check(call(plan, &m->tensors) == FATTN_BAD_PROBLEM && fattn_last_error()[0] != '\0');
    check_untouched(m, plan);
    set_address(m, one, m->block[i]);
}

static void run(const fattn_plan *plan)
{
    memory m;
    const bool finite = below(4) != 0;
    if (allocate(&m, plan, finite)) {
        const bool right = take_lengths(&m, &plan->problem);
        call_wrongly(&m, plan);
        const fattn_status st = call(plan, &m.tensors);
        check(st == (right ? FATTN_OK : FATTN_BAD_PROBLEM));
        if (!right)
            check_untouched(&m, plan);
        else
            check_outputs(&m, plan,
                          finite && plan->problem.score_mod == NULL &&
                              plan->problem.pass == FATTN_FORWARD);
    }
    release(&m);
}

/* The answer is yes, or no with a reason. Returns whether it is yes. */
static bool decide(const fattn_problem *problem)
{
    fattn_decision *decision = NULL;
    const fattn_status st = fattn_decide(&decision, cpu, problem, FATTN_ASK_A);
    check(st == FATTN_OK || st == FATTN_BAD_PROBLEM);
    const bool yes = fattn_decision_supported(decision);
    check(yes == (fattn_decision_reason(decision) == FATTN_REASON_NONE) &&
          (yes || fattn_decision_text(decision)[0] != '\0'));
    fattn_decision_destroy(decision);
    return yes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fattn_problem problem = FATTN_PROBLEM_INIT, resolved;
    fattn_score_mod *mod = NULL;
    fattn_plan *plan;
    at = data, end = data + size;
    open_context();
    if (below(8) == 0)
        take_wild(&problem);
    else
        take_small(&problem);
    if (problem.struct_size == sizeof problem && below(4) == 0 &&
        fattn_score_mod_create(&mod, record, NULL, &problem) == FATTN_OK)
        problem.score_mod = mod;
    const bool cached = below(2) != 0, yes = decide(&problem);
    const fattn_status st = cached ? fattn_plan_get(&plan, cpu, &problem, NULL)
                                   : fattn_plan_create(&plan, cpu, &problem, NULL);
    check((st == FATTN_OK) == yes && (plan != NULL) == yes &&
          (yes || fattn_last_error()[0] != '\0'));
    if (yes) {
        check(fattn_problem_resolve(&problem, &resolved) == FATTN_OK &&
              fattn__problem_same(&plan->problem, &resolved));
        check(fattn_plan_covers(plan, &problem));
        run(plan);
    }
    fattn_plan_destroy(plan);
    fattn_score_mod_destroy(mod);
    return 0;
}
