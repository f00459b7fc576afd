/* Writes inputs, poison and noise into memory before a run. */
#include "device.cuh"

/* The elements lane, lane + lanes, ... of a row whose channel 0 is at `place`. */
struct row_part {
    int64_t row, place;
    int lane, lanes;
};

/* Most inputs are plain numbers of one of two types; this avoids the checks of the general case for
 * each element. */
__device__ static inline bool is_plain(const facts_recipe *r, const void *storage)
{
    return (uintptr_t)storage % sizeof(uint16_t) == 0 && r->element == FACTS_ELEMENT_NORMAL &&
           r->narrow == 0 && !(r->unit > 0) && !r->poisoned && r->extent[0] == r->dim[0] &&
           r->extent[1] == r->dim[1] && r->extent[2] == r->dim[2] && r->extent[3] == r->dim[3];
}

template <int32_t TYPE>
__device__ static inline void fill_plain(const facts_recipe *r, const row_part &part, void *storage)
{
    const uint64_t first = (uint64_t)(part.row * r->dim[3]);
    const int64_t stride = r->stride[3];
    uint16_t *row = (uint16_t *)storage + part.place;
#pragma unroll 4
    for (int64_t d = part.lane; d < r->dim[3]; d += part.lanes) {
        const facts_draw draw =
            facts_draw_at(r->seed, r->stream, FACTS_LANE_VALUE, first + (uint64_t)d);
        const float x = facts_normal(draw);
        row[d * stride] = (uint16_t)(TYPE == FATTN_BF16 ? facts_encode_bf16_of_float(x)
                                                        : facts_encode(TYPE, (double)x));
    }
}

__device__ static inline void fill_any(const facts_recipe *r, const row_part &part,
                                       const row_index &row, void *storage)
{
    int64_t at[4] = { row.b, row.h, row.s, part.lane };
    for (; at[3] < r->extent[3]; at[3] += part.lanes)
        facts_store(r->dtype, storage, part.place + at[3] * r->stride[3], facts_recipe_code(r, at));
}

extern "C" __global__ void __launch_bounds__(256, 4)
    facts_kernel_fill(const __grid_constant__ facts_fill_call call)
{
    const share mine = share_of(call.blocks);
    const facts_one_fill &fill = call.one[mine.one];
    const facts_recipe *r = &fill.recipe;
    const bool plain = is_plain(r, fill.storage);
    for_rows(mine, r->extent[0] * r->extent[1] * r->extent[2], fill.lane_bits,
             [&](int64_t n, int lane, int lanes) {
                 const row_index row = row_index_of(r->extent, n);
                 const int64_t first = facts_recipe_row(r, row.b, row.s);
                 const row_part part = { n, first + row.h * r->stride[1], lane, lanes };
                 if (first < 0)
                     return;
                 if (plain && r->dtype == FATTN_BF16)
                     fill_plain<FATTN_BF16>(r, part, fill.storage);
                 else if (plain && r->dtype == FATTN_F16)
                     fill_plain<FATTN_F16>(r, part, fill.storage);
                 else
                     fill_any(r, part, row, fill.storage);
             });
}

extern "C" __global__ void facts_kernel_gaps(const __grid_constant__ facts_gaps_call call)
{
    const share mine = share_of(call.blocks);
    const facts_one_gaps &all = call.one[mine.one];
    for (int64_t i = first_of_thread(mine); i < all.elements; i += threads_of(mine))
        facts_store(all.gaps.dtype, all.storage, i, facts_gap_code(&all.gaps, i));
}

extern "C" __global__ void facts_kernel_poison(const __grid_constant__ facts_poison_call call)
{
    __shared__ poison_codes codes;
    const share mine = share_of(call.blocks);
    const facts_one_poison &p = call.one[mine.one];
    keep_codes(&codes, p.code);
    for (int64_t i = p.from + first_of_thread(mine); i < p.to; i += threads_of(mine))
        facts_store(p.dtype, p.storage, i, codes.code[phase_of(i)]);
}

extern "C" __global__ void facts_kernel_copy(const __grid_constant__ facts_copy_call call)
{
    const share mine = share_of(call.blocks);
    const facts_one_copy &copy = call.one[mine.one];
    const bool aligned = ((uintptr_t)copy.to | (uintptr_t)copy.from) % 16 ==
                         0; /* the bytes behind a workspace need not be */
    const int64_t whole = aligned ? copy.bytes / 16 : 0;
    for (int64_t i = first_of_thread(mine); i < whole; i += threads_of(mine))
        ((uint4 *)copy.to)[i] = ((const uint4 *)copy.from)[i];
    for (int64_t i = 16 * whole + first_of_thread(mine); i < copy.bytes; i += threads_of(mine))
        ((unsigned char *)copy.to)[i] = ((const unsigned char *)copy.from)[i];
}

extern "C" __global__ void facts_kernel_set(const __grid_constant__ facts_set_call call)
{
    for (int64_t i = first_of_thread(); i < call.bytes; i += threads_of_grid())
        call.to[i] = call.byte;
}

extern "C" __global__ void facts_kernel_noise(const __grid_constant__ facts_noise_call call)
{
    for (int64_t i = first_of_thread(); 8 * i < call.bytes; i += threads_of_grid()) {
        const uint64_t word = facts_mix(call.seed + (uint64_t)i);
        for (int64_t n = 0; n < 8 && 8 * i + n < call.bytes; n++)
            call.to[8 * i + n] = (unsigned char)(word >> 8 * n);
    }
}

/* The reference's O and Stats as a backward's inputs. */
extern "C" __global__ void facts_kernel_round(const __grid_constant__ facts_round_call call)
{
    for_elements(whole_grid(), &call.view, [&](int64_t n, int64_t place, int64_t, int64_t) {
        facts_store(call.view.dtype, call.storage, place,
                    facts_encode(call.view.dtype, call.values[n] / call.unit));
    });
}
