/* Each public function of libfattn and libfref that asks for memory, with each allocation of its
 * own code failing: once, and from there on for ever. It must answer FATTN_NO_MEMORY (libfref:
 * ENOMEM) and leave its owner NULL, or not need the memory and answer as always; the same question
 * without a fault is right again behind it. Prints a line for each function; exit 1 when one
 * answered otherwise. With FACTS_TEST_CUDNN (a folder) also the functions that ask cuDNN. Built
 * with ASan it also finds what was not given back. By day only a part of the many allocations of
 * one function fails; with FACTS_ALL each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/cache.h"
#include "fattn/descriptors.h"
#include "fattn/device.h"
#include "fattn/fattn.h"
#include "fattn/policy.h"
#include "fattn/score_mod.h"
#include "fref/fref.h"

void torture_arm(uint64_t at, bool ever);
uint64_t torture_disarm(void);
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:add_to_global_resize\nleak:tls_get_addr\n"; /* the loader's own */
}

enum {
    HEADS = 2,
    SEQ = 40,
    DIM = 16,
    ELEMENTS = HEADS * SEQ * DIM,
    OWNER_LEFT = -1,
    OTHER_ANSWER = -2
};

static fattn_context *cpu, *described; /* described: NULL without a cuDNN */
static fattn_context_options described_options = FATTN_CONTEXT_OPTIONS_INIT;
static float arrays[12][ELEMENTS];
static char *saved;
static size_t saved_bytes;

static fattn_problem problem_of(int pass)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.pass = pass;
    p.dtype = FATTN_F32;
    p.batch = 1;
    p.heads_q = HEADS;
    p.seq_q = p.seq_kv = SEQ;
    p.dim_qk = DIM;
    p.has_right = 1;
    p.training = 1;
    return p;
}

static fattn_problem problem_of_cudnn(int dim)
{
    fattn_problem p = problem_of(FATTN_FORWARD);
    p.dtype = FATTN_BF16;
    p.seq_q = p.seq_kv = 128;
    p.dim_qk = dim;
    return p;
}

/* The status of a function that makes something; OWNER_LEFT where it failed and its owner is not
 * NULL. */
static int made(fattn_status status, const void *owner)
{
    return status != FATTN_OK && owner ? OWNER_LEFT : (int)status;
}

/* ---- contexts, decisions, plans
 * ---------------------------------------------------------------------------------------------------
 */

/* Where there is a cuDNN, also on it. */
static int context(int on_cudnn)
{
    fattn_context *of = (fattn_context *)arrays;
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    const fattn_status answered =
        fattn_context_create(&of, on_cudnn ? &described_options : &options);
    const int status = made(answered, of);
    fattn_context_destroy(status == FATTN_OK ? of : NULL);
    return status;
}

/* dim 0: on the cpu; 64: cuDNN says yes; 100: it says no. */
static int decide(int dim)
{
    fattn_decision *decision = (fattn_decision *)arrays;
    const fattn_problem p = dim ? problem_of_cudnn(dim) : problem_of(FATTN_FORWARD);
    const fattn_status answered =
        fattn_decide(&decision, dim ? described : cpu, &p, FATTN_ASK_A | FATTN_ASK_FALLBACK);
    int status = made(answered, decision);
    if (status == FATTN_OK && fattn_decision_supported(decision) != (dim != 100))
        status = fattn_decision_reason(decision) == FATTN_REASON_NONE
                     ? OWNER_LEFT
                     : 100 + (int)fattn_decision_reason(decision);
    if (decision && decision != (fattn_decision *)arrays)
        fattn_decision_destroy(decision);
    return status;
}

static int explain(int dim)
{
    static fattn_neighbour near[FATTN_MAX_NEIGHBOURS];
    size_t count = 0;
    const fattn_problem p = problem_of_cudnn(dim);
    return (int)fattn_explain(described, &p, 8, near, &count);
}

static int plan_with(fattn_context *of, const fattn_problem *p, bool cached)
{
    fattn_plan *plan = (fattn_plan *)arrays;
    const fattn_status answered =
        cached ? fattn_plan_get(&plan, of, p, NULL) : fattn_plan_create(&plan, of, p, NULL);
    const int status = made(answered, plan);
    fattn_plan_destroy(status == FATTN_OK ? plan : NULL);
    fattn_cache_drop(NULL);
    return status;
}

enum { PLAN_CREATE, PLAN_GET, PLAN_CUDNN };

static int plan(int which)
{
    const fattn_problem p = which == PLAN_CUDNN
                                ? problem_of_cudnn(64)
                                : problem_of(which == PLAN_GET ? FATTN_FORWARD : FATTN_BACKWARD);
    return plan_with(which == PLAN_CUDNN ? described : cpu, &p, which == PLAN_GET);
}

static int plan_key(int unused)
{
    (void)unused;
    char key[33];
    const fattn_problem p = problem_of(FATTN_FORWARD);
    return (int)fattn_plan_key(cpu, &p, NULL, key);
}

static int plan_load(int unused)
{
    (void)unused;
    fattn_plan *plan = (fattn_plan *)arrays;
    const fattn_problem p = problem_of_cudnn(64);
    const fattn_status answered = fattn_plan_load(&plan, described, &p, saved, saved_bytes);
    const int status = made(answered, plan);
    fattn_plan_destroy(status == FATTN_OK ? plan : NULL);
    return status;
}

static fattn_plan *held; /* of problem_of_cudnn(64) */

static int plan_save(int unused)
{
    (void)unused;
    char *bytes = (char *)arrays;
    size_t count = 0;
    const fattn_status answered = fattn_plan_save(held, &bytes, &count);
    const int status = made(answered, bytes);
    if (status == FATTN_OK)
        fattn_free(bytes);
    return status;
}

static int descriptors(int unused)
{
    (void)unused;
    char *text = (char *)arrays;
    const fattn_problem p = problem_of_cudnn(64);
    static char *first;
    const fattn_status answered = fattn_descriptors(&text, &p, 92700, 90);
    int status = made(answered, text);
    if (status == FATTN_OK && !first)
        first = strdup(text);
    if (status == FATTN_OK && strcmp(first, text) != 0)
        status = OTHER_ANSWER;
    if (answered == FATTN_OK)
        fattn_free(text);
    return status;
}

static int resolve(int unused)
{
    (void)unused;
    const fattn_problem p = problem_of(FATTN_FORWARD);
    fattn_problem out = FATTN_PROBLEM_INIT;
    return (int)fattn_problem_resolve(&p, &out);
}

/* ---- calls
 * ------------------------------------------------------------------------------------------------------------------------
 */

static fattn_tensors tensors(void)
{
    fattn_tensors t = FATTN_TENSORS_INIT;
    t.q = arrays[0], t.k = arrays[1], t.v = arrays[2], t.o = arrays[3], t.stats = arrays[4],
    t.d_o = arrays[5];
    t.dq = arrays[6], t.dk = arrays[7], t.dv = arrays[8], t.workspace = NULL;
    return t;
}

static fattn_plan *planned[2]; /* by pass, on the cpu */

static int call(int pass)
{
    static _Alignas(64) char workspace[1 << 22];
    fattn_tensors t = tensors();
    t.workspace = workspace;
    t.workspace_bytes = sizeof workspace;
    return (int)(pass ? fattn_backward(planned[1], &t, NULL) : fattn_forward(planned[0], &t, NULL));
}

static int buffer(int unused)
{
    (void)unused;
    void *memory = arrays;
    const fattn_status answered = fattn_buffer_create(&memory, cpu, 4096);
    const int status = made(answered, memory);
    if (status == FATTN_OK)
        fattn_buffer_destroy(cpu, memory);
    return status;
}

/* ---- policies and modifications of the score
 * ---------------------------------------------------------------------------------------- */

static int policy(int unused)
{
    (void)unused;
    fattn_rule rule = FATTN_RULE_INIT;
    fattn_policy deny = FATTN_POLICY_INIT;
    int depth = 0;
    rule.name = "torture", rule.why = "a rule to copy", rule.engine = 3;
    deny.rules = &rule, deny.rule_count = 1;
    const int status = (int)fattn_policy_push(&deny, &depth);
    if (status == FATTN_OK)
        fattn_policy_pop(depth);
    return fattn_policy_depth() ? OWNER_LEFT : status;
}

static fattn_value soft(fattn_recorder *r, fattn_value score, void *user)
{
    static const int64_t whole[4] = { 1, 1, SEQ, SEQ };
    (void)user;
    const fattn_value cap = fattn_record_constant(r, 30),
                      bias = fattn_record_tensor(r, "bias", FATTN_F32, whole, NULL);
    const fattn_value inner =
        fattn_record(r, FATTN_MOD_TANH, fattn_record(r, FATTN_MOD_DIV, score, cap, -1), -1, -1);
    return fattn_record(r, FATTN_MOD_ADD, fattn_record(r, FATTN_MOD_MUL, inner, cap, -1), bias, -1);
}

static fattn_status create_soft(fattn_score_mod **out)
{
    return fattn_score_mod_create(out, soft, NULL, NULL);
}

static fattn_status create_cap(fattn_score_mod **out)
{
    return fattn_score_mod_softcap(out, 20);
}

static fattn_status create_position(fattn_score_mod **out)
{
    return fattn_score_mod_relative_position(out, HEADS);
}

static int mod(int which)
{
    static fattn_status (*const create[])(
        fattn_score_mod **) = { create_soft, create_cap, create_position, fattn_score_mod_causal };
    fattn_score_mod *m = (fattn_score_mod *)arrays;
    const fattn_status answered = create[which](&m);
    const int status = made(answered, m);
    fattn_score_mod_destroy(status == FATTN_OK ? m : NULL);
    return status;
}

static int mod_planned(int unused)
{
    (void)unused;
    fattn_problem p = problem_of(FATTN_BACKWARD);
    fattn_score_mod *m = NULL;
    const fattn_status answered = create_cap(&m);
    int status = made(answered, m);
    p.score_mod = m;
    if (status == FATTN_OK)
        status = plan_with(cpu, &p, false);
    fattn_score_mod_destroy(m);
    return status;
}

/* ---- the oracle
 * -------------------------------------------------------------------------------------------------------------------
 */

static int oracle(int backwards)
{
    static double o[9][ELEMENTS];
    const int64_t stride[4] = { ELEMENTS, DIM, (int64_t)HEADS * DIM, 1 };
    fref_tensor t[6];
    for (int i = 0; i < 6; i++)
        t[i] = (fref_tensor){ .data = arrays[i],
                              .type = FREF_F32,
                              .stride = { stride[0], stride[1], stride[2], stride[3] } };
    const fref_problem p = { .batch = 1,
                             .heads_q = HEADS,
                             .heads_k = HEADS,
                             .heads_v = HEADS,
                             .rows = SEQ,
                             .keys = SEQ,
                             .dim_qk = DIM,
                             .dim_v = DIM,
                             .scale = 0.25,
                             .has_right = true };
    const fref_rounding rounding = fref_rounding_of(FREF_F32, FREF_F32);
    const fref_forward_out f = { .o = { .value = o[0], .sigma = o[1], .bound = o[2] },
                                 .lse = o[3],
                                 .lse_tau = o[4] };
    const fref_backward_out b = { .dq = { .value = o[0], .sigma = o[1], .bound = o[2] },
                                  .dk = { .value = o[3], .sigma = o[4], .bound = o[5] },
                                  .dv = { .value = o[6], .sigma = o[7], .bound = o[8] } };
    const int status =
        backwards ? fref_backward(&p, &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &rounding, &b)
                  : fref_forward(&p, &t[0], &t[1], &t[2], &rounding, &f);
    return status == ENOMEM ? FATTN_NO_MEMORY : status;
}

/* ---- the loop
 * ---------------------------------------------------------------------------------------------------------------------
 */

static const struct job {
    const char *name;
    int (*ask)(int argument);
    int argument;
    bool cudnn;
} JOBS[] = {
    { "fattn_context_create, cpu", context, false, false },
    { "fattn_decide, cpu", decide, 0, false },
    { "fattn_plan_create, cpu", plan, PLAN_CREATE, false },
    { "fattn_plan_get, cpu", plan, PLAN_GET, false },
    { "fattn_plan_key", plan_key, 0, false },
    { "fattn_problem_resolve", resolve, 0, false },
    { "fattn_forward, cpu", call, 0, false },
    { "fattn_backward, cpu", call, 1, false },
    { "fattn_buffer_create, cpu", buffer, 0, false },
    { "fattn_policy_push", policy, 0, false },
    { "fattn_score_mod_create", mod, 0, false },
    { "fattn_score_mod_softcap", mod, 1, false },
    { "fattn_score_mod_relative_position", mod, 2, false },
    { "fattn_score_mod_causal", mod, 3, false },
    { "fattn_plan_create with a score_mod", mod_planned, 0, false },
    { "fattn_descriptors", descriptors, 0, false },
    { "fref_forward", oracle, false, false },
    { "fref_backward", oracle, true, false },
    { "fattn_decide, cuDNN: yes", decide, 64, true },
    { "fattn_decide, cuDNN: no", decide, 100, true },
    { "fattn_explain, cuDNN", explain, 100, true },
    { "fattn_plan_save", plan_save, 0, true },
    { "fattn_plan_load", plan_load, 0, true },
    { "fattn_context_create, described", context, true, true },
    { "fattn_plan_create, cuDNN", plan, PLAN_CUDNN, true },
};

typedef struct tally {
    unsigned points, refused, harmless, wrong, leaks;
} tally;

static void point(const struct job *job, uint64_t at, bool ever, int status, tally *t)
{
    t->points++;
    if (status == FATTN_NO_MEMORY) {
        t->refused++;
    } else if (status == FATTN_OK) {
        t->harmless++;
    } else {
        t->wrong++;
        fprintf(stderr, "%s: allocation %llu%s: answers %d (%s)\n", job->name,
                (unsigned long long)at, ever ? " and later" : "", status, fattn_last_error());
    }
    const int behind = job->ask(job->argument);
    if (behind != FATTN_OK) {
        t->wrong++;
        fprintf(stderr, "%s: after allocation %llu%s: the next answer is %d (%s)\n", job->name,
                (unsigned long long)at, ever ? " and later" : "", behind, fattn_last_error());
    }
}

/* By day one in FEW of the allocations after the first: a function that asks for thousands asks in
 * loops. */
enum { EACH = 400, FEW = 13 };

static bool torture(const struct job *job, unsigned most)
{
    tally t = { 0 };
    const int plain = job->ask(job->argument);
    if (plain != FATTN_OK) {
        fprintf(stderr, "%s: without a fault: %d (%s)\n", job->name, plain, fattn_last_error());
        return false;
    }
    const bool all = getenv("FACTS_ALL") != NULL;
    for (int ever = 0; ever < 2; ever++)
        for (uint64_t at = 1; !most || at <= most; at += at < EACH || all ? 1 : FEW) {
            torture_arm(at, ever);
            const int status = job->ask(job->argument);
            if (!torture_disarm())
                break;
            point(job, at, ever, status, &t);
        }
    if (__lsan_do_recoverable_leak_check)
        t.leaks = __lsan_do_recoverable_leak_check() != 0;
    printf("| %s | %u | %u | %u | %u | %u |\n", job->name, t.points, t.refused, t.harmless, t.wrong,
           t.leaks);
    fflush(stdout);
    return !t.wrong && !t.leaks;
}

/* ---- what stands there before
 * -----------------------------------------------------------------------------------------------------
 */

static char *text_of(const char *path)
{
    static char text[1 << 15];
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static bool open_cpu(void)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 1;
    for (size_t a = 0; a < 12; a++)
        for (int i = 0; i < ELEMENTS; i++)
            arrays[a][i] = (float)((i * 7 + (int)a * 13) % 31) / 31;
    bool good = fattn_context_create(&cpu, &options) == FATTN_OK;
    for (int pass = 0; pass < 2 && good; pass++) {
        const fattn_problem p = problem_of(pass ? FATTN_BACKWARD : FATTN_FORWARD);
        good = fattn_plan_create(&planned[pass], cpu, &p, NULL) == FATTN_OK;
    }
    return good;
}

static bool open_described(const char *cudnn)
{
    const fattn_problem p = problem_of_cudnn(64);
    described_options.cudnn_dir = cudnn;
    described_options.nvrtc = getenv("FACTS_TEST_NVRTC");
    described_options.driver = getenv("FACTS_TEST_DRIVER");
    described_options.device_json = text_of(getenv("FACTS_TEST_DEVICE"));
    described_options.device_kind = FATTN_DEVICE_DESCRIBED;
    return fattn_context_create(&described, &described_options) == FATTN_OK &&
           fattn_plan_create(&held, described, &p, NULL) == FATTN_OK &&
           fattn_plan_save(held, &saved, &saved_bytes) == FATTN_OK;
}

int main(int argc, char **argv)
{
    const char *cudnn = getenv("FACTS_TEST_CUDNN"), *pattern = argc > 1 ? argv[1] : "";
    const unsigned most =
        argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0; /* points of each function; 0: all */
    bool good = true;
    if (!open_cpu() || (cudnn && !open_described(cudnn))) {
        fprintf(stderr, "torture_library: %s\n", fattn_last_error());
        return 3;
    }
    puts("| library: each allocation fails once, and from there on for ever | points | refused | "
         "harmless | wrong | leaks "
         "|\n|---|---:|---:|---:|---:|---:|");
    for (size_t i = 0; i < sizeof JOBS / sizeof JOBS[0]; i++)
        if ((cudnn || !JOBS[i].cudnn) && strstr(JOBS[i].name, pattern))
            good &= torture(&JOBS[i], most);
    for (int pass = 0; pass < 2; pass++)
        fattn_plan_destroy(planned[pass]);
    fattn_plan_destroy(held);
    fattn_free(saved);
    fattn_context_destroy(cpu);
    fattn_context_destroy(described);
    return good ? 0 : 1;
}
