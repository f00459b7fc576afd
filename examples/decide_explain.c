/* May this target run a problem, by which engines, and if not, what near it may it run?
 *
 * Deciding asks heuristics only and compiles nothing, so it needs no GPU: a description of one is enough.
 *   decide_explain --device h100-sxm.json --cudnn /opt/cudnn/lib
 */
#include "common.h"

static void print_engines(const fattn_decision *decision)
{
    const size_t count = fattn_decision_engine_count(decision, FATTN_MODE_A);
    for (size_t i = 0; i < count; i++) {
        const fattn_engine *engine = fattn_decision_engine(decision, FATTN_MODE_A, i);
        printf("  %zu. engine %lld, %d knobs", i + 1, (long long)engine->index,
               (int)engine->knob_count);
        if (engine->workspace_bytes >= 0) /* -1: not stated, as the cpu backend does */
            printf(", workspace %lld bytes", (long long)engine->workspace_bytes);
        putchar('\n');
    }
}

/* Asks, prints the answer, and returns whether it was yes. A refusal is an answer too: the call
 * itself succeeded. */
static bool decide(example e, const char *name, const fattn_problem *problem)
{
    fattn_decision *decision;
    const fattn_status status = fattn_decide(&decision, e.context, problem, FATTN_ASK_A);
    if (decision == NULL)
        example_check(status, "fattn_decide");
    const bool yes = fattn_decision_supported(decision);
    if (yes) {
        printf("%s: yes\n", name);
        print_engines(decision);
    } else {
        /* The class is for programs, the status and the text are the backend's own words, the
         * remedy is ours. */
        printf("%s: no (%s)\n  %s %s\n", name,
               fattn_status_name((fattn_status)fattn_decision_reason(decision)),
               fattn_decision_status(decision), fattn_decision_text(decision));
        if (fattn_decision_remedy(decision)[0] != '\0')
            printf("  remedy: %s\n", fattn_decision_remedy(decision));
    }
    fattn_decision_destroy(decision);
    return yes;
}

/* The nearest problems that the target accepts, found by asking, not by rules. Each is a whole
 * problem, ready to be run. */
static int explain(example e, const fattn_problem *problem)
{
    fattn_neighbour near[FATTN_MAX_NEIGHBOURS];
    size_t count;
    CHECK(fattn_explain(e.context, problem, 0, near, &count));
    for (size_t i = 0; i < count; i++) {
        fattn_decision *again;
        CHECK(fattn_decide(&again, e.context, &near[i].problem, FATTN_ASK_A));
        const bool yes = fattn_decision_supported(again);
        fattn_decision_destroy(again);
        printf("  instead: %s%s\n", near[i].change, yes ? "" : " (but it is refused: WRONG)");
        if (!yes)
            return 1;
    }
    if (count == 0)
        printf("  no similar case is accepted is accepted\n");
    return 0;
}

int main(int argc, char **argv)
{
    example e = example_open(argc, argv);

    /* The question contains everything about the call. A field that is 0 has its default: bf16,
     * dense b,s,h,d, scale 1/sqrt(d). */
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.batch = 2;
    problem.heads_q = 16;
    problem.heads_k = 4; /* grouped queries; heads_v follows */
    problem.seq_q = problem.seq_kv = 1024;
    problem.dim_qk = 128;
    problem.has_right = 1; /* window_right 0: causal */

    if (!decide(e, "d=128, causal", &problem))
        fprintf(stderr, "an ordinary problem is refused: is this target sound?\n");

    problem.dim_qk = 100; /* cuDNN takes multiples of 8; the CPU takes any */
    const int status = decide(e, "d=100, causal", &problem) ? 0 : explain(e, &problem);

    fattn_context_destroy(e.context);
    return status;
}
