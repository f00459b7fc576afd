/* facts fuzz: draws cases over all axes, asks them, and compares the answers; confirms and shrinks
 * what fails. The report package prints the findings from the record. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "builds/print_line.h"
#include "commands/session/search_session.h"
#include "suites/suite.h"
#include "words/text_file.h"

#define DRAW_AHEAD 4      /* cases drawn at once, for each worker */
#define TIMEOUT_S 60.0    /* of one case, unless --timeout is given: the cases are small */
#define MOST_IN_VAIN 2000 /* draws in a row without a new case */
#define TOGETHER                                                                                        \
    16 /* cases that are asked at once and need an environment: each needs a worker that starts with it \
        */

typedef struct fuzzing {
    const facts_options *options;
    facts_suite suite;
    char *text; /* of the suite */
    facts_predicate *where;
    facts_draw_choice choice;
    facts_findings *findings;
    uint64_t seed, index, in_vain;                          /* index: the next draw */
    size_t drawn, verdicts[FACTS_VERDICT_COUNT + 1], known; /* drawn cases with an answer */
    bool exhausted;
    facts_case aside[TOGETHER];
    size_t asides;
    size_t recorded; /* forms in the record */
} fuzzing;

/* ---- what is drawn
 * ---------------------------------------------------------------------------------------------------------
 */

static bool draw_ended(const fuzzing *z)
{
    return z->exhausted || (z->options->cases > 0 && z->index >= (uint64_t)z->options->cases);
}

static void ask(facts_search *search, const facts_case *c)
{
    facts_answer answer;
    facts_search_ask(search, c, 1, FACTS_SEARCH_DRAWN, false, &answer);
}

static void ask_asides(facts_search *search, fuzzing *z)
{
    for (size_t i = 0; i < z->asides; i++)
        ask(search, &z->aside[i]);
    z->asides = 0;
}

/* The next case that was not asked yet. */
static void draw(facts_search *search, fuzzing *z)
{
    facts_case c;
    char name[FACTS_NAME_MAX];
    facts_answer answer;
    while (!draw_ended(z) && !facts_search_time_is_up(search)) {
        if (facts_suite_draw(&z->suite, z->seed, z->index++, &z->choice, &c) &&
            facts_memo_get(search->memo, facts_case_name(&c, name), 1, &answer) ==
                FACTS_MEMO_UNKNOWN) {
            z->in_vain = 0;
            if (!*facts_case_process(&c)) {
                ask(search, &c);
                return;
            }
            z->aside[z->asides++] = c;
            if (z->asides == TOGETHER) {
                ask_asides(search, z);
                return;
            }
        }
        z->exhausted = ++z->in_vain >= MOST_IN_VAIN;
    }
}

static void take_drawn(facts_search *search, const char *name, const facts_answer *answer,
                       facts_verdict before)
{
    fuzzing *z = search->context;
    facts_case c;
    facts_error ignored;
    bool known = answer->count > 0;
    for (size_t i = 0; i < answer->count; i++)
        known &= answer->failing[i].known;
    if (before == FACTS_VERDICT_COUNT)
        z->drawn++;
    else
        z->verdicts[before]--;
    z->verdicts[answer->verdict]++;
    z->known += known;
    if (answer->count && facts_case_read(z->suite.language, &c, name, &ignored))
        facts_findings_add(z->findings, &c, answer, z->options->known);
}

/* At once, so that they stay if the run is killed. */
static void record_forms(facts_search *search, fuzzing *z)
{
    facts_session *session = &search->session;
    for (; session->writer && z->recorded < facts_findings_count(z->findings) &&
           !session->counts.record_failed;
         z->recorded++)
        facts_search_record(search, facts_findings_at(z->findings, z->recorded), NULL);
}

/* Questions of a shrinking come first; drawn cases keep the other workers busy. */
static bool more(facts_search *search)
{
    fuzzing *z = search->context;
    size_t before = search->asked;
    facts_findings_advance(z->findings, &search->asker);
    record_forms(search, z);
    size_t wanted = (size_t)search->jobs * (facts_findings_open(z->findings) ? 1 : DRAW_AHEAD);
    while (search->asked - before < wanted && !draw_ended(z) && !facts_search_time_is_up(search))
        draw(search, z);
    if (draw_ended(z) && !facts_search_time_is_up(search))
        ask_asides(search, z);
    return search->asked > before;
}

/* ---- text for people
 * ------------------------------------------------------------------------------------------------------------
 */

static void show(facts_session *session, int live)
{
    const facts_search *search = session->context;
    const fuzzing *z = search->context;
    char text[200], left[40] = "";
    double seconds = (search->deadline_ms - facts_now_ms()) / 1e3;
    if (search->deadline_ms > 0)
        snprintf(left, sizeof left, "  left %.0f s", seconds > 0 ? seconds : 0);
    snprintf(text, sizeof text,
             "drawn %zu  failed %zu  findings %zu  to shrink %zu  asked in all %zu  workers %d%s",
             z->drawn,
             z->drawn - z->verdicts[FACTS_VERDICT_PASS] - z->verdicts[FACTS_VERDICT_SUPPORTED] -
                 z->verdicts[FACTS_VERDICT_UNSUPPORTED] - z->verdicts[FACTS_VERDICT_INCONCLUSIVE],
             facts_findings_count(z->findings), facts_findings_open(z->findings),
             facts_memo_answered(search->memo), live, left);
    facts_progress_say(&session->progress, text);
}

static void print_counts(const facts_search *search, const fuzzing *z)
{
    printf("%zu cases drawn with seed %" PRIu64 ":", z->drawn, z->seed);
    bool first = true;
    for (facts_verdict v = 0; v < FACTS_VERDICT_COUNT; v++)
        if (z->verdicts[v]) {
            printf("%s %zu %s", first ? "" : ",", z->verdicts[v], facts_verdict_name(v));
            first = false;
        }
    printf("%s\n%zu cases asked in all, with those of shrinking\n", first ? " none" : "",
           facts_memo_answered(search->memo));
    if (z->known)
        printf("%zu of them are known failures; --known shrinks them too\n", z->known);
    if (z->verdicts[FACTS_VERDICT_MISTRUSTED])
        puts("mistrusted cases are no findings: their data could not show an error; `facts shrink` "
             "makes such a case small");
    if (search->given_up)
        printf("%zu cases were left out: each of them ended the whole run three times\n",
               search->given_up);
    if (z->exhausted)
        puts("the suite (and --where) allows no further new case");
}

/* ---- opening
 * ---------------------------------------------------------------------------------------------------------------
 */

static int check(const facts_options *o)
{
    if (!(o->minutes > 0) && !o->cases && !o->resume)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts fuzz: give --minutes N or --cases N");
    return FACTS_EXIT_OK;
}

static bool draws(const facts_suite *suite)
{
    for (size_t i = 0; i < suite->lines; i++)
        if (suite->line[i].draw > 0)
            return true;
    return false;
}

static int open_suite(facts_search *search, fuzzing *z, const facts_language *language)
{
    const facts_options *o = z->options;
    facts_error error = { 0 };
    static char path[FACTS_PATH];
    if (!o->draws && !facts_home_path("cases/fuzz.cases", path))
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts: cases/fuzz.cases was not found; set FACTS_HOME to the "
                              "project's folder, or give --draws FILE");
    const char *from = o->draws ? o->draws : path;
    z->suite.language = language;
    z->text = facts_file_text(from, &error);
    bool ok = z->text && facts_suite_read(&z->suite, z->text, from, &error);
    if (ok)
        snprintf(search->session.suite_hash, sizeof search->session.suite_hash, "%016" PRIx64,
                 (uint64_t)XXH64(z->text, strlen(z->text), 0));
    ok =
        ok && (draws(&z->suite) || facts_fail_at(&error, from, 1, 1, "no line starts with draw N"));
    z->choice = (facts_draw_choice){ .with = o->with };
    ok = ok && (!o->where || facts_predicate_parse(language, &z->where, o->where, &error)) &&
         facts_draw_check(language, &z->choice, &error);
    z->choice.where = z->where;
    return ok ? FACTS_EXIT_OK : facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
}

/* The seed of a record that is resumed, unless another is given. */
static bool read_seed(void *context, const facts_line *line)
{
    int64_t seed;
    if (line->kind == FACTS_LINE_RUN && facts_json_int(facts_line_get(line, "seed"), &seed) &&
        seed >= 0)
        *(uint64_t *)context = (uint64_t)seed;
    return true;
}

static int open_all(facts_search *search, fuzzing *z, const facts_invocation *call)
{
    facts_read_counts counts;
    int status = check(z->options);
    if (status == FACTS_EXIT_OK)
        status = open_suite(search, z, call->driver->language);
    if (status != FACTS_EXIT_OK)
        return status;
    z->seed = 1;
    if (z->options->resume)
        facts_record_read(z->options->output, read_seed, &z->seed,
                          &counts); /* a record that cannot be read is reported later */
    if (z->options->seed >= 0)
        z->seed = (uint64_t)z->options->seed;
    search->session.seed = z->seed;
    search->session.keep_record = true;
    return facts_search_open(search, call);
}

static void record_findings(facts_session *session)
{
    facts_search *search = session->context;
    fuzzing *z = search->context;
    facts_findings_close(z->findings, &search->asker);
    record_forms(search, z);
}

/* Prints the findings, whatever ended the run. */
static int conclude(facts_search *search, fuzzing *z, int status)
{
    const char *record = search->session.record;
    if (status != FACTS_EXIT_OK && status != FACTS_EXIT_INTERRUPTED &&
        (status != FACTS_EXIT_ENVIRONMENT || !record[0]))
        return status; /* nothing was asked */
    print_counts(search, z);
    int printed = FACTS_EXIT_OK;
    if (facts_findings_count(z->findings) && record[0])
        printed = facts_search_print(search, record);
    else
        puts("\n0 findings");
    if (record[0])
        facts_print_line(stdout, "record: %s", record);
    if (printed != FACTS_EXIT_OK)
        return FACTS_EXIT_ENVIRONMENT;
    if (status != FACTS_EXIT_OK)
        return status;
    return facts_findings_news(z->findings) ? FACTS_EXIT_FINDINGS : FACTS_EXIT_OK;
}

/* --resume without a limit only prints what the record holds. */
static bool only_prints(const facts_options *o)
{
    return o->resume && !o->cases && !(o->minutes > 0);
}

int facts_command_fuzz(const facts_invocation *call)
{
    facts_options options = *call->options;
    fuzzing z = { .options = &options };
    facts_search search = { .more = more, .drawn = take_drawn, .context = &z };
    facts_invocation mine = *call;
    mine.options = &options;
    search.session.show = show;
    search.session.before_end = record_findings;
    if (!(options.timeout_s > 0))
        options.timeout_s = TIMEOUT_S;
    z.findings = facts_findings_new(
        &(facts_findings_limits){ .most_steps = (int)options.steps, .lookahead = 4 });
    int status = z.findings ? open_all(&search, &z, &mine) : FACTS_EXIT_ENVIRONMENT;
    if (status == FACTS_EXIT_OK && only_prints(&options)) {
        status = facts_search_print(&search, options.output);
    } else if (status == FACTS_EXIT_OK) {
        if (options.minutes > 0)
            search.deadline_ms = facts_now_ms() + options.minutes * 60e3;
        status = conclude(&search, &z, facts_search_run(&search));
    }
    facts_findings_free(z.findings);
    facts_predicate_destroy(z.where);
    facts_suite_clear(&z.suite);
    free(z.text);
    facts_search_close(&search);
    return status;
}
