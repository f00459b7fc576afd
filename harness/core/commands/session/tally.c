#include "tally.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/reader.h"
#include "words/clock.h"

void facts_tally_init(facts_tally *out, const facts_target *targets, size_t target_count,
                      const facts_work *work, size_t work_count)
{
    *out = (facts_tally){
        .targets = targets, .target_count = target_count, .work = work, .work_count = work_count
    };
    out->cells = calloc(target_count * work_count + 1, sizeof *out->cells);
    out->texts = facts_intern_new();
    for (size_t i = 0; i < target_count * work_count; i++)
        out->cells[i].verdict = out->cells[i].news = FACTS_VERDICT_COUNT;
    out->room = target_count * work_count;
}

void facts_tally_grow(facts_tally *tally, const facts_work *work, size_t work_count)
{
    while (tally->room < work_count) {
        tally->room = tally->room ? tally->room * 2 : 64;
        tally->cells = realloc(tally->cells, tally->room * sizeof *tally->cells);
    }
    for (size_t i = tally->work_count; i < work_count; i++)
        tally->cells[i] =
            (facts_cell){ .verdict = FACTS_VERDICT_COUNT, .news = FACTS_VERDICT_COUNT };
    tally->work = work;
    tally->work_count = work_count;
}

void facts_tally_retire(facts_tally *tally, size_t work)
{
    tally->retired[tally->cells[work].verdict]++;
    tally->cells[work] =
        (facts_cell){ .verdict = FACTS_VERDICT_COUNT, .news = FACTS_VERDICT_COUNT };
}

void facts_tally_free(facts_tally *tally)
{
    free(tally->cells);
    facts_intern_free(tally->texts);
    *tally = (facts_tally){ 0 };
}

/* The more serious of two verdicts. */
static int weight(uint8_t verdict)
{
    switch (verdict) {
    case FACTS_VERDICT_COUNT:
        return -1;
    case FACTS_VERDICT_PASS:
    case FACTS_VERDICT_SUPPORTED:
        return 1;
    case FACTS_VERDICT_UNSUPPORTED:
        return 2;
    case FACTS_VERDICT_MISTRUSTED:
        return 3;
    case FACTS_VERDICT_INCONCLUSIVE:
        return 4;
    default:
        return 5;
    }
}

static uint32_t read_reason(facts_tally *tally, const facts_line *row)
{
    char text[400];
    facts_row_text(row, "text", text, sizeof text);
    return facts_intern_id(tally->texts, text);
}

static bool is_of_facts(const facts_line *row)
{
    char word[32];
    facts_row_text(row, "class", word, sizeof word);
    return strcmp(word, "bad_problem") == 0 || strcmp(word, "policy") == 0 ||
           strcmp(word, "internal") == 0;
}

static uint32_t read_engines(facts_tally *tally, const facts_line *row)
{
    char list[512];
    facts_row_engines(row, list, sizeof list);
    return facts_intern_id(tally->texts, list);
}

/* The tensors that exceed their bound: "dk, dv". */
static void list_tensors(char *out, size_t capacity, const facts_line *row)
{
    facts_member tensors[16];
    size_t count, used = 0;
    facts_span errors = facts_line_get(row, "errors");
    out[0] = '\0';
    if (!errors.at || !facts_scan_object(errors.at, errors.length, tensors, 16, &count))
        return;
    for (size_t i = 0; i < count && i < 16 && used < capacity; i++) {
        facts_span ratio = facts_json_member(tensors[i].value, "ratio");
        if (!ratio.at || (*ratio.at != '"' && strtod(ratio.at, NULL) <= 1))
            continue;
        int wrote = snprintf(out + used, capacity - used, "%s%.*s", used ? ", " : "",
                             (int)tensors[i].key.length, tensors[i].key.at);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}

/* The explanation of an unexpected row. */
static uint32_t explain_news(facts_tally *tally, const facts_line *row, const char *expected,
                             uint32_t reason)
{
    const facts_span of = facts_span_of(expected);
    char text[600], verdict[32] = "", link[256] = "";
    if (facts_json_string(facts_json_member(of, "verdict"), verdict, sizeof verdict)) {
        if (!facts_json_string(facts_json_member(of, "link"), link, sizeof link))
            facts_json_string(facts_json_member(of, "reason"), link, sizeof link);
        snprintf(text, sizeof text, "expected %s (%s)", verdict, link);
        return facts_intern_id(tally->texts, text);
    }
    if (reason)
        return reason;
    list_tensors(text, sizeof text, row);
    return facts_intern_id(tally->texts, text);
}

static void read_known(facts_tally *tally, facts_cell *cell, const facts_expected_row *row)
{
    const facts_span expected = facts_span_of(row->json);
    char link[256];
    if (!facts_json_string(facts_json_member(expected, "link"), link, sizeof link))
        return;
    const facts_span kind = facts_json_member(expected, "kind");
    cell->known = facts_intern_id(tally->texts, row->title ? row->title : link);
    cell->other = kind.at && !facts_json_is(kind, "failure");
}

/* The lines of the only case, or the first line with what to do instead. */
static uint32_t read_lines(facts_tally *tally, const char *lines)
{
    char first[1000];
    if (tally->work_count == 1)
        return facts_intern_id(tally->texts, lines);
    const char *end = strchrnul(lines, '\n');
    if (end[0] && end[1] == ' ')
        end = strchrnul(end + 1, '\n');
    snprintf(first, sizeof first, "%.*s", (int)(end - lines), lines);
    return facts_intern_id(tally->texts, first);
}

/* Of a case that was asked again after it was finished, only the new rows count, and failures. */
static void begin_again(facts_cell *cell, const facts_line *row)
{
    int64_t attempt = 0;
    bool more = false;
    facts_json_int(facts_line_get(row, "attempt"), &attempt);
    facts_json_bool(facts_line_get(row, "more"), &more);
    if (cell->finished && attempt > cell->finished &&
        !(cell->verdict != FACTS_VERDICT_COUNT && facts_verdict_is_finding(cell->verdict)))
        *cell = (facts_cell){ .verdict = FACTS_VERDICT_COUNT, .news = FACTS_VERDICT_COUNT };
    if (!more && attempt > 0 && attempt <= UINT16_MAX)
        cell->finished = (uint16_t)attempt;
}

void facts_tally_add(facts_tally *tally, size_t target, size_t work, const facts_line *row,
                     facts_verdict verdict, const facts_expected_row *expected)
{
    facts_cell *cell = &tally->cells[target * tally->work_count + work];
    uint32_t reason = facts_verdict_is_good(verdict) ? 0 : read_reason(tally, row);
    begin_again(cell, row);
    tally->rows++;
    if (weight((uint8_t)verdict) > weight(cell->verdict)) {
        cell->verdict = (uint8_t)verdict;
        cell->reason = reason;
        cell->by_facts = verdict == FACTS_VERDICT_UNSUPPORTED && is_of_facts(row);
    }
    if (expected->unexpected && weight((uint8_t)verdict) > weight(cell->news)) {
        cell->news = (uint8_t)verdict;
        cell->why = explain_news(tally, row, expected->json, reason);
    }
    if (!expected->unexpected && facts_verdict_is_finding(verdict) && !cell->known)
        read_known(tally, cell, expected);
    if (expected->lines && (!cell->says || (expected->such_data && !cell->such_data))) {
        cell->says = read_lines(tally, expected->lines);
        cell->such_data = expected->such_data;
        cell->serious = expected->serious;
    }
    if (!cell->engines)
        cell->engines = read_engines(tally, row);
}

size_t facts_tally_of(const facts_tally *tally, facts_verdict verdict)
{
    size_t n = tally->retired[verdict];
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++)
        n += tally->cells[i].verdict == verdict;
    return n;
}

size_t facts_tally_missing(const facts_tally *tally)
{
    return facts_tally_of(tally, FACTS_VERDICT_COUNT);
}

size_t facts_tally_unexpected(const facts_tally *tally)
{
    size_t n = 0;
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++)
        n += tally->cells[i].news != FACTS_VERDICT_COUNT;
    return n;
}

size_t facts_tally_known(const facts_tally *tally, bool other)
{
    size_t n = 0;
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++)
        n += tally->cells[i].known != 0 && tally->cells[i].other == other;
    return n;
}

static int by_cells(const void *a, const void *b)
{
    const facts_text_count *x = a, *y = b;
    return x->cells != y->cells ? (x->cells < y->cells ? 1 : -1)
                                : (x->id > y->id) - (x->id < y->id);
}

facts_text_count *facts_tally_texts(const facts_tally *tally, size_t member)
{
    uint32_t n = facts_intern_count(tally->texts);
    facts_text_count *counts = calloc((size_t)n + 1, sizeof *counts);
    for (uint32_t id = 0; id <= n; id++)
        counts[id].id = id;
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++) {
        uint32_t id = *(const uint32_t *)(const void *)((const char *)&tally->cells[i] + member);
        counts[id].cells += id != 0;
    }
    qsort(counts, (size_t)n + 1, sizeof *counts, by_cells);
    return counts;
}

#define BAR 24
#define LINE_EVERY_S 20.0

void facts_progress_start(facts_progress *progress, bool quiet)
{
    *progress = (facts_progress){ .terminal = isatty(2) == 1,
                                  .quiet = quiet,
                                  .started_ms = facts_now_ms() };
    progress->last_ms = progress->started_ms;
}

static void clock_text(char *out, size_t capacity, double seconds)
{
    long s = (long)seconds;
    if (s >= 3600)
        snprintf(out, capacity, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(out, capacity, "%ld min %02ld s", s / 60, s % 60);
    else
        snprintf(out, capacity, "%ld s", s);
}

void facts_progress_show(facts_progress *p, size_t done, size_t planned, int live)
{
    double now = facts_now_ms();
    double since_line = (now - p->last_ms) / 1e3, elapsed = (now - p->started_ms) / 1e3;
    char bar[BAR + 1], left[32] = "";
    if (p->quiet || !planned || (!p->terminal && since_line < LINE_EVERY_S))
        return;
    p->last_ms = now;
    double rate = elapsed > 0 ? (double)(done - p->first_done) / elapsed : 0;
    if (rate > 0)
        clock_text(left, sizeof left, (double)(planned - done) / rate);
    for (size_t i = 0; i < BAR; i++)
        bar[i] = i < done * BAR / planned ? '#' : '.';
    bar[BAR] = '\0';
    fprintf(stderr,
            "%s[%s] %zu/%zu  %.0f/s  %s%s  yes %zu  no %zu  findings %zu  workers %d  %.48s%s",
            p->terminal ? "\r\033[K" : "", bar, done, planned, rate, *left ? "left " : "", left,
            p->yes, p->no, p->findings, live, p->group ? p->group : "", p->terminal ? "" : "\n");
    fflush(stderr);
    p->drawn = true;
}

void facts_progress_say(facts_progress *p, const char *text)
{
    double now = facts_now_ms();
    if (p->quiet || (!p->terminal && (now - p->last_ms) / 1e3 < LINE_EVERY_S))
        return;
    p->last_ms = now;
    fprintf(stderr, "%s%s%s", p->terminal ? "\r\033[K" : "", text, p->terminal ? "" : "\n");
    fflush(stderr);
    p->drawn = true;
}

void facts_progress_end(facts_progress *p)
{
    if (p->terminal && p->drawn)
        fputs("\r\033[K", stderr);
    fflush(stderr);
}
