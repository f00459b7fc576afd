/* Which rules of other projects refuse a case, out of claims.jsonl as the build made it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "known/callers.h"
#include "problem/case_problem.h"

static facts_error error;
static facts_callers callers;
static facts_text text;
static facts_case c;

static void set_up(void)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/../claims/claims.jsonl", getenv("FACTS_BIN"));
    cr_assert(facts_callers_load(&callers, &facts_attention_language, path, &error), "%s",
              error.text);
    cr_assert_geq(callers.count, 140);
}

static void tear_down(void)
{
    facts_callers_free(&callers);
    facts_text_free(&text);
}

TestSuite(callers, .init = set_up, .fini = tear_down);

static const char *lines(const char *name, const char *cudnn, const char *sm)
{
    cr_assert(facts_case_parse(&c, name, &error), "%s", error.text);
    facts_text_clear(&text);
    facts_text_puts(&text, "");
    facts_callers_lines(&text, "> ", &callers,
                        &(facts_subject){ .c = &c, .cudnn = cudnn, .sm = sm });
    return text.data;
}

Test(callers, a_case_that_all_take_has_no_line)
{
    cr_assert_str_eq(lines("pass=fwd dtype=bf16", "9.27.0", "90"), "");
}

Test(callers, version_and_architecture_decide)
{
    const char *dims = "pass=fwd dtype=bf16 d=256";
    cr_assert_str_eq(lines(dims, "9.27.0", "90"), "");
    cr_assert(strstr(lines(dims, "9.20.0", "90"), "(pt/head-dim"));
    cr_assert(strstr(lines(dims, "9.27.0", "120"), "(pt/head-dim"));
    cr_assert_str_eq(lines(dims, "9.27.0", NULL), "", "the architecture is not known");
}

Test(callers, a_project_has_one_line)
{
    const char *said = lines("pass=fwd dtype=f32 d=100 dropout=0.1", "9.27.0", "90");
    const char *line = strstr(said, "> PyTorch main@");
    cr_assert(line && strstr(line, " refuses it before cuDNN sees it: check_dtypes_low_precision: "
                                   "half and bfloat16 (pt/types); also pt/dropout-sixteenths, "
                                   "pt/multiple-of-8\n"),
              "%s", said);
    cr_assert_not(strstr(line + 1, "> PyTorch"));
}

Test(callers, a_member_has_every_rule)
{
    cr_assert(facts_case_parse(&c, "pass=fwd dtype=bf16 d=100", &error));
    facts_callers_member(&text, &callers,
                         &(facts_subject){ .c = &c, .cudnn = "9.27.0", .sm = "90" });
    text.data[text.length - 1] = '}';
    json_t *row = json_loads(text.data + strlen("\"callers\":"), JSON_DISABLE_EOF_CHECK, NULL);
    bool found = false;
    size_t i;
    json_t *one;
    json_array_foreach(row, i, one) found |=
        strcmp(json_string_value(json_object_get(one, "rule")), "pt/multiple-of-8") == 0;
    cr_assert(found, "%s", text.data);
    json_decref(row);
}

Test(callers, a_line_of_a_log_names_its_rule)
{
    const char *warning = "UserWarning: head_dim should be a multiple of 8 (Triggered internally)";
    const facts_caller *said = facts_callers_saying(&callers, warning);
    cr_assert_str_eq(json_string_value(json_object_get(said->said, "rule")), "pt/multiple-of-8");
    cr_assert_null(facts_callers_saying(&callers, "UserWarning: something else"));
}

Test(callers, a_broken_file_has_its_place)
{
    char path[] = "/tmp/callers-XXXXXX";
    const int fd = mkstemp(path);
    cr_assert_eq(write(fd, "{}\n{", 4), 4);
    close(fd);
    facts_callers_free(&callers);
    cr_assert_not(facts_callers_load(&callers, &facts_attention_language, path, &error));
    unlink(path);
}
