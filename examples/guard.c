/* A guard: a rule of the program refuses problems that are known to be wrong, or sends them to
 * another backend.
 *
 * Here the rule denies cuDNN short sequences, and the library's own kernels answer instead. The CPU
 * has one backend: there the same rule ends in a refusal that names the rule. Policies are a stack
 * of the calling thread.
 */
#include <pthread.h>

#include "loops.h"
#include <fattn/policy.h>

static naive shape = { .batch = 1, .heads = 2, .seq = 96, .dim = 64 };
static const char *const backends[] = { "cudnn", "math", "cpu" };

static fattn_problem problem_of_shape(void)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    problem.batch = shape.batch;
    problem.heads_q = shape.heads;
    problem.seq_q = problem.seq_kv = shape.seq;
    problem.dim_qk = shape.dim;
    return problem;
}

/* Which backend would compute the problem under the policies of this thread? */
static bool ask(example e, const char *when)
{
    const fattn_problem problem = problem_of_shape();
    fattn_decision *decision;
    CHECK(fattn_decide(&decision, e.context, &problem, FATTN_ASK_A));
    const bool yes = fattn_decision_supported(decision);
    printf("%s: %s\n", when, yes ? backends[fattn_decision_backend(decision)] : "nobody");
    for (size_t i = 0; i < fattn_decision_answer_count(decision);
         i++) { /* the answer of each backend in the order */
        const fattn_answer *answer = fattn_decision_answer(decision, i);
        if (answer->reason != FATTN_REASON_NONE)
            printf("  %s: %s\n", backends[answer->backend],
                   answer->text); /* answer->rule: the rule that refused */
    }
    fattn_decision_destroy(decision);
    return yes;
}

/* The condition of the rule below, and its sentence for one problem. */
static bool is_short(const char *when, const fattn_problem *problem)
{
    (void)when;
    return problem->pass == FATTN_FORWARD && problem->seq_q < 128;
}

static void say_short(char *out, size_t capacity, const char *why, const fattn_problem *problem)
{
    snprintf(out, capacity, "%s (%d queries)", why, (int)problem->seq_q);
}

static void *other_thread(void *argument)
{
    static char yes[] = "yes";
    return ask(*(example *)argument, "another thread, which has no guard") ? yes : NULL;
}

/* Under the guard: is it run by another backend, and right? */
static fattn_status guarded(example e)
{
    const fattn_problem problem = problem_of_shape();
    pthread_t thread;
    void *sees = NULL;
    const bool yes = ask(e, "guarded");
    if (pthread_create(&thread, NULL, other_thread, &e) != 0 || pthread_join(thread, &sees) != 0 ||
        sees == NULL)
        return FATTN_INTERNAL;

    fattn_plan *plan;
    const fattn_status status = fattn_plan_create(&plan, e.context, &problem, NULL);
    if (status != FATTN_OK) {
        printf("  no plan: %s: %s\n", fattn_status_name(status), fattn_last_error());
        return !yes && status == FATTN_POLICY ? FATTN_OK : status; /* refused, as expected */
    }
    printf("  a plan of %s\n", backends[fattn_plan_backend(plan)]);
    int wrong = 0;
    if (e.kind != FATTN_DEVICE_DESCRIBED) {
        naive_call call = naive_call_create(&shape, e, plan);
        struct CUstream_st *stream;
        CHECK(fattn_stream_create(&stream, e.context));
        CHECK(fattn_forward(plan, &call.tensors, stream));
        CHECK(fattn_stream_synchronize(e.context, stream));
        wrong = naive_call_check(&shape, e, &call, "  guarded answer");
        fattn_stream_destroy(e.context, stream);
        naive_call_destroy(e, &call);
    }
    fattn_plan_destroy(plan);
    return wrong ? FATTN_INTERNAL : FATTN_OK;
}

int main(int argc, char **argv)
{
    example e = example_open(argc, argv);
    const bool before = ask(e, "unguarded");

    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "short-rows";
    rule.why = "short sequences are known to be wrong here";
    rule.backend = e.kind == FATTN_DEVICE_CPU ? FATTN_BACKEND_CPU : FATTN_BACKEND_CUDNN;
    rule.when = "a forward of fewer than 128 queries"; /* the condition in words, for people who
                                                          compare policies */
    rule.holds = is_short;
    rule.say = say_short;
    fattn_policy policy = FATTN_POLICY_INIT;
    policy.order[policy.order_count++] = FATTN_BACKEND_CUDNN;
    policy.order[policy.order_count++] =
        FATTN_BACKEND_MATH; /* never chosen unless a policy allows it */
    policy.order[policy.order_count++] = FATTN_BACKEND_CPU;
    policy.rules = &rule; /* pushing copies the rule */
    policy.rule_count = 1;

    int depth;
    CHECK(fattn_policy_push(&policy, &depth));
    const fattn_status status = guarded(e);
    fattn_policy_pop(depth);
    if (status != FATTN_OK)
        fprintf(stderr, "guarded: %s: %s\n", fattn_status_name(status), fattn_last_error());

    const bool after = ask(e, "unguarded again");
    fattn_context_destroy(e.context);
    return status == FATTN_OK && before && after ? 0 : 1;
}
