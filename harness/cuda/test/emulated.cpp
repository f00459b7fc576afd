/* The harness's kernels, emulated, behind the driver that libfref loads. */
#include "../../../lib/cuda/test/emulate.h"

#include "../fill.cu"
#include "../judge.cu"
#include "../memory.cu"

#include "../../../lib/cuda/test/fibers.h"

/* In place of the compiled ones: what is emulated needs no nvcc. */
extern "C" {
extern const unsigned char facts_image_of_kernels[] = { 1 };
extern const size_t facts_image_of_kernels_bytes = 1;
extern const char facts_image_of_kernels_about[] = "emulated";
}

struct entry {
    const char *name;
    void (*call)(void **);
};

static const entry entries[] = {
#define AS_ENTRY(name) { "facts_kernel_" #name, [](void **a) { facts_kernel_##name(*(const facts_##name##_call *)a[0]); } },
    FACTS_KERNEL_LIST(AS_ENTRY)
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

/* ---- the oracle: the C reference, as device memory is the host's ------------------------------------------------------------------ */

#include <cerrno>

#include "fref/gpu.h"

extern "C" int fref_gpu_create(fref_gpu **out, char *)
{
    static int here;
    *out = (fref_gpu *)&here;
    return 0;
}

extern "C" void fref_gpu_destroy(fref_gpu *)
{
}

extern "C" int fref_gpu_forward(fref_gpu *, const fref_problem *problem, const fref_gpu_mod *mod, const fref_tensor *q, const fref_tensor *k,
                                const fref_tensor *v, const fref_rounding *rounding, const fref_forward_out *out, struct CUstream_st *, char *error)
{
    snprintf(error, 256, "emulated: no modifications");
    return mod->kind != FREF_MOD_NONE ? ENOTSUP : fref_forward(problem, q, k, v, rounding, out);
}

extern "C" int fref_gpu_backward(fref_gpu *, const fref_problem *problem, const fref_gpu_mod *mod, const fref_tensor *q, const fref_tensor *k,
                                 const fref_tensor *v, const fref_tensor *o, const fref_tensor *stats, const fref_tensor *d_o,
                                 const fref_rounding *rounding, const fref_backward_out *out, struct CUstream_st *, char *error)
{
    snprintf(error, 256, "emulated: no modifications");
    return mod->kind != FREF_MOD_NONE ? ENOTSUP : fref_backward(problem, q, k, v, o, stats, d_o, rounding, out);
}
