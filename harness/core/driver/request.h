/* The requests of the supervisor: JSON Lines, see harness/PROTOCOL.md. Pure: text in, values out.
 */
#ifndef FACTS_REQUEST_H
#define FACTS_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "language/case.h"
#include "words/fail.h"

#define FACTS_REQUEST_MAX ((size_t)1 << 20) /* bytes of one line */
#define FACTS_REQUEST_PATH 4096

#define FACTS_DEVICE_LIST(X) X(GPU, "gpu") X(DESCRIBED, "described") X(CPU, "cpu")
#define AS_ENUM(symbol, word) FACTS_DEVICE_##symbol,
typedef enum facts_device { FACTS_DEVICE_LIST(AS_ENUM) FACTS_DEVICE_COUNT } facts_device;
#undef AS_ENUM

/* The program that computes the expected values: a GPU if there is one that can, else the C
 * reference; the C reference. */
#define FACTS_ORACLE_LIST(X) X(GPU, "gpu") X(CPU, "cpu")
#define AS_ENUM(symbol, word) FACTS_ORACLE_##symbol,
typedef enum facts_oracle_choice {
    FACTS_ORACLE_LIST(AS_ENUM) FACTS_ORACLE_COUNT
} facts_oracle_choice;
#undef AS_ENUM

#define FACTS_DO_LIST(X) X(DECIDE, "decide") X(PLAN, "plan") X(RUN, "run") X(TIME, "time")
#define AS_ENUM(symbol, word) FACTS_DO_##symbol,
typedef enum facts_do { FACTS_DO_LIST(AS_ENUM) FACTS_DO_COUNT } facts_do;
#undef AS_ENUM

/* The first line: one build on one device. */
typedef struct facts_target_request {
    char cudnn_dir[FACTS_REQUEST_PATH], nvrtc[FACTS_REQUEST_PATH],
        driver[FACTS_REQUEST_PATH]; /* "": none */
    facts_device device;
    int32_t ordinal, threads;
    facts_oracle_choice oracle;
    bool plans;         /* requests may name a plan_dir */
    int64_t supervisor; /* process id of the parent; 0: unknown */
    char *device_json;  /* owned; NULL unless described */
} facts_target_request;

/* Every other line. */
typedef struct facts_request {
    int64_t id;
    char text[FACTS_NAME_MAX]; /* the case */
    facts_do what;
    bool explain, trace, first_bad_only, keep;
    bool expected;  /* with `standalone`: the expected values too */
    bool unguarded; /* `unguard` of the language */
    bool fresh;     /* only a process that has launched no engine may answer */
    int32_t from_config;
    char plan_dir[FACTS_REQUEST_PATH], dump[FACTS_REQUEST_PATH],
        standalone[FACTS_REQUEST_PATH]; /* "": none */
} facts_request;

/* Both return false with one line in `error`; the caller then owns nothing. */
bool facts_target_request_read(facts_target_request *out, const char *line, size_t length,
                               facts_error *error);
void facts_target_request_free(facts_target_request *request);
bool facts_request_read(facts_request *out, const char *line, size_t length, facts_error *error);

#endif
