/* A bisection: one case, one device, and the answers of several versions. cmd_bisect.c asks;
 * bisect_print.c prints. */
#ifndef FACTS_BISECTION_H
#define FACTS_BISECTION_H

#include "commands/session/inputs.h"
#include "commands/session/intern.h"
#include "commands/session/session.h"
#include "search/bisect.h"
#include "search/reported.h"

#define FACTS_BISECT_ATTEMPTS 2

typedef struct facts_bisected {
    facts_target target; /* dir empty: not installed yet */
    facts_reported reported[FACTS_BISECT_ATTEMPTS];
    bool open[FACTS_BISECT_ATTEMPTS], known[FACTS_BISECT_ATTEMPTS];
    char why[400]; /* it could not be asked at all */
} facts_bisected;

typedef struct facts_bisection {
    const facts_options *options;
    const facts_invocation *call;
    facts_case c;
    char name[FACTS_NAME_MAX];
    const char *device_word; /* as --device has it */
    facts_task task;
    facts_by by;
    facts_bisected *at; /* owned; oldest first */
    size_t versions;
    bool dear[FACTS_BISECT_MOST]; /* would have to be installed */
    facts_intern *values;         /* what is compared; a value is its number */
    facts_bisect_result result;
    char device[112]; /* a GPU's name once it is known; empty before */
    size_t asked;     /* questions to workers */
    bool written;     /* the record exists; new lines are appended */
    bool cut_off;     /* the record that is resumed has no end */
} facts_bisection;

/* "9.25.1". */
const char *facts_bisection_version(const facts_bisection *b, size_t version);
/* Prints the answer for people. With --json the report package prints one object for each edge and
 * a last one for the whole search. Returns its exit code. */
int facts_bisection_print(const facts_bisection *b);

#endif
