#include <criterion/criterion.h>
#include <jansson.h>

#include "keys/keys.h"
#include "problem/case_problem.h"
#include "words/fail.h"

Test(case, the_default_of_a_key_follows_from_others)
{
    static const struct {
        const char *text;
        facts_key key;
        const char *value;
    } rows[] = { { "dtype=f16 pass=bwd", FACTS_KEY_OUT, "f16" },
                 { "layout=sbhd_sb2hd", FACTS_KEY_Q, "sbhd" },
                 { "layout=sbhd_sb2hd", FACTS_KEY_V, "sb2hd" },
                 { "layout=sbhd_sb2hd", FACTS_KEY_O, "auto" },
                 { "mask=causal_br", FACTS_KEY_WINDOW, "inf:0" },
                 { "mask=causal_br", FACTS_KEY_ALIGN, "br" },
                 { "pass=bwd", FACTS_KEY_WANT, "stats" },
                 { "pass=bwd dtype=e4m3 out=bf16", FACTS_KEY_DO_DTYPE, "bf16" },
                 { "pass=bwd dtype=mxe5m2 out=f16", FACTS_KEY_DO_DTYPE, "mxe5m2" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        facts_case c;
        cr_assert(facts_case_parse(&c, rows[i].text, NULL));
        cr_expect_str_eq(facts_case_get(&c, rows[i].key), rows[i].value, "%s", rows[i].text);
    }
}

Test(case, setting_one_key_keeps_what_the_others_said)
{
    facts_case c;
    facts_error error;
    char name[FACTS_NAME_MAX];
    cr_assert(facts_case_parse(&c, "mask=causal_br s=64", NULL));
    cr_assert(facts_case_set(&c, FACTS_KEY_WINDOW, "32:0", &error), "%s", error.text);
    cr_expect_str_eq(facts_case_name(&c, name), "pass=fwd dtype=bf16 s=64 window=32:0 align=br");
    cr_assert(facts_case_set(&c, FACTS_KEY_ALIGN, "tl", &error));
    cr_assert(facts_case_set(&c, FACTS_KEY_WINDOW, "inf:inf", &error));
    cr_expect_str_eq(facts_case_name(&c, name), "pass=fwd dtype=bf16 s=64");
    cr_expect_not(facts_case_set(&c, FACTS_KEY_B, "x", &error));
    cr_expect_str_eq(facts_case_name(&c, name), "pass=fwd dtype=bf16 s=64",
                     "a failure leaves the case as it was");
}

Test(case, what_is_too_long_is_refused_and_not_cut)
{
    char text[8192] = "lens=";
    for (int i = 0; i < 500; i++)
        sprintf(text + strlen(text), "%s%d", i > 0 ? "+" : "", 1000 + i);
    facts_case c;
    facts_error error;
    cr_assert_not(facts_case_parse(&c, text, &error));
    cr_expect(strstr(error.text, "longer than a case may be") != NULL, "%s", error.text);
}

/* docs/cases.md holds the table between two marks; FACTS_RENEW=1 writes it anew. */
Test(case, the_documentation_holds_the_table_that_the_program_prints)
{
    static const char open_mark[] = "<!-- keys -->\n", close_mark[] = "<!-- /keys -->\n";
    static char page[1 << 17];
    char path[4096], *table = NULL, *text = NULL;
    size_t size = 0;
    FILE *help = open_memstream(&text, &size);
    facts_keys_help(&facts_attention_language, FACTS_NO_KEY, help);
    fclose(help);
    for (facts_key key = 1; key < FACTS_KEY_COUNT; key++) {
        char line[64];
        snprintf(line, sizeof line, "\n  %s ", facts_keys[key].word);
        cr_expect(strstr(text, line) != NULL, "%s", facts_keys[key].word);
    }
    snprintf(path, sizeof path, "%s/docs/cases.md", getenv("FACTS_SOURCE"));
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    page[fread(page, 1, sizeof page - 1, file)] = '\0';
    fclose(file);
    char *from = strstr(page, open_mark), *to = strstr(page, close_mark);
    cr_assert(from != NULL && to != NULL);
    cr_assert(asprintf(&table, "%s```text\n%s```\n", open_mark, text) > 0);
    bool same = strncmp(from, table, strlen(table)) == 0 && from + strlen(table) == to;
    if (!same && getenv("FACTS_RENEW") != NULL) {
        file = fopen(path, "w");
        fprintf(file, "%.*s%s%s", (int)(from - page), page, table, to);
        fclose(file);
    } else {
        cr_expect(same, "docs/cases.md is old; FACTS_RENEW=1 renews it");
    }
    free(table);
    free(text);
}

/* The reports read the same table from a file; FACTS_RENEW=1 writes it anew. */
Test(case, the_reports_have_the_table_of_the_program)
{
    char path[4096];
    json_t *table = facts_keys_json(&facts_attention_language);
    snprintf(path, sizeof path, "%s/reports/facts_reports/read/keys.json", getenv("FACTS_SOURCE"));
    json_t *file = json_load_file(path, 0, NULL);
    if (getenv("FACTS_RENEW") != NULL && !json_equal(file, table)) {
        FILE *out = fopen(path, "w");
        size_t i;
        json_t *row;
        json_array_foreach(table, i, row)
        {
            fputs(i ? ",\n" : "[\n", out);
            json_dumpf(row, out, 0);
        }
        fputs("\n]\n", out);
        fclose(out);
    } else {
        cr_expect(json_equal(file, table), "%s is old; FACTS_RENEW=1 renews it", path);
    }
    json_decref(file);
    json_decref(table);
}

Test(case, what_a_terminal_obeys_does_not_reach_it)
{
    static const char *const rows[][2] = {
        { "a\x1b[31m\x7f\tb \xc2\x9b c \xe2\x80\xae d \xe2\x81\xa6 e \xd8\x9c f \xef\xbb\xbf "
          "\xc3\xa4 "
          "\xe2\x80\x93 \xd8\xa8",
          "a?[31m??b ?? c ??? d ??? e ?? f ??? \xc3\xa4 \xe2\x80\x93 \xd8\xa8" },
        { "a\xc2\xad\xe2\x80\x8b\xe2\x81\xa0\xef\xbf\xb9\xf3\xa0\x80\x81\xf3\xa0\x81\xbf b "
          "\xe2\x80\x8d \xef\xbf\xbd",
          "a???"
          "???"
          "???"
          "???"
          "???"
          "???"
          "? b \xe2\x80\x8d \xef\xbf\xbd" },
        { "\xe2\x80", "??" },
        { "\x9b"
          "2J \xc0\x80 \xe0\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf0\x9f\x98\x80 \xf0\x9f",
          "?2J ?? ??? ??? ???? \xf0\x9f\x98\x80 ??" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s", rows[i][0]);
        facts_plain(text);
        cr_expect_str_eq(text, rows[i][1], "row %zu", i);
    }
}
