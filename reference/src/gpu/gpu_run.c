#include "gpu/gpu_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "amax.h"
#include "freedom.h"
#include "number.h"
#include "score.h"

#define MOST_BYTES ((size_t)12 << 30)
#define LITTLE_BYTES ((size_t)512 << 20)

enum { FLAGGED = 3 }; /* kinds of sums of a slice whose tiles have flags */

static int64_t padded(int64_t n, int64_t to)
{
    return n <= 0 ? to : (n + to - 1) / to * to;
}

static fref__limits limits(fref__precision p)
{
    return (fref__limits){ p.unit_roundoff, p.eta, p.tiny, p.max };
}

static fref__limits limits_of(fref_type type, double scale)
{
    return limits(fref__precision_scaled(type, scale));
}

/* Of tiles of channels, each with itself or another. */
static int64_t pairs_of(int64_t ld)
{
    return ld / FREF__TILE * (ld / FREF__TILE + 1) / 2;
}

/* The name of the missing part, or NULL. */
static const char *lacks(const fref_problem *p, const fref_gpu_mod *mod)
{
    if (p->keys > INT32_MAX - FREF__PAD || p->rows > INT32_MAX - FREF__PAD ||
        p->batch * p->heads_q > INT32_MAX)
        return "more than 2^31 rows, keys or heads";
    if (p->row_sample || p->key_sample)
        return "a sample of rows or keys";
    if (mod && (mod->kind < 0 || mod->kind >= FREF_MOD_COUNT))
        return "a score modification without a closed form";
    return NULL;
}

void fref__run_start(fref__run *run, fref_gpu *gpu, const fref_problem *problem,
                     const fref_gpu_mod *mod, const fref_rounding *rounding,
                     struct CUstream_st *stream, char error[256])
{
    *run = (fref__run){ .gpu = gpu, .stream = stream, .error = error };
    gpu->runs++;
    gpu->scores_left = false;
    fref__call *c = &run->call;
    c->problem = *problem;
    c->problem.modify = NULL;
    c->rounding = *rounding;
    if (mod)
        c->mod = *mod;
    if (problem->bias)
        c->bias = *problem->bias;
    const fref_scales *scales = &problem->scales;
    c->in = limits_of(rounding->in, 0.0);
    c->bias_to = limits_of(rounding->bias, 0.0);
    c->of_ds = limits_of(rounding->ds, scales->scale_dp);
    const double scale = fabs(problem->scale);
    c->floor_ds = c->of_ds.eta / (scale > 0.0 && scale < 1.0 ? scale : 1.0);
    c->most_ds = scale > 0.0 ? c->of_ds.max / scale : (double)INFINITY;
    c->to_o = limits_of(rounding->out, scales->scale_o);
    c->to_q = limits_of(rounding->out, scales->scale_dq);
    c->to_k = limits_of(rounding->out, scales->scale_dk);
    c->to_v = limits_of(rounding->out, scales->scale_dv);
    c->gamma_p = fref__or_1(scales->scale_s) * fref__or_1(scales->descale_s);
    c->gamma_ds = fref__or_1(scales->scale_dp) * fref__or_1(scales->descale_dp);
    c->masked = c->mod.seen.data || c->mod.tiles;
    c->scored = c->mod.kind != FREF_MOD_NONE || problem->bias || c->masked || problem->alibi;
    c->sloped = c->mod.kind == FREF_MOD_SOFTCAP || c->mod.kind == FREF_MOD_TEMPERATURE;
    c->ld_qk = padded(problem->dim_qk, FREF__TILE);
    c->ld_v = padded(problem->dim_v, FREF__TILE);
    c->group_k = problem->heads_q / problem->heads_k;
    c->group_v = problem->heads_q / problem->heads_v;
    run->heads = problem->batch * problem->heads_q;
    const char *missing = lacks(problem, mod);
    if (missing) {
        snprintf(error, 256, "the reference on the GPU does not support %s", missing);
        run->status = ENOTSUP;
        return;
    }
    c->parts = 1;
    c->rows = problem->rows;
    c->rows_padded = padded(c->rows, FREF__PAD);
    c->keys = problem->keys;
    c->keys_padded = padded(c->keys, FREF__PAD);
    c->trouble = (int32_t *)(uintptr_t)gpu->trouble;
    run->zeros.related = fref__run_keep_zeros(
        run, 4 * run->heads * (1 + pairs_of(c->ld_qk > c->ld_v ? c->ld_qk : c->ld_v)) *
                 (int64_t)sizeof *c->related_blocks);
}

void fref__run_cast_p(fref__run *run, double scale)
{
    const fref_problem *p = &run->call.problem;
    run->call.of_p = limits(
        fref__precision_of_p(p, run->call.rounding.in, fref__or_1(p->scales.scale_s) * scale));
}

void fref__run_amax(fref__run *run, double *out)
{
    if (out)
        fref__run_clear(run, out, 3 * (int64_t)sizeof *out);
}

static void check(fref__run *run, int result)
{
    if (run->status == 0 &&
        gpu_driver_say(run->gpu->driver, result, "the oracle on the GPU failed", run->error) != 0)
        run->status = EIO;
}

int fref__run_end(fref__run *run)
{
    const int result = run->gpu->driver->stream_synchronize(run->stream);
    run->gpu->owes = false;
    check(run, result);
    if (run->status == 0 && *run->gpu->trouble) {
        snprintf(run->error, 256,
                 "the reference on the GPU does not support a NaN, an infinity or more than 2^120 "
                 "in the inputs");
        run->status = ENOTSUP;
    }
    return run->status;
}

static void *fref__run_memory(fref__run *run, fref__buffer which, int64_t bytes)
{
    fref_gpu *gpu = run->gpu;
    const size_t size = bytes > 0 ? (size_t)bytes : 1;
    if (run->status != 0)
        return NULL;
    if (gpu->buffer[which].bytes < size) {
        if (gpu->buffer[which].bytes > 0) {
            gpu->driver->stream_synchronize(run->stream);
            gpu->driver->memory_free(gpu->buffer[which].at);
        }
        gpu->buffer[which].bytes = 0;
        const int result = gpu->driver->memory_alloc(&gpu->buffer[which].at, size);
        if (gpu_driver_say(gpu->driver, result, "no memory for the oracle on the GPU",
                           run->error) != 0) {
            run->status = result == GPU_OUT_OF_MEMORY ? ENOMEM : EIO;
            return NULL;
        }
        gpu->buffer[which].bytes = size;
    }
    return (void *)(uintptr_t)gpu->buffer[which].at;
}

double *fref__run_doubles(fref__run *run, fref__buffer which, int64_t count)
{
    return fref__run_memory(run, which, count * (int64_t)sizeof(double));
}

void fref__run_clear(fref__run *run, void *at, int64_t bytes)
{
    if (run->status == 0 && bytes > 0)
        check(run, run->gpu->driver->memory_set((gpu_address)(uintptr_t)at, 0, (size_t)bytes,
                                                run->stream));
}

static void launch(fref__run *run, fref__kernel kernel, const unsigned grid[3], int threads,
                   int argument)
{
    static const unsigned doubles[FREF__KERNEL_COUNT] = {
#define AS_SIZE(name, shared) shared,
        FREF__KERNEL_LIST(AS_SIZE)
#undef AS_SIZE
    };
    void *arguments[] = { &run->call, &argument };
    if (run->status == 0 && grid[0] > 0 &&
        gpu_launch(run->gpu->module, kernel, grid, (const unsigned[]){ (unsigned)threads, 1, 1 },
                   doubles[kernel] * (unsigned)sizeof(double), run->stream, arguments,
                   run->error) != 0)
        run->status = EIO;
}

static bool fit(fref__run *run, int64_t blocks, int64_t most)
{
    if (run->status == 0 && blocks > most) {
        snprintf(run->error, 256, "the reference on the GPU does not support %lld blocks",
                 (long long)blocks);
        run->status = ENOTSUP;
    }
    return run->status == 0;
}

void fref__run_launch_with(fref__run *run, fref__kernel kernel, int64_t blocks, int threads,
                           int argument)
{
    if (fit(run, blocks, INT32_MAX))
        launch(run, kernel, (const unsigned[]){ (unsigned)blocks, 1, 1 }, threads, argument);
}

void fref__run_launch(fref__run *run, fref__kernel kernel, int64_t blocks, int threads)
{
    fref__run_launch_with(run, kernel, blocks, threads, 0);
}

void fref__run_launch_grid(fref__run *run, fref__kernel kernel, const unsigned grid[3], int threads)
{
    const int64_t most = 65535; /* of a grid's second and third dimension */
    if (fit(run, grid[1], most) && fit(run, grid[2], most))
        launch(run, kernel, grid, threads, 0);
}

/* Half of the memory that is free or already allocated, but not more than is useful. For small
 * sizes the driver is not asked, because that takes as long as a small problem. */
static size_t budget_of(const fref_gpu *gpu, int64_t wanted)
{
    size_t free_bytes = 0, all_bytes = 0, held = 0;
    if (gpu->budget > 0)
        return gpu->budget;
    if (wanted <= (int64_t)LITTLE_BYTES)
        return LITTLE_BYTES;
    if (gpu->driver->memory_info(&free_bytes, &all_bytes) != 0)
        return MOST_BYTES / 4;
    for (int n = 0; n < FREF__BUFFER_COUNT; n++)
        held += gpu->buffer[n].bytes;
    const size_t half = (free_bytes + held) / 2;
    return half < MOST_BYTES ? half : MOST_BYTES;
}

int64_t fref__run_keep_zeros(fref__run *run, int64_t bytes)
{
    const int64_t at = run->zeros.slice;
    run->zeros.slice += padded(bytes, sizeof(double));
    return at;
}

void *fref__run_zeros(const fref__run *run, int64_t at)
{
    return run->zeros.at ? run->zeros.at + at : NULL;
}

static void clear_zeros(fref__run *run, int64_t from)
{
    fref__run_clear(run, fref__run_zeros(run, from), run->zeros.end - from);
    run->zeros.slice_is_clear = true;
}

static void plan_zeros(fref__run *run)
{
    const fref__call *c = &run->call;
    const int64_t heads = run->heads_of_slice,
                  padded_ = c->rows_padded > c->keys_padded ? c->rows_padded : c->keys_padded;
    run->zeros.end =
        run->zeros.slice + FLAGGED * padded(heads * padded_ / FREF__TILE, sizeof(double));
    run->zeros.at = fref__run_memory(run, FREF__ZEROS, run->zeros.end);
    clear_zeros(run, 0);
    if (run->goes_on)
        return;
    if (run->gpu->owes) /* not requested yet; it may still be found */
        run->gpu->driver->stream_synchronize(run->stream);
    *run->gpu->trouble = 0;
}

uint8_t *fref__run_flags(fref__run *run, int64_t tiles)
{
    uint8_t *flags = fref__run_zeros(run, run->zeros.lossy);
    run->zeros.lossy += tiles;
    return flags;
}

void fref__run_plan(fref__run *run, int64_t bytes_of_head, int64_t matrices, int64_t align)
{
    const fref__call *c = &run->call;
    const int64_t of_head =
        bytes_of_head + c->rows_padded * c->keys_padded * matrices * (int64_t)sizeof(double);
    int64_t heads = (int64_t)budget_of(run->gpu, of_head * run->heads) /
                    (of_head > 0 ? of_head : 1) / align * align;
    heads = heads < align ? align : heads;
    run->heads_of_slice = heads < run->heads ? heads : run->heads;
    plan_zeros(run);
}

void fref__run_take_slice(fref__run *run, int64_t head0)
{
    fref__call *c = &run->call;
    c->head0 = head0;
    c->heads = run->heads - head0 < run->heads_of_slice ? run->heads - head0 : run->heads_of_slice;
    c->head_k0 = head0 / c->group_k;
    c->heads_k = (head0 + c->heads - 1) / c->group_k - c->head_k0 + 1;
    c->head_v0 = head0 / c->group_v;
    c->heads_v = (head0 + c->heads - 1) / c->group_v - c->head_v0 + 1;
}

int64_t fref__run_score_matrices(const fref__run *run)
{
    return 1 + 2 * (run->call.scored != 0) + 3 * (run->call.sloped != 0);
}

void fref__run_plan_chunks(fref__run *run, int64_t bytes_of_head, int64_t matrices)
{
    fref__call *c = &run->call;
    const int64_t of_row = c->heads * c->keys_padded * matrices * (int64_t)sizeof(double),
                  beside = c->heads * bytes_of_head;
    const int64_t budget = (int64_t)budget_of(run->gpu, beside + c->rows_padded * of_row) - beside;
    int64_t rows = (budget > 0 ? budget : 0) / of_row / FREF__PAD * FREF__PAD;
    rows = rows < FREF__PAD ? FREF__PAD : rows;
    c->chunk_rows = rows < c->rows_padded ? rows : c->rows_padded;
    const int64_t count = c->heads * c->chunk_rows * c->keys_padded;
    c->x = fref__run_doubles(run, FREF__SCORES, count);
    if (c->scored) {
        c->extra = fref__run_doubles(run, FREF__EXTRA, count);
        c->pull = fref__run_doubles(run, FREF__PULL, count);
    }
    if (c->sloped) {
        c->slope = fref__run_doubles(run, FREF__SLOPE, count);
        c->curvature = fref__run_doubles(run, FREF__CURVATURE, count);
        c->slope_extra = fref__run_doubles(run, FREF__SLOPE_EXTRA, count);
    }
    if (c->d_o.data)
        c->dp = fref__run_doubles(run, FREF__DP, count);
}

/* The last chunk may be shorter. */
void fref__run_take_chunk(fref__run *run, int64_t row0)
{
    fref__call *c = &run->call;
    c->row0 = row0;
    c->first_chunk = row0 == 0;
    if (c->rows_padded - row0 < c->chunk_rows)
        c->chunk_rows = c->rows_padded - row0;
}

static void prepare_rows(fref__run *run)
{
    fref__call *c = &run->call;
    const int64_t rows = c->heads * c->rows_padded;
    c->range = fref__run_memory(run, FREF__RANGE, rows * (int64_t)sizeof *c->range);
    c->tile_range =
        fref__run_memory(run, FREF__TILE_RANGE, rows / FREF__TILE * (int64_t)sizeof *c->tile_range);
    c->facts = fref__run_memory(run, FREF__FACTS, rows * (int64_t)sizeof *c->facts);
    c->rows_q = fref__run_doubles(run, FREF__ROWS_Q, rows * c->ld_qk);
    c->norm_q = fref__run_doubles(run, FREF__NORM_Q, rows);
    if (c->d_o.data) {
        c->rows_d_o = fref__run_doubles(run, FREF__ROWS_D_O, rows * c->ld_v);
        c->norm_d_o = fref__run_doubles(run, FREF__NORM_D_O, rows);
        c->row_stats = fref__run_doubles(run, FREF__ROW_STATS, rows);
    }
}

static void prepare_keys(fref__run *run)
{
    fref__call *c = &run->call;
    const int64_t of_k = c->heads_k * c->keys_padded, of_v = c->heads_v * c->keys_padded;
    c->keys_k = fref__run_doubles(run, FREF__KEYS_K, of_k * c->ld_qk);
    c->keys_v = fref__run_doubles(run, FREF__KEYS_V, of_v * c->ld_v);
    c->norm_k = fref__run_doubles(run, FREF__NORM_K, of_k);
    c->norm_v = fref__run_doubles(run, FREF__NORM_V, of_v);
    c->peak_k = fref__run_doubles(run, FREF__PEAK_K, of_k / FREF__TILE);
    c->peak_v = fref__run_doubles(run, FREF__PEAK_V, of_v / FREF__TILE);
}

/* The memory that is zero at the beginning of a slice. */
static void prepare_zeros(fref__run *run)
{
    if (!run->zeros.slice_is_clear)
        clear_zeros(run, run->zeros.slice);
    run->zeros.slice_is_clear = false;
    run->zeros.lossy = run->zeros.slice;
}

void fref__run_prepare(fref__run *run)
{
    const fref__call *c = &run->call;
    prepare_rows(run);
    prepare_keys(run);
    prepare_zeros(run);
    const int64_t of_rows = c->heads * c->rows_padded * (c->d_o.data ? 2 : 1),
                  heads = c->heads_k + c->heads_v;
    fref__run_launch(run, FREF__kernel_decode, (of_rows + heads * c->keys_padded) / FREF__TILE,
                     FREF__DECODE_THREADS);
}

bool fref__run_is_one_chunk(const fref__run *run)
{
    const fref__call *c = &run->call;
    return !c->scored && c->heads == run->heads && c->chunk_rows == c->rows_padded;
}

void fref__run_scores(fref__run *run, int gradient)
{
    fref__call *c = &run->call;
    if (!gradient && run->has_scores && fref__run_is_one_chunk(run))
        return;
    const int64_t tiles =
        c->heads * (c->chunk_rows / FREF__PAD) * (c->keys_padded / FREF__SCORE_KEYS);
    const bool half = tiles < run->gpu->multiprocessors;
    fref__run_launch_with(run, half ? FREF__kernel_scores_half : FREF__kernel_scores,
                          c->relations + (half ? 2 * tiles : tiles), FREF__THREADS, gradient);
    c->relations = 0;
    if (gradient)
        return;
    if (c->scored)
        fref__run_launch(run, FREF__kernel_modify, c->heads * c->chunk_rows, FREF__THREADS);
}

void fref__run_facts(fref__run *run, fref__kernel kernel)
{
    const fref__call *c = &run->call;
    fref__run_launch(run, kernel, c->heads * c->chunk_rows / (FREF__THREADS / 32), FREF__THREADS);
}

/* The number of relations in the whole problem; the number in one slice changes no bit. */
static int32_t parts_of_relations(const fref__run *run, int64_t relations)
{
    const fref__call *c = &run->call;
    const int64_t of_rows = c->channels[0] || c->channels[1] ? c->rows : 0,
                  of_keys = c->channels[2] || c->channels[3] ? c->keys : 0;
    const int64_t rows = of_rows > of_keys ? of_rows : of_keys,
                  used = rows < FREF__FREEDOM_ROWS ? rows : FREF__FREEDOM_ROWS;
    const int64_t most = run->gpu->busy / (relations > 0 ? relations : 1),
                  wanted = (used + FREF__RELATED_ROWS - 1) / FREF__RELATED_ROWS;
    const int64_t parts = wanted < most ? wanted : most;
    return parts > 1 ? (int32_t)parts : 1;
}

void fref__run_relate(fref__run *run)
{
    fref__call *c = &run->call;
    const fref_problem *p = &c->problem;
    const int64_t heads[] = { c->heads, c->heads, c->heads_k, c->heads_v };
    const int64_t all[] = { run->heads, run->heads, p->batch * p->heads_k, p->batch * p->heads_v };
    int64_t relations = 0, of_all = 0;
    for (int which = 0; which < 4; which++) {
        const int64_t pairs =
            c->channels[which] ? pairs_of(which % 2 == 0 ? c->ld_qk : c->ld_v) : 0;
        relations += heads[which] * pairs;
        of_all += all[which] * pairs;
    }
    c->related_parts = parts_of_relations(run, of_all);
    const int64_t blocks = relations * c->related_parts;
    c->related = fref__run_memory(run, FREF__RELATED, relations * (int64_t)sizeof *c->related);
    c->shares = c->related_parts > 1
                    ? fref__run_memory(run, FREF__SHARES,
                                       blocks * FREF__RELATED_SHARES * (int64_t)sizeof *c->shares)
                    : NULL;
    c->related_blocks = fref__run_zeros(run, run->zeros.related);
    c->relations = (int32_t)blocks;
}

int64_t fref__run_row_tiles(const fref__run *run)
{
    const fref__call *c = &run->call;
    const int64_t left = c->rows - c->row0, rows = left < c->chunk_rows ? left : c->chunk_rows;
    return (rows + FREF__TILE - 1) / FREF__TILE;
}

void fref__run_sums(fref__run *run, fref__kernel kernel, fref__kernel lost, int64_t tiles,
                    int64_t columns)
{
    const int64_t blocks = run->call.heads * tiles * (columns / FREF__TILE);
    const unsigned parts = (unsigned)run->call.parts, grid[3] = { (unsigned)blocks, parts, 1 };
    if (!fit(run, blocks, INT32_MAX))
        return;
    fref__run_launch_grid(run, kernel, grid, FREF__SUM_THREADS);
    if (lost != FREF__KERNEL_COUNT)
        fref__run_launch_grid(run, lost, grid, FREF__SUM_THREADS);
}

int64_t fref__run_finish_blocks(int64_t heads, int64_t rows)
{
    return heads * ((rows + FREF__FINISHED_ROWS - 1) / FREF__FINISHED_ROWS);
}
