/* Inputs, poison and noise: what lies in memory before a run. */
#include "device.cuh"

extern "C" __global__ void facts_kernel_fill(const __grid_constant__ facts_fill_call call)
{
    const share mine = share_of(call.blocks);
    const facts_one_fill &fill = call.one[mine.one];
    const facts_recipe *r = &fill.recipe;
    for_rows(mine, r->extent[0] * r->extent[1] * r->extent[2], fill.lane_bits, [&](int64_t n, int lane, int lanes) {
        const row_index row = row_index_of(r->extent, n);
        int64_t at[4] = { row.b, row.h, row.s, lane };
        const int64_t first = facts_recipe_row(r, row.b, row.s);
        for (; first >= 0 && at[3] < r->extent[3]; at[3] += lanes)
            facts_store(r->dtype, fill.storage, first + row.h * r->stride[1] + at[3] * r->stride[3], facts_recipe_code(r, at));
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
    keep_codes(&codes, call.code);
    for (int64_t i = call.from + first_of_thread(); i < call.to; i += threads_of_grid())
        facts_store(call.dtype, call.storage, i, codes.code[phase_of(i)]);
}

extern "C" __global__ void facts_kernel_copy(const __grid_constant__ facts_copy_call call)
{
    const int64_t whole = call.bytes / 16;
    for (int64_t i = first_of_thread(); i < whole; i += threads_of_grid())
        ((uint4 *)call.to)[i] = ((const uint4 *)call.from)[i];
    for (int64_t i = 16 * whole + first_of_thread(); i < call.bytes; i += threads_of_grid())
        ((unsigned char *)call.to)[i] = ((const unsigned char *)call.from)[i];
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
    for_elements(&call.view, [&](int64_t n, int64_t place, int64_t, int64_t) {
        facts_store(call.view.dtype, call.storage, place, facts_encode(call.view.dtype, call.values[n]));
    });
}
