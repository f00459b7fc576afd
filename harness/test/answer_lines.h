/* Files of harness/test/data whose lines say what a text is answered: KIND TEXT => ANSWER, or
 * KIND TEXT =~ A PART OF THE ANSWER. In a text \n and \r end a line, and \xHH is a byte. */
#ifndef FACTS_TEST_ANSWER_LINES_H
#define FACTS_TEST_ANSWER_LINES_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct answerer {
    const char *kind, *(*answer)(const char *text); /* of one line */
} answerer;

static inline char *unescaped(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        unsigned byte;
        if (*at == '\\' && at[1] == 'x' && sscanf(at + 2, "%2x", &byte) == 1)
            *to++ = (char)byte, at += 3;
        else if (*at == '\\' && (at[1] == 'n' || at[1] == 'r'))
            *to++ = *++at == 'n' ? '\n' : '\r';
        else
            *to++ = *at;
    }
    *to = '\0';
    return text;
}

static inline void check_answer(char *line, const answerer *kinds, size_t count)
{
    char *whole = strstr(line, " => "), *part = strstr(line, " =~ "), *arrow = whole ? whole : part,
         *text = strchr(line, ' ');
    cr_assert(arrow && text, "%s", line);
    *arrow = *text = '\0';
    text = unescaped(text < arrow ? text + 1 : text);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(line, kinds[i].kind) != 0)
            continue;
        const char *got = kinds[i].answer(text);
        cr_expect(whole ? strcmp(got, arrow + 4) == 0 : strstr(got, arrow + 4) != NULL,
                  "%s %s: %s, not %s", line, text, got, arrow + 4);
        cr_expect_null(strchr(got, '\n'), "one line: %s", got);
        return;
    }
    cr_assert_fail("no kind is called %s", line);
}

/* At least `least` lines are answered as the file says. */
static inline void check_answers(const char *file, const answerer *kinds, size_t count, int least)
{
    char path[4096], line[2048];
    int asked = 0;
    snprintf(path, sizeof path, "%s/harness/test/data/%s", getenv("FACTS_SOURCE"), file);
    FILE *lines = fopen(path, "r");
    cr_assert(lines != NULL, "%s", path);
    while (fgets(line, sizeof line, lines) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#' || line[0] == '\0')
            continue;
        check_answer(line, kinds, count);
        asked++;
    }
    fclose(lines);
    cr_expect_geq(asked, least);
}

#endif
