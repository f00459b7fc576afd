#include "answer_requests.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "replace.h"
#include "reply.h"
#include "words/verdict.h"
#include "words/worker_exit.h"

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
