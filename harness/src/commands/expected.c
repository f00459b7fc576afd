#include "expected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../case/expect.h"
#include "../record/text.h"

struct facts_expectations {
    facts_deviations *list;
};

int facts_expectations_load(facts_expectations **out, facts_message *message)
{
    char cases[FACTS_PATH], folder[FACTS_PATH];
    facts_error error = { .text = "" };
    facts_expectations *e = calloc(1, sizeof *e);
    *out = e;
    if (e)
        e->list = facts_deviations_create();
    if (!e || !e->list) {
        facts_say(message, "facts: out of memory");
        return 3;
    }
    if (!facts_home_path("cases", cases) || !facts_join(folder, cases, "expect") || facts_deviations_load(e->list, folder, &error))
        return 0;
    facts_say(message, "%s", error.text);
    return 2;
}

static void subject_of(facts_subject *out, char texts[5][40], const facts_target *target, int sm, bool measured, facts_verdict verdict,
                       const facts_line *row)
{
    int64_t engine, config;
    facts_member members[16];
    size_t count;
    *out = (facts_subject){ .build = target->build.name, .grade = measured ? "measured" : "decided", .verdict = facts_verdict_name(verdict) };
    out->cudnn = target->build.version[0] ? target->build.version : NULL;
    if (sm) {
        snprintf(texts[0], sizeof texts[0], "%d", sm);
        out->sm = texts[0];
    }
    if (facts_slice_string(facts_line_get(row, "backend"), texts[1], sizeof texts[1]))
        out->backend = texts[1];
    if (facts_slice_int(facts_line_get(row, "engine"), &engine)) {
        snprintf(texts[2], sizeof texts[2], "%lld", (long long)engine);
        out->engine = texts[2];
    }
    if (facts_slice_int(facts_line_get(row, "config"), &config)) {
        snprintf(texts[4], sizeof texts[4], "%lld", (long long)config);
        out->config = texts[4];
    }
    facts_slice reason = facts_line_get(row, "reason");
    if (reason.at && facts_scan_object(reason.at, reason.length, members, 16, &count) &&
        facts_slice_string(facts_member_find(members, count < 16 ? count : 16, "class"), texts[3], sizeof texts[3]))
        out->reason_class = texts[3];
}

static const char *reason_text(const facts_line *row, char *out, size_t capacity)
{
    facts_member members[16];
    size_t count;
    facts_slice reason = facts_line_get(row, "reason");
    out[0] = '\0';
    if (reason.at && facts_scan_object(reason.at, reason.length, members, 16, &count))
        facts_slice_string(facts_member_find(members, count < 16 ? count : 16, "text"), out, capacity);
    return out;
}

/* A case that has to be refused: with this class, and these words in the reason. */
static void judge_refusal(const char *expect, const facts_subject *subject, facts_verdict verdict, const facts_line *row,
                          facts_expected_row *out)
{
    char text[1024];
    size_t n = strcspn(expect, " ");
    const char *words = expect + n + strspn(expect + n, " ");
    if (verdict == FACTS_VERDICT_INCONCLUSIVE || verdict == FACTS_VERDICT_NOT_RUN)
        return;
    bool class_met = subject->reason_class && strlen(subject->reason_class) == n && memcmp(subject->reason_class, expect, n) == 0;
    bool met = verdict == FACTS_VERDICT_UNSUPPORTED && class_met && strcasestr(reason_text(row, text, sizeof text), words) != NULL;
    facts_text json = { 0 };
    facts_text_puts(&json, "{\"verdict\":\"unsupported\",");
    facts_text_format(&json, "\"met\":%s,", met ? "true" : "false");
    facts_text_member(&json, "reason", expect);
    facts_text_close(&json);
    if (!json.failed && json.length < sizeof out->json)
        memcpy(out->json, json.data, json.length + 1);
    facts_text_free(&json);
    out->unexpected = !met;
}

/* Known, and it happened: accepted. Known, and it did not, though it was tried: news. Not known: a finding when the verdict is one. */
void facts_expectations_judge(const facts_expectations *expectations, const facts_target *target, int sm, const facts_work *work,
                              bool measured, facts_verdict verdict, const facts_line *row, facts_expected_row *out)
{
    facts_subject subject;
    facts_case c;
    facts_error error;
    char texts[5][40];
    out->json[0] = '\0';
    out->unexpected = facts_verdict_is_finding(verdict);
    subject_of(&subject, texts, target, sm, measured, verdict, row);
    if (*work->expect) {
        judge_refusal(work->expect, &subject, verdict, row, out);
        return;
    }
    if (!expectations || !facts_deviations_count(expectations->list) || !facts_case_parse(&c, work->name, &error))
        return;
    subject.c = &c;
    const facts_deviation *known = facts_deviations_lookup(expectations->list, &subject);
    if (!known)
        return;
    bool met = strcmp(known->verdict, facts_verdict_name(verdict)) == 0;
    bool tried = measured && verdict != FACTS_VERDICT_INCONCLUSIVE && verdict != FACTS_VERDICT_NOT_RUN;
    bool counts = facts_verdict_is_finding(verdict) || tried;
    if (!met && (!counts || (known->sometimes && verdict == FACTS_VERDICT_PASS)))
        return;
    out->unexpected = !met;
    facts_text json = { 0 };
    facts_text_puts(&json, "{");
    facts_text_member(&json, "verdict", known->verdict);
    facts_text_format(&json, "\"met\":%s,", met ? "true" : "false");
    facts_text_member(&json, "date", known->date);
    facts_text_member(&json, "link", known->link);
    if (known->note[0])
        facts_text_member(&json, "note", known->note);
    facts_text_close(&json);
    if (!json.failed && json.length < sizeof out->json)
        memcpy(out->json, json.data, json.length + 1);
    facts_text_free(&json);
}

void facts_expectations_free(facts_expectations *expectations)
{
    if (!expectations)
        return;
    facts_deviations_destroy(expectations->list);
    free(expectations);
}
