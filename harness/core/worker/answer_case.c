#include "answer_case.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/spent.h"
#include "reply.h"
#include "words/worker_exit.h"

static bool is_lost(const facts_process *process)
{
    return process->driver->health(process->worker) == FACTS_HEALTH_LOST;
}

static void say(void *job, const char *step)
{
    const facts_job *j = job;
    facts_reply_stage(j->request.id, step, j->config);
}

/* ---- the row
 * ----------------------------------------------------------------------------------------------------------------
 */

static void put_spent(json_t *row)
{
    const double *ms = facts_spent_ms();
    json_t *spent = ms ? json_object() : NULL;
    for (int i = 0; ms && i < FACTS_SPENT_COUNT; i++)
        if (ms[i] > 0)
            json_object_set_new(spent, facts_spent_words[i], json_real(ms[i]));
    if (spent)
        json_object_set_new(row, "spent_ms", spent);
    facts_spent_clear();
}

static json_t *row_of(const facts_process *process, facts_job *job)
{
    const facts_result *result = &job->result;
    json_t *row = json_pack("{s:s,s:s}", "case", job->request.text, "verdict",
                            facts_verdict_name(result->verdict));
    process->driver->describe(job, row);
    if (result->refused)
        json_object_set_new(row, "supported", json_false());
    if (result->reason_class || result->text[0]) {
        facts_put_reason(row, "class", result->reason_class);
        facts_put_reason(row, "text", result->text);
        facts_put_reason(row, "remedy", result->remedy);
    }
    return row;
}

/* Returns whether the configuration in hand is kept. Only a right answer is: the speed of a wrong one is not measured. */
static bool reply(const facts_process *process, facts_job *job, bool last)
{
    const facts_result *result = &job->result;
    json_t *row = result->again ? NULL : row_of(process, job);
    const bool lost = is_lost(process);
    const bool kept = process->driver->leave(
        job, job->request.keep && !lost && result->verdict == FACTS_VERDICT_PASS,
        last || result->again);
    if (row) {
        put_spent(row);
        facts_reply_row(job->request.id, row, last, lost);
    } else {
        facts_reply_again(job->request.id);
    }
    return kept;
}

/* ---- the steps
 * --------------------------------------------------------------------------------------------------------------
 */

/* On a described device nothing runs: `run` is `decide` there. */
static void answer(const facts_process *process, facts_job *job)
{
    const facts_worker_driver *driver = process->driver;
    const bool runs =
        job->request.what == FACTS_DO_RUN && process->device != FACTS_DEVICE_DESCRIBED;
    if (!driver->choose(job) || !(runs || job->request.what == FACTS_DO_PLAN))
        return;
    say(job, "build");
    if (driver->prepare(job) && runs && driver->execute(job))
        driver->judge(job);
}

/* Returns whether a configuration is kept. */
static bool answer_each(const facts_process *process, facts_job *job)
{
    bool kept = false, last = false;
    int32_t first, count = process->driver->configurations(job, &first),
                   i = job->request.from_config;
    if (count == 0)
        return reply(process, job, true);
    if (i >= count)
        facts_reply_none(job->request.id, false);
    for (; i < count && !last; i++) {
        job->config = first < 0 ? first : first + i;
        job->result = (facts_result){ .verdict = FACTS_VERDICT_SUPPORTED };
        answer(process, job);
        last = i + 1 == count ||
               (job->request.first_bad_only && !facts_verdict_is_good(job->result.verdict));
        kept |= reply(process, job, last);
        last |= job->result.again || is_lost(process);
    }
    return kept;
}

static bool decide(const facts_process *process, facts_job *job)
{
    facts_case c;
    facts_error error = { 0 };
    if (!facts_case_read(process->driver->language, &c, job->request.text, &error))
        return facts_job_refuse(job, "bad_problem", error.text);
    if (job->request.unguarded && c.language->unguard)
        c.language->unguard(&c);
    if (!process->driver->begin(job, &c))
        return false;
    say(job, "decide");
    return process->driver->decide(job);
}

static void answer_case(facts_process *process, const facts_request *request)
{
    facts_job *job = calloc(1, process->driver->job_bytes);
    if (!job)
        _exit(FACTS_WORKER_NO_MEMORY); /* the supervisor writes a row */
    *job = (facts_job){ .worker = process->worker, .request = *request, .config = -1, .say = say };
    facts_forget_case(process);
    facts_spent_start();
    const bool kept = decide(process, job) ? answer_each(process, job) : reply(process, job, true);
    process->kept = job;
    facts_spend(FACTS_SPENT_RELEASE);
    if (!kept || is_lost(process))
        facts_forget_case(process);
    facts_spend(FACTS_SPENT_OTHER);
}

void facts_forget_case(facts_process *process)
{
    if (process->kept)
        process->driver->end(process->kept);
    free(process->kept);
    process->kept = NULL;
}

/* ---- a turn
 * -----------------------------------------------------------------------------------------------------------------
 */

static void answer_turn(const facts_process *process, const facts_request *request)
{
    facts_job *job = process->kept;
    if (!job || strcmp(job->request.text, request->text) != 0) {
        facts_reply_none(request->id, false);
        return;
    }
    facts_reply_stage(request->id, "exec", -1);
    json_t *turn = process->driver->turn(job);
    if (turn)
        facts_reply_turn(request->id, turn);
    else
        facts_reply_none(request->id, is_lost(process));
}

void facts_answer_case(facts_process *process, const facts_request *request)
{
    if (request->what == FACTS_DO_TIME)
        answer_turn(process, request);
    else
        answer_case(process, request);
}
