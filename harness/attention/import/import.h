/* Logs and plans, read to the end in bounded memory: what problems are in them, how often, and what could not be read.
 *
 *   cudnn-frontend's log (CUDNN_FRONTEND_LOG_INFO=1)     the graph of each validate(), a line of JSON; lines with ERROR
 *   cuDNN's own log at level 3 (CUDNN_LOGLEVEL_DBG=3)    the graph of each finalize (cudnnBackendFinalizeGraphVisualize); error stacks
 *   cuDNN's own log at level 2                           error stacks alone: no graph is in it
 *   a call in text, and cases: pasted, or as `facts import` writes them of a trace, with their number
 *   plan JSON (CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION), alone or in a file of fattn_plan_save
 *
 * Lines of several threads may be mixed: an event of cuDNN names its thread, and what failed is held against the last graph of that thread.
 */
#ifndef FACTS_IMPORT_H
#define FACTS_IMPORT_H

#include <stddef.h>

#include "attention.h"

enum {
    FACTS_IMPORT_LINE = 16 << 20, /* bytes of a line (of a plan: FACTS_IMPORT_PLAN); a longer line
                                     is skipped and counted */
    FACTS_IMPORT_PLAN = 64 << 20,
    FACTS_IMPORT_PROBLEMS = 100000,  /* different problems that are kept */
    FACTS_IMPORT_UNREAD_KEPT = 1000, /* sentences that are kept */
    FACTS_IMPORT_LOG = 3,
    FACTS_IMPORT_LOG_TEXT = 240
};

/* A problem that was found. */
typedef struct facts_imported {
    const char *name; /* canonical */
    const char *file; /* where it was first */
    size_t line;
    size_t seen;
    uint64_t calls;           /* that a model made of it; 0: the file does not count calls */
    int cudnn, frontend;      /* 92000, 11800; 0: unknown */
    facts_import_notes notes; /* what stands in for something that the log does not say */
    int log_count;
    char log_text[FACTS_IMPORT_LOG]
                 [FACTS_IMPORT_LOG_TEXT]; /* what the log says went wrong with it, printable */
} facts_imported;

/* What a log names: "cuDNN" "9.27.0", "cudnn-frontend" "1.18.0", "GPU" "sm_90", ... */
typedef struct facts_import_named {
    const char *file;
    const char *what;
    char version[48];
} facts_import_named;

typedef struct facts_import facts_import; /* owner; opaque */

facts_import *facts_import_create(void);
/* Also name the GPU that a pasted text mentions: the first word that `is_gpu` knows. */
void facts_import_know_gpus(facts_import *import, bool (*is_gpu)(const char *word));
/* Reads a file ("-": standard input). False with a sentence if it cannot be opened or read.
 * Mistakes inside the file are counted and are no error. */
bool facts_import_file(facts_import *import, const char *path, facts_error *error);
/* The same of bytes in memory; `name` is copied. */
void facts_import_bytes(facts_import *import, const char *name, const char *bytes, size_t count);
size_t facts_import_count(const facts_import *import);
const facts_imported *facts_import_at(const facts_import *import, size_t i);
/* "file:line: sentence" for the i-th piece that could not be read. `*total` counts all; the first
 * FACTS_IMPORT_UNREAD_KEPT are kept. NULL: there is no such piece. */
const char *facts_import_unread(const facts_import *import, size_t i, size_t *total);
/* Failures in the log that belong to no graph. */
const char *facts_import_orphan(const facts_import *import, size_t i, size_t *total);
size_t facts_import_named_count(const facts_import *import);
const facts_import_named *facts_import_named_at(const facts_import *import, size_t i);
size_t facts_import_other_graphs(const facts_import *import); /* graphs without attention */
void facts_import_destroy(facts_import *import);

#endif
