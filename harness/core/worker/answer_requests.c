#include "answer_requests.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "reply.h"
#include "words/verdict.h"
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
    const bool kept = decide(process, job) ? answer_each(process, job) : reply(process, job, true);
    process->kept = job;
    if (!kept || is_lost(process))
        facts_forget_case(process);
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

/* Reads the case, and what it needs in the environment variable of its language. */
static const char *wanted(facts_case *out, const facts_process *process, const char *text)
{
    facts_error error;
    return facts_case_read(process->driver->language, out, text, &error) ? facts_case_process(out)
                                                                         : "";
}

bool facts_replace_now(const facts_process *process, const facts_request *request)
{
    facts_case c;
    const char *variable = process->driver->language->process_variable;
    const char *now = variable ? getenv(variable) : NULL;
    if (process->device == FACTS_DEVICE_CPU)
        return false;
    if (request->fresh && process->driver->health(process->worker) != FACTS_HEALTH_FRESH)
        return true;
    return variable && strcmp(wanted(&c, process, request->text), now ? now : "") != 0;
}

static bool put(int file, const char *text, size_t length)
{
    return write(file, text, length) == (ssize_t)length;
}

static bool put_all(int file, const facts_in_hand *all)
{
    return file >= 0 && put(file, all->target, strlen(all->target)) && put(file, "\n", 1) &&
           put(file, all->request, all->request_length) && put(file, "\n", 1) &&
           put(file, all->rest, all->rest_length) && lseek(file, 0, SEEK_SET) == 0;
}

/* Releases the target and starts the program again, which reads the lines to pass on and then
 * stdin. Returns only if that failed. */
static void facts_replace(const facts_process *process, const facts_request *request,
                          const facts_in_hand *in_hand)
{
    facts_case c;
    char number[16];
    const char *variable = process->driver->language->process_variable;
    const char *value = wanted(&c, process, request->text);
    int file = memfd_create("lines", 0); /* stays open over exec */
    if (!put_all(file, in_hand)) {
        if (file >= 0)
            close(file);
        return;
    }
    facts_reply_stage(request->id, "start", -1);
    snprintf(number, sizeof number, "%d", file);
    if (variable && value[0])
        setenv(variable, value, 1);
    else if (variable)
        unsetenv(variable);
    setenv(FACTS_REPLACED, number, 1);
    process->driver->close(process->worker);
    facts_reply_hand_on();
    execv("/proc/self/exe", (char *[]){ (char[]){ "facts-worker" }, NULL });
    _exit(EXIT_FAILURE); /* the process cannot answer any more */
}

/* The descriptor of the lines to read first; -1: this process has replaced no other. */
static int facts_replaced_lines(void)
{
    const char *number = getenv(FACTS_REPLACED);
    const long file = number ? strtol(number, NULL, 10) : -1;
    unsetenv(FACTS_REPLACED);
    return file > STDERR_FILENO && file <= INT_MAX ? (int)file : -1;
}

enum { EXIT_BAD_INPUT = 2, EXIT_ENVIRONMENT = 3 };

/* Lines from stdin, each at most FACTS_REQUEST_MAX bytes. */
typedef struct lines {
    char *buffer;
    size_t start, end;
    int file; /* stdin; for a replacement worker, the lines that its predecessor had not answered */
    char *target; /* the first line; owned */
} lines;

typedef enum next { NEXT_LINE, NEXT_END, NEXT_TOO_LONG } next;

/* *line stays valid until the next call. A last line without newline counts. */
static next next_line(lines *l, const char **line, size_t *length)
{
    for (;;) {
        char *newline = memchr(l->buffer + l->start, '\n', l->end - l->start);
        *line = l->buffer + l->start;
        *length = newline ? (size_t)(newline - *line) : l->end - l->start;
        if (newline) {
            l->start += *length + 1;
            return NEXT_LINE;
        }
        if (l->start > 0) {
            memmove(l->buffer, l->buffer + l->start, l->end - l->start);
            l->end -= l->start;
            l->start = 0;
        }
        if (l->end == FACTS_REQUEST_MAX)
            return NEXT_TOO_LONG;
        ssize_t n = read(l->file, l->buffer + l->end, FACTS_REQUEST_MAX - l->end);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(FACTS_WORKER_NO_CHANNEL);
        if (n == 0 && l->file != STDIN_FILENO) {
            close(l->file);
            l->file = STDIN_FILENO;
            continue;
        }
        if (n == 0) {
            *line = l->buffer;
            *length = l->end;
            l->end = 0;
            return *length > 0 ? NEXT_LINE : NEXT_END;
        }
        l->end += (size_t)n;
    }
}

static int bad_input(const char *text)
{
    fprintf(stderr, "facts-worker: %s\n", text);
    return EXIT_BAD_INPUT;
}

/* This process cannot open its predecessor's target, for example because other processes took the
 * GPU's memory. Exit 3 here would look like a crash of cuDNN in the current case. */
static int refuse_request(lines *in, json_t *reply)
{
    const char *line, *class = "environment", *text = "the worker could not start again",
                      *remedy = "";
    size_t length;
    facts_error error;
    facts_request request;
    json_unpack(reply, "{s:{s:s,s:s,s:s}}", "failed", "class", &class, "text", &text, "remedy",
                &remedy);
    if (next_line(in, &line, &length) != NEXT_LINE ||
        !facts_request_read(&request, line, length, &error)) {
        json_decref(reply);
        return EXIT_ENVIRONMENT;
    }
    json_t *row = json_pack("{s:s,s:s}", "case", request.text, "verdict",
                            facts_verdict_name(FACTS_VERDICT_INCONCLUSIVE));
    facts_put_reason(row, "class", class);
    facts_put_reason(row, "text", text);
    facts_put_reason(row, "remedy", remedy);
    json_decref(reply);
    facts_reply_row(request.id, row, true, true);
    return EXIT_SUCCESS;
}

/* Returns the exit status of a worker that ends here, whether or not it has opened the target. */
static int open_target(facts_process *process, lines *in, bool *opened)
{
    const char *line;
    size_t length;
    facts_error error;
    facts_target_request request;
    switch (next_line(in, &line, &length)) {
    case NEXT_END:
        return bad_input("no target: the first line of stdin must be one");
    case NEXT_TOO_LONG:
        return bad_input("request: the line is too long");
    case NEXT_LINE:
        break;
    }
    const bool replaces = in->file != STDIN_FILENO;
    in->target = strndup(line, length);
    if (!facts_target_request_read(&request, line, length, &error))
        return bad_input(error.text);
    if (request.supervisor > 0 && request.supervisor != (int64_t)getppid()) {
        facts_target_request_free(&request);
        return bad_input("the supervisor is gone");
    }
    json_t *reply = NULL;
    process->device = request.device;
    bool ready = process->driver->open(&process->worker, &request, &reply);
    if (ready && request.device == FACTS_DEVICE_GPU && !replaces)
        facts_reply(json_pack("{s:s}", "stage", "probe"));
    ready = ready && process->driver->probe(process->worker, &reply);
    facts_target_request_free(&request);
    *opened = ready;
    if (replaces && !ready)
        return refuse_request(in, reply);
    if (replaces) /* it has already replied */
        json_decref(reply);
    else
        facts_reply(reply);
    return ready ? EXIT_SUCCESS : EXIT_ENVIRONMENT;
}

static int serve_all(facts_process *process, lines *in)
{
    const char *line;
    size_t length;
    facts_error error;
    while (process->driver->health(process->worker) != FACTS_HEALTH_LOST) {
        facts_request request;
        switch (next_line(in, &line, &length)) {
        case NEXT_END:
            return EXIT_SUCCESS;
        case NEXT_TOO_LONG:
            return bad_input("request: the line is too long");
        case NEXT_LINE:
            break;
        }
        if (!facts_request_read(&request, line, length, &error))
            return bad_input(error.text);
        if (in->target && facts_replace_now(process, &request))
            facts_replace(process, &request,
                          &(facts_in_hand){ in->target, line, in->buffer + in->start, length,
                                            in->end - in->start });
        facts_answer_case(process, &request);
    }
    return EXIT_SUCCESS; /* the context is lost: the reply has "bye" */
}

int facts_worker_run(const facts_worker_driver *driver)
{
    facts_process process = { .driver = driver };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    const int replaced = facts_replaced_lines();
    lines in = { .buffer = malloc(FACTS_REQUEST_MAX),
                 .file = replaced < 0 ? STDIN_FILENO : replaced };
    int status = EXIT_ENVIRONMENT;
    if (in.buffer && facts_reply_open()) {
        bool opened = false;
        status = open_target(&process, &in, &opened);
        if (opened)
            status = serve_all(&process, &in);
        if (process.worker) {
            facts_forget_case(&process);
            driver->close(process.worker);
        }
    }
    free(in.buffer);
    free(in.target);
    return status;
}
