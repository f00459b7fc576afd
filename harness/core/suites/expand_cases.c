#include "planned_cases.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "suite.h"
#include "words/case_text.h"
#include "words/intern.h"

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

/* Sets the title and the links of the file as the reason of each group without `why`, from group
 * `first` on. */
static void facts_known_titles(struct facts_suite *suite, size_t first, const char *text)
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

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

#include "suite.h"
#include "words/text_file.h"

#define DEFAULT_LIMIT 1000000
#define MOST_TRIES_PER_CASE 4096

/* A case is its name: a list may hold a million. */
struct facts_cases {
    facts_intern *names; /* of case i: the text i + 1 */
    uint32_t *group;     /* of each case */
    uint64_t *calls;
    size_t count;
    facts_suite suite;
    char **texts; /* file contents and names that the suite points into */
    size_t text_count;
};

/* ---- files
 * --------------------------------------------------------------------------------------------------------------------
 */

/* Keeps a text for the life of the list. */
static const char *keep(facts_cases *cases, char *text)
{
    cases->texts = realloc(cases->texts, (cases->text_count + 1) * sizeof *cases->texts);
    return cases->texts[cases->text_count++] = text;
}

/* The groups of a known failure. */
static bool add_known(facts_cases *cases, const char *text, const char *path, facts_error *error)
{
    size_t first = cases->suite.groups;
    const char *kept = keep(cases, facts_known_suite(text, path));
    if (!facts_suite_read(&cases->suite, kept, path, error))
        return false;
    facts_known_titles(&cases->suite, first, text);
    return true;
}

static bool add_file(facts_cases *cases, const char *path, facts_error *error)
{
    char *text = facts_file_text(path, error);
    if (text == NULL)
        return false;
    const char *kept = keep(cases, text), *name = keep(cases, strdup(path));
    return facts_is_known(path) ? add_known(cases, kept, name, error)
                                : facts_suite_read(&cases->suite, kept, name, error);
}

/* The suite regress: the cases of every known failure, except the big ones. */
static bool add_regress(facts_cases *cases, const char *suite_dir, facts_error *error)
{
    char folder[4096], **paths;
    snprintf(folder, sizeof folder, "%s/known", suite_dir);
    size_t count = facts_folder_files(folder, ".known", &paths);
    bool ok = count > 0 ||
              facts_fail_at(error, folder, 1, 1, "no .known file can be read in this folder");
    for (size_t i = 0; i < count && ok; i++) {
        char *text = facts_file_text(paths[i], error);
        ok = text != NULL && (!facts_known_in_regress(text) || add_file(cases, paths[i], error));
        free(text);
    }
    facts_folder_free(paths, count);
    return ok;
}

static bool add_folder(facts_cases *cases, const char *folder, facts_error *error)
{
    char **paths = NULL;
    size_t count = facts_folder_files(folder, ".cases", &paths);
    bool ok = count > 0 ||
              facts_fail_at(error, folder, 1, 1, "no .cases file can be read in this folder");
    for (size_t i = 0; i < count && ok; i++)
        ok = add_file(cases, paths[i], error);
    facts_folder_free(paths, count);
    return ok;
}

static bool exists(const char *path, bool folder)
{
    struct stat status;
    return stat(path, &status) == 0 && (folder ? S_ISDIR(status.st_mode) : S_ISREG(status.st_mode));
}

static bool no_such(const char *text, const char *suite_dir, facts_error *error)
{
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX], folder[4096], **paths;
    facts_nearest nearest = facts_nearest_start(facts_span_of(text));
    facts_nearest_offer(&nearest, "regress", strlen("regress"));
    facts_nearest_offer(&nearest, "reject", strlen("reject"));
    facts_nearest_offer(&nearest, "nightly", strlen("nightly"));
    facts_nearest_offer(&nearest, "models", strlen("models"));
    const char *slash = strrchr(text, '/');
    bool inside =
        slash != NULL && slash - text < 100 && strstr(text, "..") == NULL && suite_dir != NULL;
    int inner = inside ? (int)(slash - text) : 0; /* models/llama: what its folder has */
    snprintf(folder, sizeof folder, "%s/suites/%.*s", suite_dir != NULL ? suite_dir : "", inner,
             text);
    size_t count = suite_dir != NULL ? facts_folder_files(folder, ".cases", &paths) : 0;
    size_t skip = suite_dir != NULL ? strlen(suite_dir) + strlen("/suites/") : 0;
    for (size_t i = 0; i < count; i++) {
        const char *name = inner > 0 ? paths[i] + skip : strrchr(paths[i], '/') + 1;
        facts_nearest_offer(&nearest, name, strlen(name) - strlen(".cases"));
    }
    facts_nearest_hint(&nearest, hint);
    if (suite_dir != NULL)
        facts_folder_free(paths, count);
    return facts_fail_at(error, "cases", 1, 1,
                         "%s is neither a case (key=value), nor a suite, nor a file%s",
                         facts_quote(quote, facts_span_of(text)), hint);
}

/* One of CASES on the command line. */
static bool add_text(facts_cases *cases, const char *text, const char *suite_dir,
                     facts_error *error)
{
    char path[4096];
    /* A suite's word, or one of a folder of suites: models/llama-3.1-8b. */
    bool word = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") > 0 && strlen(text) < 100 &&
                strstr(text, "..") == NULL &&
                strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-./") == strlen(text);
    if (word && suite_dir != NULL) {
        snprintf(path, sizeof path, "%s/suites/%s.cases", suite_dir, text);
        if (exists(path, false))
            return add_file(cases, path, error);
        snprintf(path, sizeof path, "%s/suites/%s", suite_dir, text);
        if (exists(path, true))
            return add_folder(cases, path, error);
        if (strcmp(text, "regress") == 0)
            return add_regress(cases, suite_dir, error);
        snprintf(path, sizeof path, "%s/%s", suite_dir, text);
        if (strcmp(text, "reject") == 0 && exists(path, true))
            return add_folder(cases, path, error);
        snprintf(path, sizeof path, "%s/known/%s.known", suite_dir,
                 strncmp(text, "regress/", 8) == 0 ? text + 8 : "");
        if (exists(path, false))
            return add_file(cases, path, error);
    }
    if (exists(text, false))
        return add_file(cases, text, error);
    if (text[strspn(text, " \t\n")] == '\0')
        return facts_fail_at(error, "cases", 1, 1,
                             "the case is empty; write key=value, such as 'pass=fwd d=64'");
    if (strchr(text, '=') == NULL)
        return no_such(text, suite_dir, error);
    return facts_suite_read(&cases->suite, keep(cases, strdup(text)), "case", error);
}

/* ---- the list
 * -----------------------------------------------------------------------------------------------------------------
 */

static const char *name_at(const facts_cases *cases, size_t i)
{
    return facts_intern_text(cases->names, (uint32_t)i + 1);
}

/* Adds a case unless it is there; its calls add up. */
static void add_case(facts_cases *cases, const facts_case *c, const facts_suite_line *line)
{
    char name[FACTS_NAME_MAX];
    const uint32_t at = facts_intern_id(cases->names, facts_case_name(c, name));
    if (at > cases->count) {
        cases->group = facts_grow(cases->group, cases->count, sizeof *cases->group);
        cases->calls = facts_grow(cases->calls, cases->count, sizeof *cases->calls);
        cases->calls[cases->count] = 0;
        cases->group[cases->count++] = (uint32_t)line->group;
    }
    cases->calls[at - 1] += line->calls;
}

static bool keeps(const facts_predicate *p, const facts_case *c)
{
    return p == NULL || facts_predicate_holds(p, &(facts_subject){ .c = c });
}

/* One case of a line, if `where` (of --where) keeps it. */
static bool take_case(facts_cases *cases, const facts_suite_line *line, facts_case *c,
                      const facts_predicate *where, const char *with, facts_error *error)
{
    if (!keeps(where, c))
        return true;
    if (with && !facts_case_override(c, with, error))
        return false;
    add_case(cases, c, line);
    return true;
}

static bool too_few(const facts_suite_line *line, uint64_t taken, uint64_t tries,
                    facts_error *error)
{
    return facts_fail_at(error, line->place.where, line->place.line, 1,
                         "draw %" PRIu64 ": only %" PRIu64 " of %" PRIu64 " members satisfy where",
                         line->draw, taken, tries);
}

/* Lines of keys below a draw. */
static bool expand_draw(facts_cases *cases, const facts_suite_line *line,
                        const facts_predicate *where, const char *with, facts_error *error)
{
    uint64_t taken = 0;
    for (uint64_t i = 0; i < 4 * line->draw && taken < line->draw; i++) {
        facts_case c;
        if (!facts_line_draw(&cases->suite, line, line->seed, i, &(facts_draw_choice){ 0 }, &c))
            continue;
        taken++;
        if (!take_case(cases, line, &c, where, with, error))
            return false;
    }
    return taken == line->draw || too_few(line, taken, 4 * line->draw, error);
}

static bool expand_line(facts_cases *cases, const facts_suite_line *line,
                        const facts_predicate *where, const char *with, facts_error *error)
{
    const facts_group *group = &cases->suite.group[line->group];
    if (line->pattern == NULL)
        return expand_draw(cases, line, where, with, error);
    uint64_t members = facts_pattern_count(line->pattern), taken = 0, tries = members;
    if (line->draw > 0 && line->draw < tries / MOST_TRIES_PER_CASE)
        tries = line->draw * MOST_TRIES_PER_CASE;
    for (uint64_t i = 0; i < tries; i++) {
        facts_case c;
        uint64_t index = line->draw > 0 ? facts_pattern_draw(members, line->seed, i) : i;
        if (!facts_pattern_at(line->pattern, index, &c, error))
            return false;
        if (!keeps(line->where, &c) || !keeps(group->where, &c))
            continue;
        if (!take_case(cases, line, &c, where, with, error))
            return false;
        if (++taken == line->draw)
            return true;
    }
    return line->draw == 0 || too_few(line, taken, tries, error);
}

static uint64_t members_of(const facts_suite_line *line)
{
    return line->draw > 0 ? line->draw : facts_pattern_count(line->pattern);
}

/* The line to change when a suite has too many cases. */
static const facts_suite_line *largest(const facts_suite *suite)
{
    const facts_suite_line *most = &suite->line[0];
    for (size_t i = 1; i < suite->lines; i++)
        most = members_of(&suite->line[i]) > members_of(most) ? &suite->line[i] : most;
    return most;
}

/* The key of a word that is one key=value and nothing else; FACTS_NO_KEY: it is something else.
 */
static facts_key lone_key(const facts_language *language, const char *text)
{
    const size_t length = strcspn(text, "=");
    const bool lone =
        text[length] == '=' && strcspn(text, " \t\n") == strlen(text) && !exists(text, false);
    return lone ? facts_key_find(language, text, length) : FACTS_NO_KEY;
}

/* d=64 mask=causal without quotes would be two cases. Two values of one key can only be two cases.
 */
static bool check_quotes(const facts_language *language, const char *const *texts, size_t count,
                         facts_error *error)
{
    char line[256] = "";
    for (size_t i = 1; i < count; i++) {
        const facts_key one = lone_key(language, texts[i - 1]),
                        other = lone_key(language, texts[i]);
        if (one == FACTS_NO_KEY || other == FACTS_NO_KEY || one == other)
            continue;
        for (size_t k = i - 1; k < count && lone_key(language, texts[k]) != FACTS_NO_KEY; k++)
            snprintf(line + strlen(line), sizeof line - strlen(line), "%s%s", *line ? " " : "",
                     texts[k]);
        return facts_fail_at(error, "cases", 1, 1,
                             "one case must be one word in quotes: write '%s'", line);
    }
    return true;
}

static bool expand(facts_cases *cases, const char *const *texts, size_t count,
                   const char *suite_dir, const facts_predicate *where, const facts_choice *choice,
                   facts_error *error)
{
    size_t limit =
        choice->limit == 0 || choice->limit > UINT32_MAX - 1 ? DEFAULT_LIMIT : choice->limit;
    if (!check_quotes(cases->suite.language, texts, count, error))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!add_text(cases, texts[i], suite_dir, error))
            return false;
    }
    uint64_t all = facts_suite_count(&cases->suite);
    facts_place most = all > limit ? largest(&cases->suite)->place : (facts_place){ 0 };
    if (all > limit)
        return facts_fail_at(error, most.where, most.line, 1,
                             "%s%" PRIu64
                             " cases, more than %zu; take fewer values, or draw N of them",
                             all == UINT64_MAX ? "at least " : "", all, limit);
    for (size_t i = 0; i < cases->suite.lines; i++) {
        if (!expand_line(cases, &cases->suite.line[i], where, choice->with, error))
            return false;
    }
    return true;
}

int facts_cases_expand(const facts_language *language, facts_cases **out, const char *const *texts,
                       size_t count, const char *suite_dir, const facts_choice *choice,
                       facts_error *error)
{
    const facts_choice all = { 0 };
    if (choice == NULL)
        choice = &all;
    *out = NULL;
    facts_predicate *kept = NULL;
    facts_cases *cases = calloc(1, sizeof *cases);
    cases->suite.language = language;
    cases->names = facts_intern_new();
    bool ok =
        (choice->where == NULL || facts_predicate_parse(language, &kept, choice->where, error)) &&
        expand(cases, texts, count, suite_dir, kept, choice, error);
    facts_predicate_destroy(kept);
    if (!ok) {
        facts_cases_destroy(cases);
        return 2;
    }
    *out = cases;
    return 0;
}

size_t facts_cases_count(const facts_cases *cases)
{
    return cases->count;
}

facts_planned facts_cases_at(const facts_cases *cases, size_t i)
{
    const facts_group *group = &cases->suite.group[cases->group[i]];
    return (facts_planned){
        .name = name_at(cases, i),
        .group = group->name,
        .why = group->why,
        .expect = group->expect,
        .calls = cases->calls[i],
    };
}

void facts_cases_hash(const facts_cases *cases, char out[17])
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    for (size_t i = 0; i < cases->count; i++) {
        XXH64_update(&state, name_at(cases, i), strlen(name_at(cases, i)));
        XXH64_update(&state, "\n", 1);
    }
    snprintf(out, 17, "%016" PRIx64, (uint64_t)XXH64_digest(&state));
}

void facts_cases_destroy(facts_cases *cases)
{
    if (cases == NULL)
        return;
    facts_suite_clear(&cases->suite);
    for (size_t i = 0; i < cases->text_count; i++)
        free(cases->texts[i]);
    free(cases->texts);
    facts_intern_free(cases->names);
    free(cases->group);
    free(cases->calls);
    free(cases);
}
