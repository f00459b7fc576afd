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
