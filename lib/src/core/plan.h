/* Plans, as the rest of the library makes and shares them. */
#ifndef FATTN_PLAN_H
#define FATTN_PLAN_H

#include "engine.h"
#include "fattn/fattn.h"
#include "problem/resolved_problem.h"

/* Overwrites the defaults with the caller's options. `given` may be NULL. Returns FATTN_OK;
 * FATTN_BAD_PROBLEM. */
fattn_status fattn__plan_options_read(fattn_plan_options *out, const fattn_plan_options *given);

/* Tries the backends of this thread's policy, in its order, except those that a rule denies. The
 * first backend that succeeds computes. If all fail, status and message are those of the first.
 * `resolved` is a problem that the library implements; `options` come from
 * fattn__plan_options_read. */
fattn_status fattn__plan_build(fattn_plan **out, fattn_context *context,
                               const fattn_problem *resolved, const fattn_plan_options *options);

/* Adds a reference to the plan. Each reference is given back with fattn_plan_destroy. */
fattn_plan *fattn__plan_retain(fattn_plan *plan);

/* A saved plan: the library's header, then cuDNN's JSON. The JSON contains compiled code, so the
 * library checks everything that it can before cuDNN reads a byte. These checks show damage, not
 * forgery: a caller who does not trust the bytes must sign them. */
/* The problem, the target and the configuration of a saved plan. The file holds the struct as it is
 * in memory: little-endian, without padding. */
typedef struct fattn__plan_header {
    char magic[8];
    uint32_t format;
    uint32_t header_bytes;
    int32_t cudnn_version;
    int32_t sm;
    uint64_t build;  /* fattn_context_info.build_id */
    uint64_t device; /* fattn_context_info.device_id */
    char device_name[64];
    fattn__problem_key problem;
    uint64_t graph; /* fattn__cudnn_graph */
    uint64_t payload_bytes;
    uint64_t payload_hash; /* XXH3 */
    fattn_engine config;
    uint64_t header_hash; /* XXH3 of everything before */
} fattn__plan_header;

/* Writes header and payload into one buffer. Fills magic, format, sizes and hashes. *bytes is
 * malloc'ed. Returns FATTN_OK; FATTN_NO_MEMORY. */
fattn_status fattn__plan_pack(fattn__plan_header *header, const char *payload, size_t payload_bytes,
                              char **bytes, size_t *count);

/* Checks magic, format, lengths and hashes. *payload points into `bytes`. Returns FATTN_OK;
 * FATTN_BAD_PLAN. */
fattn_status fattn__plan_unpack(fattn__plan_header *out, const char **payload, const char *bytes,
                                size_t count);

#endif
