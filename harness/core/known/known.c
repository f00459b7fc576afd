#include "known.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "suites/predicate.h"
#include "words/case_text.h"

enum { NO_END = 1000000 };

/* "" is no version: `none`. */
static int32_t version_of(const json_t *text, int32_t none)
{
    const char *word = json_string_value(text);
    return word && *word ? facts_version_number(facts_span_of(word), 0) : none;
}

/* Is the version in the range of an object, from its `from` to before its `to`? 0: not known. */
static bool is_within(const json_t *range, int32_t version)
{
    return !version || (version_of(json_object_get(range, "from"), 0) <= version &&
                        version < version_of(json_object_get(range, "to"), NO_END));
}

static bool has_architecture(const json_t *places, long sm)
{
    size_t i;
    json_t *place;
    json_array_foreach(places, i, place)
    {
        const json_int_t high = json_integer_value(json_array_get(place, 1));
        if (json_integer_value(json_array_get(place, 0)) <= sm && sm <= (high ? high : NO_END))
            return true;
    }
    return false;
}

/* NULL: it does not hold on this architecture. Version or architecture 0: not known. */
static const char *how_sure(const json_t *said, int32_t version, long sm)
{
    size_t i;
    json_t *one;
    const json_t *seen = json_object_get(said, "seen");
    const bool here = has_architecture(json_object_get(said, "sm"), sm),
               near = has_architecture(json_object_get(said, "suspected"), sm);
    if (sm && !here && !near)
        return NULL;
    if (!version || !sm)
        return "open";
    if (!here)
        return "suspected";
    json_array_foreach(seen, i, one) if (version_of(one, 0) == version) return "seen";
    const json_t *last = json_array_get(seen, json_array_size(seen) - 1);
    return last && version_of(last, 0) < version ? "later" : "between";
}

/* Can it be one of the failure's engines in this version? -1: the engine is not known. */
static bool has_engine(const json_t *engines, int32_t version, long engine)
{
    size_t i;
    json_t *one;
    json_array_foreach(engines, i, one)
    {
        if (is_within(one, version) &&
            (engine < 0 || json_integer_value(json_object_get(one, "engine")) == engine))
            return true;
    }
    return json_array_size(engines) == 0;
}

/* The engine that is offered first, or the one that the case asks for; -1: not known. */
static long engine_of(const facts_subject *subject)
{
    static const char word[] = "engine";
    const facts_key key = facts_key_find(subject->c->language, word, strlen(word));
    const char *text = subject->engine       ? subject->engine
                       : key != FACTS_NO_KEY ? facts_case_get(subject->c, key)
                                             : "";
    return *text >= '0' && *text <= '9' ? strtol(text, NULL, 10) : -1;
}

static bool speaks(const facts_known *known, const facts_subject *subject, int32_t version,
                   facts_known_answer *out)
{
    size_t i;
    json_t *range;
    *out = (facts_known_answer){ .known = known };
    const long sm = subject->sm ? strtol(subject->sm, NULL, 10) : 0;
    if (!known->problem || !(out->sure = how_sure(known->said, version, sm)))
        return false;
    json_array_foreach(json_object_get(known->said, "ranges"), i, range)
    {
        if (is_within(range, version))
            out->fixed = json_string_value(json_object_get(range, "fixed"));
    }
    if (!out->fixed ||
        !has_engine(json_object_get(known->said, "engines"), version, engine_of(subject)) ||
        !facts_predicate_possible(known->problem, subject))
        return false;
    out->such_data = !known->data || facts_predicate_holds(known->data, subject);
    return true;
}

/* The place of an answer among the others: a smaller number comes first. */
static int place_of(const facts_known_answer *answer)
{
    return (answer->such_data ? 0 : 2) + !facts_known_is(answer->known, "serious");
}

size_t facts_known_of(const facts_knowledge *knowledge, const facts_subject *subject,
                      facts_known_answer *out)
{
    facts_subject cudnn = *subject;
    facts_known_answer answer;
    const int32_t version =
        subject->cudnn ? facts_version_number(facts_span_of(subject->cudnn), 0) : 0;
    size_t count = 0;
    cudnn.backend = "cudnn";
    for (size_t i = 0; i < knowledge->count; i++) {
        if (!speaks(&knowledge->at[i], &cudnn, version, &answer))
            continue;
        size_t at = count++;
        for (; at > 0 && place_of(&out[at - 1]) > place_of(&answer); at--)
            out[at] = out[at - 1];
        out[at] = answer;
    }
    return count;
}

/* The title without its point, the version of the repair ("": none), the name of the file. */
static void put_title(facts_text *out, const facts_known *known, const char *fixed)
{
    const char *title = facts_known_text(known, "title");
    const size_t letters = strlen(title);
    facts_text_format(out, "%.*s%s%s (%s)",
                      (int)(letters && title[letters - 1] == '.' ? letters - 1 : letters), title,
                      *fixed ? "; fixed in " : "", fixed, facts_known_text(known, "id"));
}

void facts_known_title(facts_text *out, const facts_known *known)
{
    put_title(out, known, "");
}

void facts_known_sentence(facts_text *out, const facts_known_answer *answer)
{
    const facts_known *known = answer->known;
    const char *words = facts_known_text(known, "for"), *says = facts_known_text(known, "says");
    facts_text_format(
        out, "%s%s%s%s%s%s: ", strcmp(answer->sure, "suspected") == 0 ? "suspected" : "known",
        *says ? " " : "", says, facts_known_is(known, "sometimes") ? " in some runs" : "",
        *words ? " for " : "", words);
    put_title(out, known, answer->fixed);
}

void facts_known_lines(facts_text *out, const char *prefix, const facts_known_answer *answers,
                       size_t count, size_t most)
{
    facts_text line = { 0 };
    size_t shown = 0;
    for (size_t i = 0; i < count && shown < most; i++) {
        const facts_known *known = answers[i].known;
        const char *remedy = facts_known_text(known, "remedy");
        facts_text_clear(&line);
        facts_known_sentence(&line, &answers[i]);
        if (!*facts_known_text(known, "says") || (out->data && strstr(out->data, line.data)))
            continue; /* a behaviour; another failure of the same file */
        facts_text_format(out, "%s%s\n", prefix, line.data);
        if (*remedy)
            facts_text_format(out, "%s  libfattn refuses it; instead: %s\n", prefix, remedy);
        shown++;
    }
    facts_text_free(&line);
}

static void put_answer(facts_text *out, const facts_known_answer *answer)
{
    static const char *const texts[] = { "id",   "label",    "title", "kind",
                                         "data", "contract", "remedy" };
    facts_text_puts(out, "{");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        facts_text_member_if(out, texts[i], facts_known_text(answer->known, texts[i]));
    char *verdict = json_dumps(json_object_get(answer->known->said, "verdict"), JSON_COMPACT);
    facts_text_format(out, "\"verdict\":%s,", verdict ? verdict : "[]");
    facts_text_member_bool(out, "such_data", answer->such_data);
    free(verdict);
    facts_text_member(out, "sure", answer->sure);
    facts_text_member_if(out, "fixed", answer->fixed);
    facts_text_close(out);
}

void facts_known_member(facts_text *out, const facts_known_answer *answers, size_t count)
{
    facts_text_puts(out, "\"known\":[");
    for (size_t i = 0; i < count; i++) {
        facts_text_puts(out, i ? "," : "");
        put_answer(out, &answers[i]);
    }
    facts_text_puts(out, "],");
}

const char *facts_known_text(const facts_known *known, const char *key)
{
    const char *text = json_string_value(json_object_get(known->said, key));
    return text ? text : "";
}

bool facts_known_is(const facts_known *known, const char *key)
{
    return json_is_true(json_object_get(known->said, key));
}

bool facts_known_names(const facts_known *known, const char *verdict)
{
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(known->said, "verdict"), i, word)
    {
        if (strcmp(json_string_value(word), verdict) == 0)
            return true;
    }
    return false;
}

void facts_known_verdicts(facts_text *out, const facts_known *known)
{
    size_t i;
    json_t *word;
    json_array_foreach(json_object_get(known->said, "verdict"), i, word)
    {
        facts_text_puts(out, i ? "/" : "");
        facts_text_puts(out, json_string_value(word));
    }
}

static bool compile(facts_predicate **out, const facts_knowledge *list, const json_t *said,
                    const char *key, facts_error *error)
{
    const char *text = json_string_value(json_object_get(said, key));
    return !text || !*text || facts_predicate_parse(list->language, out, text, error);
}

static bool add_expectations(facts_knowledge *list, facts_error *error)
{
    size_t i;
    json_t *one;
    const json_t *said = list->at[list->count - 1].said;
    json_array_foreach(json_object_get(said, "expect"), i, one)
    {
        list->expected = facts_grow(list->expected, list->expected_count, sizeof *list->expected);
        facts_expectation *at = &list->expected[list->expected_count++];
        *at = (facts_expectation){ .known = list->count - 1,
                                   .sometimes = json_is_true(json_object_get(one, "sometimes")) };
        if (!compile(&at->where, list, one, "where", error))
            return false;
    }
    return true;
}

static bool has_verdicts(const json_t *said)
{
    size_t i;
    json_t *word;
    const json_t *verdicts = json_object_get(said, "verdict");
    json_array_foreach(verdicts, i, word)
    {
        if (!json_is_string(word))
            return false;
    }
    return json_array_size(verdicts) > 0;
}

static bool add(void *knowledge, json_t *said, facts_error *error)
{
    facts_knowledge *list = knowledge;
    list->at = facts_grow(list->at, list->count, sizeof *list->at);
    facts_known *at = &list->at[list->count++];
    *at = (facts_known){ .said = said };
    if (!has_verdicts(said))
        return facts_fail_at(error, "known.jsonl", 1, 1, "no verdict");
    return compile(&at->problem, list, said, "problem", error) &&
           compile(&at->data, list, said, "data", error) && add_expectations(list, error);
}

bool facts_knowledge_lines(const char *path, bool (*take)(void *list, json_t *said, facts_error *),
                           void *list, facts_error *error)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    bool ok = true;
    if (!file)
        return errno == ENOENT || errno == ENOTDIR ||
               facts_fail_at(error, path, 1, 1, "%s", strerror(errno));
    for (int line = 1; ok && getline(&text, &room, file) > 0; line++) {
        json_error_t wrong;
        json_t *said = json_loads(text, 0, &wrong);
        ok = said ? take(list, said, error)
                  : facts_fail_at(error, path, line, wrong.column, "%s", wrong.text);
    }
    free(text);
    fclose(file);
    return ok;
}

bool facts_knowledge_load(facts_knowledge *out, const facts_language *language, const char *path,
                          facts_error *error)
{
    *out = (facts_knowledge){ .language = language };
    return facts_knowledge_lines(path, add, out, error);
}

void facts_knowledge_free(facts_knowledge *knowledge)
{
    for (size_t i = 0; i < knowledge->count; i++) {
        facts_predicate_destroy(knowledge->at[i].problem);
        facts_predicate_destroy(knowledge->at[i].data);
        json_decref(knowledge->at[i].said);
    }
    for (size_t i = 0; i < knowledge->expected_count; i++)
        facts_predicate_destroy(knowledge->expected[i].where);
    free(knowledge->expected);
    free(knowledge->at);
    *knowledge = (facts_knowledge){ 0 };
}

/* Is one of the suites that are run one that is named, or in a folder that is named? */
static bool is_about(const char *suites, const char *run)
{
    facts_span rest = facts_span_of(suites), named;
    if (*suites == '\0' || *run == '\0')
        return true;
    while ((named = facts_span_word(&rest)).length > 0) {
        facts_span words = facts_span_of(run), word;
        while ((word = facts_span_word(&words)).length > 0) {
            bool begins =
                word.length >= named.length && memcmp(word.at, named.at, named.length) == 0;
            if (begins && (word.length == named.length || word.at[named.length] == '/'))
                return true;
        }
    }
    return false;
}

void facts_knowledge_choose(facts_knowledge *knowledge, const char *suites)
{
    for (size_t i = 0; i < knowledge->expected_count; i++) {
        facts_expectation *e = &knowledge->expected[i];
        e->left_out = !is_about(facts_known_text(&knowledge->at[e->known], "suites"), suites);
    }
}

facts_expectation *facts_knowledge_expect(facts_knowledge *knowledge, const facts_subject *subject)
{
    facts_expectation *first = NULL, *named = NULL;
    for (size_t i = 0; i < knowledge->expected_count; i++) {
        facts_expectation *e = &knowledge->expected[i];
        if (e->left_out || !facts_predicate_holds(e->where, subject))
            continue;
        e->used = true;
        if (!first)
            first = e;
        if (!named && subject->verdict &&
            facts_known_names(&knowledge->at[e->known], subject->verdict))
            named = e;
    }
    return named ? named : first;
}
