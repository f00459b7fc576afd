#include <stdlib.h>
#include <string.h>

#include "known.h"
#include "suites/field.h"

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
