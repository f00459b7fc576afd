/* One worker process. It runs in its own process group with an environment that FACTS makes. The
 * functions send it lines, read its lines, enforce its deadline, and collect its exit. They know
 * nothing of cases; supervise.c does. */
#ifndef FACTS_PROCESS_H
#define FACTS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "words/fail.h"

#define FACTS_REPLY_MAX ((size_t)4 << 20)
#define FACTS_STDERR_KEPT 4096

/* How a worker ended. */
typedef struct facts_death {
    int status, signal; /* as from wait; signal 0: it exited */
    bool late;          /* the deadline passed: we killed it */
    bool stopped;       /* facts_process_kill */
    bool abandoned;     /* SIGKILL did not end it within 10 s */
    bool too_long;      /* a reply was longer than FACTS_REPLY_MAX */
    bool cut_off; /* its input could not be written or its output not be read, so FACTS killed it */
    const char *stderr_tail; /* its last FACTS_STDERR_KEPT bytes, terminated */
} facts_death;

typedef struct facts_process facts_process;

typedef struct facts_process_hooks {
    void (*line)(void *owner, const char *text, size_t length);
    /* Called once, after all of its output was delivered. The process is freed when the function
     * returns. */
    void (*gone)(void *owner, const facts_death *death);
} facts_process_hooks;

/* Starts `path` without arguments. Returns NULL with a line in `error`. */
facts_process *facts_process_start(uv_loop_t *loop, const char *path, char **environment,
                                   facts_process_hooks hooks, void *owner, facts_error *error);
/* Queues text (copied) for its stdin. A dead reader is not an error here: `gone` follows. */
void facts_process_send(facts_process *process, const char *text, size_t length);
void facts_process_end_input(facts_process *process);
/* Sets a deadline in seconds from now (0: none). At the deadline the process group gets TERM, and
 * KILL 2 s later. */
void facts_process_deadline(facts_process *process, double seconds);
void facts_process_kill(facts_process *process); /* KILL, now */
bool facts_process_doomed(
    const facts_process *process); /* it is being killed: what it still says does not count */

#endif
