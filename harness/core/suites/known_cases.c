#include "known_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite.h"

#define SUFFIX ".known"

/* The sections that hold cases; what a section without a name of its own adds to the group's name.
 */
static const struct section {
    const char *word, *name;
} SECTIONS[] = { { "cases:", "" }, { "controls:", "/controls" }, { "guarded:", "/guarded" } };

bool facts_is_known(const char *path)
{
    size_t length = strlen(path);
    return length > strlen(SUFFIX) && strcmp(path + length - strlen(SUFFIX), SUFFIX) == 0;
}

static bool begins(facts_span line, const char *word, facts_span *rest)
{
    size_t letters = strlen(word);
    if (line.length < letters || memcmp(line.at, word, letters) != 0)
        return false;
    *rest = facts_span_trim((facts_span){ line.at + letters, line.length - letters });
    return true;
}

static const struct section *section_of(facts_span line, facts_span *name)
{
    for (size_t i = 0; i < sizeof SECTIONS / sizeof SECTIONS[0]; i++)
        if (begins(line, SECTIONS[i].word, name))
            return &SECTIONS[i];
    return NULL;
}

static facts_span id_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *start = slash != NULL ? slash + 1 : path;
    return (facts_span){ start, strlen(start) - strlen(SUFFIX) };
}

/* One line of the suite into `out`; *inside: is it in a group? */
static void write_line(FILE *out, facts_span line, facts_span id, bool *inside)
{
    facts_span name;
    const struct section *section = section_of(line, &name);
    if (section != NULL) {
        fprintf(out, "name: %.*s%s%.*s", (int)id.length, id.at,
                name.length > 0 ? "/" : section->name, (int)name.length, name.at);
        *inside = true;
    } else if (begins(line, "failure:", &name)) {
        *inside = false;
    } else if (*inside) {
        fwrite(line.at, 1, line.length, out);
    }
    putc('\n', out);
}

char *facts_known_suite(const char *text, const char *path)
{
    char *made = NULL;
    size_t size;
    FILE *out = open_memstream(&made, &size);
    bool inside = false;
    facts_span rest = facts_span_of(text), id = id_of(path);
    while (rest.length > 0) {
        facts_span line = facts_span_cut(&rest, '\n');
        if (facts_span_is(line, "text:"))
            break;
        write_line(out, line, id, &inside);
    }
    fclose(out);
    return made;
}

/* The title, with the lines that continue it, and the links in brackets. */
static char *title_of(const char *text)
{
    char *made = NULL;
    size_t size, links = 0;
    bool title = false;
    FILE *out = open_memstream(&made, &size);
    facts_span rest = facts_span_of(text), value, none;
    while (rest.length > 0) {
        facts_span line = facts_span_cut(&rest, '\n');
        if (begins(line, "failure:", &none) || section_of(line, &none) != NULL)
            break;
        bool more = title && begins(line, "  ", &value);
        if (begins(line, "link:", &value))
            fprintf(out, "%s%.*s", links++ > 0 ? ", " : " (", (int)value.length, value.at);
        else if (more || begins(line, "title:", &value))
            fprintf(out, "%s%.*s", more ? " " : "", (int)value.length, value.at);
        title = more || begins(line, "title:", &none);
    }
    fputs(links > 0 ? ")" : "", out);
    fclose(out);
    return made;
}

void facts_known_titles(struct facts_suite *suite, size_t first, const char *text)
{
    for (size_t i = first; i < suite->groups; i++) {
        if (*suite->group[i].why != '\0')
            continue;
        free(suite->group[i].why);
        suite->group[i].why = title_of(text);
    }
}

bool facts_known_in_regress(const char *text)
{
    facts_span rest = facts_span_of(text), value;
    while (rest.length > 0) {
        facts_span line = facts_span_cut(&rest, '\n');
        if (section_of(line, &value) != NULL)
            return true;
        if (facts_span_is(line, "text:") ||
            (begins(line, "size:", &value) && facts_span_is(value, "big")))
            return false;
    }
    return false;
}
