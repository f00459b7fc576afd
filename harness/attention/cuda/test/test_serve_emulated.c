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
#include "worker/answer_requests.h"
#include "worker/attention_job.h"
#include "worker/memory/case_reference.h"
#include "worker/reply.h"

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
WRAP(facts_plan_get,
     (fattn_plan * *out, facts_plans *plans, fattn_context *of, const fattn_problem *problem,
      const fattn_plan_options *options, bool *loaded))
{
    return plan_status ? plan_status
                       : __real_facts_plan_get(out, plans, of, problem, options, loaded);
}

/* From this step on the device is broken; 0: it is not. */
static int breaks_at, steps;

static bool is_broken(void)
{
    return breaks_at && ++steps >= breaks_at;
}

WRAP(facts_gpu_make, (facts_gpu * of, void **out, size_t bytes))
{
    *out = NULL;
    return is_broken() ? FATTN_DEVICE_FAULT : __real_facts_gpu_make(of, out, bytes);
}

WRAP(facts_gpu_fetch, (facts_gpu * of, void *to_host, const void *from, size_t bytes))
{
    return is_broken() ? FATTN_DEVICE_FAULT : __real_facts_gpu_fetch(of, to_host, from, bytes);
}

WRAP(facts_gpu_send, (facts_gpu * of, void *to, const void *from_host, size_t bytes))
{
    return is_broken() ? FATTN_DEVICE_FAULT : __real_facts_gpu_send(of, to, from_host, bytes);
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

/* Serves these in one process. Returns the last reply; *lost: whether the worker lost its GPU. */
static json_t *last_reply_to(const facts_request *requests, size_t count, bool ran, bool *lost)
{
    static char text[1 << 16];
    open_emulated();
    facts_worker worker = worker_with(gpu);
    worker.ran = ran;
    cr_assert_eq(facts_plans_open(&worker.plans), FATTN_OK);
    FILE *file = tmpfile();
    const int before = dup(STDOUT_FILENO);
    cr_assert(file && before >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0 && facts_reply_open());
    facts_process process = { &facts_attention_worker, &worker, FACTS_DEVICE_GPU };
    for (size_t i = 0; i < count; i++)
        facts_answer_case(&process, &requests[i]);
    *lost = worker.lost;
    facts_forget_case(&process);
    dup2(before, STDOUT_FILENO);
    const ssize_t n = pread(fileno(file), text, sizeof text - 1, 0);
    cr_assert_gt(n, 1);
    const char *last = memrchr(text, '\n', (size_t)n - 1), *line = last ? last + 1 : text;
    fclose(file);
    close_emulated();
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

Test(serve, what_the_oracle_answers_is_held_against_no_engine_that_was_not_launched)
{
    static const struct {
        const char *name;
        int first, then;
        fattn_status plan;
        bool ran; /* another case or configuration before */
        const char *verdict, *class_word, *text;
        bool again, lost;
    } rows[] = {
        { "it works", 0, 0, 0, false, "pass", "", "", false, false },
        { "a fault before any engine has run", EIO, 0, 0, false, "inconclusive", "internal",
          "before an engine ran: emulated", false, true },
        { "kernels that a broken device does not load", ENOEXEC, 0, 0, false, "inconclusive",
          "internal", "", false, true },
        { "a fault after another case", EIO, 0, 0, true, "", "", "", true, true },
        { "a fault after another configuration", 0, EIO, 0, true, "", "", "", true, true },
        { "a plan that a broken device refuses", 0, 0, FATTN_DEVICE_FAULT, false, "inconclusive",
          "internal", "before an engine ran: ", false, true },
        { "such a plan after another case", 0, 0, FATTN_DEVICE_FAULT, true, "", "", "", true,
          true },
        { "a NaN of the case's own forward", 0, ENOTSUP, 0, true, "nan", "",
          "its own forward: a NaN", false, false },
        { "a lack of memory", 0, ENOMEM, 0, true, "inconclusive", "no_memory",
          "no memory for the reference", false, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plan_status = rows[i].plan;
        const served s = serve(rows[i].first, rows[i].then, rows[i].ran);
        cr_expect_eq(s.lost, rows[i].lost, "%s", rows[i].name);
        cr_expect_eq(s.again, rows[i].again, "%s", rows[i].name);
        if (rows[i].again)
            continue; /* another worker is asked */
        cr_expect_str_eq(s.verdict, rows[i].verdict, "%s: %s: %s", rows[i].name, s.verdict, s.text);
        cr_expect_eq(s.bye, rows[i].lost, "%s", rows[i].name);
        cr_expect(strstr(s.class_word, rows[i].class_word) != NULL, "%s: %s", rows[i].name,
                  s.class_word);
        cr_expect(strstr(s.text, rows[i].text) != NULL, "%s: %s", rows[i].name, s.text);
    }
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

#define KEPT "pass=fwd dtype=bf16 b=1 h=2 s=24 d=16 mask=causal"

Test(serve, what_is_kept_is_launched_again)
{
    static const facts_request requests[] = {
        { .id = 1, .text = KEPT, .what = FACTS_DO_RUN, .keep = true },
        { .id = 2, .text = KEPT, .what = FACTS_DO_TIME },
        { .id = 3, .text = KEPT, .what = FACTS_DO_TIME },
        { .id = 4,
          .text = "pass=fwd dtype=bf16 b=1 h=2 s=25 d=16",
          .what = FACTS_DO_TIME }, /* never run */
        { .id = 5, .text = KEPT, .what = FACTS_DO_RUN },
        { .id = 6, .text = KEPT, .what = FACTS_DO_TIME }, /* not kept */
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
