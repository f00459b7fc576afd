/* The text of the lines that the supervisor writes. Pure: text in, text out. */
#ifndef FACTS_COMPOSE_H
#define FACTS_COMPOSE_H

#include "order.h"
#include "process.h"
#include "record/text.h"

/* What the supervisor knows of a row beside what the worker said. Empty strings are left out. */
typedef struct facts_frame {
    const char *name, *group, *cudnn, *build, *device, *grade, *backend, *run;
    const char *expectation; /* JSON or "" */
    const char *verdict;     /* instead of the worker's; "" keeps it. The worker's then stays as verdict_before */
    const char *note;        /* with `verdict`: why */
    int sm;
    double wall_ms; /* below 0: not known */
    int attempt;
    bool more;
} facts_frame;

void facts_compose_row(facts_text *out, const facts_line *row, const facts_frame *frame);
/* {"id":…} as PROTOCOL.md says. */
void facts_compose_request(facts_text *out, const facts_order *order, int64_t id, const char *name, int from_config);
/* Launch what is kept of this case: one turn. */
void facts_compose_turn(facts_text *out, int64_t id, const char *name);
/* The line of a turn. `target`: its place in the order's targets. */
void facts_compose_time(facts_text *out, const facts_frame *frame, size_t target, int round, facts_span turn);
/* `gpu`: the worker's, of a target of GPUs. `errata`: the text of cases/errata.json, or NULL. */
void facts_compose_target(facts_text *out, const facts_order *order, const facts_target *target, int gpu, const char *driver,
                          const char *errata, int threads);
/* `gpu`: the number of one of several; below 0: not said. */
void facts_compose_start(facts_text *out, const char *run, const char *name, const char *build, const char *device, int gpu,
                         int attempt, int from_config);

/* What is known of a case whose worker died. */
typedef struct facts_evidence {
    const char *verdict;
    char stage[32];
    int config;                             /* -1: none in hand */
    const facts_death *death;               /* NULL: it was not asked */
    const char *class_word, *text, *remedy; /* may be NULL; without text the death is described */
} facts_evidence;

/* A row that no worker made: the members that a worker's row would have had. */
void facts_compose_evidence(facts_text *out, const facts_evidence *evidence);
/* "died of SIGSEGV", "exited with status 3", "did not answer in time"; and the last line of its stderr. */
void facts_describe_death(char *out, size_t capacity, const facts_death *death);

#endif
