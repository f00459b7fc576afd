/* The arguments that a call of a plan must have: every address that the problem needs, with the
 * size and shape of its memory. The list is made once, with the plan, so that checking a call is
 * one pass over a short list. */
#ifndef FATTN_ARGUMENTS_H
#define FATTN_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fattn/fattn.h"

struct gpu_driver;

/* The bytes of a tensor, relative to its address: rows of `row` bytes, repeated over the axes. Axes
 * that continue a row are merged into it, so that a dense tensor is one row. */
typedef struct fattn__footprint {
    int64_t
        span; /* bytes from the first to the last, both included; INT64_MAX: too many to count */
    int64_t row;
    int32_t rank;
    int32_t reserved;
    struct {
        int64_t count, stride; /* stride in bytes, not 0 */
    } axis[4];                 /* in the order of their strides, the smallest first */
} fattn__footprint;

void fattn__footprint_of(fattn__footprint *out, const int64_t dim[4], const int64_t strides[4],
                         int64_t element_bytes);
/* Do two tensors share a byte if the second starts `distance` bytes after the first? Interleaved
 * tensors (one buffer for Q, K and V) do not. A pair whose search would take too long counts as not
 * shared. */
bool fattn__footprints_meet(const fattn__footprint *a, const fattn__footprint *b, int64_t distance);

typedef struct fattn__argument {
    const char *name;
    int32_t offset; /* in fattn_tensors, of the address or of the list */
    int32_t place;  /* in the list; -1: the address itself */
    bool written;
    fattn__footprint footprint;
} fattn__argument;

#define FATTN__MAX_ARGUMENTS 96

#define FATTN__KNOWN_SETS 16

typedef struct fattn__arguments {
    int32_t count;
    int32_t reserved;
    size_t workspace_bytes;
    _Atomic uint64_t known_good[FATTN__KNOWN_SETS]; /* hashes of the sets of addresses that passed
                                                       the check; 0: none */
    fattn__argument at[FATTN__MAX_ARGUMENTS];
} fattn__arguments;

void fattn__arguments_of(fattn__arguments *out, const fattn_problem *resolved,
                         size_t workspace_bytes);

/* Checks the addresses of a call. NULL is always refused. Unless `trusting` (the problem's guards are off), these are refused too:
 * an address that is not 16-byte aligned, an address that is not memory of `device` (with `cuda`), and an output or workspace that
 * shares a byte with another buffer. The plan remembers a set of addresses that passed, so the driver is asked once.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (the message names the argument). */
fattn_status fattn__arguments_check(fattn__arguments *arguments, const fattn_tensors *tensors,
                                    bool trusting, const struct gpu_driver *cuda, int device);

#endif
