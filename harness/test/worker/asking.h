/* Cases through the real worker on the cpu, as the supervisor starts it, and what their rows say. */
#ifndef FACTS_TEST_ASKING_H
#define FACTS_TEST_ASKING_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPU_TARGET "{\"target\":{\"device\":{\"kind\":\"cpu\"},\"threads\":2}}\n"

static inline const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static inline const char *reason_of(const json_t *row, const char *key)
{
    return text_at(json_object_get(row, "reason"), key);
}

/* One case, and how its row must read. */
typedef struct asked {
    const char *text, *verdict;
    const char *judged; /* tensors joined by +; NULL: not looked at, as the next two */
    const char *reason_class, *says;
} asked;

/* The rows of these cases, asked of one worker of this target ("run", "decide", "plan"); a JSON
 * array. */
static inline json_t *rows_of(const char *target, const char *how, const asked cases[],
                              size_t count)
{
    char command[4200], *line = NULL, inputs[] = "/tmp/facts-asked-XXXXXX";
    size_t room = 0;
    const char *bin = getenv("FACTS_BIN");
    json_t *rows = json_array();
    FILE *in = fdopen(mkstemp(inputs), "w");
    cr_assert(in);
    fputs(target, in);
    for (size_t i = 0; i < count; i++)
        fprintf(in, "{\"id\":%zu,\"case\":\"%s\",\"do\":\"%s\"}\n", i + 1, cases[i].text, how);
    fclose(in);
    snprintf(command, sizeof command, "%s/facts-worker < %s", bin ? bin : "bin", inputs);
    FILE *out = popen(command, "r");
    cr_assert(out);
    while (getline(&line, &room, out) > 0) {
        json_t *reply = json_loads(line, 0, NULL), *row = json_object_get(reply, "row");
        if (row)
            json_array_append(rows, row);
        json_decref(reply);
    }
    cr_assert_eq(pclose(out), 0);
    free(line);
    remove(inputs);
    cr_assert_eq(json_array_size(rows), count, "%s ...: %zu rows", cases[0].text,
                 json_array_size(rows));
    return rows;
}

static inline void check_row(const asked *a, const json_t *row)
{
    const json_t *errors = json_object_get(row, "errors");
    char words[100], *rest = words, *word;
    cr_expect_str_eq(text_at(row, "verdict"), a->verdict, "%s: %s", a->text,
                     reason_of(row, "text"));
    snprintf(words, sizeof words, "%s", a->judged ? a->judged : "");
    while ((word = strsep(&rest, "+")) && *word) {
        const json_t *checked = json_object_get(json_object_get(errors, word), "checked");
        cr_expect_gt(json_integer_value(checked), 0, "%s: %s", a->text, word);
    }
    if (a->reason_class)
        cr_expect_str_eq(reason_of(row, "class"), a->reason_class, "%s", a->text);
    if (a->says)
        cr_expect(strstr(reason_of(row, "text"), a->says), "%s: %s", a->text,
                  reason_of(row, "text"));
}

/* Release with json_decref(). */
static inline json_t *check_rows(const asked cases[], size_t count)
{
    json_t *rows = rows_of(CPU_TARGET, "run", cases, count);
    for (size_t i = 0; i < count; i++)
        check_row(&cases[i], json_array_get(rows, i));
    return rows;
}

#define CHECK_ROWS(cases) json_decref(check_rows(cases, sizeof cases / sizeof *cases))

#endif
