#include "hunt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "case/words/case_text.h"

#define MOST_STARTS 3

double facts_hunt_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

bool facts_hunt_time_is_up(const facts_hunt *hunt)
{
    return hunt->deadline_s > 0 && facts_hunt_now_s() >= hunt->deadline_s;
}

static const facts_target *target_of(const facts_hunt *hunt)
{
    return &hunt->session.targets.at[0];
}

void facts_hunt_flags(const facts_hunt *hunt, char *out, size_t capacity)
{
    const facts_target *t = target_of(hunt);
    int n = t->kind == FACTS_TARGET_CPU ? 0 : snprintf(out, capacity, "--cudnn %s ", t->build.name);
    if (n < 0 || (size_t)n >= capacity)
        return;
    if (t->kind == FACTS_TARGET_GPU)
        snprintf(out + n, capacity - (size_t)n, "--device %d", t->ordinal);
    else
        snprintf(out + n, capacity - (size_t)n, "--device %s", t->device);
}

/* ---- questions and answers ------------------------------------------------------------------------------------------------- */

static bool ask_again(void *context, const facts_case *c, int attempt, bool alone, facts_answer *out)
{
    return facts_hunt_ask(context, c, attempt, FACTS_HUNT_ASKED, alone, out);
}

/* The answer to which question comes with a work. */
static bool remember(facts_hunt *hunt, const facts_work *work, facts_memo_id id)
{
    const facts_session *s = &hunt->session;
    facts_memo_id *larger = s->vacant_count ? hunt->ids : facts_grow(hunt->ids, s->work_count, sizeof *larger);
    if (!larger)
        return false;
    hunt->ids = larger;
    size_t place = facts_session_add(&hunt->session, work);
    if (place == FACTS_NO_PLACE)
        return false;
    larger[place] = id;
    return true;
}

bool facts_hunt_ask(facts_hunt *hunt, const facts_case *c, int attempt, const char *group, bool alone, facts_answer *out)
{
    char name[FACTS_NAME_MAX];
    facts_case_name(c, name);
    facts_memo_state state = facts_memo_get(hunt->memo, name, attempt, out);
    if (state != FACTS_MEMO_UNKNOWN || hunt->failed)
        return state == FACTS_MEMO_ANSWERED;
    facts_memo_id id = facts_memo_ask(hunt->memo, name, attempt);
    const facts_work work = { .name = name,
                              .group = group,
                              .expect = "",
                              .alone = alone,
                              .from_config = id == FACTS_MEMO_NONE ? 0 : facts_memo_config(hunt->memo, id) };
    if (id == FACTS_MEMO_NONE || !remember(hunt, &work, id))
        hunt->failed = true;
    hunt->asked++;
    return false;
}

static bool session_more(facts_session *session)
{
    facts_hunt *hunt = session->context;
    size_t before = hunt->asked;
    if (hunt->failed || hunt->foreign || facts_hunt_time_is_up(hunt))
        return false;
    hunt->more(hunt);
    return hunt->asked > before;
}

/* Of a drawn case that did not fail nothing is kept but that it was asked: a long search needs no more memory. */
static void session_free(facts_session *session, size_t work)
{
    facts_hunt *hunt = session->context;
    if (strcmp(session->work[work].group, FACTS_HUNT_DRAWN) == 0)
        facts_memo_forget(hunt->memo, hunt->ids[work]);
}

static void session_row(facts_session *session, const facts_outcome *outcome)
{
    facts_hunt *hunt = session->context;
    facts_line line;
    facts_answer answer;
    bool more = false;
    const facts_work *work = &session->work[outcome->work];
    bool again = facts_memo_get(hunt->memo, work->name, 1, &answer) == FACTS_MEMO_ANSWERED;
    facts_verdict before = again ? answer.verdict : FACTS_VERDICT_COUNT;
    facts_line_parse(&line, outcome->text, outcome->length);
    facts_json_bool(facts_line_get(&line, "more"), &more);
    hunt->inconclusive += outcome->verdict == FACTS_VERDICT_INCONCLUSIVE;
    if (!facts_memo_row(hunt->memo, hunt->ids[outcome->work], &line, !more)) {
        hunt->failed = true;
        return;
    }
    if (!more && hunt->drawn && strcmp(work->group, FACTS_HUNT_DRAWN) == 0 &&
        facts_memo_get(hunt->memo, work->name, 1, &answer) == FACTS_MEMO_ANSWERED)
        hunt->drawn(hunt, work->name, &answer, before);
}

/* A GPU's name is known only now. */
static void session_ready(facts_session *session, size_t target, const facts_line *ready)
{
    facts_hunt *hunt = session->context;
    (void)ready;
    if (hunt->device[0] && strcmp(hunt->device, session->targets.at[target].device) != 0)
        hunt->foreign = true;
}

/* ---- the record that is resumed -------------------------------------------------------------------------------------------- */

typedef struct loading {
    facts_hunt *hunt;
    facts_memo_load load;
    facts_earned earned;
} loading;

static bool find_device(void *context, const facts_line *line)
{
    facts_hunt *hunt = context;
    const facts_target *t = target_of(hunt);
    if (line->kind == FACTS_LINE_TARGET && facts_json_is(facts_line_get(line, "build"), t->build.name) &&
        facts_json_is(facts_line_get(line, "planned"), t->device))
        facts_json_string(facts_line_get(line, "device"), hunt->device, sizeof hunt->device);
    return true;
}

static bool load_line(void *context, const facts_line *line)
{
    loading *l = context;
    return !facts_earned_line(&l->earned, line) || facts_memo_load_line(&l->load, line);
}

static void load_drawn(void *context, const char *name, const facts_answer *answer, facts_verdict before)
{
    facts_hunt *hunt = context;
    if (hunt->drawn)
        hunt->drawn(hunt, name, answer, before);
}

static int load_record(facts_hunt *hunt)
{
    const char *path = hunt->session.options->output;
    const facts_target *t = target_of(hunt);
    char worker[FACTS_PATH];
    if (access(path, F_OK) != 0)
        return FACTS_EXIT_OK; /* nothing yet */
    if (!facts_find_worker(worker))
        return FACTS_EXIT_ENVIRONMENT;
    facts_target_identify(&hunt->session.targets.at[0], worker);
    int status = t->kind == FACTS_TARGET_GPU ? facts_read_record("facts", path, find_device, hunt, NULL) : FACTS_EXIT_OK;
    loading l = { hunt,
                  { .memo = hunt->memo,
                    .build = t->build.name,
                    .device = hunt->device[0] ? hunt->device : t->device,
                    .group = FACTS_HUNT_DRAWN,
                    .context = hunt,
                    .drawn = load_drawn },
                  { 0 } };
    if (status == FACTS_EXIT_OK && !facts_earned_add(&l.earned, t))
        return facts_no_memory();
    if (status == FACTS_EXIT_OK)
        status = facts_read_record("facts", path, load_line, &l, NULL);
    facts_earned_say(&l.earned, path);
    facts_earned_free(&l.earned);
    if (status != FACTS_EXIT_OK)
        return status;
    if (l.load.failed || hunt->failed)
        return facts_no_memory();
    hunt->given_up = facts_memo_load_end(hunt->memo, MOST_STARTS);
    return FACTS_EXIT_OK;
}

/* ---- opening, running, closing --------------------------------------------------------------------------------------------- */

static int open_target(facts_hunt *hunt)
{
    facts_session *s = &hunt->session;
    const char *devices = s->options->device;
    if (!devices && facts_gpus_here() == 0)
        return facts_complain(FACTS_EXIT_ENVIRONMENT, "facts: no GPU here; give --device cpu (the CPU backend), or a described "
                                                      "device (--device h100-sxm), for which cuDNN decides");
    int status = facts_session_targets(s, s->options->cudnn, devices ? devices : "0");
    if (status == FACTS_EXIT_OK && s->targets.count != 1)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts: that is %zu targets; give one build and one device", s->targets.count);
    if (status == FACTS_EXIT_OK && target_of(hunt)->kind == FACTS_TARGET_DESCRIBED)
        s->task = s->options->plan ? FACTS_TASK_PLAN : FACTS_TASK_DECIDE;
    return status;
}

int facts_hunt_open(facts_hunt *hunt, const facts_invocation *call)
{
    facts_session *s = &hunt->session;
    s->options = call->options;
    s->task = FACTS_TASK_RUN;
    s->argc = call->argc;
    s->argv = call->argv;
    s->more = session_more;
    s->on_free = session_free;
    s->on_row = session_row;
    s->on_ready = session_ready;
    s->context = hunt;
    hunt->asker = (facts_asker){ .context = hunt, .ask = ask_again };
    hunt->jobs = facts_session_jobs(call->options);
    hunt->memo = facts_memo_new();
    if (!hunt->memo)
        return facts_no_memory();
    if (hunt->by)
        facts_memo_compare(hunt->memo, *hunt->by);
    int status = open_target(hunt);
    if (status == FACTS_EXIT_OK && call->options->resume)
        status = load_record(hunt);
    return status;
}

int facts_hunt_run(facts_hunt *hunt)
{
    facts_session *s = &hunt->session;
    session_more(s); /* the first; the rest as answers come */
    if (!s->work_count && !hunt->failed && !s->options->resume) /* a record that was cut off gets its end */
        return FACTS_EXIT_OK;
    int status = hunt->failed ? FACTS_EXIT_ENVIRONMENT : facts_session_run(s);
    if (hunt->failed)
        fputs("facts: out of memory\n", stderr);
    if (hunt->failed)
        return FACTS_EXIT_ENVIRONMENT;
    if (hunt->foreign)
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts: the record is of %s and this is %s; give another -o", hunt->device,
                              target_of(hunt)->device);
    if (status == FACTS_EXIT_OK && s->counts.interrupted)
        return FACTS_EXIT_INTERRUPTED;
    if (status == FACTS_EXIT_OK && (s->counts.record_failed || s->counts.target_failed))
        return FACTS_EXIT_ENVIRONMENT;
    return status;
}

void facts_hunt_close(facts_hunt *hunt)
{
    facts_session_free(&hunt->session);
    facts_memo_free(hunt->memo);
    free(hunt->ids);
}
