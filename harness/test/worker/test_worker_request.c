#include "../answer_lines.h"
#include "driver/request.h"
#include "problem/case_problem.h"
#include "problem/rescale.h"
#include "worker/answer_requests.h"

static bool target(facts_target_request *out, const char *line, facts_error *error)
{
    return facts_target_request_read(out, line, strlen(line), error);
}

static bool request(facts_request *out, const char *line, facts_error *error)
{
    return facts_request_read(out, line, strlen(line), error);
}

Test(request, a_target_is_read_whole)
{
    facts_target_request t;
    facts_error error = { 0 };
    cr_assert(target(&t,
                     "{\"target\":{\"cudnn_dir\":\"/a\",\"nvrtc\":\"\",\"driver\":\"/"
                     "d\",\"version\":\"9.20.0\",\"build\":\"x\",\"device\":"
                     "{\"kind\":\"described\",\"ordinal\":0,\"name\":\"h\",\"json\":\"{}\"},"
                     "\"threads\":2,\"supervisor\":7,\"fault\":\"\"}}",
                     &error),
              "%s", error.text);
    cr_expect_str_eq(t.cudnn_dir, "/a");
    cr_expect_str_eq(t.nvrtc, "");
    cr_expect_str_eq(t.driver, "/d");
    cr_expect_str_eq(t.device_json, "{}");
    cr_expect(t.device == FACTS_DEVICE_DESCRIBED && t.threads == 2 && t.supervisor == 7);
    facts_target_request_free(&t);
}

Test(request, a_request_is_read_whole)
{
    facts_request r;
    facts_error error = { 0 };
    cr_assert(
        request(
            &r,
            "{\"id\":7,\"case\":\"pass=fwd "
            "dtype=bf16\",\"do\":\"run\",\"explain\":true,\"from_config\":2,\"plan_dir\":\"/p\","
            "\"dump\":\"/"
            "q\",\"trace\":true,\"first_bad_only\":true,\"keep\":true,\"fresh\":true,\"unguarded\":"
            "true,\"expected\":"
            "true}",
            &error),
        "%s", error.text);
    cr_expect(r.keep && r.fresh && r.id == 7 && r.what == FACTS_DO_RUN && r.explain && r.trace &&
              r.first_bad_only && r.expected && r.from_config == 2);
    cr_expect_str_eq(r.text, "pass=fwd dtype=bf16");
    cr_expect_str_eq(r.plan_dir, "/p");
    cr_expect_str_eq(r.dump, "/q");
}

Test(request, what_is_not_said_is_the_default)
{
    facts_request r;
    facts_error error = { 0 };
    cr_assert(request(&r, "{\"id\":0,\"case\":\"pass=fwd\",\"do\":\"decide\"}", &error));
    cr_expect(!r.explain && !r.trace && !r.first_bad_only && !r.fresh && r.from_config == 0 &&
              r.dump[0] == '\0');
}

static const char *request_error(const char *line)
{
    static facts_error error;
    facts_request r;
    error = (facts_error){ 0 };
    cr_expect_not(request(&r, line, &error), "%s", line);
    return error.text;
}

static const char *target_error(const char *line)
{
    static facts_error error;
    facts_target_request t;
    error = (facts_error){ 0 };
    cr_expect_not(target(&t, line, &error), "%s", line);
    cr_expect_null(t.device_json);
    return error.text;
}

Test(request, what_is_wrong_is_said_in_one_line)
{
    static const answerer kinds[] = { { "request", request_error }, { "target", target_error } };
    check_answers("worker.test", kinds, sizeof kinds / sizeof *kinds, 20);
}

Test(request, a_case_longer_than_any_name_is_refused)
{
    char line[4000];
    facts_error error = { 0 };
    facts_request r;
    memset(line, 'a', sizeof line);
    memcpy(line, "{\"id\":1,\"do\":\"run\",\"case\":\"", 27);
    strcpy(line + sizeof line - 3, "\"}");
    cr_expect_not(request(&r, line, &error));
}

struct facts_worker {
    facts_health health;
};

static facts_health health(const facts_worker *worker)
{
    return worker->health;
}

static const facts_worker_driver driver = { .language = &facts_attention_language,
                                            .health = health };
static facts_worker new_worker, used_worker = { FACTS_HEALTH_USED };
static const facts_process new = { &driver, &new_worker, FACTS_DEVICE_GPU },
                           used = { &driver, &used_worker, FACTS_DEVICE_GPU },
                           cpu = { &driver, &used_worker, FACTS_DEVICE_CPU };

Test(request, another_threshold_needs_another_process)
{
    facts_request plain = { .text = "pass=fwd dtype=bf16" },
                  two = { .text = "pass=fwd dtype=bf16 rescale=2" };
    unsetenv(FACTS_RESCALE);
    cr_expect_not(facts_replace_now(&new, &plain));
    cr_expect(facts_replace_now(&new, &two));
    cr_expect_not(facts_replace_now(&cpu, &two), "the cpu has none");
    setenv(FACTS_RESCALE, "2", 1);
    cr_expect(facts_replace_now(&new, &plain));
    cr_expect_not(facts_replace_now(&new, &two));
    unsetenv(FACTS_RESCALE);
}

Test(request, a_fresh_process_is_needed_only_after_an_engine_ran)
{
    facts_request plain = { .text = "pass=fwd dtype=bf16" },
                  fresh = { .text = "pass=fwd dtype=bf16", .fresh = true };
    unsetenv(FACTS_RESCALE);
    cr_expect(facts_replace_now(&used, &fresh));
    cr_expect_not(facts_replace_now(&new, &fresh), "it would start again for ever");
    cr_expect_not(facts_replace_now(&used, &plain));
    cr_expect_not(facts_replace_now(&cpu, &fresh), "the cpu has no context");
}

/* A worker that starts itself again has a case in hand. If it finds its target no more, as on a GPU
 * without free memory, that says nothing of the case. */
Test(request, a_worker_that_cannot_start_again_answers_what_is_in_hand)
{
    char command[600], answer[2000] = "";
    const char *bin = getenv("FACTS_BIN");
    snprintf(
        command, sizeof command,
        "printf '%%s\\n%%s\\n' "
        "'{\"target\":{\"cudnn_dir\":\"/nowhere\",\"device\":{\"kind\":\"gpu\",\"ordinal\":0}}}' "
        "'{\"id\":7,\"case\":\"pass=fwd dtype=bf16\",\"do\":\"run\"}' | " FACTS_REPLACED
        "=5 %s/facts-worker 5<&0 </dev/null",
        bin ? bin : "bin");
    FILE *worker = popen(command, "r");
    cr_assert_not_null(worker);
    const size_t length = fread(answer, 1, sizeof answer - 1, worker);
    answer[length] = '\0';
    cr_expect_eq(pclose(worker), 0);
    cr_expect(strstr(answer, "\"id\":7") && strstr(answer, "\"inconclusive\"") &&
                  strstr(answer, "\"bye\":true"),
              "%s", answer);
    cr_expect_not(strstr(answer, "\"failed\""), "%s", answer);
}
