/* Prints what is known of cases, for the test that compares this with Python. It reads known.jsonl,
 * its argument, and lines CASE TAB VERSION TAB ARCHITECTURE TAB ENGINE; an empty word is not known.
 * A line for each: the failures, each as "ID/LABEL how sure, yes or no for its data, fixed". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "known/known.h"
#include "problem/case_problem.h"

static char *word(char **rest)
{
    char *text = strsep(rest, "\t\n");
    return text && *text ? text : NULL;
}

int main(int argc, char **argv)
{
    facts_knowledge knowledge;
    facts_error error = { 0 };
    char *line = NULL;
    size_t room = 0;
    if (argc < 2 || !facts_knowledge_load(&knowledge, &facts_attention_language, argv[1], &error)) {
        fprintf(stderr, "print_known: %s\n", error.text);
        return 2;
    }
    facts_known_answer *found = calloc(knowledge.count, sizeof *found);
    while (getline(&line, &room, stdin) > 0) {
        facts_case c;
        char *rest = line;
        const char *name = word(&rest);
        facts_subject subject = { .c = &c };
        subject.cudnn = word(&rest);
        subject.sm = word(&rest);
        subject.engine = word(&rest);
        if (!name || !facts_case_parse(&c, name, &error)) {
            puts("?");
            continue;
        }
        const size_t count = facts_known_of(&knowledge, &subject, found);
        for (size_t i = 0; i < count; i++)
            printf("%s/%s %s %s %s;", facts_known_text(found[i].known, "id"),
                   facts_known_text(found[i].known, "label"), found[i].sure,
                   found[i].such_data ? "yes" : "no", found[i].fixed);
        putchar('\n');
    }
    free(found);
    free(line);
    facts_knowledge_free(&knowledge);
    return 0;
}
