/* All kernels, emulated, behind the driver's launch. */
#include "emulate.h"

#include "../math_gather.cu"
#include "../math_modify.cu"
#include "../math_over_keys.cu"
#include "../math_over_rows.cu"
#include "../math_scores.cu"
#include "../math_statistics.cu"
#include "../math_sum_kernels.cu"
#include "fibers.h"

/* ---- the driver's side ------------------------------------------------------------------------------------------------------------ */

#include "../../src/math/math_kernel_list.h"

static void call_kernel(void (*kernel)(const fattn__call), void **a)
{
    kernel(*(const fattn__call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__sum_call), void **a)
{
    kernel(*(const fattn__sum_call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__gather_call), void **a)
{
    kernel(*(const fattn__gather_call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__dump_call), void **a)
{
    kernel(*(const fattn__dump_call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__call, const fattn__program, const fattn__program_tensors), void **a)
{
    kernel(*(const fattn__call *)a[0], *(const fattn__program *)a[1], *(const fattn__program_tensors *)a[2]);
}

struct entry {
    const char *name;
    void (*call)(void **);
};

static const entry entries[] = {
#define AS_ENTRY(name) { "fattn_" #name, [](void **a) { call_kernel(fattn_##name, a); } },
    FATTN__KERNEL_LIST(AS_ENTRY)
#undef AS_ENTRY
};

extern "C" int emulated_module_function(struct CUfunc_st **out, struct CUmod_st *, const char *name)
{
    for (const entry &e : entries)
        if (strcmp(e.name, name) == 0) {
            *out = (struct CUfunc_st *)&e;
            return 0;
        }
    return 500; /* CUDA_ERROR_NOT_FOUND */
}

extern "C" int emulated_launch(struct CUfunc_st *function, unsigned grid, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                               struct CUstream_st *, void **arguments, void **)
{
    emulate::run(grid, threads, ((const entry *)function)->call, arguments);
    return 0;
}
