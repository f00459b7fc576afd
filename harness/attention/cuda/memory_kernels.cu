/* Checks memory after a run: guards, gaps, inputs, and bits that differ. */
#include "device.cuh"

/* All bits set are NaN in every type, -1 as an index. */
extern "C" __global__ void facts_kernel_shared(const __grid_constant__ facts_shared_call call)
{
#ifdef GPU_EMULATED
    static uint32_t words[1];
#else
    extern __shared__ volatile uint32_t words[]; /* volatile: nothing here reads what is written */
#endif
    int64_t found = 0;
    for (int i = (int)threadIdx.x; i < call.words; i += (int)blockDim.x) {
        found += words[i] == UINT32_MAX;
        words[i] = UINT32_MAX;
    }
    if (call.held)
        count_warp(call.held, found);
}

extern "C" __global__ void facts_kernel_changed(const __grid_constant__ facts_changed_call call)
{
    __shared__ poison_codes was;
    const share mine = share_of(call.blocks);
    const facts_one_changed &one = call.one[mine.one];
    const facts_one_poison &p = one.poison;
    int64_t found = 0;
    keep_codes(&was, p.code);
    for (int64_t i = p.from + first_of_thread(mine); i < p.to; i += threads_of(mine))
        found += facts_load(p.dtype, p.storage, i) != was.code[phase_of(i)];
    count_warp(one.count, found);
}

extern "C" __global__ void facts_kernel_owned(const __grid_constant__ facts_owned_call call)
{
    __shared__ poison_codes was;
    const share mine = share_of(call.blocks);
    const facts_one_owned &one = call.one[mine.one];
    int64_t found = 0;
    keep_codes(&was, one.code);
    for_elements(mine, &one.view, [&](int64_t, int64_t place, int64_t, int64_t) {
        found += facts_load(one.view.dtype, one.storage, place) != was.code[phase_of(place)];
    });
    count_warp(one.count, found);
}

extern "C" __global__ void facts_kernel_differ(const __grid_constant__ facts_differ_call call)
{
    const share mine = share_of(call.blocks);
    const facts_one_differ &one = call.one[mine.one];
    int64_t found = 0;
    const int64_t whole = one.bytes / 16;
    for (int64_t i = first_of_thread(mine); i < whole; i += threads_of(mine)) {
        const uint4 x = ((const uint4 *)one.a)[i], y = ((const uint4 *)one.b)[i];
        if (x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w)
            for (int64_t n = 16 * i; n < 16 * i + 16; n++)
                found += one.a[n] != one.b[n];
    }
    for (int64_t n = 16 * whole + first_of_thread(mine); n < one.bytes; n += threads_of(mine))
        found += one.a[n] != one.b[n];
    count_warp(one.count, found);
}

extern "C" __global__ void facts_kernel_repeat(const __grid_constant__ facts_repeat_call call)
{
    int64_t found = 0;
    for_elements(whole_grid(), &call.view, [&](int64_t n, int64_t place, int64_t b, int64_t s) {
        if (call.expects && call.expects[b * call.view.dim[2] + s] != FACTS_EXPECTS_VALUE)
            return;
        const uint32_t x = facts_load(call.view.dtype, call.a, place),
                       y = facts_load(call.view.dtype, call.b, place);
        if (x == y ||
            (call.slack && facts_judged_close(call.view.dtype, x, y, call.share * call.slack[n])))
            return;
        if (found++ == 0)
            atomicMin(call.least, (facts_counter)n);
    });
    count_warp(call.count, found);
}

extern "C" __global__ void facts_kernel_hash(const __grid_constant__ facts_hash_call call)
{
    facts_counter sum = 0;
    for_elements(whole_grid(), &call.view, [&](int64_t n, int64_t place, int64_t, int64_t) {
        sum += facts_bits_of(n, facts_load(call.view.dtype, call.storage, place));
    });
    count_warp(call.sum, (int64_t)sum);
}
