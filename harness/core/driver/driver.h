/* The door between the core and an operation. The core owns cases, targets, requests, rows, deadlines and records, and the loop
 * over the steps of a case. A driver owns one operation: harness/attention is one, harness/test/softmax another.
 *
 * `facts` gets a facts_driver; it loads no library of the operation. `facts-worker` gets a facts_worker_driver. */
#ifndef FACTS_DRIVER_H
#define FACTS_DRIVER_H

#include <jansson.h>

#include "request.h"
#include "words/verdict.h"

struct facts_invocation; /* commands/session/inputs.h */

/* What `facts` needs (facts_run). */
typedef struct facts_driver {
    const facts_language *language;
    const char *proof; /* a case that every target accepts, for `facts doctor` */
    /* `facts import`: makes cases of logs. NULL: the operation reads no logs. */
    int (*import)(const struct facts_invocation *call);
} facts_driver;

/* One build on one device, opened by the driver. */
typedef struct facts_worker facts_worker;

typedef enum facts_health {
    FACTS_HEALTH_FRESH, /* this process has launched no engine */
    FACTS_HEALTH_USED,
    FACTS_HEALTH_LOST /* the device cannot be trusted: the process ends after its reply */
} facts_health;

/* What is found about a case, or about its configuration in hand: the part of a row that every operation has. */
typedef struct facts_result {
    facts_verdict verdict;
    bool refused; /* "supported":false */
    bool again;   /* no answer: another process must be asked */
    /* reason{}; "" and NULL: none. They replace what describe() writes there. */
    const char *reason_class, *remedy;
    char text[1024];
} facts_result;

/* One request in work. A driver's own job begins with it. */
typedef struct facts_job {
    facts_worker *worker;
    facts_request request;
    int32_t config; /* the configuration in hand; -1: none, or it has no number */
    facts_result result;
    /* Reports the step in work, in addition to the core's own "decide" and "build": "reference", "exec", "judge". If the worker
     * then dies or is late, the step decides whether the engine or FACTS failed. */
    void (*say)(void *job, const char *step);
} facts_job;

/* Both return false, for a step that ends the answer here. refuse: the verdict is `unsupported`, and "supported" is false. */
bool facts_job_end(facts_job *job, facts_verdict verdict, const char *reason_class,
                   const char *text);
bool facts_job_refuse(facts_job *job, const char *reason_class, const char *text);
/* Sets a member of a row, or of reason{} of a row. NULL or "": no member, or as it was. */
void facts_put_text(json_t *object, const char *key, const char *text);
void facts_put_reason(json_t *row, const char *key, const char *text);

/* What `facts-worker` calls (facts_worker_run). */
typedef struct facts_worker_driver {
    const facts_language *language;
    size_t job_bytes; /* of the driver's own job; the core makes it, all zero but the facts_job */

    /* Opens a target. False: *reply is {"failed":...} (harness/PROTOCOL.md). Close it in any case. */
    bool (*open)(facts_worker **out, const facts_target_request *request, json_t **reply);
    /* Launches something on the device. Always fills *reply: {"ready":...} and true, or {"failed":...} and false. */
    bool (*probe)(facts_worker *worker, json_t **reply);
    facts_health (*health)(const facts_worker *worker);
    void (*close)(facts_worker *worker);

    /* A case. Each step returns false if the answer ends there; job->result then says why. The core asks for the configurations
     * of a case that can be answered, takes them one after another, and goes as far as the request says. */
    bool (*begin)(facts_job *job, const facts_case *c); /* resolves it */
    bool (*decide)(facts_job *job);                     /* asks what the target would do */
    /* Returns how many there are, the number of the first in *first (-1: it has no number). 0: none, job->result says why. */
    int32_t (*configurations)(facts_job *job, int32_t *first);
    bool (*choose)(facts_job *job);  /* the configuration job->config; compiles nothing */
    bool (*prepare)(facts_job *job); /* compiles it */
    bool (*execute)(facts_job *job); /* runs it */
    void (*judge)(facts_job *job);   /* compares its answers with the expected values */
    /* Adds the operation's members to a row that has `case` and `verdict`. May be called after any step. */
    void (*describe)(facts_job *job, json_t *row);
    /* Releases the configuration in hand, or keeps it for turns if `keep`; true: it is kept. last: no other follows. */
    bool (*leave)(facts_job *job, bool keep, bool last);
    /* Launches the kept configurations again. Returns the object `time` of PROTOCOL.md; NULL: a launch failed. */
    json_t *(*turn)(facts_job *job);
    void (*end)(facts_job *job); /* releases everything but the job itself */
} facts_worker_driver;

#endif
