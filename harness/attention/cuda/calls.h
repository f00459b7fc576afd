/* What the kernels are given, by value. Compiled by C and by CUDA C++; everything they point to is
 * in device memory. */
#ifndef FACTS_CALLS_H
#define FACTS_CALLS_H

#include "numbers/bits.h"
#include "numbers/fill/fill_element.h"
#include "numbers/judge/judge_sums.h"

/* Kernels that do several things in one launch, in the order in which things that were put off are
 * launched (harness/attention/worker/gpu/worker_gpu.h). */
#define FACTS_TOGETHER_LIST(X) X(gaps) X(fill) X(poison) X(differ) X(changed) X(owned) X(copy)
/* All, once. X(name): facts_kernel_name(facts_name_call) */
#define FACTS_KERNEL_LIST(X)                                                                       \
    FACTS_TOGETHER_LIST(X)                                                                         \
    X(set) X(noise) X(shared) X(repeat) X(hash) X(round) X(survey) X(judge) X(walk) X(walk_again)

/* A tensor in its storage: element (b,h,s,d) is at first + b*stride[0] + ... elements; of a packed
 * one row s of entry b is token start[b] + s, and exists where s < live[b]. */
typedef struct facts_strided {
    int64_t dim[4], stride[4], first;
    const int64_t *start; /* NULL: not packed */
    const int32_t *live;
    int32_t dtype;
    int32_t lane_bits; /* facts_lane_bits */
} facts_strided;

/* 2^n threads side by side read a row: a warp at most; more where there are too few rows to keep a
 * GPU busy. */
FACTS_BOTH int32_t facts_lane_bits(int64_t rows, int64_t channels)
{
    int32_t bits = 0;
    while ((int64_t)1 << bits < channels && (bits < 5 || (bits < 8 && rows << bits < 1 << 15)))
        bits++;
    return bits;
}

/* The same where joining a row's lanes costs as much as a few elements: a warp at most, and fewer
 * where there are rows enough. */
FACTS_BOTH int32_t facts_joined_lane_bits(int64_t rows, int64_t channels)
{
    int32_t bits = facts_lane_bits(rows, channels);
    bits = bits < 5 ? bits : 5;
    while (bits > 3 && rows << (bits - 1) >= 1 << 17)
        bits--;
    return bits;
}

/* A launch does several things where no order between them is needed, each by blocks of its own:
 * blocks[n] of them are of one[n].
 */
#define FACTS_FILLS_TOGETHER 8
#define FACTS_JUDGED_TOGETHER 12
#define FACTS_PLACES_TOGETHER 24

/* Counters, added to. */
typedef unsigned long long facts_counter;

typedef struct facts_one_fill {
    facts_recipe recipe;
    void *storage;
    int32_t lane_bits;
} facts_one_fill;

typedef struct facts_fill_call {
    int32_t blocks[FACTS_FILLS_TOGETHER];
    facts_one_fill one[FACTS_FILLS_TOGETHER];
} facts_fill_call;

typedef struct facts_one_gaps {
    facts_gaps gaps;
    void *storage;
    int64_t elements;
} facts_one_gaps;

typedef struct facts_gaps_call {
    int32_t blocks[FACTS_FILLS_TOGETHER];
    facts_one_gaps one[FACTS_FILLS_TOGETHER];
} facts_gaps_call;

/* Poison in elements [from, to) of a storage; negative ones are the guard before it. */
typedef struct facts_one_poison {
    uint32_t code[FACTS_PATTERN_PERIOD];
    int32_t dtype;
    void *storage;
    int64_t from, to;
} facts_one_poison;

typedef struct facts_poison_call {
    int32_t blocks[FACTS_PLACES_TOGETHER];
    facts_one_poison one[FACTS_PLACES_TOGETHER];
} facts_poison_call;

/* Those of them that are another value now. */
typedef struct facts_one_changed {
    facts_one_poison poison;
    facts_counter *count;
} facts_one_changed;

typedef struct facts_changed_call {
    int32_t blocks[FACTS_PLACES_TOGETHER];
    facts_one_changed one[FACTS_PLACES_TOGETHER];
} facts_changed_call;

/* The same of the elements of one tensor, each place once. */
typedef struct facts_one_owned {
    uint32_t code[FACTS_PATTERN_PERIOD];
    facts_strided view;
    const void *storage;
    facts_counter *count;
} facts_one_owned;

typedef struct facts_owned_call {
    int32_t blocks[FACTS_JUDGED_TOGETHER];
    facts_one_owned one[FACTS_JUDGED_TOGETHER];
} facts_owned_call;

typedef struct facts_one_copy {
    void *to; /* 16 byte aligned, as `from` */
    const void *from;
    int64_t bytes;
} facts_one_copy;

typedef struct facts_copy_call {
    int32_t blocks[FACTS_PLACES_TOGETHER];
    facts_one_copy one[FACTS_PLACES_TOGETHER];
} facts_copy_call;

typedef struct facts_set_call {
    unsigned char *to;
    int64_t bytes;
    unsigned char byte;
} facts_set_call;

typedef struct facts_noise_call {
    unsigned char *to;
    int64_t bytes;
    uint64_t seed;
} facts_noise_call;

/* NaN in all shared memory of a block, `words` of four bytes; held: how many were NaN before. */
typedef struct facts_shared_call {
    int32_t words;
    facts_counter *held; /* NULL: not counted */
} facts_shared_call;

/* Bytes that differ. */
typedef struct facts_one_differ {
    const unsigned char *a, *b;
    int64_t bytes;
    facts_counter *count;
} facts_one_differ;

typedef struct facts_differ_call {
    int32_t blocks[FACTS_PLACES_TOGETHER];
    facts_one_differ one[FACTS_PLACES_TOGETHER];
} facts_differ_call;

/* Elements of rows that owe a value and differ between two storages (by more than the order of a
 * sum); the least index of one. */
typedef struct facts_repeat_call {
    facts_strided view;
    const void *a, *b;
    const int32_t *expects; /* [batch, rows] of facts_row_expects; NULL: a value everywhere */
    const double *slack;    /* over the dims; NULL: other bits are enough */
    double share;
    facts_counter *count, *least;
} facts_repeat_call;

typedef struct facts_hash_call {
    facts_strided view;
    const void *storage;
    facts_counter *sum;
} facts_hash_call;

/* Dense doubles rounded into a storage; a code is its number times `unit`. */
typedef struct facts_round_call {
    facts_strided view;
    const double *values;
    double unit;
    void *storage;
} facts_round_call;

/* Elements of rows that owe a value: those that still are poison, those that are not finite; the
 * least index of each. For rows that nobody judges. */
typedef struct facts_survey_call {
    uint32_t code[FACTS_PATTERN_PERIOD];
    facts_strided view;
    const void *storage;
    const int32_t *expects;
    facts_counter *unwritten, *first_unwritten, *not_finite, *first_not_finite;
} facts_survey_call;

/* Compares rows of a tensor with their expected values: dense [batch, heads, rows, channels].
 * storage NULL: a lie is compared (judge_row.h). */
typedef struct facts_one_judging {
    facts_limits limits;
    facts_strided view; /* lane_bits: 5 at most */
    const void *storage;
    const int32_t *expects;             /* [batch, rows] */
    const double *want, *sigma, *bound; /* sigma NULL: bound alone */
    int32_t lie;
    facts_judged_row *out; /* [batch, heads, rows] */
} facts_one_judging;

typedef struct facts_judge_call {
    int32_t blocks[FACTS_JUDGED_TOGETHER];
    facts_one_judging one[FACTS_JUDGED_TOGETHER];
} facts_judge_call;

/* Rows that were judged, [slices, rows], added up slice by slice; then the second walk, in the same
 * slices. */
typedef struct facts_one_walk {
    facts_judged_rows rows;
    int64_t slices, of_slice;
    facts_judged_slice *out;
} facts_one_walk;

typedef struct facts_walk_call {
    int32_t blocks[FACTS_JUDGED_TOGETHER];
    facts_one_walk one[FACTS_JUDGED_TOGETHER];
} facts_walk_call;

typedef facts_walk_call facts_walk_again_call;

#endif
