/* Eight threads that share a context, the cache of plans and one plan, on the cpu: for
 * ThreadSanitizer, under which Criterion does not run. With the words CUDNN_FOLDER DRIVER
 * DEVICE.json they also share a described device: decisions, keys, plans. Exit 1: an
 * answer was not right. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "fattn/cache.h"
#include "fattn/fattn.h"
#include "fattn/policy.h"
#include "fattn/score_mod.h"

enum { THREADS = 8, ROUNDS = 300, ELEMENTS = 2 * 16 * 16 };

static fattn_context *context;
static fattn_plan *shared;
static float input[3][ELEMENTS];
static _Atomic int wrong;

static fattn_problem problem_of(int seq)
{
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.dtype = FATTN_F32, p.batch = 1, p.heads_q = 2, p.seq_q = p.seq_kv = seq, p.dim_qk = 16;
    return p;
}

static void expect(fattn_status status)
{
    if (status != FATTN_OK)
        atomic_fetch_add(&wrong, 1);
}

static void decide(const fattn_problem *p)
{
    fattn_decision *decision = NULL;
    expect(fattn_decide(&decision, context, p, FATTN_ASK_A));
    fattn_decision_destroy(decision);
}

static void run(const fattn_plan *plan)
{
    _Alignas(16) float o[ELEMENTS];
    fattn_tensors t = FATTN_TENSORS_INIT;
    t.q = input[0], t.k = input[1], t.v = input[2], t.o = o;
    t.workspace_bytes = fattn_plan_workspace_bytes(plan);
    t.workspace = aligned_alloc(64, (t.workspace_bytes + 127) / 64 * 64);
    expect(fattn_forward(plan, &t, NULL));
    free(t.workspace);
}

static void *live(void *of)
{
    const int who = *(const int *)of;
    for (int i = 0; i < ROUNDS; i++) {
        fattn_problem p = problem_of(8 + (who + i) % 9);
        fattn_plan *plan = NULL;
        fattn_score_mod *mod = NULL;
        int depth = 0;
        const fattn_policy policy = FATTN_POLICY_INIT;
        expect(fattn_policy_push(&policy, &depth));
        decide(&p);
        expect(fattn_score_mod_softcap(&mod, 20));
        p.score_mod = i % 2 ? mod : NULL;
        expect(fattn_plan_get(&plan, context, &p, NULL));
        run(plan);
        run(shared);
        fattn_plan_destroy(plan);
        fattn_score_mod_destroy(mod);
        fattn_policy_pop(depth);
        if (who == 0 && i % 16 == 0)
            fattn_cache_drop(i % 32 ? context : NULL);
    }
    return NULL;
}

/* ---- a described device: what cuDNN says
 * ----------------------------------------------------------------------------------------
 */

static void *ask(void *of)
{
    const int who = *(const int *)of;
    for (int i = 0; i < ROUNDS / 20; i++) {
        fattn_problem p = problem_of(128);
        fattn_plan *plan = NULL;
        char key[33];
        p.dtype = FATTN_BF16, p.dim_qk = (who + i) % 3 ? 64 : 100;
        decide(&p);
        expect(fattn_plan_key(context, &p, NULL, key));
        const fattn_status st = fattn_plan_get(&plan, context, &p, NULL);
        expect(st == (p.dim_qk == 64 ? FATTN_OK : FATTN_UNSUPPORTED) ? FATTN_OK
                                                                     : FATTN_BUILD_FAILED);
        fattn_plan_destroy(plan);
    }
    return NULL;
}

static int share(void *(*body)(void *))
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        if (pthread_create(&threads[i], NULL, body, &numbers[i]) != 0)
            return 3;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int share_described(char **words)
{
    static char json[1 << 14];
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    FILE *file = fopen(words[2], "re");
    if (!file || fread(json, 1, sizeof json - 1, file) == 0)
        return 3;
    fclose(file);
    options.device_kind = FATTN_DEVICE_DESCRIBED;
    options.cudnn_dir = words[0], options.driver = words[1], options.device_json = json;
    if (fattn_context_create(&context, &options) != FATTN_OK) {
        fprintf(stderr, "torture_threads: %s\n", fattn_last_error());
        return 3;
    }
    const int status = share(ask);
    fattn_context_destroy(context);
    return status;
}

int main(int argc, char **argv)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    const fattn_cache_limits small = { .struct_size = sizeof small,
                                       .entries = 4,
                                       .bytes = 1 << 20 };
    const fattn_problem p = problem_of(16);
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 1;
    expect(fattn_context_create(&context, &options));
    expect(fattn_plan_create(&shared, context, &p, NULL));
    expect(fattn_cache_limit(&small));
    int status = share(live);
    fattn_plan_destroy(shared);
    fattn_context_destroy(context);
    if (argc == 4 && status == 0)
        status = share_described(argv + 1);
    printf("%d threads, %d rounds each: %d wrong answers\n", THREADS, ROUNDS, atomic_load(&wrong));
    return status ? status : wrong != 0;
}
