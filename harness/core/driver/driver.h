/* The door between the core and an operation. The core owns targets, requests, rows and deadlines. A driver owns one operation:
 * harness/attention is one. */
#ifndef FACTS_DRIVER_H
#define FACTS_DRIVER_H

#include <jansson.h>

#include "request.h"

/* One build on one device, opened by the driver. */
typedef struct facts_worker facts_worker;

typedef enum facts_health {
    FACTS_HEALTH_FRESH, /* this process has launched no engine */
    FACTS_HEALTH_USED,
    FACTS_HEALTH_LOST /* the device cannot be trusted: the process ends after its reply */
} facts_health;

/* What `facts-worker` calls. */
typedef struct facts_worker_driver {
    const facts_language *language;
    /* Opens a target. False: *reply is {"failed":...} (harness/PROTOCOL.md). Close it in any case. */
    bool (*open)(facts_worker **out, const facts_target_request *request, json_t **reply);
    /* Launches something on the device. Always fills *reply: {"ready":...} and true, or {"failed":...} and false. */
    bool (*probe)(facts_worker *worker, json_t **reply);
    void (*close)(facts_worker *worker);
    facts_health (*health)(const facts_worker *worker);
    /* Answers one request with exactly one reply that says "last". */
    void (*serve)(facts_worker *worker, const facts_request *request);
    /* Releases the case that is kept. */
    void (*forget)(facts_worker *worker);
} facts_worker_driver;

#endif
