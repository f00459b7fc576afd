#include "tally.h"

#include <stdlib.h>
#include <string.h>

bool facts_tally_init(facts_tally *out, const facts_target *targets, size_t target_count, const facts_work *work, size_t work_count)
{
    *out = (facts_tally){ .targets = targets, .target_count = target_count, .work = work, .work_count = work_count };
    out->cells = calloc(target_count * work_count + 1, sizeof *out->cells);
    out->texts = facts_intern_new();
    if (!out->cells || !out->texts)
        return false;
    for (size_t i = 0; i < target_count * work_count; i++)
        out->cells[i].verdict = FACTS_VERDICT_COUNT;
    return true;
}

void facts_tally_free(facts_tally *tally)
{
    free(tally->cells);
    facts_intern_free(tally->texts);
    *tally = (facts_tally){ 0 };
}

/* Which of two verdicts says more against a case. */
static int weight(uint8_t verdict)
{
    switch (verdict) {
    case FACTS_VERDICT_COUNT: return -1;
    case FACTS_VERDICT_NOT_RUN: return 0;
    case FACTS_VERDICT_PASS: return 1;
    case FACTS_VERDICT_UNSUPPORTED: return 2;
    case FACTS_VERDICT_MISTRUSTED: return 3;
    case FACTS_VERDICT_INCONCLUSIVE: return 4;
    default: return 5;
    }
}

static uint32_t read_reason(facts_tally *tally, const facts_line *row)
{
    facts_member members[16];
    size_t count;
    char text[400];
    facts_slice reason = facts_line_get(row, "reason");
    if (!reason.at || !facts_scan_object(reason.at, reason.length, members, 16, &count))
        return 0;
    if (!facts_slice_string(facts_member_find(members, count < 16 ? count : 16, "text"), text, sizeof text))
        return 0;
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    return facts_intern_id(tally->texts, text);
}

/* The engine numbers of mode A, in their order. */
static uint32_t read_engines(facts_tally *tally, const facts_line *row)
{
    facts_slice elements[64];
    size_t count, used = 0;
    char list[512] = "";
    facts_slice engines = facts_line_get(row, "engines");
    if (!engines.at || !facts_scan_array(engines.at, engines.length, elements, 64, &count))
        return 0;
    for (size_t i = 0; i < count && i < 64; i++) {
        facts_member members[16];
        size_t n;
        int64_t index;
        if (!facts_scan_object(elements[i].at, elements[i].length, members, 16, &n))
            continue;
        n = n < 16 ? n : 16;
        facts_slice mode = facts_member_find(members, n, "mode");
        if ((mode.at && !facts_slice_is(mode, "A")) || !facts_slice_int(facts_member_find(members, n, "index"), &index))
            continue;
        int wrote = snprintf(list + used, sizeof list - used, "%s%lld", used ? " " : "", (long long)index);
        if (wrote < 0 || (size_t)wrote >= sizeof list - used)
            break;
        used += (size_t)wrote;
    }
    return facts_intern_id(tally->texts, list);
}

void facts_tally_add(facts_tally *tally, size_t target, size_t work, const facts_line *row, facts_verdict verdict, bool unexpected)
{
    facts_cell *cell = &tally->cells[target * tally->work_count + work];
    tally->rows++;
    if (cell->rows < UINT16_MAX)
        cell->rows++;
    cell->unexpected |= unexpected;
    if (weight((uint8_t)verdict) > weight(cell->verdict)) {
        cell->verdict = (uint8_t)verdict;
        cell->reason = verdict == FACTS_VERDICT_PASS ? 0 : read_reason(tally, row);
    }
    if (!cell->engines)
        cell->engines = read_engines(tally, row);
}

size_t facts_tally_of(const facts_tally *tally, facts_verdict verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++)
        n += tally->cells[i].verdict == verdict;
    return n;
}

size_t facts_tally_missing(const facts_tally *tally)
{
    return facts_tally_of(tally, FACTS_VERDICT_COUNT) + facts_tally_of(tally, FACTS_VERDICT_NOT_RUN);
}

size_t facts_tally_unexpected(const facts_tally *tally)
{
    size_t n = 0;
    for (size_t i = 0; i < tally->target_count * tally->work_count; i++)
        n += tally->cells[i].unexpected;
    return n;
}

static void print_repro(const facts_target *target, const char *name, FILE *out)
{
    fprintf(out, "facts repro '%s'", name);
    if (target->kind != FACTS_TARGET_CPU)
        fprintf(out, " --cudnn %s", target->build.name);
    if (target->kind == FACTS_TARGET_GPU)
        fprintf(out, " --device %d\n", target->ordinal);
    else
        fprintf(out, " --device %s\n", target->device);
}

void facts_print_findings(const facts_tally *tally, size_t most, FILE *out)
{
    size_t all = facts_tally_unexpected(tally), shown = 0;
    if (!all)
        return;
    fprintf(out, "\n%zu finding%s:\n", all, all == 1 ? "" : "s");
    for (size_t work = 0; work < tally->work_count; work++)
        for (size_t t = 0; t < tally->target_count; t++) {
            const facts_cell *cell = facts_tally_cell(tally, t, work);
            if (!cell->unexpected || shown >= most)
                continue;
            shown++;
            const char *reason = facts_intern_text(tally->texts, cell->reason);
            fprintf(out, "  %s%s%.160s\n    ", facts_verdict_name(cell->verdict), *reason ? ": " : "", reason);
            print_repro(&tally->targets[t], tally->work[work].name, out);
        }
    if (all > shown)
        fprintf(out, "  and %zu more, in the record\n", all - shown);
}
