/* Inside gpu*.c: the kernels and how one is launched. */
#ifndef FACTS_GPU_LAUNCH_H
#define FACTS_GPU_LAUNCH_H

#include <gpu/gpu_module.h>

#include "worker_gpu.h"

#include "../../../cuda/calls.h"

#define FACTS_COUNTERS (2 * FACTS_GPU_WATCHED)
#define FACTS_BLOCK 256

#define AS_ENUM(name) FACTS_KERNEL_##name,
typedef enum facts_kernel { FACTS_KERNEL_LIST(AS_ENUM) FACTS_KERNEL_COUNT } facts_kernel;
#undef AS_ENUM

/* What is put off until the rest is known: one launch of each kernel does all of it. */
struct facts_together {
    bool on;
    size_t count[FACTS_KERNEL_COUNT];
#define AS_MEMBER(name) facts_##name##_call name;
    FACTS_TOGETHER_LIST(AS_MEMBER)
#undef AS_MEMBER
    void *table[FACTS_FILLS_TOGETHER][4]; /* of fills, on the device */
};

#define FACTS_KEPT_BLOCKS 160
/* Device memory of facts_gpu_make: in use, or given back and kept. */
struct facts_kept_block {
    void *at; /* NULL: none */
    size_t bytes;
    uint64_t since; /* when it was given back, by facts_gpu.given_back */
    bool used;
};

struct facts_gpu {
    fattn_context *context;
    struct CUstream_st *stream;
    gpu_module *kernels;
    fref_gpu *oracle;                     /* NULL until it is used */
    facts_counter *counters;              /* on the device */
    int64_t *watched[FACTS_COUNTERS / 2]; /* where counter 2n less counter 2n + 1 is added */
    size_t watched_count;
    struct facts_together together;
    struct facts_kept_block pool[FACTS_KEPT_BLOCKS];
    int reached;         /* of them: the others were never in use */
    size_t kept;         /* bytes that are not in use */
    uint64_t given_back; /* so often */
    char text[256], last[256];
};

/* Keeps the library's words of a failure; the status, as it is. */
fattn_status facts_gpu_keep_error(facts_gpu *gpu, fattn_status status);
/* Leaves the GPU's context; what a call of gpu_module.h in it gave, as a status. */
fattn_status facts_gpu_leave(facts_gpu *gpu, struct CUctx_st *previous, int result);
/* Releases the oracle; the context is current. */
void facts_gpu_forget(facts_gpu *gpu);
/* The kernels of this build into the context. */
bool facts_gpu_load(facts_gpu *gpu, char error[256]);
/* Over `work` elements, or as many threads as keep the GPU busy. `call` is what the kernel takes. */
fattn_status facts_gpu_launch(facts_gpu *gpu, facts_kernel kernel, int64_t work, void *call);
/* The blocks that it would take; with so many: of several things that one launch does. */
int32_t facts_gpu_blocks(int64_t work);
fattn_status facts_gpu_launch_blocks(facts_gpu *gpu, facts_kernel kernel, int64_t blocks, void *call);
/* together.NAME.one[together.count[kernel]] was written: so many threads do it, now or with others. */
fattn_status facts_gpu_put_off(facts_gpu *gpu, facts_kernel kernel, int64_t work);
fattn_status facts_gpu_launch_together(facts_gpu *gpu);
/* Threads for rows of a tensor that are walked over by 2^lane_bits threads each. */
int64_t facts_threads_of(const facts_strided *view);
/* `values` into the counters; what is in them now. */
fattn_status facts_gpu_count(facts_gpu *gpu, const facts_counter *values, size_t count);
/* A tensor as kernels see it. */
facts_strided facts_strided_of(const facts_tensor *tensor);
fattn_status facts_gpu_counted(facts_gpu *gpu, facts_counter *values, size_t count);

#endif
