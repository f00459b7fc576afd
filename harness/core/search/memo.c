#include "memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "words/case_text.h"
#include "words/intern.h"

#define MOST_ATTEMPTS 16
#define MOST_FAILING 64

struct facts_memo_entry {
    uint8_t state, verdict, starts;
    uint16_t failing;
    int32_t next_config;
    facts_symptom *symptom;
    char *value; /* with --by */
};

struct facts_memo {
    facts_intern *keys;
    facts_memo_entry **entry; /* by key */
    size_t entries, answered;
    facts_by by; /* FACTS_BY_COUNT: failures */
};

enum { KEY = FACTS_NAME_MAX + 16 };

static const char *key_of(char out[KEY], const char *name, int attempt)
{
    snprintf(out, KEY, "%d %s", attempt, name);
    return out;
}

facts_memo *facts_memo_new(void)
{
    facts_memo *memo = calloc(1, sizeof *memo);
    memo->by = FACTS_BY_COUNT;
    memo->keys = facts_intern_new();
    return memo;
}

void facts_memo_free(facts_memo *memo)
{
    if (!memo)
        return;
    for (size_t i = 0; i < memo->entries; i++) {
        free(memo->entry[i]->symptom);
        free(memo->entry[i]->value);
        free(memo->entry[i]);
    }
    free(memo->entry);
    facts_intern_free(memo->keys);
    free(memo);
}

facts_memo_state facts_memo_get(const facts_memo *memo, const char *name, int attempt,
                                facts_answer *out)
{
    char key[KEY];
    const uint32_t id = facts_intern_find(memo->keys, key_of(key, name, attempt));
    if (!id)
        return FACTS_MEMO_UNKNOWN;
    const facts_memo_entry *e = memo->entry[id - 1];
    *out = (facts_answer){
        .verdict = e->verdict, .count = e->failing, .failing = e->symptom, .value = e->value
    };
    return e->state;
}

/* The entry, created if absent. */
static facts_memo_entry *find(facts_memo *memo, const char *name, int attempt)
{
    char key[KEY];
    const uint32_t id = facts_intern_id(memo->keys, key_of(key, name, attempt));
    if (id > memo->entries) {
        memo->entry = facts_grow(memo->entry, memo->entries, sizeof(facts_memo_entry *));
        memo->entry[memo->entries] = calloc(1, sizeof(facts_memo_entry));
        memo->entry[memo->entries++]->verdict = FACTS_VERDICT_COUNT;
    }
    return memo->entry[id - 1];
}

facts_memo_entry *facts_memo_ask(facts_memo *memo, const char *name, int attempt)
{
    facts_memo_entry *e = find(memo, name, attempt);
    if (e->state == FACTS_MEMO_UNKNOWN)
        e->state = FACTS_MEMO_ASKED;
    return e;
}

int facts_memo_config(const facts_memo_entry *e)
{
    return e->next_config;
}

size_t facts_memo_answered(const facts_memo *memo)
{
    return memo->answered;
}

static void add_failure(facts_memo_entry *e, const facts_symptom *symptom)
{
    if (e->failing == MOST_FAILING)
        return;
    e->symptom = realloc(e->symptom, (e->failing + 1u) * sizeof *symptom);
    e->symptom[e->failing++] = *symptom;
}

void facts_memo_compare(facts_memo *memo, facts_by by)
{
    memo->by = by;
}

/* The same message about other sizes is the same reason. */
static void drop_digits(char *text)
{
    char *out = text;
    for (; *text; text++)
        if (*text < '0' || *text > '9')
            *out++ = *text;
    *out = '\0';
}

/* The symptom of any answer. False: the answer has none. */
static bool read_value(facts_symptom *out, facts_memo_entry *e, const facts_line *row, facts_by by)
{
    char value[FACTS_REPORTED_VALUE];
    facts_reported reported = FACTS_REPORTED_NOTHING;
    facts_reported_row(&reported, row);
    if (!facts_reported_answers(&reported))
        return false;
    facts_reported_value(&reported, by, value);
    if (!e->value)
        e->value = strdup(value);
    if (by == FACTS_BY_REASON)
        drop_digits(value);
    *out = (facts_symptom){ .verdict = reported.verdict,
                            .engine = -1,
                            .value = XXH3_64bits(value, strlen(value)) | 1 };
    return true;
}

void facts_memo_row(facts_memo *memo, facts_memo_entry *e, const facts_line *row)
{
    facts_symptom symptom;
    facts_verdict verdict;
    int64_t config;
    bool fails = facts_symptom_read(&symptom, row, &verdict);
    if (memo->by != FACTS_BY_COUNT)
        fails = read_value(&symptom, e, row, memo->by);
    if (verdict == FACTS_VERDICT_EXIT_CRASH && e->state == FACTS_MEMO_ANSWERED)
        e->failing = 0; /* the same row again, because its worker ended badly */
    if (fails)
        add_failure(e, &symptom);
    if (facts_reported_weight(verdict) > facts_reported_weight(e->verdict))
        e->verdict = (uint8_t)verdict;
    if (facts_json_int(facts_line_get(row, "config"), &config) && config >= e->next_config &&
        config < 1000000)
        e->next_config = (int32_t)config + 1;
}

void facts_memo_end(facts_memo *memo, facts_memo_entry *e)
{
    if (e->state != FACTS_MEMO_ANSWERED) {
        e->state = FACTS_MEMO_ANSWERED;
        memo->answered++;
    }
}

/* ---- from a record
 * ---------------------------------------------------------------------------------------------------------
 */

/* The attempt that a line of the record belongs to: the first without an answer; of an exit_crash
 * the last that has one. */
static facts_memo_entry *attempt_of(facts_memo_load *load, const char *name, bool again)
{
    facts_answer answer;
    int attempt = 1;
    while (attempt < MOST_ATTEMPTS &&
           facts_memo_get(load->memo, name, attempt, &answer) == FACTS_MEMO_ANSWERED)
        attempt++;
    if (again && attempt > 1)
        attempt--;
    return find(load->memo, name, attempt);
}

static bool is_of_target(const facts_memo_load *load, const facts_line *line)
{
    return facts_json_is(facts_line_get(line, "build"), load->build) &&
           facts_json_is(facts_line_get(line, "device"), load->device);
}

void facts_memo_load_line(facts_memo_load *load, const facts_line *line)
{
    char name[FACTS_NAME_MAX];
    bool more = false;
    if ((line->kind != FACTS_LINE_START && line->kind != FACTS_LINE_ROW) ||
        !is_of_target(load, line) ||
        !facts_json_string(facts_line_get(line, "case"), name, sizeof name))
        return;
    facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    bool row = line->kind == FACTS_LINE_ROW;
    if (row && (verdict == FACTS_VERDICT_COUNT || verdict == FACTS_VERDICT_INCONCLUSIVE))
        return; /* to be asked again */
    facts_memo_entry *e = attempt_of(load, name, row && verdict == FACTS_VERDICT_EXIT_CRASH);
    if (!row) {
        if (e->starts < UINT8_MAX)
            e->starts++;
        return;
    }
    facts_verdict before =
        e->state == FACTS_MEMO_ANSWERED ? (facts_verdict)e->verdict : FACTS_VERDICT_COUNT;
    facts_json_bool(facts_line_get(line, "more"), &more);
    facts_memo_row(load->memo, e, line);
    if (!more)
        facts_memo_end(load->memo, e);
    if (!more && load->drawn && facts_json_is(facts_line_get(line, "group"), load->group))
        load->drawn(load->context, name,
                    &(facts_answer){ e->verdict, e->failing, e->symptom, e->value }, before);
}

size_t facts_memo_load_end(facts_memo *memo, int most_starts)
{
    size_t given_up = 0;
    for (size_t i = 0; i < memo->entries; i++) {
        facts_memo_entry *e = memo->entry[i];
        if (e->state == FACTS_MEMO_ANSWERED || e->starts < most_starts)
            continue;
        e->state = FACTS_MEMO_ANSWERED;
        e->verdict = FACTS_VERDICT_INCONCLUSIVE;
        given_up++;
    }
    return given_up;
}
