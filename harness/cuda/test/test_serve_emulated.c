/* What a worker answers where the oracle of its GPU fails: nothing of that is held against an
 * engine which has not been launched.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hidden_memory.h"
#include "worker/memory/case_reference.h"
#include "worker/reply.h"
#include "worker/serve.h"

/* What is answered where another configuration's truth was made before: its constants are never
 * others here. */
static int renewal;
int __wrap_facts_reference_judges(facts_reference *reference, const facts_who *who);
int __wrap_facts_reference_judges(facts_reference *reference, const facts_who *who)
{
    (void)reference, (void)who;
    if (renewal == ENOTSUP)
        return facts_gpu_refuse(reference->memory.gpu, "a NaN");
    return renewal;
}

/* What a plan is answered; 0: it is made. */
static fattn_status plan_status;
fattn_status __real_facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                                   const fattn_problem *problem, const fattn_plan_options *options,
                                   bool *loaded);
fattn_status __wrap_facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                                   const fattn_problem *problem, const fattn_plan_options *options,
                                   bool *loaded);
fattn_status __wrap_facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                                   const fattn_problem *problem, const fattn_plan_options *options,
                                   bool *loaded)
{
    return plan_status ? plan_status
                       : __real_facts_plan_get(out, plans, context, problem, options, loaded);
}

/* From this step on the device is broken; 0: it is not. */
static int breaks_at, steps;

static bool is_broken(void)
{
    return breaks_at && ++steps >= breaks_at;
}

fattn_status __real_facts_gpu_make(facts_gpu *gpu, void **out, size_t bytes);
fattn_status __wrap_facts_gpu_make(facts_gpu *gpu, void **out, size_t bytes);
fattn_status __wrap_facts_gpu_make(facts_gpu *gpu, void **out, size_t bytes)
{
    *out = NULL;
    return is_broken() ? FATTN_DEVICE_FAULT : __real_facts_gpu_make(gpu, out, bytes);
}

fattn_status __real_facts_gpu_fetch(facts_gpu *gpu, void *to_host, const void *from, size_t bytes);
fattn_status __wrap_facts_gpu_fetch(facts_gpu *gpu, void *to_host, const void *from, size_t bytes);
fattn_status __wrap_facts_gpu_fetch(facts_gpu *gpu, void *to_host, const void *from, size_t bytes)
{
    return is_broken() ? FATTN_DEVICE_FAULT : __real_facts_gpu_fetch(gpu, to_host, from, bytes);
}

fattn_status __real_facts_gpu_send(facts_gpu *gpu, void *to, const void *from_host, size_t bytes);
fattn_status __wrap_facts_gpu_send(facts_gpu *gpu, void *to, const void *from_host, size_t bytes);
fattn_status __wrap_facts_gpu_send(facts_gpu *gpu, void *to, const void *from_host, size_t bytes)
{
    return is_broken() ? FATTN_DEVICE_FAULT : __real_facts_gpu_send(gpu, to, from_host, bytes);
}

typedef struct served {
    bool again, bye, lost;
    char verdict[32], class_word[32], text[300];
} served;

static void take(char *to, size_t capacity, const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(to, capacity, "%s", text ? text : "");
}

/* The last line of the replies. */
/* Serves these in one process. Returns the last reply; *lost: whether the worker lost its GPU. */
static json_t *last_reply_to(const facts_request *requests, size_t count, bool ran, bool *lost)
{
    static char text[1 << 16];
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    facts_worker worker = {
        .context = context, .device = FACTS_DEVICE_CPU, .gpu = gpu, .ran = ran
    };
    cr_assert_eq(facts_plans_open(&worker.plans, context, "", false), FATTN_OK);
    FILE *file = tmpfile();
    const int before = dup(STDOUT_FILENO);
    cr_assert(file && before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0 && facts_reply_open());
    for (size_t i = 0; i < count; i++)
        facts_serve(&worker, &requests[i]);
    *lost = worker.lost;
    facts_serve_forget(&worker);
    dup2(before, STDOUT_FILENO);
    const ssize_t n = pread(fileno(file), text, sizeof text - 1, 0);
    cr_assert_gt(n, 1);
    const char *last = memrchr(text, '\n', (size_t)n - 1), *line = last ? last + 1 : text;
    fclose(file);
    close_emulated(gpu, context);
    free(worker.plans);
    return json_loadb(line, (size_t)(text + n - line), 0, NULL);
}

/* first: what the oracle answers; then: when the configuration in hand has other constants; ran:
 * some engine has run in this process. */
static served serve(int first, int then, bool ran)
{
    static const facts_request request = { .id = 1,
                                           .text = "pass=bwd dtype=bf16 b=1 h=2 s=24 d=16",
                                           .what = FACTS_DO_RUN };
    served out = { .again = false };
    emulated_oracle_fails = first;
    renewal = then;
    json_t *reply = last_reply_to(&request, 1, ran, &out.lost),
           *row = json_object_get(reply, "row"), *reason = json_object_get(row, "reason");
    emulated_oracle_fails = 0;
    out.again = json_is_true(json_object_get(reply, "again"));
    out.bye = json_is_true(json_object_get(reply, "bye"));
    take(out.verdict, sizeof out.verdict, row, "verdict");
    take(out.class_word, sizeof out.class_word, reason, "class");
    take(out.text, sizeof out.text, reason, "text");
    json_decref(reply);
    return out;
}

Test(serve, an_oracle_that_works_gives_a_pass)
{
    const served s = serve(0, 0, false);
    cr_expect(strcmp(s.verdict, "pass") == 0 && !s.lost && !s.bye, "%s: %s", s.verdict, s.text);
}

Test(serve, a_fault_of_ours_before_any_engine_has_run_is_no_finding)
{
    const served s = serve(EIO, 0, false);
    cr_expect_str_eq(s.verdict, "inconclusive", "%s: %s", s.verdict, s.text);
    cr_expect_str_eq(s.class_word, "internal");
    cr_expect(strstr(s.text, "before an engine ran: emulated") == s.text, "%s", s.text);
    cr_expect(s.lost && s.bye && !s.again, "the context is dead");
}

Test(serve, kernels_that_a_broken_device_does_not_load_are_no_lack_of_memory)
{
    const served s = serve(ENOEXEC, 0, false);
    cr_expect_str_eq(s.class_word, "internal", "%s: %s", s.verdict, s.text);
    cr_expect(s.lost && s.bye, "the context is dead");
}

Test(serve, a_fault_after_another_case_is_asked_of_another_worker)
{
    const served s = serve(EIO, 0, true);
    cr_expect(s.again && s.lost, "%s: %s", s.verdict, s.text);
}

Test(serve, a_fault_after_another_configuration_is_too)
{
    const served s = serve(0, EIO, true);
    cr_expect(s.again && s.lost, "%s: %s", s.verdict, s.text);
}

Test(serve, a_plan_that_a_broken_device_refuses_is_no_finding)
{
    plan_status = FATTN_DEVICE_FAULT;
    const served first = serve(0, 0, false), later = serve(0, 0, true);
    plan_status = FATTN_OK;
    cr_expect_str_eq(first.verdict, "inconclusive", "%s: %s", first.verdict, first.text);
    cr_expect_str_eq(first.class_word, "internal");
    cr_expect(strstr(first.text, "before an engine ran: ") == first.text, "%s", first.text);
    cr_expect(first.lost && first.bye && !first.again, "the context is dead");
    cr_expect(later.again && later.lost, "another worker is asked");
}

Test(serve, a_device_that_breaks_at_any_step_is_no_answer_and_no_lack_of_memory)
{
    bool broke = true;
    int at = 1;
    for (; broke && at < 1000; at++) {
        breaks_at = at;
        steps = 0;
        const served s = serve(0, 0, false);
        broke = steps >= at;
        breaks_at = 0;
        const bool no_answer =
            strcmp(s.verdict, "inconclusive") == 0 || strcmp(s.verdict, "exec_fail") == 0;
        if (broke)
            cr_expect(no_answer && strcmp(s.class_word, "no_memory") != 0 && s.lost && s.bye,
                      "step %d: %s, %s: %s", at, s.verdict, s.class_word, s.text);
    }
    cr_expect(at > 10 && !broke, "%d steps", at);
}

Test(serve, a_nan_of_the_cases_own_forward_is_no_lack_of_memory)
{
    const served s = serve(0, ENOTSUP, true);
    cr_expect_str_eq(s.verdict, "nan", "%s: %s", s.verdict, s.text);
    cr_expect(strstr(s.text, "its own forward: a NaN") && !s.lost && !s.again, "%s", s.text);
}

Test(serve, a_lack_of_memory_is_one)
{
    const served s = serve(0, ENOMEM, true);
    cr_expect_str_eq(s.verdict, "inconclusive");
    cr_expect_str_eq(s.class_word, "no_memory");
    cr_expect_str_eq(s.text, "no memory for the reference");
}

Test(serve, what_is_kept_is_launched_again)
{
    static const facts_request requests[] = {
        { .id = 1,
          .text = "pass=fwd dtype=bf16 b=1 h=2 s=24 d=16 mask=causal",
          .what = FACTS_DO_RUN,
          .keep = true },
        { .id = 2,
          .text = "pass=fwd dtype=bf16 b=1 h=2 s=24 d=16 mask=causal",
          .what = FACTS_DO_TIME },
        { .id = 3,
          .text = "pass=fwd dtype=bf16 b=1 h=2 s=24 d=16 mask=causal",
          .what = FACTS_DO_TIME },
        { .id = 4,
          .text = "pass=fwd dtype=bf16 b=1 h=2 s=25 d=16",
          .what = FACTS_DO_TIME }, /* never run */
        { .id = 5,
          .text = "pass=fwd dtype=bf16 b=1 h=2 s=24 d=16 mask=causal",
          .what = FACTS_DO_RUN },
        { .id = 6,
          .text = "pass=fwd dtype=bf16 b=1 h=2 s=24 d=16 mask=causal",
          .what = FACTS_DO_TIME }, /* not kept */
    };
    bool lost;
    emulated_oracle_trims = 0;
    json_decref(last_reply_to(&requests[4], 1, false, &lost));
    cr_expect_eq(emulated_oracle_trims, 0, "without turns the next case uses its memory");
    json_t *reply = last_reply_to(requests, 3, false, &lost),
           *turn = json_object_get(reply, "time");
    json_t *config = json_array_get(json_object_get(turn, "configs"), 0),
           *us = json_object_get(config, "us");
    cr_assert_eq(json_array_size(us), 5);
    cr_expect_eq(json_integer_value(json_object_get(reply, "id")), 3);
    cr_expect_eq(emulated_oracle_trims, 1, "the workers of other builds need its memory");
    for (size_t i = 0; i < 5; i++)
        cr_expect_gt(json_real_value(json_array_get(us, i)), 0);
    cr_expect_geq(json_integer_value(json_object_get(config, "launches")), 1);
    cr_expect_float_eq(json_real_value(json_object_get(turn, "flops")), 2 * 300 * 2 * (16 + 16),
                       0.5);
    cr_expect_float_eq(json_real_value(json_object_get(turn, "bytes")), 4 * 2 * 24 * 16 * 2, 0.5);
    json_decref(reply);
    for (size_t count = 4; count <= 6; count += 2) {
        reply = last_reply_to(requests, count, false, &lost);
        cr_expect(json_is_true(json_object_get(reply, "none")) &&
                  json_is_true(json_object_get(reply, "last")));
        json_decref(reply);
    }
}
