/* One call of a plan: a loop over the chunks, which launches every kernel for each. */
#ifndef FATTN_MATH_RUN_H
#define FATTN_MATH_RUN_H

#include "core/engine.h"
#include "math_chunks.h"
#include "math_kernels.h"
#include "math_params.h"
#include "math_sum.h"
#include "problem/resolved_problem.h"

/* A plan's state. */
typedef struct fattn__math_state {
    fattn__chunks chunks;
    int32_t tensor_count; /* of the score_mod */
    fattn__program score; /* empty without a score_mod, like the next members */
    fattn__program gradient;
    fattn__program
        tensors[]; /* backward: tensor_count programs, filled if a gradient is asked for */
} fattn__math_state;

/* The data of a call, and its current chunk. */
typedef struct fattn__math_run {
    const fattn_plan *plan;
    const fattn_problem *p;
    const fattn_tensors *t;
    const fattn__math_state *state;
    char *workspace; /* aligned */
    struct CUstream_st *stream;
    fattn__program_tensors tensors; /* of the score_mod */
    fattn__matrix q, k, v, o, d_o, dq, dk, dv, bias, mask;

    int64_t batch, batches, head, heads, row, rows, key,
        keys;          /* the chunk; its extents without the padding of tiles */
    fattn__call chunk; /* parameters that all launches of the chunk share */
} fattn__math_run;

/* Makes the kernels' matrices from the addresses of a call. */
fattn_status fattn__math_matrices(fattn__math_run *r);
fattn__matrix fattn__math_stats(const fattn__math_run *r);
fattn__lengths fattn__math_lengths(const fattn__math_run *r);
fattn__adjustments fattn__math_adjustments(const fattn__math_run *r);
void fattn__math_pack_sum(fattn__sum *sum, const fattn__math_run *r,
                          fattn__role gradient); /* if `sum` writes a ragged tensor */

/* Copies the paged tensors of the chunk's batch entries into dense ones. */
fattn_status fattn__math_lay_out(fattn__math_run *r);
fattn_status fattn__math_dump(const fattn__math_run *r);

void *fattn__math_part_at(const fattn__math_run *r, fattn__math_part part); /* NULL: no such part */

/* Launches the kernels of the chunk that is set in `r`. */
fattn_status fattn__math_forward_keys(fattn__math_run *r);
fattn_status fattn__math_backward_rows(fattn__math_run *r);
fattn_status fattn__math_backward_keys(fattn__math_run *r);
fattn_status fattn__math_backward_end(fattn__math_run *r);

/* The gradients of the bias and of the score_mod's tensors, from the kept value of each score. */
fattn_status fattn__math_added(const fattn__math_run *r);
fattn_status fattn__math_added_end(const fattn__math_run *r);

fattn_status fattn__math_run_plan(const fattn_plan *plan, const fattn_tensors *tensors,
                                  struct CUstream_st *stream);

#endif
