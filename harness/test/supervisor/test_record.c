/* Records: what is written can be read, and what cannot be read is counted. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/reader.h"
#include "record/text.h"
#include "record/writer.h"
#include "words/verdict.h"

static char path[64];

static void set_up(void)
{
    strcpy(path, "/tmp/facts-record-XXXXXX");
    int fd = mkstemp(path);
    cr_assert_geq(fd, 0);
    close(fd);
}

static void tear_down(void)
{
    unlink(path);
}

TestSuite(scan);
TestSuite(record, .init = set_up, .fini = tear_down);

Test(scan, every_cut_of_an_object_is_refused)
{
    const char *text = "{\"case\":\"pass=fwd \\u00e9\",\"n\":[1,2.5e3,{\"x\":null}],\"ok\":true}";
    facts_member members[8];
    size_t count;
    cr_assert(facts_scan_object(text, strlen(text), members, 8, &count));
    for (size_t n = 0; n < strlen(text); n++)
        cr_expect_not(facts_scan_object(text, n, members, 8, &count), "%zu bytes", n);
}

Test(scan, depth_is_bounded)
{
    char deep[8192];
    size_t n = (size_t)snprintf(deep, sizeof deep, "{\"a\":");
    memset(deep + n, '[', 4000);
    memset(deep + n + 4000, ']', 4000);
    deep[n + 8000] = '}';
    facts_member members[2];
    size_t count;
    cr_expect_not(facts_scan_object(deep, n + 8001, members, 2, &count));
}

Test(scan, more_members_than_room_are_counted_not_written)
{
    facts_member members[2] = { 0 };
    size_t count;
    cr_expect(facts_scan_object("{\"a\":1,\"b\":2,\"c\":3}", 19, members, 2, &count));
    cr_expect_eq(count, 3);
}

Test(scan, strings_come_back_as_they_were)
{
    const char *texts[] = { "",
                            "plain",
                            "quote \" back \\ slash",
                            "tab\tline\nend",
                            "\x01\x1f\x7f",
                            "\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80" };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        facts_text text = { 0 };
        char back[128];
        facts_text_json(&text, texts[i], strlen(texts[i]));
        cr_expect(facts_json_string((facts_span){ text.data, text.length }, back, sizeof back));
        cr_expect_str_eq(back, texts[i]);
        facts_text_free(&text);
    }
}

Test(scan, bytes_that_are_no_text_become_a_mark_and_stay_valid)
{
    facts_text text = { 0 };
    facts_member members[2];
    size_t count;
    facts_text_puts(&text, "{\"a\":");
    facts_text_json(&text, "x\xff\xc3y", 4);
    facts_text_puts(&text, "}");
    cr_expect(facts_scan_object(text.data, text.length, members, 2, &count), "%s", text.data);
    facts_text_free(&text);
}

Test(scan, a_string_is_cut_at_a_whole_character)
{
    char out[4];
    cr_expect(facts_json_string((facts_span){ "\"ab\xc3\xa9\"", 6 }, out, sizeof out));
    cr_expect_str_eq(out, "ab");
}

static void write_text(const char *where, const char *text)
{
    FILE *file = fopen(where, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static bool count_rows(void *context, const facts_line *line)
{
    size_t *kinds = context;
    kinds[line->kind]++;
    return true;
}

Test(record, lines_know_their_kind)
{
    size_t kinds[FACTS_LINE_BAD + 1] = { 0 };
    facts_read_counts counts;
    write_text(path, "{\"run\":{\"id\":\"1\"}}\n{\"target\":{}}\n{\"start\":{}}\n{\"case\":\"a\","
                     "\"verdict\":\"pass\",\"run\":\"1\"}\n"
                     "{\"end\":{}}\n{\"later\":1}\nnot json\n\n{\"case\":\"b\",\"verd");
    cr_assert(facts_record_read(path, count_rows, kinds, &counts));
    cr_expect_eq(kinds[FACTS_LINE_RUN], 1);
    cr_expect_eq(kinds[FACTS_LINE_TARGET], 1);
    cr_expect_eq(kinds[FACTS_LINE_START], 1);
    cr_expect_eq(kinds[FACTS_LINE_ROW], 1);
    cr_expect_eq(kinds[FACTS_LINE_END], 1);
    cr_expect_eq(kinds[FACTS_LINE_OTHER], 1);
    cr_expect_eq(counts.bad, 2);
    cr_expect(counts.torn);
}

Test(record, a_line_too_long_is_counted_and_the_next_is_read)
{
    size_t kinds[FACTS_LINE_BAD + 1] = { 0 };
    facts_read_counts counts;
    FILE *file = fopen(path, "w");
    for (size_t i = 0; i < FACTS_LINE_MAX + 100; i++)
        fputc('x', file);
    fputs("\n{\"case\":\"a\",\"verdict\":\"pass\"}\n", file);
    fclose(file);
    cr_assert(facts_record_read(path, count_rows, kinds, &counts));
    cr_expect_eq(kinds[FACTS_LINE_ROW], 1);
    cr_expect_eq(counts.bad, 1);
}

/* Only half an object of ours goes. */
Test(record, a_last_line_without_its_newline_stays_where_it_is_whole_or_not_ours)
{
    static const struct {
        const char *text;
        size_t rows, bad;
    } files[] = { { "{\"case\":\"a\",\"verdict\":\"pass\"}", 1, 0 },
                  { "{\"run\":{\"id\":\"1\"}}\nsomebody's words", 0, 1 },
                  { "{\"run\":{\"id\":\"1\"}}\n{\"case\":\"a\",\"verdict\":{}", 0, 0 },
                  { "{\"case\":\"a\",\"verdict\":\"pass\"}\n{\"case\":\"torn", 1, 0 } };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        facts_error error;
        facts_writer *writer;
        size_t kinds[FACTS_LINE_BAD + 1] = { 0 };
        facts_read_counts counts;
        write_text(path, files[i].text);
        cr_assert_eq(facts_writer_open(&writer, path, FACTS_OPEN_RESUME, &error), 0);
        cr_assert(facts_writer_line(writer, "{\"case\":\"b\",\"verdict\":\"pass\"}", 29));
        cr_assert(facts_writer_close(writer, &error));
        cr_assert(facts_record_read(path, count_rows, kinds, &counts));
        cr_expect_eq(kinds[FACTS_LINE_ROW], files[i].rows + 1, "%s", files[i].text);
        cr_expect_eq(counts.bad, files[i].bad, "%s", files[i].text);
    }
}

/* What is no record is refused by who reads it, and by who would go on with it; a first line that a
 * kill tore off is one. */
Test(record, what_is_no_record_says_so)
{
    static const struct {
        const char *text, *why;
    } files[] = { { "# a title\n\ntext\n", "is not a record (no line could be read)" },
                  { "\xfd"
                    "7zXZ",
                    "is compressed: unpack it first" },
                  { "\x1f\x8b\x08\n", "is compressed: unpack it first" } };
    size_t kinds[FACTS_LINE_BAD + 1] = { 0 };
    facts_read_counts counts;
    facts_error why;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        write_text(path, files[i].text);
        cr_expect_not(facts_record_read(path, count_rows, kinds, &counts), "%s", files[i].why);
        cr_expect_eq(facts_record_trouble(&counts, &why), 2);
        cr_expect_str_eq(why.text, files[i].why);
    }
    write_text(path, "{\"run\":{\"id");
    cr_expect(facts_record_read(path, count_rows, kinds, &counts));
    write_text(path, "");
    cr_expect(facts_record_read(path, count_rows, kinds, &counts));
}

Test(record, a_record_that_somebody_removes_is_an_error)
{
    facts_error error;
    facts_writer *writer;
    cr_assert_eq(facts_writer_open(&writer, path, FACTS_OPEN_NEW, &error), 0);
    cr_assert(facts_writer_line(writer, "{}", 2));
    cr_assert_eq(unlink(path), 0);
    cr_expect_not(facts_writer_close(writer, &error));
    cr_expect(strstr(error.text, "was removed while it was written") != NULL, "%s", error.text);
}

Test(record, every_verdict_reads_back)
{
    for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++) {
        char text[64];
        int n = snprintf(text, sizeof text, "\"%s\"", facts_verdict_name(v));
        cr_expect_eq(facts_verdict_parse((facts_span){ text, (size_t)n }), v);
    }
    cr_expect(facts_verdict_is_finding(FACTS_VERDICT_CRASH));
    cr_expect_not(facts_verdict_is_finding(FACTS_VERDICT_UNSUPPORTED));
    cr_expect_not(facts_verdict_is_finding(FACTS_VERDICT_MISTRUSTED));
}
