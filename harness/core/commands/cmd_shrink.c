/* facts shrink: finds the simplest case with the same failure (with --by: the same answer), and
 * prints the steps. */
#include <stdlib.h>
#include <string.h>

#include "commands/session/search_session.h"

#define MOST_REPEATS 5
#define STEPS 400

typedef enum shrink_state { ASKING, PASSES, FLAKY, SHRINKING, DONE } shrink_state;

typedef struct shrinking {
    facts_case start;
    facts_symptom symptom;
    shrink_state state;
    facts_shrink_result result;
    int most_steps, printed;
    int failed, asked;     /* of the start */
    int again;             /* how often the smallest case failed, of 2; 0: not repeated */
    facts_verdict verdict; /* of the start */
    facts_by by;           /* with --by */
} shrinking;

static void print_step(void *context, const facts_shrink_step *step)
{
    shrinking *s = context;
    char name[FACTS_NAME_MAX];
    if (step->number <= s->printed)
        return;
    s->printed = step->number;
    printf("%4d  %-4s  %-16s %-24s %s\n", step->number, step->kept ? "kept" : "-",
           facts_verdict_name(step->verdict), step->what,
           step->kept ? facts_case_name(step->c, name) : "");
    fflush(stdout);
}

static bool ask_once(void *context, const facts_case *c, facts_answer *out)
{
    facts_search *search = context;
    const shrinking *s = search->context;
    return facts_search_ask(search, c, 1, FACTS_SEARCH_ASKED,
                            s->symptom.verdict == FACTS_VERDICT_EXIT_CRASH, out);
}

static void print_search_step(void *context, const facts_shrink_step *step)
{
    print_step(((facts_search *)context)->context, step);
}

/* Does it fail, and does it fail again? False: answers are missing. */
static bool examine(facts_search *search, shrinking *s)
{
    facts_answer answer;
    bool known = true;
    if (!facts_search_ask(search, &s->start, 1, FACTS_SEARCH_ASKED, true, &answer))
        return false;
    s->verdict = answer.verdict;
    if (!answer.count) {
        s->state = PASSES;
        return true;
    }
    s->symptom = answer.failing[0];
    s->failed = s->asked = 1;
    for (int attempt = 2; attempt <= (s->failed == s->asked ? 2 : MOST_REPEATS); attempt++) {
        if (!facts_search_ask(search, &s->start, attempt, FACTS_SEARCH_ASKED, true, &answer)) {
            known = false;
            break;
        }
        if (answer.verdict ==
            FACTS_VERDICT_INCONCLUSIVE) { /* a missing answer is not a different answer */
            s->verdict = answer.verdict;
            s->state = PASSES;
            return true;
        }
        s->asked++;
        s->failed += facts_answer_find(&answer, &s->symptom) != NULL;
    }
    if (known)
        s->state = s->failed == s->asked ? SHRINKING : FLAKY;
    return known;
}

static bool shrink(facts_search *search)
{
    shrinking *s = search->context;
    facts_answer answer;
    const facts_shrink_order order = { .start = s->start,
                                       .symptom = s->symptom,
                                       .most_steps = s->most_steps,
                                       .lookahead = search->jobs,
                                       .context = search,
                                       .ask = ask_once,
                                       .step = print_search_step };
    facts_shrink(&s->result, &order);
    if (s->result.waiting)
        return false;
    if (!facts_search_ask(search, &s->result.best, 2, FACTS_SEARCH_ASKED,
                          s->symptom.verdict == FACTS_VERDICT_EXIT_CRASH, &answer))
        return false;
    s->again = 1 + (facts_answer_find(&answer, &s->symptom) != NULL);
    s->state = DONE;
    return true;
}

static bool more(facts_search *search)
{
    shrinking *s = search->context;
    if (s->state == ASKING && !examine(search, s))
        return true;
    return s->state == SHRINKING && shrink(search);
}

/* What the case was shrunk to, into the record. */
static void record_form(facts_session *session)
{
    facts_search *search = session->context;
    shrinking *s = search->context;
    facts_answer answer;
    char name[FACTS_NAME_MAX];
    if (s->state < SHRINKING || (!s->result.steps && s->state != DONE))
        return;
    facts_form form = { .best = s->result.best,
                        .start = s->start,
                        .symptom = s->symptom,
                        .asked = s->state == DONE ? 2 : s->asked,
                        .failed = s->state == DONE ? s->again : s->failed,
                        .unfinished = s->state != DONE || s->result.out_of_steps };
    if (facts_memo_get(search->memo, facts_case_name(&form.best, name), 1, &answer) ==
            FACTS_MEMO_ANSWERED &&
        facts_answer_find(&answer, &s->symptom))
        form.symptom = *facts_answer_find(&answer, &s->symptom);
    facts_search_record(search, &form, search->by ? facts_by_word(s->by) : NULL);
}

static void report(facts_search *search)
{
    shrinking *s = search->context;
    facts_answer answer;
    char name[FACTS_NAME_MAX], flags[FACTS_PATH + 64];
    facts_case_name(&s->result.best, name);
    printf("\n%d steps, %d kept%s\n", s->result.steps, s->result.kept,
           s->result.out_of_steps ? "; no steps left (--steps)"
           : s->state != DONE     ? "; not finished (with -o FILE, --resume continues)"
                                  : "");
    if (search->by) {
        facts_search_flags(search, flags, sizeof flags);
        if (facts_memo_get(search->memo, name, 1, &answer) == FACTS_MEMO_ANSWERED && answer.value)
            printf("the same %s: %s\n", facts_by_word(s->by), answer.value);
        printf("  facts %s '%s' %s\n", search->session.task == FACTS_TASK_RUN ? "run" : "decide",
               name, flags);
    } else {
        printf("%s\n\n", name);
    }
    if (search->session.record[0] && (!search->by || !facts_verdict_is_good(s->verdict)))
        facts_search_print(search, search->session.record);
    if (search->by && s->state == DONE && s->again < 2)
        puts("  asked again, it gave another answer");
}

/* The text for people, and the exit code. */
static int conclude(facts_search *search, int status)
{
    shrinking *s = search->context;
    char what[FACTS_SYMPTOM_TEXT];
    switch (s->state) {
    case ASKING:
        return status;
    case PASSES:
        if (s->verdict == FACTS_VERDICT_INCONCLUSIVE)
            return facts_complain(FACTS_EXIT_ENVIRONMENT,
                                  "facts shrink: cuDNN could not be asked about the case "
                                  "(inconclusive); facts repro shows the reason");
        printf("the case does not fail here (%s), so there is nothing to shrink%s\n",
               facts_verdict_name(s->verdict),
               s->verdict == FACTS_VERDICT_UNSUPPORTED
                   ? "; --by reason finds the simplest case that is refused for the same reason"
                   : "");
        return status;
    case FLAKY:
        printf("flaky: %s in %d of %d tries; FACTS shrinks only a case that fails each time "
               "(repeat=N in the case makes it fail "
               "more often)\n",
               facts_symptom_text(&s->symptom, what), s->failed, s->asked);
        return status ? status : FACTS_EXIT_FINDINGS;
    default:
        if (s->result.steps || s->state == DONE)
            report(search);
        if (status == FACTS_EXIT_OK && s->state == DONE && !facts_verdict_is_finding(s->verdict))
            return FACTS_EXIT_OK;
        return status ? status : s->state == DONE ? FACTS_EXIT_FINDINGS : FACTS_EXIT_INCOMPLETE;
    }
}

static void quiet(facts_session *session, int live)
{
    (void)session;
    (void)live;
}

int facts_command_shrink(const facts_invocation *call)
{
    shrinking *s = calloc(1, sizeof *s);
    facts_search search = { .more = more, .context = s };
    search.session.show = quiet; /* the steps show the progress */
    search.session.keep_record = true;
    search.session.before_end = record_form;
    if (call->options->by) {
        s->by = facts_by_parse(call->options->by);
        search.by = &s->by;
    }
    search.session.unguarded = true;
    s->most_steps = call->options->steps ? (int)call->options->steps : STEPS;
    int status = facts_read_case("shrink", call, &s->start);
    if (status == FACTS_EXIT_OK)
        status = facts_search_open(&search, call);
    if (status == FACTS_EXIT_OK) {
        if (call->options->minutes > 0)
            search.deadline_ms = facts_now_ms() + call->options->minutes * 60e3;
        status = conclude(&search, facts_search_run(&search));
    }
    facts_search_close(&search);
    free(s);
    return status;
}
