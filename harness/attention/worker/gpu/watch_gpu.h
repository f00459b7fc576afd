/* Clocks, temperature and power of the worker's GPU, from NVML (the driver's libnvidia-ml.so.1,
 * which is opened at the first use). */
#ifndef FACTS_WATCH_GPU_H
#define FACTS_WATCH_GPU_H

#include "worker_gpu.h"
#include <fattn/fattn.h>
#include <jansson.h>

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
