/* Compares answers with expected values: some lanes for each row, then the sums over rows by a
 * block for each slice. */
#include "device.cuh"

#define WARP 32
#define THREADS 256
#define ALL_LANES 0xffffffffu

/* ---- what threads have, joined
 * ---------------------------------------------------------------------------------------------------
 */

__device__ static inline double shuffled(double x, int mask)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = __shfl_xor_sync(ALL_LANES, bits, mask);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Two counts at once: neither comes near 2^32. */
__device__ static inline void add_counts(int32_t *a, int32_t *b, int lanes)
{
    int64_t both = (int64_t)*a << 32 | *b;
    for (int mask = lanes / 2; mask > 0; mask /= 2)
        both += __shfl_xor_sync(ALL_LANES, both, mask);
    *a = (int32_t)(both >> 32);
    *b = (int32_t)both;
}

/* A candidate for the worst element: the higher rank wins, then the larger ratio, then the lower
 * number; rank -1: none. */
struct worst {
    int64_t rank, number;
    double ratio;
};

__device__ static inline void take_worse(worst *mine, const worst &other)
{
    if (other.rank > mine->rank ||
        (other.rank == mine->rank && (other.ratio > mine->ratio ||
                                      (other.ratio == mine->ratio && other.number < mine->number))))
        *mine = other;
}

__device__ static inline void worst_of_lanes(worst *mine, int lanes)
{
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
        worst other;
        other.rank = __shfl_xor_sync(ALL_LANES, mine->rank, mask);
        other.number = __shfl_xor_sync(ALL_LANES, mine->number, mask);
        other.ratio = shuffled(mine->ratio, mask);
        take_worse(mine, other);
    }
}

/* The worst of a block, for all of its threads. Shared memory of a static function has the folder
 * of the build in its name; so these three are not. */
__device__ inline void worst_of_block(worst *mine)
{
    __shared__ worst of_warp[THREADS / WARP];
    worst_of_lanes(mine, WARP);
    if (threadIdx.x % WARP == 0)
        of_warp[threadIdx.x / WARP] = *mine;
    __syncthreads();
    for (int warp = 0; warp < THREADS / WARP; warp++)
        take_worse(mine, of_warp[warp]);
    __syncthreads();
}

/* How two 8-byte numbers are combined. */
enum joining { SUM, SUM_OF_WHOLE, LARGEST };

__device__ static inline uint64_t joined(joining how, uint64_t a, uint64_t b)
{
    double x, y;
    if (how == SUM_OF_WHOLE)
        return a + b;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = how == SUM ? x + y : fmax(x, y);
    memcpy(&a, &x, sizeof a);
    return a;
}

/* Structs of such numbers: the block's, for all of its threads. how(n): of number n. Joining all by
 * shuffles alone would take ten for each number and warp. */
template <typename T, typename F> __device__ inline void join_block(T *mine, const F &how)
{
    constexpr int count = sizeof(T) / sizeof(uint64_t), pairs = THREADS / 2,
                  joiners = 8; /* threads that join one number */
    __shared__ uint64_t of_pair[count][pairs + joiners];
    const int lane = (int)threadIdx.x % WARP, joiner = (int)threadIdx.x % joiners;
    uint64_t part[count];
    memcpy(part, mine, sizeof part);
#pragma unroll
    for (int n = 0; n < count; n++) {
        part[n] = joined(how(n), part[n],
                         (uint64_t)__shfl_xor_sync(ALL_LANES, (int64_t)part[n], WARP / 2));
        if (lane < WARP / 2)
            of_pair[n][(int)threadIdx.x / WARP * (WARP / 2) + lane] = part[n];
    }
    __syncthreads();
    for (int from = 0; from < count; from += THREADS / joiners) { /* a warp stays together */
        const int own = from + (int)threadIdx.x / joiners, n = own < count ? own : 0;
        const joining as = how(n);
        uint64_t all = 0;
#pragma unroll
        for (int i = 0; i < pairs; i += joiners)
            all = joined(as, all, of_pair[n][i + joiner]);
        for (int mask = joiners / 2; mask > 0; mask /= 2)
            all = joined(as, all, (uint64_t)__shfl_xor_sync(ALL_LANES, (int64_t)all, mask));
        if (joiner == 0 && own < count)
            of_pair[n][pairs] = all;
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < count; n++)
        part[n] = of_pair[n][pairs];
    memcpy(mine, part, sizeof part);
    __syncthreads();
}

/* ---- rows
 * ------------------------------------------------------------------------------------------------------------------------
 */

/* The judged answer: of a 16-bit type with code of its own (its number), of one of the other types,
 * or a lie. */
enum { OTHER = -1, LIE = -2 };

/* The elements of a row. */
struct row_elements {
    int64_t s; /* row of the slice */
    int64_t first, place,
        reported; /* the index of element 0 in the expected values, in the storage, and in the slice that a lie
                   * takes its values from */
};

/* The values that are read for one row while the row before it is judged. */
struct read_element {
    double want, sigma, bound, reported;
    uint32_t code;
};

template <int32_t TYPE>
__device__ static inline read_element read(const facts_one_judging &call, const row_elements &row,
                                           int d)
{
    const int64_t n = row.first + d;
    read_element out;
    out.want = call.want[n];
    out.sigma = call.sigma ? call.sigma[n] : 0.0;
    out.bound = call.bound[n];
    out.reported =
        TYPE == LIE ? call.want[row.reported + facts_lie_from(call.lie, row.s, d, call.view.dim[2],
                                                              call.view.dim[3])]
                    : 0.0;
    if (TYPE == LIE)
        out.code = 0;
    else if (TYPE == OTHER)
        out.code = facts_load(call.view.dtype, call.storage, row.place + d * call.view.stride[3]);
    else
        out.code = ((const uint16_t *)call.storage)[row.place + d * call.view.stride[3]];
    return out;
}

/* The elements lane, lane + lanes, ... of row n. */
template <int32_t TYPE>
__device__ static inline void judge_part(const facts_one_judging &call, facts_judged_row *out,
                                         int64_t n, int lane, int lanes)
{
    const facts_strided *v = &call.view;
    const int channels = (int)v->dim[3];
    const row_index r = row_index_of(v->dim, n);
    if (!exists(v, r.b, r.s) || lane >= channels)
        return;
    const row_elements row = { r.s, n * channels, row_of(v, r.b, r.h, r.s), (n - r.s) * channels };
    facts_judged_element at;
    at.expects = call.expects ? call.expects[r.b * v->dim[2] + r.s] : FACTS_EXPECTS_VALUE;
    read_element next = read<TYPE>(call, row, lane);
    for (int d = lane; d < channels; d += lanes) {
        const read_element now = next;
        if (d + lanes < channels)
            next = read<TYPE>(call, row, d + lanes);
        at.want = now.want;
        at.sigma = now.sigma;
        at.bound = now.bound;
        at.code = now.code;
        at.channel = d;
        at.place = row.place + d * v->stride[3];
        if (TYPE == LIE) {
            facts_judged_row_add_lie(out, &call.limits, &at, call.lie, now.reported);
        } else {
            out->bits += facts_bits_of(row.first + d, now.code);
            facts_judged_row_add_value(out, &call.limits, &at,
                                       facts_decode(TYPE == OTHER ? v->dtype : TYPE, now.code) *
                                           call.limits.unit);
        }
    }
}

/* Afterwards all lanes of a row have its sums, and one of them, which is marked, has the worst
 * element too. */
__device__ static inline bool join_row(facts_judged_row *row, int lane, int lanes)
{
    const int32_t rare = row->not_finite | row->unwritten | row->wrong | row->padded_poison |
                         row->padded_zero | row->padded_other;
    worst most = { row->rank, row->worst, row->ratio };
    worst_of_lanes(&most, lanes);
    for (int mask = lanes / 2; mask > 0; mask /= 2) {
        row->squares += shuffled(row->squares, mask);
        row->gain += shuffled(row->gain, mask);
        row->power += shuffled(row->power, mask);
        row->shift += shuffled(row->shift, mask);
        row->level += shuffled(row->level, mask);
        row->bits += (uint64_t)__shfl_xor_sync(ALL_LANES, (int64_t)row->bits, mask);
    }
    add_counts(&row->weighed, &row->checked, lanes);
    if (__any_sync(ALL_LANES, rare)) {
        add_counts(&row->not_finite, &row->unwritten, lanes);
        add_counts(&row->wrong, &row->padded_poison, lanes);
        add_counts(&row->padded_zero, &row->padded_other, lanes);
    }
    return most.rank < 0 ? lane == 0 : row->worst == most.number;
}

template <int32_t TYPE>
__device__ static inline void judge_rows(const facts_one_judging &call, const share &mine)
{
    const int64_t rows = call.view.dim[0] * call.view.dim[1] * call.view.dim[2];
    const int lanes = 1 << call.view.lane_bits, lane = (int)threadIdx.x & (lanes - 1),
              own = (int)(threadIdx.x % WARP) >> call.view.lane_bits;
    const int64_t of_warp = WARP >> call.view.lane_bits, step = threads_of(mine) / WARP * of_warp;
    for (int64_t first = first_of_thread(mine) / WARP * of_warp; first < rows;
         first += step) { /* a warp stays together */
        facts_judged_row row;
        facts_judged_row_begin(&row);
        if (first + own < rows)
            judge_part<TYPE>(call, &row, first + own, lane, lanes);
        if (join_row(&row, lane, lanes) && first + own < rows)
            call.out[first + own] = row;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
    facts_kernel_judge(const __grid_constant__ facts_judge_call calls)
{
    const share mine = share_of(calls.blocks);
    const facts_one_judging &call = calls.one[mine.one];
    const bool aligned = (uintptr_t)call.storage % sizeof(uint16_t) == 0;
    if (!call.storage)
        judge_rows<LIE>(call, mine);
    else if (call.view.dtype == FATTN_BF16 && aligned)
        judge_rows<FATTN_BF16>(call, mine);
    else if (call.view.dtype == FATTN_F16 && aligned)
        judge_rows<FATTN_F16>(call, mine);
    else
        judge_rows<OTHER>(call, mine);
}

/* ---- what they say together: a block a slice
 * ------------------------------------------------------------------------------------ */

#define PLACE_OF(member) ((int)(offsetof(facts_judged_sums, member) / sizeof(uint64_t)))

__device__ static inline joining joining_of_sums(int n)
{
    const bool whole = (n >= PLACE_OF(checked) && n <= PLACE_OF(live)) ||
                       n == PLACE_OF(gain_rows) || n == PLACE_OF(gain_elements) ||
                       n == PLACE_OF(furthest);
    return n < FACTS_GATE_COUNT || n == PLACE_OF(largest) || n == PLACE_OF(heaviest) ? LARGEST
           : whole                                                                   ? SUM_OF_WHOLE
                                                                                     : SUM;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    facts_kernel_walk(const __grid_constant__ facts_walk_call calls)
{
    const share part = share_of(calls.blocks);
    const facts_one_walk &call = calls.one[part.one];
    const facts_judged_rows *rows = &call.rows;
    for (int64_t slice = part.block; slice < call.slices; slice += part.blocks) {
        facts_judged_sums mine;
        facts_judged_sums_begin(&mine);
        for (int64_t i = threadIdx.x; i < call.of_slice; i += THREADS)
            facts_judged_sums_add(&mine, rows, slice * call.of_slice + i);
        worst most = { -1, mine.at, 0.0 };
        if (mine.at >= 0) {
            most.rank = rows->row[mine.at].rank;
            most.ratio = rows->row[mine.at].ratio;
        }
        mine.at = mine.furthest = 0; /* they are no sums */
        worst_of_block(&most);
        join_block(&mine, joining_of_sums);
        if (threadIdx.x == 0) {
            mine.at = most.rank < 0 ? -1 : most.number;
            mine.furthest = -1;
            call.out[slice].sums = mine;
            if (mine.at >= 0)
                call.out[slice].worst = rows->row[mine.at];
        }
    }
}

/* The inputs of beta and of the number of tests. */
struct weighed {
    int64_t live, gain_rows, gain_elements;
    double gain, power;
};

struct scattered {
    double of_slice, of_all;
};

/* The sums of all slices; every block computes them itself. */
__device__ inline facts_judged_sums weigh_all(const facts_one_walk &call)
{
    weighed mine = { 0, 0, 0, 0.0, 0.0 };
    for (int64_t slice = threadIdx.x; slice < call.slices; slice += THREADS) {
        const facts_judged_sums *sums = &call.out[slice].sums;
        mine.live += sums->live;
        mine.gain_rows += sums->gain_rows;
        mine.gain_elements += sums->gain_elements;
        mine.gain += sums->gain;
        mine.power += sums->power;
    }
    join_block(&mine, [](int n) { return n < 3 ? SUM_OF_WHOLE : SUM; });
    facts_judged_sums all;
    all.live = mine.live;
    all.gain_rows = mine.gain_rows;
    all.gain_elements = mine.gain_elements;
    all.gain = mine.gain;
    all.power = mine.power;
    return all;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    facts_kernel_walk_again(const __grid_constant__ facts_walk_again_call calls)
{
    const share part = share_of(calls.blocks);
    const facts_one_walk &call = calls.one[part.one];
    const facts_judged_rows *rows = &call.rows;
    const facts_judged_sums all = weigh_all(call);
    const double x = log((double)all.live / FACTS_ALPHA), beta = facts_judged_beta(&all);
    for (int64_t slice = part.block; slice < call.slices; slice += part.blocks) {
        facts_judged_slice *out = &call.out[slice];
        const double own = facts_judged_beta(&out->sums);
        facts_judged_sums mine;
        mine.furthest = -1;
        mine.each = mine.scatter = mine.scatter_of_all = 0;
        for (int64_t i = threadIdx.x; i < call.of_slice; i += THREADS)
            facts_judged_sums_look_again(&mine, rows, slice * call.of_slice + i, x, own, beta);
        worst most = { mine.furthest < 0 ? -1 : 0, mine.furthest, mine.each };
        scattered sums = { mine.scatter, mine.scatter_of_all };
        worst_of_block(&most);
        join_block(&sums, [](int) { return SUM; });
        if (threadIdx.x == 0) {
            out->sums.scatter = sums.of_slice;
            out->sums.scatter_of_all = sums.of_all;
            if (most.rank >= 0) {
                out->sums.furthest = most.number;
                out->sums.each = most.ratio;
                out->furthest = rows->row[most.number];
            }
        }
    }
}

/* Rows that are not judged: written, and finite. */
extern "C" __global__ void facts_kernel_survey(const __grid_constant__ facts_survey_call call)
{
    __shared__ poison_codes was;
    int64_t unwritten = 0, not_finite = 0;
    keep_codes(&was, call.code);
    for_elements(whole_grid(), &call.view, [&](int64_t n, int64_t place, int64_t b, int64_t s) {
        if (call.expects && call.expects[b * call.view.dim[2] + s] != FACTS_EXPECTS_VALUE)
            return;
        const uint32_t code = facts_load(call.view.dtype, call.storage, place);
        if (code == was.code[phase_of(place)]) {
            if (unwritten++ == 0)
                atomicMin(call.first_unwritten, (facts_counter)n);
        } else if (!facts_is_finite(facts_decode(call.view.dtype, code))) {
            if (not_finite++ == 0)
                atomicMin(call.first_not_finite, (facts_counter)n);
        }
    });
    count(call.unwritten, unwritten);
    count(call.not_finite, not_finite);
}
