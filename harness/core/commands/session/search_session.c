#include "search_session.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/text.h"
#include "report_package.h"
#include "words/case_text.h"

#define MOST_STARTS 3

bool facts_search_time_is_up(const facts_search *search)
{
    return search->deadline_ms > 0 && facts_now_ms() >= search->deadline_ms;
}

static const facts_target *target_of(const facts_search *search)
{
    return &search->session.targets.at[0];
}

void facts_search_flags(const facts_search *search, char *out, size_t capacity)
{
    const facts_target *t = target_of(search);
    int n = t->kind == FACTS_TARGET_CPU ? 0 : snprintf(out, capacity, "--cudnn %s ", t->build.name);
    if (n < 0 || (size_t)n >= capacity)
        return;
    if (t->kind == FACTS_TARGET_GPU)
        snprintf(out + n, capacity - (size_t)n, "--device %d", t->ordinal);
    else
        snprintf(out + n, capacity - (size_t)n, "--device %s", t->device);
}

/* ---- questions and answers
 * -------------------------------------------------------------------------------------------------
 */

static bool ask_again(void *context, const facts_case *c, int attempt, bool alone,
                      facts_answer *out)
{
    return facts_search_ask(context, c, attempt, FACTS_SEARCH_ASKED, alone, out);
}

/* The question whose answer comes with a work. */
static void remember(facts_search *search, const facts_work *work, facts_memo_entry *entry)
{
    const facts_session *s = &search->session;
    if (!s->vacant_count)
        search->entries = facts_grow(search->entries, s->work_count, sizeof(facts_memo_entry *));
    const size_t place = facts_session_add(&search->session, work);
    search->entries[place] = entry;
}

bool facts_search_ask(facts_search *search, const facts_case *c, int attempt, const char *group,
                      bool alone, facts_answer *out)
{
    char name[FACTS_NAME_MAX];
    facts_case_name(c, name);
    facts_memo_state state = facts_memo_get(search->memo, name, attempt, out);
    if (state != FACTS_MEMO_UNKNOWN)
        return state == FACTS_MEMO_ANSWERED;
    facts_memo_entry *entry = facts_memo_ask(search->memo, name, attempt);
    const facts_work work = { .name = name,
                              .group = attempt > 1 ? FACTS_SEARCH_REPEATED : group,
                              .expect = "",
                              .alone = alone,
                              .from_config = facts_memo_config(entry) };
    remember(search, &work, entry);
    search->asked++;
    return false;
}

static bool session_more(facts_session *session)
{
    facts_search *search = session->context;
    size_t before = search->asked;
    if (search->foreign || facts_search_time_is_up(search))
        return false;
    search->more(search);
    return search->asked > before;
}

static void say_drawn(const facts_search *search, size_t work, facts_verdict before)
{
    facts_answer answer;
    const facts_work *w = &search->session.work[work];
    if (search->drawn && strcmp(w->group, FACTS_SEARCH_DRAWN) == 0 &&
        facts_memo_get(search->memo, w->name, 1, &answer) == FACTS_MEMO_ANSWERED)
        search->drawn((facts_search *)search, w->name, &answer, before);
}

static void session_row(facts_session *session, const facts_outcome *outcome)
{
    facts_search *search = session->context;
    facts_line line;
    facts_answer answer;
    const facts_work *work = &session->work[outcome->work];
    const bool again = facts_memo_get(search->memo, work->name, 1, &answer) == FACTS_MEMO_ANSWERED;
    facts_line_parse(&line, outcome->text, outcome->length);
    search->inconclusive += outcome->verdict == FACTS_VERDICT_INCONCLUSIVE;
    facts_memo_row(search->memo, search->entries[outcome->work], &line);
    if (again)
        say_drawn(search, outcome->work, answer.verdict);
}

static void session_done(facts_session *session, size_t work)
{
    facts_search *search = session->context;
    facts_memo_end(search->memo, search->entries[work]);
    say_drawn(search, work, FACTS_VERDICT_COUNT);
}

/* The name of a GPU is known only now. */
static void session_ready(facts_session *session, size_t target, const facts_line *ready)
{
    facts_search *search = session->context;
    (void)ready;
    if (search->device[0] && strcmp(search->device, session->targets.at[target].device) != 0)
        search->foreign = true;
}

/* ---- findings ---- */

void facts_search_record(facts_search *search, const facts_form *form, const char *by)
{
    facts_session *s = &search->session;
    const facts_symptom *symptom = &form->symptom;
    facts_text line = { 0 };
    char name[FACTS_NAME_MAX], what[FACTS_SYMPTOM_TEXT];
    facts_text_puts(&line, "{\"finding\":{");
    facts_text_member(&line, "run", s->run_id);
    facts_text_member(&line, "best", facts_case_name(&form->best, name));
    facts_text_member(&line, "start", facts_case_name(&form->start, name));
    facts_text_member(&line, "verdict", facts_verdict_name(symptom->verdict));
    facts_text_member(&line, "text", facts_symptom_text(symptom, what));
    facts_text_member(&line, "tensors", symptom->tensors);
    facts_text_member(&line, "gate", symptom->gate);
    facts_text_member(&line, "backend", symptom->backend);
    facts_text_member(&line, "class", symptom->class_word);
    facts_text_member_int(&line, "engine", symptom->engine);
    facts_text_member_bool(&line, "known", symptom->known);
    facts_text_member_bool(&line, "unfinished", form->unfinished);
    if (form->explained)
        facts_text_member(&line, "known_as", facts_case_name(&form->known, name));
    if (by)
        facts_text_member(&line, "by", by);
    facts_text_member_int(&line, "failed", form->failed);
    facts_text_member_int(&line, "asked", form->asked);
    facts_text_close(&line);
    facts_text_puts(&line, "}");
    if (!facts_writer_line(s->writer, line.data, line.length)) {
        s->counts.record_failed = true;
        snprintf(s->counts.trouble, sizeof s->counts.trouble, "%.600s",
                 facts_writer_error(s->writer));
    }
    facts_text_free(&line);
}

int facts_search_print(const facts_search *search, const char *record)
{
    char flags[FACTS_PATH + 64] = "";
    facts_search_flags(search, flags, sizeof flags);
    return facts_run_report("fuzz", record, flags);
}

/* ---- the record that is resumed
 * -------------------------------------------------------------------------------------------- */

typedef struct loading {
    facts_search *search;
    facts_memo_load load;
    facts_validity validity;
} loading;

static bool find_device(void *context, const facts_line *line)
{
    facts_search *search = context;
    const facts_target *t = target_of(search);
    if (line->kind == FACTS_LINE_TARGET &&
        facts_json_is(facts_line_get(line, "build"), t->build.name) &&
        facts_json_is(facts_line_get(line, "planned"), t->device))
        facts_json_string(facts_line_get(line, "device"), search->device, sizeof search->device);
    return true;
}

static bool load_line(void *context, const facts_line *line)
{
    loading *l = context;
    if (facts_validity_line(&l->validity, line))
        facts_memo_load_line(&l->load, line);
    return true;
}

static void load_drawn(void *context, const char *name, const facts_answer *answer,
                       facts_verdict before)
{
    facts_search *search = context;
    if (search->drawn)
        search->drawn(search, name, answer, before);
}

static int load_record(facts_search *search)
{
    const char *path = search->session.options->output;
    const facts_target *t = target_of(search);
    char worker[FACTS_PATH];
    if (access(path, F_OK) != 0)
        return FACTS_EXIT_OK; /* nothing yet */
    if (!facts_find_worker(worker))
        return FACTS_EXIT_ENVIRONMENT;
    facts_target_identify(&search->session.targets.at[0], worker);
    int status = t->kind == FACTS_TARGET_GPU
                     ? facts_read_record("facts", path, find_device, search, NULL)
                     : FACTS_EXIT_OK;
    loading l = { search,
                  { .memo = search->memo,
                    .build = t->build.name,
                    .device = search->device[0] ? search->device : t->device,
                    .group = FACTS_SEARCH_DRAWN,
                    .context = search,
                    .drawn = load_drawn },
                  { 0 } };
    facts_validity_add(&l.validity, t);
    if (status == FACTS_EXIT_OK)
        status = facts_read_record("facts", path, load_line, &l, NULL);
    facts_validity_say(&l.validity, path);
    facts_validity_free(&l.validity);
    if (status != FACTS_EXIT_OK)
        return status;
    search->given_up = facts_memo_load_end(search->memo, MOST_STARTS);
    return FACTS_EXIT_OK;
}

/* ---- opening, running, closing
 * --------------------------------------------------------------------------------------------- */

static int open_target(facts_search *search)
{
    facts_session *s = &search->session;
    const char *devices = s->options->device;
    if (!devices && facts_gpus_here() == 0)
        return facts_complain(
            FACTS_EXIT_ENVIRONMENT,
            "facts: no GPU here; give --device cpu (the CPU backend), or a described "
            "device (--device h100-sxm), for which cuDNN decides");
    int status = facts_session_targets(s, s->options->cudnn, devices ? devices : "0");
    if (status == FACTS_EXIT_OK && s->targets.count != 1)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts: that is %zu targets; give one build and one device",
                              s->targets.count);
    if (status == FACTS_EXIT_OK && target_of(search)->kind == FACTS_TARGET_DESCRIBED)
        s->task = s->options->plan ? FACTS_TASK_PLAN : FACTS_TASK_DECIDE;
    return status;
}

int facts_search_open(facts_search *search, const facts_invocation *call)
{
    facts_session *s = &search->session;
    s->options = call->options;
    s->task = FACTS_TASK_RUN;
    s->call = call;
    s->more = session_more;
    s->reuses_places = true;
    s->on_row = session_row;
    s->on_done = session_done;
    s->on_ready = session_ready;
    s->context = search;
    search->asker = (facts_asker){ .context = search, .ask = ask_again };
    search->jobs = facts_session_jobs(call->options);
    search->memo = facts_memo_new();
    if (search->by)
        facts_memo_compare(search->memo, *search->by);
    int status = open_target(search);
    if (status == FACTS_EXIT_OK && call->options->resume)
        status = load_record(search);
    return status;
}

int facts_search_run(facts_search *search)
{
    facts_session *s = &search->session;
    session_more(s);                           /* the first; the rest as answers come */
    if (!s->work_count && !s->options->resume) /* a record that was cut off gets its end */
        return FACTS_EXIT_OK;
    int status = facts_session_run(s);
    if (search->foreign)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts: the record is of %s and this is %s; give another -o",
                              search->device, target_of(search)->device);
    if (status == FACTS_EXIT_OK && s->counts.interrupted)
        return FACTS_EXIT_INTERRUPTED;
    if (status == FACTS_EXIT_OK && (s->counts.record_failed || s->counts.target_failed))
        return FACTS_EXIT_ENVIRONMENT;
    return status;
}

void facts_search_close(facts_search *search)
{
    facts_session_free(&search->session);
    facts_memo_free(search->memo);
    free(search->entries);
}
