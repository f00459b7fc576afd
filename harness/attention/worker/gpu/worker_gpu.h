/* The GPU part of a case: kernels that fill, poison and compare tensors on the GPU, and the reference on the GPU. The kernels are
 * in harness/attention/cuda. Pointers are device addresses unless a comment says otherwise. Calls enqueue on the worker's stream; calls that
 * return a result wait for it.
 * Errors   FATTN_OK; FATTN_NO_MEMORY; FATTN_DEVICE_FAULT. facts_gpu_error has the message.
 * Threads  One thread. */
#ifndef FACTS_GPU_H
#define FACTS_GPU_H

#include <fattn/fattn.h>
#include <fref/gpu.h>
#include <jansson.h>

#include "numbers/fill/storage_image.h"
#include "numbers/judge/judge.h"

typedef struct facts_gpu facts_gpu;

/* Loads the kernels into the GPU's context. False: there are none for this GPU; `error` has the
 * reason. */
bool facts_gpu_open(facts_gpu **out, fattn_context *context, struct CUstream_st *stream,
                    char error[256]);
/* `lost`: the context is dead, so no object of it is touched. */
void facts_gpu_close(facts_gpu *gpu, bool lost);
/* Writes, launches a kernel and reads, to test that the device works. FATTN_OK, or facts_gpu_error
 * has the reason. */
fattn_status facts_gpu_prove(facts_gpu *gpu);
/* Free bytes of the GPU's memory; -1: the driver does not report them. */
int64_t facts_gpu_free_bytes(facts_gpu *gpu);
/* Returns the message of the last failed call, once; then "". Valid until the next call of this
 * function. */
const char *facts_gpu_error(facts_gpu *gpu);
/* Returns ENOTSUP, and keeps `why` as the message. */
int facts_gpu_refuse(facts_gpu *gpu, const char *why);

/* ---- memory ---- */

fattn_status facts_gpu_wait(facts_gpu *gpu);
/* Not cleared: it may reuse memory that was freed before, and may be up to twice as large. */
fattn_status facts_gpu_make(facts_gpu *gpu, void **out, size_t bytes);
/* Allocates exactly this size, so that a write past the end hits no other buffer of FACTS. */
fattn_status facts_gpu_make_exact(facts_gpu *gpu, void **out, size_t bytes);
void facts_gpu_free(facts_gpu *gpu, void *memory);
/* Gives all freed memory and the scratch memory of the oracle back to the driver. False: there was
 * none. */
bool facts_gpu_trim(facts_gpu *gpu);
/* The host memory may be changed as soon as this function returns. */
fattn_status facts_gpu_send(facts_gpu *gpu, void *to, const void *from_host, size_t bytes);
fattn_status facts_gpu_fetch(facts_gpu *gpu, void *to_host, const void *from, size_t bytes);
/* Both addresses are 16-byte aligned. */
fattn_status facts_gpu_copy(facts_gpu *gpu, void *to, const void *from, size_t bytes);
fattn_status facts_gpu_set(facts_gpu *gpu, void *to, unsigned char byte, size_t bytes);
fattn_status facts_gpu_noise(facts_gpu *gpu, void *to, uint64_t seed, size_t bytes);
/* Fills the shared memory of all multiprocessors with NaN: a kernel that reads what it has not
 * written there finds it. share: NULL, or receives how much was NaN before (0 to 1). */
fattn_status facts_gpu_shared(facts_gpu *gpu, double *share);

/* Between begin and end, the calls below and facts_gpu_copy only collect work. The end does it in a
 * few launches: first gaps, then fills, poison, counts of differences and changes, copies. The next
 * begin drops the work that a failed call has left. */
void facts_gpu_together_begin(facts_gpu *gpu);
fattn_status facts_gpu_together_end(facts_gpu *gpu);

/* ---- storages and images: as mx.h and image.h say ---- */

fattn_status facts_gpu_fill(facts_gpu *gpu, const facts_problem *problem, facts_tensor_id id,
                            void *storage);
fattn_status facts_gpu_gaps(facts_gpu *gpu, const facts_problem *problem, int32_t dtype,
                            void *storage, int64_t elements);
fattn_status facts_gpu_guard(facts_gpu *gpu, const facts_image *image, facts_pattern pattern,
                             void *bytes);
fattn_status facts_gpu_poison(facts_gpu *gpu, const facts_image *image, facts_pattern pattern,
                              void *bytes);
/* Counts of changed elements, counted together (also between facts_gpu_together_begin and its end).
 * After the end, each number below is at the address that its caller gave (FACTS_GPU_WATCHED
 * numbers at most). */
#define FACTS_GPU_WATCHED 64
fattn_status facts_gpu_watch_begin(facts_gpu *gpu);
fattn_status facts_gpu_watch_end(facts_gpu *gpu);
/* Between the two: copies bytes of the device to the host. They are complete after the end, which
 * waits once for everything. */
fattn_status facts_gpu_collect(facts_gpu *gpu, void *to_host, const void *from, size_t bytes);
/* facts_image_overrun without its map: the changed bytes of the image minus those inside the
 * tensors. */
fattn_status facts_gpu_overrun(facts_gpu *gpu, const facts_image *image,
                               const facts_tensor *const tensors[], size_t count,
                               facts_pattern pattern, void *bytes, int64_t *changed);
/* Elements of the whole image that are not poison; bytes that differ. */
fattn_status facts_gpu_changed(facts_gpu *gpu, const facts_image *image, facts_pattern pattern,
                               void *bytes, int64_t *changed);
fattn_status facts_gpu_differ(facts_gpu *gpu, const void *a, const void *b, size_t bytes,
                              int64_t *differ);

/* ---- answers ---- */

fattn_status facts_gpu_round(facts_gpu *gpu, const facts_tensor *tensor, const double *values,
                             double unit, void *storage);
/* facts_judge_bits. */
fattn_status facts_gpu_bits(facts_gpu *gpu, const facts_tensor *tensor, const void *storage,
                            uint64_t *bits);

/* Two answers to be compared, and the result. */
typedef struct facts_two_runs {
    const facts_tensor *tensor;
    const void *a, *b;
    const int32_t *expects; /* facts_row_expects, [batch, rows], on the host; NULL: all rows have an
                               expected value */
    const double *slack;    /* NULL: every bit counts */
    double share;           /* of the slack */
    int64_t different;      /* the result */
    int64_t first[4];       /* the first different element, if there is one */
} facts_two_runs;

/* facts_judge_repeat, or with slack facts_judge_repeat_close: FACTS_GPU_WATCHED comparisons at
 * most, with one wait. */
fattn_status facts_gpu_repeat(facts_gpu *gpu, facts_two_runs *of, size_t count);

/* The part of a tensor that one launch compares: its first batch entries, and their first heads. */
typedef struct facts_part {
    int64_t batches, heads;
    const double *want, *sigma, *bound; /* dense [batches, heads, rows, channels] */
} facts_part;

/* A question about a part. */
typedef struct facts_asked {
    const facts_tensor *tensor;
    const void *storage; /* NULL: for a lie (judge_row.h) */
    facts_lie lie;
    facts_limits limits;
    const int32_t *expects; /* on the host, as above */
    facts_part part;
    facts_judged_rows weights; /* of slices; nu and neff are on the device, rows its own */
    facts_judged_slice *out;   /* for slices: [batches, heads], on the host; with `bits` */
} facts_asked;

/* Compares the rows of a part. `out` on the host receives their sums: [batches, heads, rows]. */
fattn_status facts_gpu_judge(facts_gpu *gpu, const facts_asked *asked, facts_judged_row *out);
/* The same with the rows added up on the GPU: several questions at once, with one wait. */
fattn_status facts_gpu_slices(facts_gpu *gpu, const facts_asked *asked, size_t count);

/* Elements in rows with an expected value that still are poison, or that are not finite; and the
 * first of each (logical index). */
typedef struct facts_found {
    int64_t unwritten, not_finite;
    int64_t first_unwritten[4], first_not_finite[4];
} facts_found;
fattn_status facts_gpu_survey(facts_gpu *gpu, const facts_tensor *tensor, const void *storage,
                              const int32_t *expects, facts_pattern pattern, facts_found *found);

/* ---- the oracle: fref/gpu.h, in this context ---- */

/* A function of fref/gpu.h with its arguments. */
typedef int facts_oracle_call(void *asked, fref_gpu *oracle, struct CUstream_st *stream,
                              char *text);
/* Calls it; once more with the memory that the pool and the oracle keep, if it had too little.
 * Returns 0 or an errno. */
int facts_gpu_oracle(facts_gpu *gpu, facts_oracle_call *call, void *asked);

/* Returns from the caller if a call of the library fails. */
#define TRY(expr)                                                                                  \
    do {                                                                                           \
        fattn_status try_status = (expr);                                                          \
        if (try_status != FATTN_OK)                                                                \
            return try_status;                                                                     \
    } while (0)

/* Clocks, temperature and power of the worker's GPU, from NVML (the driver's libnvidia-ml.so.1,
 * which is opened at the first use). */
typedef struct facts_watch facts_watch;

/* NULL: no NVML here, or it does not know this GPU. `uuid`: "GPU-…". */
facts_watch *facts_watch_open(const char *uuid);
/* Returns {sm_mhz, memory_mhz, temperature_c, power_w, throttled}, without the members that NVML
 * does not give. throttled: NVML's bits of the reasons that slow the clocks down. */
json_t *facts_watch_read(const facts_watch *watch);
void facts_watch_close(facts_watch *watch); /* `watch` may be NULL */

/* Measures the speed of the GPU: a GEMM of cuBLAS, and a copy on the device. */
/* Returns {copy_gbs, gemm_tflops, gemm}. copy_gbs: GB/s read and written by a copy of 512 MiB.
 * gemm_tflops: TFLOP/s of a bf16 GEMM of 8192 x 8192 x 8192 with fp32 sums. gemm: the libcublas
 * that was used: FACTS_CUBLAS of the environment, one beside cuDNN, or the loader's. Members that
 * could not be measured are missing. Waits about 0.2 s. */
json_t *facts_measure_peak(fattn_context *context, struct CUstream_st *stream,
                           const char *cudnn_dir);

/* memory=N: takes memory of the GPU until N MiB are free, so that cuDNN has no more than a program
 * that holds the rest in its cache would leave it. */
#define FACTS_BALLAST_PIECES 64

typedef struct facts_ballast {
    void *piece[FACTS_BALLAST_PIECES];
    int pieces;
} facts_ballast;

/* Leaves `mib` MiB free, as near as the driver's granularity allows; -1: takes nothing. False: more
 * stayed free, and `why` says how much. Drop it in any case. */
bool facts_ballast_take(facts_ballast *out, facts_gpu *gpu, int64_t mib, char why[160]);
void facts_ballast_drop(facts_ballast *ballast, facts_gpu *gpu);

#endif
