#include "callers.h"

#include <stdlib.h>
#include <string.h>

#include "known.h"
#include "words/case_text.h"

enum { LEAST_QUOTE = 12, RULES_SHOWN = 3 };

static const char *text_of(const facts_caller *caller, const char *key)
{
    const char *text = json_string_value(json_object_get(caller->said, key));
    return text ? text : "";
}

static bool add(void *callers, json_t *said, facts_error *error)
{
    facts_callers *list = callers;
    list->at = facts_grow(list->at, list->count, sizeof *list->at);
    facts_caller *at = &list->at[list->count++];
    *at = (facts_caller){ .said = said };
    return facts_predicate_parse(list->language, &at->refuses, text_of(at, "refuse"), error);
}

bool facts_callers_load(facts_callers *out, const facts_language *language, const char *path,
                        facts_error *error)
{
    *out = (facts_callers){ .language = language };
    return facts_knowledge_lines(path, add, out, error);
}

/* The next rule from `i` on that refuses the case; the count: none. A rule may say `!(sm=90)`, so
 * an unknown version or architecture has no rules. */
static size_t next(const facts_callers *callers, size_t i, const facts_subject *subject)
{
    if (!subject->cudnn || !subject->sm)
        return callers->count;
    while (i < callers->count && !facts_predicate_holds(callers->at[i].refuses, subject))
        i++;
    return i;
}

void facts_callers_lines(facts_text *out, const char *prefix, const facts_callers *callers,
                         const facts_subject *subject)
{
    const char *project = "";
    size_t shown = 0;
    for (size_t i = next(callers, 0, subject); i < callers->count;
         i = next(callers, i + 1, subject)) {
        const facts_caller *at = &callers->at[i];
        const bool first = strcmp(project, text_of(at, "project")) != 0,
                   order = strcmp(text_of(at, "kind"), "order") == 0;
        if (order && !first)
            continue;
        shown = first ? 1 : shown + 1;
        if (first)
            facts_text_format(out, "%s%s%s %s %s: %s (%s)", *project ? "\n" : "", prefix,
                              text_of(at, "project"), text_of(at, "version"),
                              order ? "does not try cuDNN first"
                                    : "refuses it before cuDNN sees it",
                              text_of(at, "says"), text_of(at, "rule"));
        else if (shown <= RULES_SHOWN)
            facts_text_format(out, "%s%s", shown == 2 ? "; also " : ", ", text_of(at, "rule"));
        project = text_of(at, "project");
    }
    facts_text_puts(out, *project ? "\n" : "");
}

void facts_callers_member(facts_text *out, const facts_callers *callers,
                          const facts_subject *subject)
{
    static const char *const texts[] = { "project", "version", "rule", "says", "kind", "note" };
    bool any = false;
    facts_text_puts(out, "\"callers\":[");
    for (size_t i = next(callers, 0, subject); i < callers->count;
         i = next(callers, i + 1, subject)) {
        facts_text_puts(out, any ? ",{" : "{");
        for (size_t key = 0; key < sizeof texts / sizeof *texts; key++)
            if (*text_of(&callers->at[i], texts[key]))
                facts_text_member(out, texts[key], text_of(&callers->at[i], texts[key]));
        facts_text_close(out);
        any = true;
    }
    facts_text_puts(out, "],");
}

const facts_caller *facts_callers_saying(const facts_callers *callers, const char *line)
{
    for (size_t i = 0; i < callers->count; i++) {
        const char *begin = strchr(text_of(&callers->at[i], "says"), '"'),
                   *end = begin ? strchr(begin + 1, '"') : NULL;
        const size_t letters = end ? (size_t)(end - begin - 1) : 0;
        if (letters >= LEAST_QUOTE && memmem(line, strlen(line), begin + 1, letters))
            return &callers->at[i];
    }
    return NULL;
}

void facts_callers_free(facts_callers *callers)
{
    for (size_t i = 0; i < callers->count; i++) {
        facts_predicate_destroy(callers->at[i].refuses);
        json_decref(callers->at[i].said);
    }
    free(callers->at);
    *callers = (facts_callers){ 0 };
}
