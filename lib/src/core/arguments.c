#include "arguments.h"

#include <gpu/gpu_driver.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "error.h"
#include "fattn/score_mod.h"
#include "problem/auxiliary.h"
#include "problem/layout.h"
#include "problem/resolved_problem.h"

/* ---- where bytes lie
 * ------------------------------------------------------------------------------------------------------------
 */

static void add_axis(fattn__footprint *out, int64_t count, int64_t stride)
{
    int at = out->rank;
    if (count == 1 || stride == 0)
        return;
    for (; at > 0 && out->axis[at - 1].stride > stride; at--)
        out->axis[at] = out->axis[at - 1];
    out->axis[at].count = count;
    out->axis[at].stride = stride;
    out->rank++;
}

/* An axis that steps over exactly one row makes a longer row. */
static void join_rows(fattn__footprint *out)
{
    while (out->rank > 0 && out->axis[0].stride == out->row) {
        out->row *= out->axis[0].count;
        out->rank--;
        memmove(&out->axis[0], &out->axis[1], (size_t)out->rank * sizeof out->axis[0]);
    }
}

void fattn__footprint_of(fattn__footprint *out, const int64_t dim[4], const int64_t strides[4],
                         int64_t element_bytes)
{
    int64_t elements;
    *out = (fattn__footprint){ .span = INT64_MAX, .row = element_bytes };
    if (!fattn__layout_span(dim, strides, &elements) || elements > INT64_MAX / element_bytes)
        return;
    for (int i = 0; i < 4; i++)
        add_axis(out, dim[i], strides[i] * element_bytes);
    out->span = elements * element_bytes;
    join_rows(out);
}

/* One step of the search for a byte that two tensors share: a multiple of `stride` between -least
 * and most. */
typedef struct step {
    int64_t stride, least, most;
    int64_t reach_down, reach_up; /* the largest distance that all later steps can cover */
} step;

typedef struct search {
    int count;
    int budget;
    int64_t below, above; /* the remaining distance must be between these; both are excluded */
    step steps[8];
} search;

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b > 0);
}

static int64_t divide_down(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Can the steps from `at` on cover `distance`? */
static bool reaches(search *s, int at, int64_t distance)
{
    if (at == s->count)
        return distance > s->below && distance < s->above;
    const step *here = &s->steps[at];
    int64_t first = divide_up(distance - (s->above - 1) - here->reach_up, here->stride);
    int64_t last = divide_down(distance - (s->below + 1) + here->reach_down, here->stride);
    if (first < -here->least)
        first = -here->least;
    if (last > here->most)
        last = here->most;
    for (int64_t i = first; i <= last; i++) {
        if (--s->budget < 0)
            return false;
        if (reaches(s, at + 1, distance - i * here->stride))
            return true;
    }
    return false;
}

static void add_steps(search *s, const fattn__footprint *f, bool forward)
{
    for (int i = 0; i < f->rank; i++) {
        int at = 0;
        while (at < s->count && s->steps[at].stride > f->axis[i].stride)
            at++;
        if (at == s->count || s->steps[at].stride != f->axis[i].stride) {
            memmove(&s->steps[at + 1], &s->steps[at], (size_t)(s->count - at) * sizeof s->steps[0]);
            s->steps[at] = (step){ .stride = f->axis[i].stride };
            s->count++;
        }
        *(forward ? &s->steps[at].most : &s->steps[at].least) += f->axis[i].count - 1;
    }
}

bool fattn__footprints_meet(const fattn__footprint *a, const fattn__footprint *b, int64_t distance)
{
    if (distance >= a->span || -distance >= b->span)
        return false;
    if (a->span == INT64_MAX || b->span == INT64_MAX)
        return true;
    /* A byte i*s + r of a is the byte distance + j*t + q of b: i*s - j*t = distance + (q - r), with
     * q below b's row and r below a's. */
    search s = { .budget = 4096, .below = -b->row, .above = a->row };
    add_steps(&s, a, true);
    add_steps(&s, b, false);
    for (int i = s.count - 1; i > 0; i--) {
        s.steps[i - 1].reach_up = s.steps[i].reach_up + s.steps[i].most * s.steps[i].stride;
        s.steps[i - 1].reach_down = s.steps[i].reach_down + s.steps[i].least * s.steps[i].stride;
    }
    return reaches(&s, 0, distance);
}

/* ---- what a problem needs
 * ---------------------------------------------------------------------------------------------------------
 */

static fattn__argument *add(fattn__arguments *out, const char *name, size_t offset, bool written)
{
    fattn__argument *argument = &out->at[out->count++];
    *argument = (fattn__argument){
        .name = name, .offset = (int32_t)offset, .place = -1, .written = written
    };
    return argument;
}

static void add_bytes(fattn__arguments *out, const char *name, size_t offset, bool written,
                      size_t bytes)
{
    const int64_t row = bytes < INT64_MAX ? (int64_t)bytes : INT64_MAX;
    add(out, name, offset, written)->footprint = (fattn__footprint){ .span = row, .row = row };
}

static void add_tensor(fattn__arguments *out, const char *name, size_t offset, bool written,
                       const fattn__shape *shape)
{
    fattn__footprint_of(&add(out, name, offset, written)->footprint, shape->dim, shape->strides,
                        fattn__dtype_bytes(shape->dtype));
}

static void add_tensors(fattn__arguments *out, const fattn_problem *p)
{
    static const struct {
        const char *name;
        size_t offset;
        fattn__role role;
    } table[] = {
#define AS_ROW(field, role) { #field, offsetof(fattn_tensors, field), FATTN__ROLE_##role },
        AS_ROW(q, Q) AS_ROW(k, K) AS_ROW(v, V) AS_ROW(o, O) AS_ROW(d_o, DO) AS_ROW(dq, DQ)
            AS_ROW(dk, DK) AS_ROW(dv, DV) AS_ROW(bias, BIAS) AS_ROW(dbias, DBIAS)
#undef AS_ROW
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const fattn__shape shape = fattn__problem_bytes_of(p, table[i].role);
        if (shape.used)
            add_tensor(out, table[i].name, table[i].offset, shape.written, &shape);
    }
    const fattn__shape stats = fattn__problem_bytes_of(p, FATTN__ROLE_STATS);
    const bool forward = p->pass == FATTN_FORWARD;
    if (!forward || (p->outputs & (FATTN_WANT_STATS | FATTN_WANT_STATS_LOG2)) != 0)
        add_tensor(out, "stats", offsetof(fattn_tensors, stats), forward, &stats);
    if (forward && (p->outputs & FATTN_WANT_MAX) != 0)
        add_tensor(out, "max", offsetof(fattn_tensors, max), true, &stats);
    if (forward && (p->outputs & FATTN_WANT_SUM_EXP) != 0)
        add_tensor(out, "sum_exp", offsetof(fattn_tensors, sum_exp), true, &stats);
}

static void add_auxiliaries(fattn__arguments *out, const fattn_problem *p)
{
    for (fattn__auxiliary which = 0; which < FATTN__AUXILIARY_COUNT; which++) {
        const int64_t bytes = fattn__auxiliary_bytes(p, which);
        if (bytes > 0)
            add_bytes(out, fattn__auxiliary_name(which), fattn__auxiliary_place(which),
                      fattn__auxiliary_written(which), (size_t)bytes);
    }
}

static void add_modification(fattn__arguments *out, const fattn_problem *p)
{
    const size_t count = p->score_mod != NULL ? fattn_score_mod_tensor_count(p->score_mod) : 0;
    for (size_t i = 0; i < count; i++) {
        const fattn_mod_tensor *tensor = fattn_score_mod_tensor(p->score_mod, i);
        fattn__argument *argument =
            add(out, "mod_tensors", offsetof(fattn_tensors, mod_tensors), false);
        argument->place = (int32_t)i;
        fattn__footprint_of(&argument->footprint, tensor->dim, tensor->strides,
                            fattn__dtype_bytes(tensor->dtype));
        if ((p->mod_gradients >> i & 1u) == 0)
            continue;
        argument = add(out, "mod_gradients", offsetof(fattn_tensors, mod_gradients), true);
        argument->place = (int32_t)i;
        fattn__footprint_of(&argument->footprint, tensor->dim, tensor->strides,
                            fattn__dtype_bytes(FATTN_F32));
    }
}

void fattn__arguments_of(fattn__arguments *out, const fattn_problem *p, size_t workspace_bytes)
{
    memset(out, 0, sizeof *out);
    out->workspace_bytes = workspace_bytes;
    add_tensors(out, p);
    if (p->padding) {
        const size_t count = p->len_broadcast ? 1 : (size_t)p->batch;
        add_bytes(out, "seq_len_q", offsetof(fattn_tensors, seq_len_q), false,
                  sizeof(int32_t) * (count + ((p->cumulative & FATTN_CUMULATIVE_Q) != 0)));
        add_bytes(out, "seq_len_kv", offsetof(fattn_tensors, seq_len_kv), false,
                  sizeof(int32_t) * (count + ((p->cumulative & FATTN_CUMULATIVE_KV) != 0)));
    }
    add_auxiliaries(out, p);
    add_modification(out, p);
    if (workspace_bytes > 0)
        add_bytes(out, "workspace", offsetof(fattn_tensors, workspace), true, workspace_bytes);
}

/* ---- checked
 * -----------------------------------------------------------------------------------------------------------------------
 */

static fattn_status refuse(const fattn__argument *argument, const char *what)
{
    if (argument->place < 0)
        return fattn__fail(FATTN_BAD_PROBLEM, "%s %s", argument->name, what);
    return fattn__fail(FATTN_BAD_PROBLEM, "%s[%d] %s", argument->name, argument->place, what);
}

static fattn_status refuse_misaligned(const fattn__argument *argument, uintptr_t address)
{
    char what[96];
    snprintf(what, sizeof what, "is not aligned to 16 bytes: its address is %u past a multiple",
             (unsigned)(address % 16));
    return refuse(argument, what);
}

static fattn_status refuse_meeting(const fattn__argument *one, const fattn__argument *other)
{
    char what[96];
    if (other->place < 0)
        snprintf(what, sizeof what, "shares memory with %s, and the call writes it", other->name);
    else
        snprintf(what, sizeof what, "shares memory with %s[%d], and the call writes it",
                 other->name, other->place);
    return refuse(one, what);
}

static const void *address_of(const fattn__argument *argument, const fattn_tensors *tensors)
{
    const void *address;
    memcpy(&address, (const char *)tensors + argument->offset, sizeof address);
    return argument->place >= 0 && address != NULL ? ((const void *const *)address)[argument->place]
                                                   : address;
}

/* Pinned host memory is allowed, because the GPU reaches it by the same address. */
static fattn_status check_device(const fattn__argument *argument, uintptr_t address,
                                 const struct gpu_driver *cuda, int device)
{
    int ordinal = -1;
    const int result = cuda->pointer_attribute(&ordinal, GPU_ORDINAL_OF_POINTER, address);
    if (result != 0 && result != GPU_INVALID_VALUE) /* the driver fails: no mistake of the caller */
        return fattn__fail(FATTN_DEVICE_FAULT, "%s: the driver does not know its address: %s",
                           argument->name, gpu_driver_text(cuda, result));
    return result == 0 && ordinal == device
               ? FATTN_OK
               : refuse(argument, "is not an address of the plan's GPU");
}

static fattn_status check_meetings(const fattn__arguments *a, const uintptr_t *from)
{
    for (int i = 0; i < a->count; i++) {
        if (!a->at[i].written)
            continue;
        for (int j = 0; j < a->count; j++) {
            if (j == i || (a->at[j].written && j < i))
                continue;
            const int64_t distance = (int64_t)(from[j] - from[i]);
            if (distance < a->at[i].footprint.span && -distance < a->at[j].footprint.span &&
                fattn__footprints_meet(&a->at[i].footprint, &a->at[j].footprint, distance))
                return refuse_meeting(&a->at[i], &a->at[j]);
        }
    }
    return FATTN_OK;
}

static fattn_status check_set(const fattn__arguments *a, const uintptr_t *from,
                              const struct gpu_driver *cuda, int device)
{
    for (int i = 0; i < a->count; i++)
        if (from[i] % 16 != 0)
            return refuse_misaligned(&a->at[i], from[i]);
    for (int i = 0; cuda != NULL && i < a->count; i++)
        TRY(check_device(&a->at[i], from[i], cuda, device));
    return check_meetings(a, from);
}

fattn_status fattn__arguments_check(fattn__arguments *a, const fattn_tensors *tensors,
                                    bool trusting, const struct gpu_driver *cuda, int device)
{
    uintptr_t from[FATTN__MAX_ARGUMENTS] = { 0 };
    for (int i = 0; i < a->count; i++) {
        from[i] = (uintptr_t)address_of(&a->at[i], tensors);
        if (from[i] == 0)
            return refuse(&a->at[i], "is NULL");
    }
    if (tensors->workspace_bytes < a->workspace_bytes)
        return fattn__fail(FATTN_BAD_PROBLEM, "the workspace has %zu bytes, the plan needs %zu",
                           tensors->workspace_bytes, a->workspace_bytes);
    if (trusting)
        return FATTN_OK;
    const uint64_t name = XXH3_64bits(from, (size_t)a->count * sizeof *from) | 1u;
    _Atomic uint64_t *known = &a->known_good[name / 2 % FATTN__KNOWN_SETS];
    if (atomic_load_explicit(known, memory_order_relaxed) == name)
        return FATTN_OK;
    const fattn_status st = check_set(a, from, cuda, device);
    if (st == FATTN_OK)
        atomic_store_explicit(known, name, memory_order_relaxed);
    return st;
}
