/* What a case costs in addition to the engine's kernels: stages, driver calls of each stage, and the time of every kernel.
 *   times    fill, oracle, judge, release: the least and the median. First of 30 runs in a row, after 3 warm-up runs;
 *            then of 8 runs with a new plan before each, as in a worker.
 *   calls    launches, clears, copies in both directions, waits, allocations of oracle memory and queries of free
 *            memory, in one run
 *   kernels  launches of each kernel, and microseconds of one launch with a wait before and after it (the wait takes 5 us)
 *
 *  usage: bench_small CUDNN_DIR NVRTC|- [CASE...]     Exit: 0 printed; 2 wrong usage or an invalid case; 3 no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gpu/gpu_driver.h>

#include "worker/exec/judging.h"
#include "worker/exec/trial.h"
#include "worker/target/loaded_target.h"

#define RUNS 30
#define WARM 3
#define AFTER 8 /* a plan was built */
#define MOST_KERNELS 128

/* ---- a driver that counts
 * -------------------------------------------------------------------------------------------------------
 */

/* X(member, word) */
#define CALL_LIST(X)                                                                               \
    X(launch, "launches")                                                                          \
    X(memory_set, "clears")                                                                        \
    X(send, "sends")                                                                               \
    X(fetch, "fetches")                                                                            \
    X(stream_synchronize, "waits") X(memory_alloc, "allocations") X(memory_info, "questions")
#define AS_ENUM(member, word) CALL_##member,
enum { CALL_LIST(AS_ENUM) CALLS };
#undef AS_ENUM

typedef struct counted {
    int calls[CALLS];
    double us;       /* inside them, without waits and fetches */
    double first_us; /* inside the first launch */
} counted;

static const gpu_driver *real;
static counted now;
static struct {
    struct CUfunc_st *function;
    char name[64];
    int launches;
    double us;
} kernels[MOST_KERNELS];
static size_t kernel_count;
static bool one_by_one;

static double us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int done(int call, double since, int result)
{
    now.calls[call]++;
    if (call != CALL_stream_synchronize && call != CALL_fetch)
        now.us += us() - since;
    if (call == CALL_launch && now.calls[call] == 1)
        now.first_us = us() - since;
    return result;
}

static int module_function(struct CUfunc_st **out, struct CUmod_st *module, const char *name)
{
    const int result = real->module_function(out, module, name);
    if (result == 0 && kernel_count < MOST_KERNELS) {
        kernels[kernel_count].function = *out;
        snprintf(kernels[kernel_count++].name, sizeof kernels->name, "%s", name);
    }
    return result;
}

static int launch(struct CUfunc_st *function, unsigned x, unsigned y, unsigned z, unsigned i,
                  unsigned j, unsigned k, unsigned shared, struct CUstream_st *stream,
                  void **arguments, void **extra)
{
    if (one_by_one)
        real->stream_synchronize(stream);
    const double since = us();
    int result = real->launch(function, x, y, z, i, j, k, shared, stream, arguments, extra);
    if (!one_by_one)
        return done(CALL_launch, since, result);
    if (result == 0)
        result = real->stream_synchronize(stream);
    for (size_t n = 0; n < kernel_count; n++)
        if (kernels[n].function == function) {
            kernels[n].launches++;
            kernels[n].us += us() - since;
        }
    return result;
}

static int memory_set(gpu_address at, unsigned char value, size_t bytes, struct CUstream_st *stream)
{
    const double since = us();
    return done(CALL_memory_set, since, real->memory_set(at, value, bytes, stream));
}

static int send(gpu_address to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    const double since = us();
    return done(CALL_send, since, real->send(to, from, bytes, stream));
}

static int fetch(void *to, gpu_address from, size_t bytes, struct CUstream_st *stream)
{
    const double since = us();
    return done(CALL_fetch, since, real->fetch(to, from, bytes, stream));
}

static int stream_synchronize(struct CUstream_st *stream)
{
    const double since = us();
    return done(CALL_stream_synchronize, since, real->stream_synchronize(stream));
}

static int memory_alloc(gpu_address *out, size_t bytes)
{
    const double since = us();
    return done(CALL_memory_alloc, since, real->memory_alloc(out, bytes));
}

static int memory_info(size_t *free_bytes, size_t *all_bytes)
{
    const double since = us();
    return done(CALL_memory_info, since, real->memory_info(free_bytes, all_bytes));
}

static bool count_calls(char error[256])
{
    static gpu_driver counting;
    real = gpu_driver_load(error);
    if (!real)
        return false;
    counting = *real;
    counting.module_function = module_function;
#define AS_MEMBER(member, word) counting.member = member;
    CALL_LIST(AS_MEMBER)
#undef AS_MEMBER
    gpu_driver_replace(&counting);
    return true;
}

/* ---- stages
 * ---------------------------------------------------------------------------------------------------------------------
 */

#define STAGE_LIST(X) X(FILL, "fill") X(ORACLE, "oracle") X(JUDGE, "judge") X(RELEASE, "release")
#define AS_STAGE(symbol, word) STAGE_##symbol,
typedef enum stage { STAGE_LIST(AS_STAGE) STAGES } stage;
#undef AS_STAGE

typedef struct sample {
    double us[STAGES];
    counted reference, judged; /* fill and oracle; judge */
    facts_verdict verdict;
} sample;

static void no_stage(void *owner, const char *word)
{
    (void)owner;
    (void)word;
}

/* As for the first engine of a case: also computes whether the data can detect the lies. */
static void judge(sample *out, facts_reference *reference)
{
    static facts_judgement found[FACTS_TENSOR_COUNT];
    static uint64_t bits[FACTS_TENSOR_COUNT];
    const double since = us();
    now = (counted){ .us = 0 };
    reference->weighed = false;
    if (facts_judging_all(found, bits, reference) != FATTN_OK)
        exit(3);
    out->us[STAGE_JUDGE] = us() - since;
    out->judged = now;
}

/* Once, as facts-worker does it. */
static bool run(sample *out, facts_worker *worker, const facts_problem *problem, fattn_plan *plan,
                facts_error *error)
{
    static facts_trial trial;
    facts_reference reference;
    const fattn_engine *engine = fattn_plan_engine(plan);
    const facts_who who = { .sm = worker->info.sm,
                            .backend = (int32_t)fattn_plan_backend(plan),
                            .dtype = problem->ask.dtype,
                            .pass = problem->ask.pass,
                            .engine = engine ? engine->index : -1,
                            .cudnn = worker->info.cudnn_version };
    const facts_trial_options options = {
        .worker = worker, .problem = problem, .once = true, .stage = no_stage
    };
    *out = (sample){ .verdict = FACTS_VERDICT_PASS };
    now = (counted){ .us = 0 };
    if (facts_trial_prepare(&reference,
                            &(facts_making){ .worker = worker, .problem = problem, .who = &who },
                            NULL, error) != FATTN_OK)
        return false;
    out->reference = now;
    out->us[STAGE_FILL] = reference.fill_ms * 1e3;
    out->us[STAGE_ORACLE] = reference.oracle_ms * 1e3;
    facts_trial_run(&trial, &reference, plan, &options);
    out->verdict = trial.verdict;
    facts_fail(error, "%s", trial.text);
    const bool good = trial.status == FATTN_OK;
    if (good)
        judge(out, &reference);
    const double since = us();
    facts_reference_destroy(&reference);
    out->us[STAGE_RELEASE] = us() - since;
    return good;
}

/* ---- a table
 * ----------------------------------------------------------------------------------------------------------------------
 */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *word, double values[RUNS + AFTER])
{
    qsort(values, RUNS, sizeof *values, by_size);
    qsort(values + RUNS, AFTER, sizeof *values, by_size);
    if (values[RUNS - 1] > 0)
        printf("| %s | %.0f | %.0f | %.0f | %.0f |\n", word, values[0], values[RUNS / 2],
               values[RUNS], values[RUNS + AFTER / 2]);
}

static void print_calls(const char *when, const counted *c)
{
    static const char *const words[CALLS] = {
#define AS_WORD(member, word) word,
        CALL_LIST(AS_WORD)
#undef AS_WORD
    };
    printf("%s:", when);
    for (int n = 0; n < CALLS; n++)
        if (c->calls[n])
            printf(" %d %s,", c->calls[n], words[n]);
    printf(" %.0f us in what does not wait, %.0f of them in the first launch\n", c->us,
           c->first_us);
}

static void print_kernels(void)
{
    printf("\n| kernel | launches | us each |\n|---|---|---|\n");
    for (size_t n = 0; n < kernel_count; n++)
        if (kernels[n].launches) {
            printf("| %s | %d | %.1f |\n", kernels[n].name, kernels[n].launches,
                   kernels[n].us / kernels[n].launches);
            kernels[n].launches = 0;
            kernels[n].us = 0;
        }
}

static void print_all(const char *text, const sample samples[RUNS + AFTER])
{
    static const char *const words[STAGES] = {
#define AS_WORD(symbol, word) word,
        STAGE_LIST(AS_WORD)
#undef AS_WORD
    };
    double values[RUNS + AFTER];
    printf("\n## %s: %s\n\n| stage | least us | median us | after a plan: least | median "
           "|\n|---|---|---|---|---|\n",
           text, facts_verdict_name(samples[0].verdict));
    for (int s = 0; s < STAGES; s++) {
        for (int n = 0; n < RUNS + AFTER; n++)
            values[n] = samples[n].us[s];
        print_times(words[s], values);
    }
    printf("\n");
    print_calls("fill and oracle", &samples[RUNS - 1].reference);
    print_calls("judge", &samples[RUNS - 1].judged);
    print_calls("after a plan, fill and oracle", &samples[RUNS + AFTER - 1].reference);
    print_calls("after a plan, judge", &samples[RUNS + AFTER - 1].judged);
}

static bool build(fattn_plan **plan, facts_worker *worker, const facts_problem *problem,
                  facts_error *why)
{
    fattn_plan_destroy(*plan);
    *plan = NULL;
    if (fattn_plan_create(plan, worker->context, &problem->ask, NULL) == FATTN_OK)
        return true;
    facts_fail(why, "%s", fattn_last_error());
    return false;
}

static bool bench(facts_worker *worker, const char *text)
{
    static facts_problem problem;
    static sample samples[RUNS + AFTER], last;
    facts_case c;
    facts_error error = { 0 };
    facts_error why = { 0 };
    fattn_plan *plan = NULL;
    if (!facts_case_parse(&c, text, &error) ||
        facts_problem_resolve(&problem, &c, &error) != FACTS_RESOLVED) {
        fprintf(stderr, "bench_small: %s: %s\n", text, error.text);
        return false;
    }
    bool good = build(&plan, worker, &problem, &why);
    for (int n = -WARM; n < RUNS + AFTER && good; n++)
        good = (n < RUNS || build(&plan, worker, &problem, &why)) &&
               run(n < 0 ? &last : &samples[n], worker, &problem, plan, &why);
    if (good)
        print_all(text, samples);
    one_by_one = true;
    if (good && run(&last, worker, &problem, plan, &why))
        print_kernels();
    one_by_one = false;
    fattn_plan_destroy(plan);
    if (!good)
        fprintf(stderr, "bench_small: %s: %s\n", text, why.text);
    return good;
}

int main(int argc, char **argv)
{
    static const char *const usual[] = { "pass=fwd dtype=bf16 b=2 h=8 s=512 d=128 want=stats",
                                         "pass=bwd dtype=bf16 b=2 h=8 s=512 d=128" };
    static facts_target_request request;
    facts_worker worker;
    json_t *reply = NULL;
    char error[256] = "";
    if (argc < 3) {
        fprintf(stderr, "usage: bench_small CUDNN_DIR NVRTC|- [CASE...]\n");
        return 2;
    }
    snprintf(request.cudnn_dir, sizeof request.cudnn_dir, "%s", argv[1]);
    snprintf(request.nvrtc, sizeof request.nvrtc, "%s", strcmp(argv[2], "-") == 0 ? "" : argv[2]);
    request.device = FACTS_DEVICE_GPU;
    if (!count_calls(error) || !facts_target_open(&worker, &request, &reply) || !worker.gpu) {
        char *said = reply ? json_dumps(reply, 0) : NULL;
        fprintf(stderr, "bench_small: no GPU, or no cuDNN for it: %s%s\n", error, said ? said : "");
        free(said);
        return 3;
    }
    json_decref(reply);
    bool good = true;
    for (int n = 3; n < argc; n++)
        good = bench(&worker, argv[n]) && good;
    for (size_t n = 0; n < sizeof usual / sizeof *usual && argc == 3; n++)
        good = bench(&worker, usual[n]) && good;
    facts_target_close(&worker);
    return good ? 0 : 2;
}
