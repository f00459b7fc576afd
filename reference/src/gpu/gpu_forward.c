/* The forward pass on a GPU; ref_forward.c explains each step. */
#include <math.h>

#include "amax.h"
#include "gpu/gpu_run.h"

static int64_t tiles_of(int64_t n)
{
    return n > 0 ? (n + FREF__TILE - 1) / FREF__TILE : 1;
}

/* A small problem has too few tiles for a GPU: several blocks share the keys of each. Their number
 * follows from the problem alone, because it affects the rounding. */
static void share_keys(fref__run *run)
{
    fref__call *c = &run->call;
    const int64_t keys = tiles_of(c->keys),
                  blocks = run->heads * tiles_of(c->rows) * (c->ld_v / FREF__TILE);
    const int64_t parts = blocks < run->gpu->busy ? run->gpu->busy / blocks : 1;
    const int64_t of_part = parts < keys ? (keys + parts - 1) / parts : 1;
    c->parts = (int32_t)((keys + of_part - 1) / of_part);
    c->keys_of_part = (int32_t)(of_part * FREF__TILE);
}

static void sums_of_rows(fref__run *run, int64_t ld, int count)
{
    fref__call *c = &run->call;
    const int64_t size = c->parts * c->heads * c->rows_padded * ld;
    double *all = fref__run_doubles(run, FREF__SUMS_ROWS, size * (count + 1));
    for (int n = 0; n < FREF__SUMS; n++)
        c->sum[n] = all && n < count ? all + n * size : NULL;
    c->sum[FREF__SUMS - 1] = all ? all + count * size : NULL;
    c->lossy = fref__run_flags(run, c->heads * c->rows_padded / FREF__TILE);
}

static void forward_slice(fref__run *run, int64_t bytes_of_head)
{
    fref__call *c = &run->call;
    const bool wants_errors = fref_has_errors(&c->forward.o) || c->forward.o.neff;
    const bool wants_o = c->forward.o.value || wants_errors;
    const fref__kernel lost = wants_errors ? FREF__kernel_sum_forward_lost : FREF__KERNEL_COUNT;
    const fref__kernel sum = wants_errors ? FREF__kernel_sum_forward : FREF__kernel_sum_values;
    c->keeps_scores = !wants_errors;
    fref__run_prepare(run);
    fref__run_plan_chunks(run, bytes_of_head, fref__run_score_matrices(run));
    if (wants_o)
        sums_of_rows(run, c->ld_v, wants_errors ? 4 : 1);
    if (c->forward.o.nu)
        c->channels[3] = fref__run_doubles(run, FREF__CHANNELS, c->heads_v);
    fref__run_relate(run);
    for (int64_t row0 = 0; row0 < c->rows_padded && run->status == 0; row0 += c->chunk_rows) {
        fref__run_take_chunk(run, row0);
        fref__run_scores(run, 0);
        fref__run_facts(run, FREF__kernel_forward_facts);
        if (wants_o)
            fref__run_sums(run, sum, lost, fref__run_row_tiles(run), c->ld_v);
    }
    if (wants_o)
        fref__run_launch(run, FREF__kernel_finish_forward,
                         fref__run_finish_blocks(c->heads, c->rows), FREF__THREADS);
}

int fref_gpu_forward(fref_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod,
                     const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                     const fref_rounding *rounding, const fref_forward_out *out,
                     struct CUstream_st *stream, char error[256])
{
    fref__run run;
    fref__run_start(&run, gpu, problem, mod, rounding, stream, error);
    run.goes_on = gpu->owes && gpu->ahead;
    fref__call *c = &run.call;
    c->q = *q;
    c->k = *k;
    c->v = *v;
    c->forward = *out;
    c->freedom = fref_has_freedom(&out->o);
    share_keys(&run);
    fref__run_cast_p(&run, exp2(-rounding->thr));
    c->z_o = fref__z_of(run.heads * c->rows * problem->dim_v);
    fref__run_amax(&run, out->o.amax);
    fref__run_amax(&run, out->amax_s);
    const int64_t bytes_of_head = (c->rows_padded * (c->ld_qk + 5 * c->parts * c->ld_v + 32) +
                                   c->keys_padded * (c->ld_qk + c->ld_v)) *
                                  (int64_t)sizeof(double);
    fref__run_plan(&run, bytes_of_head, fref__run_score_matrices(&run), 1);
    for (int64_t head = 0; head < run.heads && c->rows > 0 && run.status == 0;
         head += run.heads_of_slice) {
        fref__run_take_slice(&run, head);
        forward_slice(&run, bytes_of_head);
    }
    if (gpu->ahead && run.status == 0)
        gpu->owes = true;
    else
        fref__run_end(&run);
    gpu->scores_left =
        run.status == 0 && c->heads > 0 && c->keeps_scores && fref__run_is_one_chunk(&run);
    return run.status;
}
