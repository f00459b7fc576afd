/* One call of a plan: a walk over the chunks, every kernel launched for each. */
#ifndef FATTN_MATH_RUN_H
#define FATTN_MATH_RUN_H

#include "math_params.h"
#include "core/engine.h"
#include "math_chunks.h"
#include "math_kernels.h"
#include "math_sum.h"
#include "problem/resolved_problem.h"

/* A plan's state. */
typedef struct fattn__math_state {
    fattn__chunks chunks;
    int32_t tensor_count;     /* of the score_mod */
    fattn__program score;     /* empty without a score_mod, as the rest */
    fattn__program gradient;
    fattn__program tensors[]; /* backward: tensor_count, filled where a gradient is wanted */
} fattn__math_state;

/* What does not change over a call, and the chunk that is worked on. */
typedef struct fattn__math_run {
    const fattn_plan *plan;
    const fattn_problem *p;
    const fattn_tensors *t;
    const fattn__math_state *state;
    char *workspace; /* aligned */
    struct CUstream_st *stream;
    fattn__program_tensors tensors; /* of the score_mod */
    fattn__matrix q, k, v, o, d_o, dq, dk, dv, bias, mask;

    int64_t batch, batches, head, heads, row, rows, key, keys; /* the chunk; extents without tiles' padding */
    fattn__call chunk;                                         /* what all its launches share */
} fattn__math_run;

/* What the product q k is multiplied with, beside a scale in memory. */
float fattn__math_factor(const fattn_problem *p);

/* tensors.c: from a call's addresses to the kernels' matrices. */
fattn_status fattn__math_matrices(fattn__math_run *r);
fattn__matrix fattn__math_stats(const fattn__math_run *r);
fattn__lengths fattn__math_lengths(const fattn__math_run *r);
fattn__adjustments fattn__math_adjustments(const fattn__math_run *r);
void fattn__math_pack_sum(fattn__sum *sum, const fattn__math_run *r, fattn__role gradient); /* where `sum` goes to a packed tensor */

/* Lays out what is paged, of the batch entries of the chunk. */
fattn_status fattn__math_lay_out(fattn__math_run *r);
fattn_status fattn__math_dump(const fattn__math_run *r);

void *fattn__math_part_at(const fattn__math_run *r, fattn__math_part part); /* NULL: there is none */

/* Launches one kernel of a family, whose first member is `family`. `a` and `b` are the types of the two operands. */
fattn_status fattn__math_product(const fattn__math_run *r, fattn__kernel family, int32_t a, int32_t b, fattn__call *call);
/* The same for the products over keys and over rows, whose families have two widths. */
fattn_status fattn__math_product_keys(const fattn__math_run *r, fattn__kernel family, int32_t a, int32_t b, fattn__call *call);
fattn_status fattn__math_product_rows(const fattn__math_run *r, fattn__kernel family, int32_t a, int32_t b, fattn__call *call);
fattn_status fattn__math_rows(const fattn__math_run *r, fattn__kernel which, int threads_a_row, fattn__call *call);
fattn_status fattn__math_modify(const fattn__math_run *r, fattn__kernel which, const fattn__program *program, fattn__call *call);

/* The chunk's walk; `r` has its chunk set. */
fattn_status fattn__math_forward_keys(fattn__math_run *r);
fattn_status fattn__math_backward_rows(fattn__math_run *r);
fattn_status fattn__math_backward_keys(fattn__math_run *r);
fattn_status fattn__math_backward_end(fattn__math_run *r);

/* The gradients of what was added to the scores, from what was left of each score. */
fattn_status fattn__math_added(const fattn__math_run *r);
fattn_status fattn__math_added_end(const fattn__math_run *r);

fattn_status fattn__math_run_plan(const fattn_plan *plan, const fattn_tensors *tensors, struct CUstream_st *stream);

#endif
