#include "memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "case/words/case_text.h"

#define MOST_ATTEMPTS 16
#define MOST_FAILING 64
/* A forgotten entry leaves a 64-bit hash in one of these buckets, from the newest to the oldest. */
#define BUCKETS (1u << 18)
#define BUCKET 8

typedef struct entry {
    XXH128_hash_t key;
    uint8_t state, verdict, starts;
    uint16_t failing;
    int32_t next_config;
    facts_symptom *symptom;
    facts_evidence_text *evidence;
} entry;

struct facts_memo {
    entry *at;
    uint32_t count;
    uint32_t *table; /* id + 1; 0: free */
    size_t capacity; /* a power of two */
    uint32_t
        vacant; /* id + 1 of an entry to use again, which has the next in next_config; 0: none */
    uint64_t (*forgotten)[BUCKET]; /* UINT64_MAX: free; NULL: nothing was forgotten */
    size_t answered;
    facts_by by; /* FACTS_BY_COUNT: failures */
};

static XXH128_hash_t key_of(const char *name, int attempt)
{
    return XXH3_128bits_withSeed(name, strlen(name), (XXH64_hash_t)attempt);
}

static uint32_t *slot_of(const facts_memo *memo, XXH128_hash_t key)
{
    size_t i = (size_t)key.low64 & (memo->capacity - 1);
    while (memo->table[i] && !XXH128_isEqual(memo->at[memo->table[i] - 1].key, key))
        i = (i + 1) & (memo->capacity - 1);
    return &memo->table[i];
}

static bool grow(facts_memo *memo)
{
    entry *larger = facts_grow(memo->at, memo->count, sizeof *larger);
    if (!larger)
        return false;
    memo->at = larger;
    if ((size_t)memo->count * 2 < memo->capacity)
        return true;
    uint32_t *before = memo->table;
    size_t capacity = memo->capacity ? memo->capacity * 2 : 2048;
    uint32_t *table = calloc(capacity, sizeof *table);
    if (!table)
        return false;
    memo->table = table;
    memo->capacity = capacity;
    for (uint32_t id = 0; id < memo->count; id++)
        *slot_of(memo, memo->at[id].key) = id + 1;
    free(before);
    return true;
}

facts_memo *facts_memo_new(void)
{
    facts_memo *memo = calloc(1, sizeof *memo);
    if (memo)
        memo->by = FACTS_BY_COUNT;
    if (memo && !grow(memo)) {
        facts_memo_free(memo);
        return NULL;
    }
    return memo;
}

void facts_memo_free(facts_memo *memo)
{
    if (!memo)
        return;
    for (uint32_t id = 0; id < memo->count; id++) {
        free(memo->at[id].symptom);
        free(memo->at[id].evidence);
    }
    free(memo->at);
    free(memo->table);
    free(memo->forgotten);
    free(memo);
}

facts_memo_state facts_memo_get(const facts_memo *memo, const char *name, int attempt,
                                facts_answer *out)
{
    uint32_t found = *slot_of(memo, key_of(name, attempt));
    if (!found)
        return FACTS_MEMO_UNKNOWN;
    const entry *e = &memo->at[found - 1];
    *out = (facts_answer){
        .verdict = e->verdict, .count = e->failing, .failing = e->symptom, .evidence = e->evidence
    };
    return e->state;
}

/* The entry, created if absent. */
static facts_memo_id find(facts_memo *memo, const char *name, int attempt)
{
    XXH128_hash_t key = key_of(name, attempt);
    uint32_t found = *slot_of(memo, key);
    if (found)
        return found - 1;
    if (!memo->vacant && (memo->count + 1 == FACTS_MEMO_NONE || !grow(memo)))
        return FACTS_MEMO_NONE;
    facts_memo_id id = memo->vacant ? memo->vacant - 1 : memo->count++;
    if (memo->vacant)
        memo->vacant = (uint32_t)memo->at[id].next_config;
    memo->at[id] = (entry){ .key = key, .verdict = FACTS_VERDICT_COUNT };
    *slot_of(memo, key) = id + 1;
    return id;
}

/* ---- what is forgotten
 * -----------------------------------------------------------------------------------------------------
 */

static uint64_t *bucket_of(const facts_memo *memo, XXH128_hash_t key)
{
    return memo->forgotten[key.low64 % BUCKETS];
}

/* Removes an entry from the table. The entries after it move up, because a search for an entry ends
 * at the first gap. */
static void unlink_entry(facts_memo *memo, facts_memo_id id)
{
    size_t mask = memo->capacity - 1, gap = (size_t)(slot_of(memo, memo->at[id].key) - memo->table);
    for (size_t i = (gap + 1) & mask; memo->table[i]; i = (i + 1) & mask) {
        size_t home = (size_t)memo->at[memo->table[i] - 1].key.low64 & mask;
        if (((i - home) & mask) < ((i - gap) & mask))
            continue; /* it is between its place and the gap's */
        memo->table[gap] = memo->table[i];
        gap = i;
    }
    memo->table[gap] = 0;
}

void facts_memo_forget(facts_memo *memo, facts_memo_id id)
{
    entry *e = &memo->at[id];
    if (e->state != FACTS_MEMO_ANSWERED || e->failing)
        return;
    if (!memo->forgotten) {
        memo->forgotten = malloc(BUCKETS * sizeof *memo->forgotten);
        if (!memo->forgotten)
            return;
        memset(
            memo->forgotten, 0xff,
            BUCKETS *
                sizeof *memo->forgotten); /* all of it is in memory from now on: it does not grow */
    }
    uint64_t *bucket = bucket_of(memo, e->key);
    memmove(bucket + 1, bucket, (BUCKET - 1) * sizeof *bucket);
    bucket[0] = e->key.high64;
    unlink_entry(memo, id);
    free(e->symptom);
    free(e->evidence);
    *e = (entry){ .next_config = (int32_t)memo->vacant };
    memo->vacant = id + 1;
}

bool facts_memo_forgot(const facts_memo *memo, const char *name)
{
    XXH128_hash_t key = key_of(name, 1);
    const uint64_t *bucket = memo->forgotten ? bucket_of(memo, key) : NULL;
    for (int i = 0; bucket && i < BUCKET; i++)
        if (bucket[i] == key.high64)
            return true;
    return false;
}

facts_memo_id facts_memo_ask(facts_memo *memo, const char *name, int attempt)
{
    facts_memo_id id = find(memo, name, attempt);
    if (id != FACTS_MEMO_NONE && memo->at[id].state == FACTS_MEMO_UNKNOWN)
        memo->at[id].state = FACTS_MEMO_ASKED;
    return id;
}

int facts_memo_config(const facts_memo *memo, facts_memo_id id)
{
    return memo->at[id].next_config;
}

size_t facts_memo_answered(const facts_memo *memo)
{
    return memo->answered;
}

static bool add_failure(entry *e, const facts_symptom *symptom, const facts_evidence_text *evidence)
{
    if (e->failing == MOST_FAILING)
        return true;
    facts_symptom *symptoms = realloc(e->symptom, (e->failing + 1u) * sizeof *symptoms);
    if (symptoms)
        e->symptom = symptoms;
    facts_evidence_text *texts = realloc(e->evidence, (e->failing + 1u) * sizeof *texts);
    if (texts)
        e->evidence = texts;
    if (!symptoms || !texts)
        return false;
    symptoms[e->failing] = *symptom;
    texts[e->failing++] = *evidence;
    return true;
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
static bool read_value(facts_symptom *out, facts_evidence_text *evidence, const facts_line *row,
                       facts_by by)
{
    char value[FACTS_REPORTED_VALUE];
    facts_reported reported = FACTS_REPORTED_NOTHING;
    facts_reported_row(&reported, row);
    if (!facts_reported_answers(&reported))
        return false;
    facts_reported_value(&reported, by, value);
    if (by == FACTS_BY_REASON)
        drop_digits(value);
    *out = (facts_symptom){ .verdict = reported.verdict,
                            .engine = -1,
                            .value = XXH3_64bits(value, strlen(value)) | 1 };
    *evidence = (facts_evidence_text){ .cudnn = "" };
    snprintf(evidence->reason, sizeof evidence->reason, "%s",
             facts_reported_value(&reported, by, value));
    return true;
}

bool facts_memo_row(facts_memo *memo, facts_memo_id id, const facts_line *row, bool last)
{
    entry *e = &memo->at[id];
    facts_symptom symptom;
    facts_evidence_text evidence;
    facts_verdict verdict;
    int64_t config;
    bool fails = facts_symptom_read(&symptom, &evidence, row, &verdict), ok = true;
    if (memo->by != FACTS_BY_COUNT)
        fails = read_value(&symptom, &evidence, row, memo->by);
    if (verdict == FACTS_VERDICT_EXIT_CRASH && e->state == FACTS_MEMO_ANSWERED)
        e->failing = 0; /* the same row again, because its worker ended badly */
    if (fails)
        ok = add_failure(e, &symptom, &evidence);
    if (facts_reported_weight(verdict) > facts_reported_weight(e->verdict))
        e->verdict = (uint8_t)verdict;
    if (facts_json_int(facts_line_get(row, "config"), &config) && config >= e->next_config &&
        config < 1000000)
        e->next_config = (int32_t)config + 1;
    if (last && e->state != FACTS_MEMO_ANSWERED) {
        e->state = FACTS_MEMO_ANSWERED;
        memo->answered++;
    }
    return ok;
}

/* ---- from a record
 * ---------------------------------------------------------------------------------------------------------
 */

/* The attempt that a line of the record belongs to: the first without an answer; of an exit_crash
 * the last that has one. */
static facts_memo_id attempt_of(facts_memo_load *load, const char *name, bool again)
{
    facts_answer answer;
    int attempt = 1;
    while (attempt < MOST_ATTEMPTS &&
           facts_memo_get(load->memo, name, attempt, &answer) == FACTS_MEMO_ANSWERED)
        attempt++;
    if (again && attempt > 1)
        attempt--;
    facts_memo_id id = find(load->memo, name, attempt);
    load->failed |= id == FACTS_MEMO_NONE;
    return id;
}

static bool is_of_target(const facts_memo_load *load, const facts_line *line)
{
    return facts_json_is(facts_line_get(line, "build"), load->build) &&
           facts_json_is(facts_line_get(line, "device"), load->device);
}

bool facts_memo_load_line(facts_memo_load *load, const facts_line *line)
{
    char name[FACTS_NAME_MAX];
    bool more = false;
    if ((line->kind != FACTS_LINE_START && line->kind != FACTS_LINE_ROW) ||
        !is_of_target(load, line) ||
        !facts_json_string(facts_line_get(line, "case"), name, sizeof name))
        return true;
    facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    bool row = line->kind == FACTS_LINE_ROW;
    if (row && (verdict == FACTS_VERDICT_COUNT || verdict == FACTS_VERDICT_INCONCLUSIVE ||
                verdict == FACTS_VERDICT_NOT_RUN))
        return true; /* to be asked again */
    facts_memo_id id = attempt_of(load, name, row && verdict == FACTS_VERDICT_EXIT_CRASH);
    if (load->failed)
        return false;
    entry *e = &load->memo->at[id];
    if (!row) {
        if (e->starts < UINT8_MAX)
            e->starts++;
        return true;
    }
    facts_verdict before =
        e->state == FACTS_MEMO_ANSWERED ? (facts_verdict)e->verdict : FACTS_VERDICT_COUNT;
    facts_json_bool(facts_line_get(line, "more"), &more);
    load->failed |= !facts_memo_row(load->memo, id, line, !more);
    e = &load->memo->at[id];
    if (!more && load->drawn && facts_json_is(facts_line_get(line, "group"), load->group))
        load->drawn(load->context, name,
                    &(facts_answer){ e->verdict, e->failing, e->symptom, e->evidence }, before);
    return !load->failed;
}

size_t facts_memo_load_end(facts_memo *memo, int most_starts)
{
    size_t given_up = 0;
    for (uint32_t id = 0; id < memo->count; id++) {
        entry *e = &memo->at[id];
        if (e->state == FACTS_MEMO_ANSWERED || e->starts < most_starts)
            continue;
        e->state = FACTS_MEMO_ANSWERED;
        e->verdict = FACTS_VERDICT_NOT_RUN;
        given_up++;
    }
    return given_up;
}
