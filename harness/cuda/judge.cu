/* Answers against what is due: a warp a row. */
#include "device.cuh"

#define WARP 32
#define WARPS 8 /* of a block */

__device__ static inline void judge_element(const facts_judge_call &call, facts_judged_row *row, facts_judged_element *at,
                                            int64_t n, int64_t slice, int64_t s, int64_t d)
{
    at->want = call.want[n];
    at->sigma = call.sigma ? call.sigma[n] : 0.0;
    at->bound = call.bound[n];
    at->channel = (int32_t)d;
    if (call.storage) {
        at->code = facts_load(call.view.dtype, call.storage, at->place);
        facts_judged_row_add(row, &call.bar, at);
    } else {
        const int64_t from =
            slice * call.view.dim[2] * call.view.dim[3] + facts_lie_from(call.lie, s, d, call.view.dim[2], call.view.dim[3]);
        facts_judged_row_add_lie(row, &call.bar, at, call.lie, call.want[from]);
    }
}

/* The elements lane, lane + 32, ... of row n. */
__device__ static inline void judge_part(const facts_judge_call &call, facts_judged_row *row, int64_t n, int lane)
{
    const facts_strided *v = &call.view;
    const int64_t s = n % v->dim[2], slice = n / v->dim[2], h = slice % v->dim[1], b = slice / v->dim[1],
                  at_row = call.rows ? call.rows[s] : s;
    const int64_t place = row_of(v, b, h, at_row);
    facts_judged_element at;
    facts_judged_row_begin(row);
    if (!exists(v, b, at_row))
        return;
    at.due = call.due ? call.due[b * call.due_rows + at_row] : FACTS_DUE_VALUE;
    for (int64_t d = lane; d < v->dim[3]; d += WARP) {
        at.place = place + d * v->stride[3];
        judge_element(call, row, &at, n * v->dim[3] + d, slice, s, d);
    }
}

extern "C" __global__ void __launch_bounds__(WARP *WARPS) facts_kernel_judge(const facts_judge_call call)
{
    __shared__ facts_judged_row parts[WARPS][WARP];
    const int lane = (int)(threadIdx.x % WARP), warp = (int)(threadIdx.x / WARP);
    const int64_t rows = call.view.dim[0] * call.view.dim[1] * call.view.dim[2];
    for (int64_t n = (int64_t)blockIdx.x * WARPS + warp; n < rows; n += (int64_t)gridDim.x * WARPS) {
        facts_judged_row *row = &parts[warp][lane];
        judge_part(call, row, n, lane);
        for (int other = WARP / 2; other > 0; other /= 2) {
            __syncwarp();
            if (lane < other)
                facts_judged_row_merge(row, &parts[warp][lane + other]);
        }
        if (lane == 0 && call.out) {
            call.out[n] = *row;
        } else if (lane == 0) {
            count(call.checked, row->checked);
            count(call.refused, (int64_t)row->wrong + row->not_finite + row->unwritten);
        }
        __syncwarp();
    }
}

/* ---- what they say together: a block a slice ------------------------------------------------------------------------------------ */

#define THREADS (WARP * WARPS)

/* A tree over a block's threads; the sum of all is thread 0's. */
template <typename T, typename F> __device__ static inline void join_block(T *mine, T *shared, const F &join)
{
    const int thread = (int)threadIdx.x;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread >= half && thread < 2 * half)
            shared[thread - half] = *mine;
        __syncthreads();
        if (thread < half)
            join(mine, &shared[thread]);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS) facts_kernel_walk(const facts_walk_call call)
{
    __shared__ facts_judged_sums shared[THREADS / 2];
    const facts_judged_rows *rows = &call.rows;
    for (int64_t slice = blockIdx.x; slice < call.slices; slice += gridDim.x) {
        facts_judged_sums mine;
        facts_judged_sums_begin(&mine);
        for (int64_t i = threadIdx.x; i < call.of_slice; i += THREADS)
            facts_judged_sums_add(&mine, rows, slice * call.of_slice + i);
        join_block(&mine, shared, [&](facts_judged_sums *a, const facts_judged_sums *b) { facts_judged_sums_merge(a, rows, b); });
        if (threadIdx.x == 0) {
            call.out[slice].sums = mine;
            if (mine.at >= 0)
                call.out[slice].worst = rows->row[mine.at];
        }
    }
}

/* Every block adds up the slices for itself. */
extern "C" __global__ void __launch_bounds__(THREADS) facts_kernel_walk_again(const facts_walk_again_call call)
{
    __shared__ facts_judged_sums shared[THREADS / 2];
    __shared__ double x, beta;
    const facts_judged_rows *rows = &call.rows;
    facts_judged_sums all;
    facts_judged_sums_begin(&all);
    for (int64_t slice = threadIdx.x; slice < call.slices; slice += THREADS)
        facts_judged_sums_join(&all, &call.out[slice].sums);
    join_block(&all, shared, [](facts_judged_sums *a, const facts_judged_sums *b) { facts_judged_sums_join(a, b); });
    if (threadIdx.x == 0) {
        x = log((double)all.live / FACTS_ALPHA);
        beta = facts_judged_beta(&all);
    }
    __syncthreads();
    for (int64_t slice = blockIdx.x; slice < call.slices; slice += gridDim.x) {
        const double own = facts_judged_beta(&call.out[slice].sums);
        facts_judged_sums mine;
        facts_judged_sums_begin(&mine);
        for (int64_t i = threadIdx.x; i < call.of_slice; i += THREADS)
            facts_judged_sums_look_again(&mine, rows, slice * call.of_slice + i, x, own, beta);
        join_block(&mine, shared, [](facts_judged_sums *a, const facts_judged_sums *b) { facts_judged_sums_merge_again(a, b); });
        if (threadIdx.x == 0) {
            facts_judged_slice *out = &call.out[slice];
            facts_judged_sums_merge_again(&out->sums, &mine);
            if (out->sums.furthest >= 0)
                out->furthest = rows->row[out->sums.furthest];
        }
    }
}

/* Rows that are not judged: written, and finite. */
extern "C" __global__ void facts_kernel_survey(const facts_survey_call call)
{
    int64_t unwritten = 0, not_finite = 0, b, s;
    for (int64_t n = first_of_thread(); n < places_of(&call.view); n += threads_of_grid()) {
        const int64_t place = place_of(&call.view, n, &b, &s);
        if (!exists(&call.view, b, s) || (call.due && call.due[b * call.view.dim[2] + s] != FACTS_DUE_VALUE))
            continue;
        const uint32_t code = facts_load(call.view.dtype, call.storage, place);
        if (code == code_at(call.code, place)) {
            if (unwritten++ == 0)
                atomicMin(call.first_unwritten, (facts_counter)n);
        } else if (!facts_is_finite(facts_decode(call.view.dtype, code))) {
            if (not_finite++ == 0)
                atomicMin(call.first_not_finite, (facts_counter)n);
        }
    }
    count(call.unwritten, unwritten);
    count(call.not_finite, not_finite);
}
