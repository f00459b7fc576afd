/* The text of the lines that the supervisor writes. Pure: text in, text out. */
#ifndef FACTS_COMPOSE_H
#define FACTS_COMPOSE_H

#include "order.h"
#include "process.h"
#include "record/text.h"

/* Facts about a row that the supervisor adds to the worker's row. Empty strings are left out. */
typedef struct facts_frame {
    const char *name, *group, *cudnn, *build, *device, *grade, *backend, *run;
    const char *expectation; /* JSON or "" */
    const char *known;       /* a member with a comma behind it, or NULL */
    const char
        *verdict;     /* replaces the worker's verdict, which becomes verdict_before; "" keeps it */
    const char *note; /* with `verdict`: why */
    int sm;
    double wall_ms; /* below 0: not known */
    int attempt;
    uint64_t calls; /* 0: unknown */
    bool more;
} facts_frame;

void facts_compose_row(facts_text *out, const facts_line *row, const facts_frame *frame);
/* {"id":…} as PROTOCOL.md says. `fresh`: only a worker that has launched no engine may answer. */
void facts_compose_request(facts_text *out, const facts_order *order, int64_t id, const char *name,
                           int from_config, bool fresh);
/* Launch what is kept of this case: one turn. */
void facts_compose_turn(facts_text *out, int64_t id, const char *name);
/* The line of a turn. `target`: its place in the order's targets. */
void facts_compose_time(facts_text *out, const facts_frame *frame, size_t target, int round,
                        facts_span turn);
/* `gpu`: the GPU of this worker, if the target has several. */
void facts_compose_target(facts_text *out, const facts_order *order, const facts_target *target,
                          int gpu, const char *driver, int threads);
/* `gpu`: the number of the GPU, if there are several; below 0: unknown. */
void facts_compose_start(facts_text *out, const char *run, const char *name, const char *build,
                         const char *device, int gpu, int attempt, int from_config);

/* What is known of a case whose worker died. */
typedef struct facts_evidence {
    const char *verdict;
    char stage[32];
    int config;                             /* -1: none in hand */
    const facts_death *death;               /* NULL: it was not asked */
    const char *class_word, *text, *remedy; /* may be NULL; without text the death is described */
} facts_evidence;

/* The members of a row that the supervisor makes in place of a worker's row. */
void facts_compose_evidence(facts_text *out, const facts_evidence *evidence);
/* How a worker ended: "died of SIGSEGV", "exited with status 3", "did not answer in time"; then the
 * last line of its stderr. */
void facts_describe_death(char *out, size_t capacity, const facts_death *death);

#endif
