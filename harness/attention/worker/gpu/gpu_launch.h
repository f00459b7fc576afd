/* Shared by gpu*.c: the kernels, and functions that launch them. */
#ifndef FACTS_GPU_LAUNCH_H
#define FACTS_GPU_LAUNCH_H

#include <gpu/gpu_module.h>

#include "worker_gpu.h"

#include "../../cuda/calls.h"

#define FACTS_COUNTERS (2 * FACTS_GPU_WATCHED)
#define FACTS_COLLECTED ((size_t)64 << 10)
#define FACTS_BLOCK 256

#define AS_ENUM(name) FACTS_KERNEL_##name,
typedef enum facts_kernel { FACTS_KERNEL_LIST(AS_ENUM) FACTS_KERNEL_COUNT } facts_kernel;
#undef AS_ENUM

/* Collected work: one launch of each kernel does all of it. */
struct facts_together {
    bool on;
    size_t count[FACTS_KERNEL_COUNT];
#define AS_MEMBER(name) facts_##name##_call name;
    FACTS_TOGETHER_LIST(AS_MEMBER)
#undef AS_MEMBER
    void *table[FACTS_FILLS_TOGETHER][4]; /* the tables of the fills, on the device */
};

/* Bytes on their way to the host: they lie behind the counters, and one copy fetches both. */
struct facts_collected {
    void *to;
    size_t bytes, at;
};

#define FACTS_KEPT_BLOCKS 160
/* Device memory of facts_gpu_make: in use, or freed and kept for later. */
struct facts_kept_block {
    void *at; /* NULL: none */
    size_t bytes;
    uint64_t since; /* facts_gpu.given_back when it was freed */
    bool used;
};

struct facts_gpu {
    fattn_context *context;
    struct CUstream_st *stream;
    gpu_module *kernels;
    int multiprocessors, shared_bytes; /* of one block at most */
    fref_gpu *oracle;                  /* NULL until it is used */
    facts_counter *counters;           /* on the device; behind them FACTS_COLLECTED bytes */
    int64_t *watched[FACTS_COUNTERS /
                     2]; /* the address to which counter 2n minus counter 2n + 1 is added */
    size_t watched_count;
    struct facts_collected collected[FACTS_GPU_WATCHED];
    size_t collected_count, collected_bytes;
    unsigned char fetched[FACTS_COUNTERS * sizeof(facts_counter) + FACTS_COLLECTED];
    struct facts_together together;
    struct facts_kept_block pool[FACTS_KEPT_BLOCKS];
    int reached;         /* the number of blocks that were ever in use */
    size_t kept;         /* bytes that are freed and kept */
    uint64_t given_back; /* the number of blocks freed so far */
    char text[256], last[256];
};

/* Releases the oracle; the context is current. */
void facts_gpu_forget(facts_gpu *gpu);
/* Loads the kernels of this build into the context. */
bool facts_gpu_load(facts_gpu *gpu, char error[256]);
/* Launches a kernel with a thread for each of `work` elements, but with no more threads than keep
 * the GPU busy. `call` is the kernel's parameter. */
fattn_status facts_gpu_launch(facts_gpu *gpu, facts_kernel kernel, int64_t work, void *call);
/* The number of blocks that such a launch has. One launch that does several pieces of work has this
 * number for each. */
int32_t facts_gpu_blocks(int64_t work);
fattn_status facts_gpu_launch_blocks(facts_gpu *gpu, facts_kernel kernel, int64_t blocks,
                                     void *call);
/* The number of threads for the rows of a tensor, if 2^lane_bits threads process one row. */
int64_t facts_threads_of(const facts_strided *view);
/* Sets the counters to `values`, or reads them. */
fattn_status facts_gpu_count(facts_gpu *gpu, const facts_counter *values, size_t count);
fattn_status facts_gpu_counted(facts_gpu *gpu, facts_counter *values, size_t count);
/* A tensor in the form that kernels read. */
facts_strided facts_strided_of(const facts_tensor *tensor);

#endif
