#include "said.h"

#include <stdio.h>
#include <string.h>

#include "record/record_row.h"

#define AS_WORD(symbol, word) [FACTS_BY_##symbol] = word,
static const char *const words[FACTS_BY_COUNT] = { FACTS_BY_LIST(AS_WORD) };
#undef AS_WORD

const char *facts_by_word(facts_by by)
{
    return words[by];
}

facts_by facts_by_parse(const char *word)
{
    facts_by by = 0;
    while (by < FACTS_BY_COUNT && strcmp(words[by], word) != 0)
        by++;
    return by;
}

int facts_said_weight(facts_verdict verdict)
{
    if (verdict == FACTS_VERDICT_COUNT)
        return -1;
    if (facts_verdict_is_finding(verdict))
        return 5;
    return verdict == FACTS_VERDICT_INCONCLUSIVE  ? 4
           : verdict == FACTS_VERDICT_MISTRUSTED  ? 3
           : facts_verdict_is_good(verdict)        ? 2
           : verdict == FACTS_VERDICT_UNSUPPORTED ? 1
                                                  : 0;
}

/* "8 8 10" is "8 10": configurations of one engine are not told apart. */
static void keep_once(char *out, size_t capacity, char *list)
{
    size_t used = 0;
    out[0] = '\0';
    for (char *number; (number = strsep(&list, " ")) != NULL;) {
        char find[32], among[256];
        snprintf(find, sizeof find, " %s ", number);
        snprintf(among, sizeof among, " %s ", out);
        if (strstr(among, find) || used + strlen(number) + 2 > capacity)
            continue;
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", used ? " " : "", number);
    }
}

static void read_link(facts_said *said, facts_span expectation)
{
    facts_member members[8];
    size_t count;
    bool met = false;
    if (!expectation.at || !facts_scan_object(expectation.at, expectation.length, members, 8, &count) || count > 8)
        return;
    if (facts_json_bool(facts_member_find(members, count, "met"), &met) && met)
        facts_json_string(facts_member_find(members, count, "link"), said->link, sizeof said->link);
}

void facts_said_row(facts_said *said, const facts_line *row)
{
    char engines[512];
    facts_verdict verdict = facts_verdict_parse(facts_line_get(row, "verdict"));
    if (facts_said_weight(verdict) <= facts_said_weight(said->verdict))
        return;
    *said = FACTS_SAID_NOTHING;
    said->verdict = verdict;
    if (!facts_json_int(facts_line_get(row, "engine"), &said->engine) || said->engine < 0)
        said->engine = -1;
    facts_json_string(facts_line_get(row, "backend"), said->backend, sizeof said->backend);
    facts_row_engines(row, engines, sizeof engines);
    said->has_knobs = facts_row_knobs(row, said->knobs, sizeof said->knobs);
    keep_once(said->engines, sizeof said->engines, engines);
    facts_row_said(row, "class", said->class_word, sizeof said->class_word);
    facts_row_said(row, "text", said->text, sizeof said->text);
    facts_row_said(row, "remedy", said->remedy, sizeof said->remedy);
    facts_row_said(row, "rule", said->rule, sizeof said->rule);
    read_link(said, facts_line_get(row, "expectation"));
}

bool facts_said_answers(const facts_said *said)
{
    return said->verdict != FACTS_VERDICT_COUNT && said->verdict != FACTS_VERDICT_INCONCLUSIVE &&
           said->verdict != FACTS_VERDICT_NOT_RUN && said->verdict != FACTS_VERDICT_MISTRUSTED;
}

/* Of another backend than cuDNN there is only its name. */
static bool is_of_cudnn(const facts_said *said)
{
    return !said->backend[0] || strcmp(said->backend, "cudnn") == 0;
}

bool facts_said_has(const facts_said *said, facts_by by)
{
    return by != FACTS_BY_KNOBS || said->has_knobs || !facts_verdict_is_good(said->verdict) || !is_of_cudnn(said);
}

const char *facts_said_value(const facts_said *said, facts_by by, char out[FACTS_SAID_VALUE])
{
    const char *word = facts_verdict_name(said->verdict);
    bool served = said->verdict != FACTS_VERDICT_UNSUPPORTED;
    if (by == FACTS_BY_CLASS && said->class_word[0])
        snprintf(out, FACTS_SAID_VALUE, "%s %s", word, said->class_word);
    else if ((by == FACTS_BY_ENGINE || by == FACTS_BY_ENGINES || by == FACTS_BY_KNOBS) && served && !is_of_cudnn(said))
        snprintf(out, FACTS_SAID_VALUE, "%s", said->backend);
    else if (by == FACTS_BY_ENGINE && served && said->engine >= 0)
        snprintf(out, FACTS_SAID_VALUE, "engine %lld", (long long)said->engine);
    else if (by == FACTS_BY_KNOBS && served && said->has_knobs)
        snprintf(out, FACTS_SAID_VALUE, "engine %lld %s", (long long)said->engine, said->knobs[0] ? said->knobs : "without knobs");
    else if (by == FACTS_BY_ENGINES && served && said->engines[0])
        snprintf(out, FACTS_SAID_VALUE, "engines %s", said->engines);
    else if (by == FACTS_BY_REASON && !facts_verdict_is_good(said->verdict) && said->text[0])
        snprintf(out, FACTS_SAID_VALUE, "%s: %s", word, said->text);
    else
        snprintf(out, FACTS_SAID_VALUE, "%s", word);
    return out;
}
