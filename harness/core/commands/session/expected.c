#include "expected.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "known/known.h"
#include "record/text.h"

enum { LINES_SHOWN = 5 };

struct facts_expectations {
    const facts_language *language;
    facts_knowledge knowledge;
    facts_known_answer *answers;    /* of one row; room for all failures */
    facts_text title, known, lines; /* of one row */
    char suites[FACTS_SUITES_MAX];  /* that are run, whole; "": something else */
    bool unguarded;
};

static bool is_suite(const char *word, const char *folder)
{
    static const char *const forms[] = { "%s/suites/%s.cases", "%s/suites/%s" };
    char path[FACTS_PATH + 128];
    if (strcmp(word, "regress") == 0 || strcmp(word, "reject") == 0)
        return true;
    if (strlen(word) > 100 || strpbrk(word, "= ") || strstr(word, ".."))
        return false;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        snprintf(path, sizeof path, forms[i], folder, word);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

void facts_expectations_suites(const char *const *texts, size_t count, char out[FACTS_SUITES_MAX])
{
    char folder[FACTS_PATH];
    size_t used = 0;
    bool found = facts_home_path("cases", folder) != NULL;
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (!found || !is_suite(texts[i], folder) ||
            used + strlen(texts[i]) + 2 > FACTS_SUITES_MAX) {
            out[0] = '\0';
            return;
        }
        used += (size_t)snprintf(out + used, FACTS_SUITES_MAX - used, "%s%s", used ? " " : "",
                                 texts[i]);
    }
}

int facts_expectations_load(facts_expectations **out, const facts_language *language,
                            const char *suites, facts_error *message)
{
    char path[FACTS_PATH];
    facts_error error = { 0 };
    facts_expectations *e = calloc(1, sizeof *e);
    *out = e;
    e->language = language;
    if (language->known && facts_made_path("known", path) &&
        !facts_knowledge_load(&e->knowledge, language, path, &error))
        return facts_fail_as(2, message, "%s", error.text);
    facts_knowledge_choose(&e->knowledge, suites);
    e->answers = calloc(e->knowledge.count + 1, sizeof *e->answers);
    snprintf(e->suites, sizeof e->suites, "%s", suites);
    return 0;
}

void facts_expectations_unguard(facts_expectations *e, bool unguarded)
{
    e->unguarded = unguarded;
}

/* The case as it was asked. */
static bool parse(const facts_expectations *e, facts_case *out, const char *name)
{
    facts_error error;
    const bool known = facts_case_read(e->language, out, name, &error);
    if (known && e->unguarded && e->language->unguard)
        e->language->unguard(out);
    return known;
}

/* The verdict that is known before the case is asked. */
static facts_subject target_subject(const facts_target *target, char sm_text[40], int sm,
                                    bool measured)
{
    facts_subject out = { .build = target->build.name, .grade = measured ? "measured" : "decided" };
    out.cudnn = target->build.version[0] ? target->build.version : NULL;
    if (sm) {
        snprintf(sm_text, 40, "%d", sm);
        out.sm = sm_text;
    }
    return out;
}

static void subject_of(facts_subject *out, char texts[5][40], const facts_target *target, int sm,
                       bool measured, facts_verdict verdict, const facts_line *row)
{
    int64_t engine, config;
    *out = target_subject(target, texts[0], sm, measured);
    out->verdict = facts_verdict_name(verdict);
    out->backend = facts_json_string(facts_line_get(row, "backend"), texts[1], sizeof texts[1])
                       ? texts[1]
                       : facts_target_backend(target);
    if (facts_json_int(facts_line_get(row, "engine"), &engine)) {
        snprintf(texts[2], sizeof texts[2], "%lld", (long long)engine);
        out->engine = texts[2];
    }
    if (facts_json_int(facts_line_get(row, "config"), &config)) {
        snprintf(texts[4], sizeof texts[4], "%lld", (long long)config);
        out->config = texts[4];
    }
    if (facts_json_string(facts_json_member(facts_line_get(row, "reason"), "class"), texts[3],
                          sizeof texts[3]))
        out->reason_class = texts[3];
}

/* A case that must be refused: with this class, and these words in the reason. */
static void judge_refusal(const char *expect, const facts_subject *subject, facts_verdict verdict,
                          const facts_line *row, facts_expected_row *out)
{
    char text[1024] = "";
    size_t n = strcspn(expect, " ");
    const char *words = expect + n + strspn(expect + n, " ");
    if (verdict == FACTS_VERDICT_INCONCLUSIVE)
        return;
    bool class_met = subject->reason_class && strlen(subject->reason_class) == n &&
                     memcmp(subject->reason_class, expect, n) == 0;
    facts_json_string(facts_json_member(facts_line_get(row, "reason"), "text"), text, sizeof text);
    bool met = verdict == FACTS_VERDICT_UNSUPPORTED && class_met && strcasestr(text, words) != NULL;
    facts_text json = { 0 };
    facts_text_puts(&json, "{\"verdict\":\"unsupported\",");
    facts_text_member_bool(&json, "met", met);
    facts_text_member(&json, "reason", expect);
    facts_text_close(&json);
    if (json.length < sizeof out->json)
        memcpy(out->json, json.data, json.length + 1);
    facts_text_free(&json);
    out->unexpected = !met;
}

static const facts_known *known_at(const facts_expectations *e, const facts_expectation *expected)
{
    return &e->knowledge.at[expected->known];
}

/* An expectation about suites is certain there alone: a single case of a like form may be right. */
static bool is_certain(const facts_expectations *expectations, const facts_expectation *expected)
{
    return !expected->sometimes &&
           (!*facts_known_text(known_at(expectations, expected), "suites") ||
            *expectations->suites);
}

static void put_expectation(facts_expected_row *out, const facts_known *known, bool met)
{
    facts_text json = { 0 }, verdicts = { 0 };
    facts_known_verdicts(&verdicts, known);
    facts_text_puts(&json, "{");
    facts_text_member(&json, "verdict", verdicts.data);
    facts_text_member_bool(&json, "met", met);
    for (const char *const *key =
             (const char *const[]){ "date", "link", "note", "id", "kind", NULL };
         *key; key++)
        facts_text_member_if(&json, *key, facts_known_text(known, *key));
    facts_text_close(&json);
    if (json.length < sizeof out->json)
        memcpy(out->json, json.data, json.length + 1);
    facts_text_free(&verdicts);
    facts_text_free(&json);
}

/* Of a row that failed, the failures that name its verdict, if any do. */
static size_t keep_named(facts_known_answer *answers, size_t count, facts_verdict verdict)
{
    size_t named = 0;
    for (size_t i = 0; i < count && facts_verdict_is_finding(verdict); i++)
        if (facts_known_names(answers[i].known, facts_verdict_name(verdict)))
            answers[named++] = answers[i];
    return named ? named : count;
}

/* What is known of the case that the row answers. A refusal of cuDNN leaves nothing that could
 * fail. */
static void say_known(facts_expectations *e, const facts_target *target, facts_verdict verdict,
                      const facts_subject *subject, facts_expected_row *out)
{
    const bool by_guard = subject->reason_class && strcmp(subject->reason_class, "policy") == 0;
    if (target->kind == FACTS_TARGET_CPU || strcmp(subject->backend, "cudnn") != 0 ||
        (verdict == FACTS_VERDICT_UNSUPPORTED && !by_guard))
        return;
    size_t count = facts_known_of(&e->knowledge, subject, e->answers);
    count = keep_named(e->answers, count, verdict);
    if (!count)
        return;
    facts_text_clear(&e->known);
    facts_text_clear(&e->lines);
    facts_known_member(&e->known, e->answers, count);
    facts_known_lines(&e->lines, "", e->answers, count, LINES_SHOWN);
    out->known = e->known.data;
    out->lines = e->lines.length ? e->lines.data : NULL;
    out->such_data = e->answers[0].such_data;
    out->serious = out->such_data && facts_known_is(e->answers[0].known, "serious");
}

/* Known, and it happened: accepted. Known, tried, and it did not happen: a finding. Not known: a
 * finding if the verdict is a failure. */
void facts_expectations_judge(facts_expectations *expectations, const facts_target *target, int sm,
                              const facts_work *work, bool measured, facts_verdict verdict,
                              const facts_line *row, facts_expected_row *out)
{
    facts_subject subject;
    facts_case c;
    char texts[5][40];
    *out = (facts_expected_row){ .unexpected = facts_verdict_is_finding(verdict) };
    subject_of(&subject, texts, target, sm, measured, verdict, row);
    if (*work->expect) {
        judge_refusal(work->expect, &subject, verdict, row, out);
        return;
    }
    if (!expectations || !parse(expectations, &c, work->name))
        return;
    subject.c = &c;
    say_known(expectations, target, verdict, &subject, out);
    facts_expectation *expected = facts_knowledge_expect(&expectations->knowledge, &subject);
    if (!expected)
        return;
    const facts_known *known = known_at(expectations, expected);
    bool met = facts_known_names(known, facts_verdict_name(verdict));
    expected->met = expected->met || met;
    bool tried =
        measured && verdict != FACTS_VERDICT_INCONCLUSIVE && verdict != FACTS_VERDICT_UNSUPPORTED;
    bool counts = facts_verdict_is_finding(verdict) || tried;
    if (!met &&
        (!counts || (!is_certain(expectations, expected) && facts_verdict_is_good(verdict))))
        return;
    out->unexpected = !met;
    put_expectation(out, known, met);
    facts_text_clear(&expectations->title);
    facts_known_title(&expectations->title, known);
    out->title = expectations->title.data;
}

/* A question can crash, a compilation can fail; the other failures need a launch. */
static bool can_tell(facts_task task, bool measured, const facts_known *known)
{
    static const char *const decided[] = { "supported", "unsupported", "crash", "hang",
                                           "exit_crash" };
    for (size_t i = 0; i < sizeof decided / sizeof decided[0]; i++)
        if (facts_known_names(known, decided[i]))
            return true;
    return measured || (task != FACTS_TASK_DECIDE && facts_known_names(known, "build_fail"));
}

/* The number of a target's cases that a line could be about; -1 if one of them has no answer, so
 * that the number is unknown. */
static long candidates(const facts_expectations *e, const facts_expectation *expected,
                       const facts_tally *tally, size_t t, int sm, facts_task task)
{
    char text[40];
    long n = 0;
    const facts_target *target = &tally->targets[t];
    bool measured = task == FACTS_TASK_RUN && target->kind != FACTS_TARGET_DESCRIBED;
    facts_subject subject = target_subject(target, text, sm ? sm : target->described.sm, measured);
    if (!can_tell(task, measured, known_at(e, expected)) ||
        !facts_predicate_possible(expected->where, &subject))
        return 0;
    for (size_t w = 0; w < tally->work_count; w++) {
        facts_case c;
        uint8_t verdict = facts_tally_cell(tally, t, w)->verdict;
        if (*tally->work[w].expect || !parse(e, &c, tally->work[w].name))
            continue;
        subject.c = &c;
        if (!facts_predicate_possible(expected->where, &subject))
            continue;
        if (verdict == FACTS_VERDICT_COUNT || verdict == FACTS_VERDICT_INCONCLUSIVE)
            return -1;
        n++;
    }
    return n;
}

/* Does the run include every suite of a line? */
static bool are_run(const char *named, const char *run)
{
    char words[FACTS_SUITES_MAX + 2], one[128], *rest = words;
    snprintf(words, sizeof words, "%s", named);
    for (char *name; (name = strsep(&rest, " ")) != NULL;) {
        char all[FACTS_SUITES_MAX + 2];
        snprintf(one, sizeof one, " %.100s ", name);
        snprintf(all, sizeof all, " %.509s ", run);
        if (!strstr(all, one))
            return false;
    }
    return true;
}

size_t facts_expectations_stale(const facts_expectations *e, const facts_tally *tally,
                                const int *sms, facts_task task, FILE *out)
{
    size_t stale = 0;
    facts_text verdicts = { 0 };
    for (size_t i = 0; e && i < e->knowledge.expected_count; i++) {
        const facts_expectation *d = &e->knowledge.expected[i];
        const facts_known *known = known_at(e, d);
        const char *suites = facts_known_text(known, "suites");
        long asked = 0, more = 0;
        if (!*suites || !are_run(suites, e->suites) || d->met || (d->sometimes && d->used))
            continue;
        for (size_t t = 0; t < tally->target_count && more >= 0; t++, asked += more > 0 ? more : 0)
            more = candidates(e, d, tally, t, sms[t], task);
        if (more < 0 || asked == 0)
            continue;
        facts_text_clear(&verdicts);
        facts_known_verdicts(&verdicts, known);
        fprintf(out,
                "%s:%lld: no result needs this failure any more: of %ld results that it could "
                "explain none is %s\n",
                facts_known_text(known, "file"),
                json_integer_value(json_object_get(known->said, "line")), asked, verdicts.data);
        stale++;
    }
    facts_text_free(&verdicts);
    return stale;
}

void facts_expectations_free(facts_expectations *expectations)
{
    if (!expectations)
        return;
    facts_knowledge_free(&expectations->knowledge);
    facts_text_free(&expectations->title);
    facts_text_free(&expectations->known);
    facts_text_free(&expectations->lines);
    free(expectations->answers);
    free(expectations);
}
