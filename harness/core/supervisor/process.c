#include "process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_MS 2000    /* between TERM and KILL */
#define ABANDON_MS 10000 /* after KILL */
#define DRAIN_MS 1000    /* to read the rest of the pipes after its end */
#define SECOND_LOOK_MS                                                                             \
    50 /* a reply may be in the pipe if this process was stopped: read before deciding */

typedef enum timer_use {
    TIMER_IDLE,
    TIMER_DEADLINE,
    TIMER_SECOND_LOOK,
    TIMER_GRACE,
    TIMER_ABANDON,
    TIMER_DRAIN
} timer_use;

struct facts_process {
    uv_process_t handle;
    uv_pipe_t in, out, err;
    uv_timer_t timer;
    timer_use use;
    int open_handles;
    int pid;
    bool exited, out_ended, err_ended, in_ended, burying;
    facts_death death;
    facts_process_hooks hooks;
    void *owner;
    char *line; /* the received part of the current line */
    size_t used, capacity;
    char tail[FACTS_STDERR_KEPT + 1];
    size_t tail_used;
};

static void set_timer(facts_process *p, timer_use use, uint64_t ms);

static void closed(uv_handle_t *handle)
{
    facts_process *p = handle->data;
    if (--p->open_handles > 0)
        return;
    p->tail[p->tail_used] = '\0';
    p->death.stderr_tail = p->tail;
    if (p->hooks.gone)
        p->hooks.gone(p->owner, &p->death);
    free(p->line);
    free(p);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, closed);
}

/* The process and its pipes have ended, or are given up: closes the handles; `closed` reports. */
static void bury(facts_process *p)
{
    if (p->burying)
        return;
    p->burying = true;
    close_handle((uv_handle_t *)&p->in);
    close_handle((uv_handle_t *)&p->out);
    close_handle((uv_handle_t *)&p->err);
    close_handle((uv_handle_t *)&p->timer);
    close_handle((uv_handle_t *)&p->handle);
}

static void bury_if_ended(facts_process *p)
{
    if (p->exited && p->out_ended && p->err_ended)
        bury(p);
}

static void signal_group(facts_process *p, int signal_number)
{
    if (!p->exited && kill(-p->pid, signal_number) != 0)
        kill(p->pid, signal_number);
}

static void timer_fired(uv_timer_t *timer)
{
    facts_process *p = timer->data;
    switch (p->use) {
    case TIMER_DEADLINE:
        set_timer(p, TIMER_SECOND_LOOK, SECOND_LOOK_MS);
        break;
    case TIMER_SECOND_LOOK:
        p->death.late = true;
        signal_group(p, SIGTERM);
        set_timer(p, TIMER_GRACE, GRACE_MS);
        break;
    case TIMER_GRACE:
        signal_group(p, SIGKILL);
        set_timer(p, TIMER_ABANDON, ABANDON_MS);
        break;
    case TIMER_ABANDON:
        p->death.abandoned = true;
        bury(p);
        break;
    case TIMER_DRAIN:
        bury(p);
        break;
    case TIMER_IDLE:
        break;
    }
}

static void set_timer(facts_process *p, timer_use use, uint64_t ms)
{
    p->use = use;
    if (!p->burying)
        uv_timer_start(&p->timer, timer_fired, ms, 0);
}

static void exited(uv_process_t *handle, int64_t status, int signal_number)
{
    facts_process *p = handle->data;
    p->exited = true;
    p->death.status = (int)status;
    p->death.signal = signal_number;
    set_timer(p, TIMER_DRAIN, DRAIN_MS);
    bury_if_ended(p);
}

static void give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    static char buffer[65536]; /* one loop, one read at a time */
    (void)handle;
    (void)suggested;
    *out = uv_buf_init(buffer, sizeof buffer);
}

static bool keep_bytes(facts_process *p, const char *bytes, size_t length)
{
    if (p->used + length > FACTS_REPLY_MAX)
        return false;
    if (p->used + length > p->capacity) {
        p->capacity = (p->used + length) * 2;
        p->line = realloc(p->line, p->capacity);
    }
    memcpy(p->line + p->used, bytes, length);
    p->used += length;
    return true;
}

/* Reports every complete line; a line within one read is not copied. */
static void take_output(facts_process *p, const char *bytes, size_t length)
{
    while (length && !p->death.too_long) {
        const char *newline = memchr(bytes, '\n', length);
        size_t piece = newline ? (size_t)(newline - bytes) : length;
        if (newline && !p->used) {
            p->hooks.line(p->owner, bytes, piece);
        } else if (!keep_bytes(p, bytes, piece)) {
            p->death.too_long = true;
            facts_process_kill(p);
        } else if (newline) {
            p->hooks.line(p->owner, p->line, p->used);
            p->used = 0;
        }
        if (newline)
            piece++;
        bytes += piece;
        length -= piece;
    }
}

/* A closed pipe cannot carry a request or a reply, so there is no point in waiting for the
 * deadline. The side that closed it is about to end. */
static void cut_off(facts_process *p)
{
    if (facts_process_doomed(p) || p->exited)
        return;
    p->death.cut_off = true;
    facts_process_kill(p);
}

static void out_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    facts_process *p = stream->data;
    if (got > 0)
        take_output(p, buffer->base, (size_t)got);
    if (got < 0 && got != UV_EOF)
        cut_off(p);
    if (got < 0) {
        p->out_ended = true;
        bury_if_ended(p);
    }
}

static void keep_tail(facts_process *p, const char *bytes, size_t length)
{
    if (length > FACTS_STDERR_KEPT) {
        bytes += length - FACTS_STDERR_KEPT;
        length = FACTS_STDERR_KEPT;
    }
    size_t spare = FACTS_STDERR_KEPT - p->tail_used;
    if (length > spare) {
        size_t drop = length - spare;
        memmove(p->tail, p->tail + drop, p->tail_used - drop);
        p->tail_used -= drop;
    }
    memcpy(p->tail + p->tail_used, bytes, length);
    p->tail_used += length;
}

static void err_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buffer)
{
    facts_process *p = stream->data;
    if (got > 0)
        keep_tail(p, buffer->base, (size_t)got);
    if (got < 0) {
        p->err_ended = true;
        bury_if_ended(p);
    }
}

static int spawn(facts_process *p, uv_loop_t *loop, const char *path, char **environment)
{
    char *arguments[] = { (char *)(uintptr_t)path, NULL };
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&p->in },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->out },
        { .flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->err },
    };
    uv_process_options_t options = {
        .exit_cb = exited,
        .file = path,
        .args = arguments,
        .env = environment,
        .flags = UV_PROCESS_DETACHED, /* its own process group */
        .stdio_count = 3,
        .stdio = stdio,
    };
    return uv_spawn(loop, &p->handle, &options);
}

facts_process *facts_process_start(uv_loop_t *loop, const char *path, char **environment,
                                   facts_process_hooks hooks, void *owner, facts_error *error)
{
    facts_process *p = calloc(1, sizeof *p);
    p->owner = owner;
    p->hooks = hooks;
    p->open_handles = 5;
    p->in.data = p->out.data = p->err.data = p->timer.data = p->handle.data = p;
    uv_timer_init(loop, &p->timer);
    uv_pipe_init(loop, &p->in, 0);
    uv_pipe_init(loop, &p->out, 0);
    uv_pipe_init(loop, &p->err, 0);
    int status = spawn(p, loop, path, environment);
    p->handle.data = p;
    if (status != 0) {
        facts_fail(error, "%s: cannot be started: %s", path, uv_strerror(status));
        p->hooks.gone = NULL;
        bury(p);
        return NULL;
    }
    p->pid = uv_process_get_pid(&p->handle);
    uv_read_start((uv_stream_t *)&p->out, give_buffer, out_read);
    uv_read_start((uv_stream_t *)&p->err, give_buffer, err_read);
    return p;
}

static void sent(uv_write_t *request, int status)
{
    facts_process *p = request->handle->data;
    if (status < 0 && status != UV_EPIPE && status != UV_ECANCELED)
        cut_off(p);
    free(request);
}

void facts_process_send(facts_process *p, const char *text, size_t length)
{
    uv_buf_t buffer = uv_buf_init((char *)(uintptr_t)text, (unsigned)length);
    if (p->burying || p->in_ended)
        return;
    int tried = uv_try_write((uv_stream_t *)&p->in, &buffer, 1);
    size_t done = tried > 0 ? (size_t)tried : 0;
    if (tried < 0 && tried != UV_EAGAIN && tried != UV_EPIPE)
        cut_off(p);
    if (done == length || (tried < 0 && tried != UV_EAGAIN))
        return;
    uv_write_t *request = malloc(sizeof *request + length - done);
    char *copy = (char *)(request + 1);
    memcpy(copy, text + done, length - done);
    buffer = uv_buf_init(copy, (unsigned)(length - done));
    if (uv_write(request, (uv_stream_t *)&p->in, &buffer, 1, sent) != 0)
        free(request);
}

void facts_process_end_input(facts_process *p)
{
    p->in_ended = true;
    close_handle((uv_handle_t *)&p->in);
}

void facts_process_deadline(facts_process *p, double seconds)
{
    if (p->exited || p->death.late || p->death.stopped || p->death.too_long)
        return;
    if (seconds > 0) {
        set_timer(p, TIMER_DEADLINE, (uint64_t)(seconds * 1000));
    } else {
        p->use = TIMER_IDLE;
        uv_timer_stop(&p->timer);
    }
}

void facts_process_kill(facts_process *p)
{
    p->death.stopped = true;
    signal_group(p, SIGKILL);
    if (!p->exited)
        set_timer(p, TIMER_ABANDON, ABANDON_MS);
}

bool facts_process_doomed(const facts_process *p)
{
    return p->death.late || p->death.stopped || p->death.too_long;
}
