/* Inputs, poison and noise: what lies in memory before a run. */
#include "device.cuh"

extern "C" __global__ void facts_kernel_fill(const facts_fill_call call)
{
    const int64_t places = facts_recipe_places(&call.recipe);
    for (int64_t n = first_of_thread(); n < places; n += threads_of_grid()) {
        int64_t at[4];
        facts_recipe_place(&call.recipe, n, at);
        facts_recipe_store(&call.recipe, at, call.storage);
    }
}

extern "C" __global__ void facts_kernel_gaps(const facts_gaps_call call)
{
    for (int64_t i = first_of_thread(); i < call.elements; i += threads_of_grid())
        facts_store(call.gaps.dtype, call.storage, i, facts_gap_code(&call.gaps, i));
}

extern "C" __global__ void facts_kernel_poison(const facts_poison_call call)
{
    for (int64_t i = call.from + first_of_thread(); i < call.to; i += threads_of_grid())
        facts_store(call.dtype, call.storage, i, code_at(call.code, i));
}

extern "C" __global__ void facts_kernel_copy(const facts_copy_call call)
{
    const int64_t whole = call.bytes / 16;
    for (int64_t i = first_of_thread(); i < whole; i += threads_of_grid())
        ((uint4 *)call.to)[i] = ((const uint4 *)call.from)[i];
    for (int64_t i = 16 * whole + first_of_thread(); i < call.bytes; i += threads_of_grid())
        ((unsigned char *)call.to)[i] = ((const unsigned char *)call.from)[i];
}

extern "C" __global__ void facts_kernel_set(const facts_set_call call)
{
    for (int64_t i = first_of_thread(); i < call.bytes; i += threads_of_grid())
        call.to[i] = call.byte;
}

extern "C" __global__ void facts_kernel_noise(const facts_noise_call call)
{
    for (int64_t i = first_of_thread(); 8 * i < call.bytes; i += threads_of_grid()) {
        const uint64_t word = facts_mix(call.seed + (uint64_t)i);
        for (int64_t n = 0; n < 8 && 8 * i + n < call.bytes; n++)
            call.to[8 * i + n] = (unsigned char)(word >> 8 * n);
    }
}

/* The reference's O and Stats as a backward's inputs. */
extern "C" __global__ void facts_kernel_round(const facts_round_call call)
{
    for (int64_t n = first_of_thread(); n < places_of(&call.view); n += threads_of_grid()) {
        int64_t b, s;
        const int64_t place = place_of(&call.view, n, &b, &s);
        if (exists(&call.view, b, s))
            facts_store(call.view.dtype, call.storage, place, facts_encode(call.view.dtype, call.values[n]));
    }
}
