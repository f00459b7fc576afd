/* One query head of one batch entry, with the data that a kernel has on chip. */
#ifndef FACTS_FLASH_HEAD_H
#define FACTS_FLASH_HEAD_H

#include "flash.h"
#include "flash_cast.h"

#define LOG2E 0x1.715476p+0F /* rounded to fp32 */
#define LN2 0x1.62e43p-1F
#define BLOCK_ROWS 16

typedef struct facts_range {
    int64_t first, last; /* [first, last) */
} facts_range;

typedef struct facts_head {
    const facts_kernel *kernel;
    const facts_launch *launch;
    const fref_problem *p;
    facts_grid in;
    facts_adder adder;
    int64_t b, h, hk, hv;
    int64_t tile, tiles, wide;      /* wide: the number of keys, rounded up to whole tiles */
    int64_t ld_qk, ld_v, ld_key;    /* row lengths of the arrays below */
    int64_t len_q, len_kv;          /* the lengths that the kernel uses; a liar's may be wrong */
    int64_t dim_qk;                 /* the channels that are multiplied */
    float attn_scale, scale, log2e; /* scale: of the logits, with the descales */
    double *q, *kt, *v;             /* [rows, ld_qk], [dim_qk, ld_key], [wide, ld_v] */
    double *k, *vt, *d_o, *o; /* backward: [wide, ld_qk], [dim_v, ld_key], [rows, ld_v] twice */
    float *stats;             /* backward: [rows], natural logarithms */
    double *memory;
} facts_head;

static inline bool facts_is_narrow(fref_type type)
{
    return type == FREF_E4M3 || type == FREF_E5M2;
}

/* Returns 1 for a scale that is not set. */
static inline double facts_or_1(double scale)
{
    return scale > 0.0 || scale < 0.0 ? scale : 1.0;
}

/* Loads a head; for a backward also O, dO and Stats. False if memory is short. */
bool facts_head_create(facts_head *out, const facts_kernel *kernel, const facts_launch *launch,
                       int64_t b, int64_t h);
void facts_head_destroy(facts_head *head);

/* The keys that the kernel reads for row i, within [0, wide). */
facts_range facts_head_keys(const facts_head *head, int64_t i);
/* The score in natural units, from the product of q and k: scaled, modified, biased, each step
 * rounded to fp32. slope may be NULL. */
float facts_head_score(const facts_head *head, int64_t i, int64_t j, float dot, float *slope);
/* 0 or 1/(1-p); 1 without dropout. */
float facts_head_keep(const facts_head *head, int64_t i, int64_t j);
/* Writes value * scale, cast to the type, to element (b,h,s,c) of the output. */
void facts_slot_put(const facts_slot *slot, const int64_t at[4], double value);

#endif
