/* What a call must bring, and what is refused before anything is launched. */
#include <stdint.h>
#include <string.h>

#include "core/arguments.h"
#include "core/plan.h"
#include "fattn/score_mod.h"
#include "problem/layout.h"
#include "support/described_h100.h"

/* ---- footprints
 * ---------------------------------------------------------------------------------------------------------------------
 */

/* A random number below `n`. */
static uint32_t state;
static int64_t below(int64_t n)
{
    state = state * 1664525u + 1013904223u;
    return (int64_t)(state >> 8) % n;
}

enum { FIELD = 4096 };

static bool share_by_hand(const int64_t dim[2][4], const int64_t strides[2][4],
                          const int64_t bytes[2], int64_t distance)
{
    static unsigned char owner[3 * FIELD];
    memset(owner, 0, sizeof owner);
    for (int t = 0; t < 2; t++) {
        for (int64_t i = 0; i < dim[t][0] * dim[t][1] * dim[t][2] * dim[t][3]; i++) {
            const int64_t at[4] = { i / (dim[t][3] * dim[t][2] * dim[t][1]),
                                    i / (dim[t][3] * dim[t][2]) % dim[t][1],
                                    i / dim[t][3] % dim[t][2], i % dim[t][3] };
            int64_t byte = FIELD + (t == 1 ? distance : 0);
            for (int axis = 0; axis < 4; axis++)
                byte += at[axis] * strides[t][axis] * bytes[t];
            for (int64_t k = 0; k < bytes[t]; k++) {
                if (t == 1 && owner[byte + k] != 0)
                    return true;
                owner[byte + k] = (unsigned char)(owner[byte + k] | (t == 0));
            }
        }
    }
    return false;
}

Test(calls, two_tensors_meet_exactly_where_bytes_are_shared)
{
    static const int64_t some[] = { 0, 1, 2, 3, 4, 6, 8, 12, 16, 24 };
    int met = 0, apart = 0, interleaved = 0;
    for (int n = 0; n < 40000; n++) {
        int64_t dim[2][4], strides[2][4], bytes[2], distance;
        fattn__footprint f[2];
        for (int t = 0; t < 2; t++) {
            bytes[t] = (int64_t)1 << below(3);
            for (int axis = 0; axis < 4; axis++) {
                dim[t][axis] = 1 + below(4);
                strides[t][axis] = axis == 3 ? 1 : some[below(10)] * (axis == 0 ? 4 : 1);
            }
            fattn__footprint_of(&f[t], dim[t], strides[t], bytes[t]);
        }
        distance = below(512) - 256;
        const bool expected = share_by_hand(dim, strides, bytes, distance);
        cr_assert_eq(fattn__footprints_meet(&f[0], &f[1], distance), expected, "arrangement %d", n);
        cr_assert_eq(fattn__footprints_meet(&f[1], &f[0], -distance), expected,
                     "arrangement %d, the other way", n);
        met += expected;
        apart += !expected;
        interleaved += !expected && distance < f[0].span && -distance < f[1].span;
    }
    cr_expect_gt(met, 1000);
    cr_expect_gt(apart, 1000);
    cr_expect_gt(interleaved, 1000);
}

Test(calls, spans_that_do_not_fit_a_number_meet_everything_behind_them)
{
    const int64_t dim[4] = { 2, 1, 1, 8 }, strides[4] = { (int64_t)1 << 61, 8, 8, 1 },
                  small[4] = { 8, 8, 8, 1 };
    fattn__footprint huge, tiny;
    fattn__footprint_of(&huge, dim, strides, 4);
    fattn__footprint_of(&tiny, dim, small, 4);
    cr_expect_eq(huge.span, INT64_MAX);
    cr_expect(fattn__footprints_meet(&huge, &tiny, 1 << 20));
    cr_expect_not(fattn__footprints_meet(&huge, &tiny, -(1 << 20)));
}

/* ---- calls of the cpu
 * ------------------------------------------------------------------------------------------------------------------
 */

enum { TENSORS = 1 << 18, ROOM = 1 << 22, GUARD = 0xa5 };
typedef struct bench {
    fattn_context *context;
    fattn_problem problem;
    fattn_plan *plan;
    fattn_tensors tensors;
    char *memory; /* every tensor 4 KiB */
} bench;

static fattn_problem small_problem(fattn_pass pass)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.pass = (int32_t)pass;
    problem.batch = 2;
    problem.heads_q = 2;
    problem.seq_q = problem.seq_kv = 8;
    problem.dim_qk = 16;
    problem.dtype = FATTN_F32;
    return problem;
}

static void open_bench(bench *b, const fattn_problem *problem)
{
    *b = (bench){ .context = open_cpu(), .problem = *problem, .memory = aligned_alloc(4096, ROOM) };
    memset(b->memory, GUARD, ROOM);
    cr_assert_eq(fattn_plan_create(&b->plan, b->context, problem, NULL), FATTN_OK, "%s",
                 fattn_last_error());
    char *at = b->memory;
    fattn_tensors *t = &b->tensors;
    t->struct_size = sizeof *t;
#define GIVE(field) t->field = (void *)at, at += 4096;
    /* clang-format off */
    GIVE(q) GIVE(k) GIVE(v) GIVE(o) GIVE(stats) GIVE(max) GIVE(sum_exp) GIVE(seq_len_q)
    GIVE(seq_len_kv) GIVE(d_o) GIVE(dq) GIVE(dk) GIVE(dv) GIVE(bias) GIVE(dbias)
    /* clang-format on */
#undef GIVE
            memset(b->memory, 0, 4096 * 3);
    t->workspace = b->memory + TENSORS;
    t->workspace_bytes = fattn_plan_workspace_bytes(b->plan);
    cr_assert_lt(t->workspace_bytes, (size_t)(ROOM - TENSORS));
}

static void close_bench(bench *b)
{
    fattn_plan_destroy(b->plan);
    fattn_context_destroy(b->context);
    free(b->memory);
}

static fattn_status call(const bench *b)
{
    return b->problem.pass == FATTN_FORWARD ? fattn_forward(b->plan, &b->tensors, NULL)
                                            : fattn_backward(b->plan, &b->tensors, NULL);
}

/* Refused, `word` is in the sentence, and no output has a byte written. */
static void expect_refused(const bench *b, const char *word)
{
    cr_expect_eq(call(b), FATTN_BAD_PROBLEM, "%s", word);
    cr_expect_not_null(strstr(fattn_last_error(), word), "%s, got: %s", word, fattn_last_error());
    for (int i = 4096 * 3; i < ROOM; i++)
        cr_assert_eq((unsigned char)b->memory[i], GUARD, "%s: byte %d was written", word, i);
}

#define EXPECT_FIELD_CHECKED(field)                                                                \
    {                                                                                              \
        const bench kept = b;                                                                      \
        b.tensors.field = NULL;                                                                    \
        expect_refused(&b, #field " is NULL");                                                     \
        b = kept;                                                                                  \
        b.tensors.field = (void *)((char *)(uintptr_t)b.tensors.field + 4);                        \
        expect_refused(&b, #field " is not aligned to 16 bytes: its address is 4 past");           \
        b = kept;                                                                                  \
    }
/* clang-format off */
#define FORWARD_FIELDS(X)                                                                          \
    X(q) X(k) X(v) X(o) X(stats) X(max) X(sum_exp) X(seq_len_q) X(seq_len_kv) X(bias) X(workspace)
#define BACKWARD_FIELDS(X) X(q) X(o) X(stats) X(d_o) X(dq) X(dk) X(dv) X(bias) X(dbias)
/* clang-format on */

Test(calls, every_address_of_a_forward_call_is_checked_and_nothing_is_written)
{
    bench b;
    fattn_problem p = small_problem(FATTN_FORWARD);
    p.outputs = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP;
    p.padding = 1;
    p.has_bias = 1;
    open_bench(&b, &p);
    FORWARD_FIELDS(EXPECT_FIELD_CHECKED)
    b.tensors.workspace_bytes--;
    expect_refused(&b, "the workspace has");
    close_bench(&b);
}

Test(calls, every_address_of_a_backward_call_is_checked_and_nothing_is_written)
{
    bench b;
    fattn_problem p = small_problem(FATTN_BACKWARD);
    p.has_bias = p.dbias = 1;
    open_bench(&b, &p);
    BACKWARD_FIELDS(EXPECT_FIELD_CHECKED)
    close_bench(&b);
}

static fattn_value add_both(fattn_recorder *recorder, fattn_value score, void *user)
{
    const int64_t *dim = user, head[4] = { 1, dim[1], 1, 1 };
    fattn_value one = fattn_record_tensor(recorder, "one", FATTN_F32, dim, NULL);
    fattn_value other = fattn_record_tensor(recorder, "other", FATTN_F32, head, NULL);
    return fattn_record(recorder, FATTN_MOD_ADD,
                        fattn_record(recorder, FATTN_MOD_ADD, score, one, 0), other, 0);
}

Test(calls, the_tensors_of_a_score_mod_are_checked_one_by_one)
{
    int64_t dim[4] = { 1, 2, 8, 8 };
    fattn_problem p = small_problem(FATTN_FORWARD);
    fattn_score_mod *mod;
    cr_assert_eq(fattn_score_mod_create(&mod, add_both, NULL, dim), FATTN_OK, "%s",
                 fattn_last_error());
    p.score_mod = mod;
    bench b;
    open_bench(&b, &p);
    expect_refused(&b, "mod_tensors[0] is NULL");
    const void *list[2] = { b.memory, NULL };
    b.tensors.mod_tensors = list;
    expect_refused(&b, "mod_tensors[1] is NULL");
    list[1] = b.memory + 8;
    expect_refused(&b, "mod_tensors[1] is not aligned");
    list[1] = b.tensors.o;
    expect_refused(&b, "shares memory with mod_tensors[1]");
    list[1] = b.memory + 1024;
    cr_expect_eq(call(&b), FATTN_OK, "%s", fattn_last_error());
    fattn_score_mod_destroy(mod);
    close_bench(&b);
}

Test(calls, outputs_that_share_memory_with_anything_are_refused)
{
    bench b;
    fattn_problem p = small_problem(FATTN_FORWARD);
    p.outputs = FATTN_WANT_STATS;
    open_bench(&b, &p);
    const bench kept = b;
    b.tensors.stats = (float *)((char *)b.tensors.o + 2 * 2 * 8 * 16 * 4 - 16);
    expect_refused(&b, "o shares memory with stats");
    b.tensors.stats = (float *)((char *)b.tensors.o + 2 * 2 * 8 * 16 * 4);
    cr_expect_eq(call(&b), FATTN_OK, "side by side: %s", fattn_last_error());
    b = kept;
    memset(b.memory + 4096 * 3, GUARD, ROOM - 4096 * 3);
    b.tensors.o = (void *)(uintptr_t)b.tensors.q;
    expect_refused(&b, "o shares memory with q");
    b.tensors.o = (char *)b.tensors.workspace + 64;
    expect_refused(&b, "o shares memory with workspace");
    b = kept;
    b.tensors.workspace = (void *)(uintptr_t)b.tensors.k;
    expect_refused(&b, "shares memory with");
    b = kept;
    b.tensors.k = b.tensors.v = b.tensors.q;
    cr_expect_eq(call(&b), FATTN_OK, "inputs may be one: %s", fattn_last_error());
    close_bench(&b);
}

Test(calls, gradients_that_share_memory_are_refused_and_interleaved_ones_are_not)
{
    bench b;
    fattn_problem p = small_problem(FATTN_BACKWARD);
    /* dQ, dK and dV in one buffer, b,s,3,h,d */
    const int64_t packed[4] = { 8 * 3 * 2 * 16, 16, 3 * 2 * 16, 1 };
    memcpy(p.dq_strides, packed, sizeof packed);
    memcpy(p.dk_strides, packed, sizeof packed);
    memcpy(p.dv_strides, packed, sizeof packed);
    open_bench(&b, &p);
    char *dqkv = b.memory + 4096 * 56;
    b.tensors.dq = dqkv;
    b.tensors.dk = dqkv + 2 * 16 * 4;
    b.tensors.dv = dqkv + 2 * 16 * 4 + 64;
    expect_refused(&b, "dk shares memory with dv");
    b.tensors.dv = dqkv;
    expect_refused(&b, "dq shares memory with dv");
    b.tensors.dv = dqkv + 2 * 2 * 16 * 4;
    memset(b.memory, 0, 4096 * 10);
    cr_expect_eq(call(&b), FATTN_OK, "%s", fattn_last_error());
    close_bench(&b);
}

Test(calls, with_guards_off_only_null_and_a_small_workspace_are_refused)
{
    bench b;
    fattn_problem p = small_problem(FATTN_FORWARD);
    p.guards_off = 1;
    open_bench(&b, &p);
    b.tensors.q = NULL;
    expect_refused(&b, "q is NULL");
    b.tensors.q = b.memory + 4;
    cr_expect_eq(call(&b), FATTN_OK, "%s", fattn_last_error());
    cr_expect_eq(fattn_forward(b.plan, NULL, NULL), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_backward(b.plan, &b.tensors, NULL), FATTN_BAD_PROBLEM,
                 "a plan of the other pass");
    close_bench(&b);
}

/* ---- addresses of a GPU, by a driver that is not one
 * ------------------------------------------------------------------------------------ */

static uintptr_t device_from, device_to, broken_at;
static int asked;

static int fake_attribute(void *out, int attribute, gpu_address address)
{
    asked++;
    if (address == broken_at)
        return 700;
    if (attribute != GPU_ORDINAL_OF_POINTER || address < device_from || address >= device_to)
        return 1; /* CUDA_ERROR_INVALID_VALUE, as for any memory of the host */
    *(int *)out = 3;
    return 0;
}

static int error_word(int result, const char **out)
{
    *out = result == 700 ? "an illegal access" : "?";
    return 0;
}

static fattn__arguments arguments;

/* What a device of this number is told of the call; `words` of the last error, NULL: it is taken. */
static void expect_checked(const fattn_tensors *t, int device, fattn_status want, const char *words)
{
    const gpu_driver driver = { .pointer_attribute = fake_attribute,
                                .error_name = error_word,
                                .error_string = error_word };
    cr_expect_eq(fattn__arguments_check(&arguments, t, false, &driver, device), want, "%s: %s",
                 words, fattn_last_error());
    if (words != NULL)
        cr_expect_str_eq(fattn_last_error(), words);
}

static fattn_tensors at_small_addresses(void)
{
    fattn_problem p = small_problem(FATTN_FORWARD), resolved;
    fattn_tensors t = FATTN_TENSORS_INIT;
    cr_assert_eq(fattn_problem_resolve(&p, &resolved), FATTN_OK);
    fattn__arguments_of(&arguments, &resolved, 64);
    device_from = 0x10000, device_to = 0x90000;
    t.q = (void *)0x10000, t.k = (void *)0x20000, t.v = (void *)0x30000, t.o = (void *)0x40000,
    t.workspace = (void *)0x50000;
    t.workspace_bytes = 64;
    return t;
}

Test(calls, an_address_of_the_host_or_of_another_gpu_is_refused)
{
    fattn_tensors t = at_small_addresses();
    expect_checked(&t, 2, FATTN_BAD_PROBLEM, "q is not an address of the plan's GPU");
    expect_checked(&t, 3, FATTN_OK, NULL);
    t.o = (void *)0x90000;
    expect_checked(&t, 3, FATTN_BAD_PROBLEM, "o is not an address of the plan's GPU");
    const gpu_driver driver = { .pointer_attribute = fake_attribute };
    cr_expect_eq(fattn__arguments_check(&arguments, &t, true, &driver, 3), FATTN_OK,
                 "nobody asks when the guards are off");
    t = at_small_addresses(), broken_at = 0x30000;
    expect_checked(&t, 3, FATTN_DEVICE_FAULT,
                   "v: the driver does not know its address: an illegal access");
    broken_at = 0;
    expect_checked(&t, 3, FATTN_OK, NULL);
}

Test(calls, the_driver_is_asked_once_about_a_set_of_addresses_and_again_about_any_other)
{
    fattn_tensors t = at_small_addresses();
    expect_checked(&t, 3, FATTN_OK, NULL);
    cr_expect_eq(asked, 5);
    expect_checked(&t, 3, FATTN_OK, NULL);
    cr_expect_eq(asked, 5, "known");
    t.workspace_bytes = 63;
    expect_checked(&t, 3, FATTN_BAD_PROBLEM, fattn_last_error());
    t.workspace_bytes = 64, t.v = NULL;
    expect_checked(&t, 3, FATTN_BAD_PROBLEM, "v is NULL");
    t.v = (void *)0x38000;
    expect_checked(&t, 3, FATTN_OK, NULL);
    cr_expect_eq(asked, 10, "another set");
    device_from = 0x20000, t.k = (void *)0x28000; /* q was given back */
    expect_checked(&t, 3, FATTN_BAD_PROBLEM, "q is not an address of the plan's GPU");
}
