/* How fast are decisions? Three rates within one process and over the same graphs, so that the machine cancels out:
 *   bare     heuristics descriptor, finalize, fetch: what cuDNN itself costs, graphs built beforehand
 *   decide   fattn_decide: validation, graph, heuristics, knobs and notes, the reason of a refusal
 * usage: bench_decide CUDNN_DIR NVRTC|- NULL_DRIVER DEVICE_JSON_FILE < case names, one a line
 * Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fattn/fattn.h>

#include "case/problem/case_problem.h"
#include "core/context.h"
#include "cudnn/backend/abi.h"
#include "cudnn/backend/backend.h"

enum { MAX_CASES = 4000, MAX_CONFIGS = 16 };

static fattn_problem problems[MAX_CASES];
static size_t count;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* others may use the machine */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static char *slurp(const char *path)
{
    static char text[65536];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return text;
}

static void read_cases(void)
{
    static facts_problem resolved;
    char line[FACTS_NAME_MAX];
    facts_case c;
    facts_error error;
    while (count < MAX_CASES && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (facts_case_parse(&c, line, &error) &&
            facts_problem_resolve(&resolved, &c, &error) == FACTS_RESOLVED)
            problems[count++] = resolved.ask;
    }
}

/* The heuristics of one finished graph, as bare as they come. Returns how many configurations came
 * back. */
static int64_t ask(const fattn__cudnn *api, const fattn_context *context, fattn__desc graph)
{
    fattn__desc heuristics = NULL, configs[MAX_CONFIGS];
    int mode = DNN_HEUR_MODE_A;
    int64_t offered = 0, got = 0;
    api->cudnnBackendCreateDescriptor(DNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics);
    api->cudnnBackendSetAttribute(heuristics, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                  DNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    api->cudnnBackendSetAttribute(heuristics, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1,
                                  &mode);
    if (context->description)
        api->cudnnBackendSetAttribute(heuristics, DNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, 1, &context->description);
    if (api->cudnnBackendFinalize(heuristics) == 0)
        api->cudnnBackendGetAttribute(heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, 0, &offered, NULL);
    if (offered > MAX_CONFIGS)
        offered = MAX_CONFIGS;
    for (int64_t i = 0; i < offered; i++)
        api->cudnnBackendCreateDescriptor(DNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[i]);
    if (offered)
        api->cudnnBackendGetAttribute(heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, offered, &got, configs);
    for (int64_t i = 0; i < offered; i++)
        api->cudnnBackendDestroyDescriptor(configs[i]);
    api->cudnnBackendDestroyDescriptor(heuristics);
    return got;
}

/* Seconds that cuDNN's heuristics take for all problems; graphs are built outside the clock. *yes
 * counts what was offered. */
static double bare(fattn_context *context, size_t *yes)
{
    double total = 0;
    static fattn__graph g;
    *yes = 0;
    for (size_t i = 0; i < count; i++) {
        fattn__graph_init(&g, context->api, context->info.sm);
        if (problems[i].pass == FATTN_FORWARD)
            fattn__build_forward(&g, &problems[i]);
        else
            fattn__build_backward(&g, &problems[i]);
        if (fattn__graph_finalize(&g, NULL) == FATTN_OK) {
            double start = now();
            *yes += ask(context->api, context, g.operation_graph) > 0;
            total += now() - start;
        }
        fattn__graph_release(&g);
    }
    return total;
}

static double decide(fattn_context *context, size_t *yes)
{
    double start = now();
    *yes = 0;
    for (size_t i = 0; i < count; i++) {
        fattn_decision *decision = NULL;
        if (fattn_decide(&decision, context, &problems[i], FATTN_ASK_A) == FATTN_OK)
            *yes += fattn_decision_supported(decision);
        fattn_decision_destroy(decision);
    }
    return now() - start;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: %s CUDNN_DIR NVRTC|- NULL_DRIVER DEVICE_JSON_FILE < cases\n",
                argv[0]);
        return 2;
    }
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *context = NULL;
    size_t yes_bare, yes;
    options.cudnn_dir = argv[1];
    options.nvrtc = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
    options.driver = argv[3];
    options.device_json = slurp(argv[4]);
    options.device_kind = FATTN_DEVICE_DESCRIBED;
    if (fattn_context_create(&context, &options) != FATTN_OK) {
        fprintf(stderr, "%s\n", fattn_last_error());
        return 3;
    }
    read_cases();
    if (count == 0)
        return 5;
    decide(context, &yes); /* warm: first touches of the libraries */
    double t_bare = bare(context, &yes_bare), t_decide = decide(context, &yes),
           t_bare2 = bare(context, &yes_bare), t_decide2 = decide(context, &yes);
    t_bare = t_bare2 < t_bare ? t_bare2 : t_bare;
    t_decide = t_decide2 < t_decide ? t_decide2 : t_decide;
    printf("{\"cudnn\":%d,\"cases\":%zu,\"yes\":%zu,\"yes_bare\":%zu,\"bare_per_s\":%.0f,\"decide_"
           "per_s\":%.0f,\"ratio\":%.3f}\n",
           context->info.cudnn_version, count, yes, yes_bare, (double)count / t_bare,
           (double)count / t_decide, t_bare / t_decide);
    return 0;
}
