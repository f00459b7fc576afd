/* Measures the speed of the GPU: a GEMM of cuBLAS, and a copy on the device. */
#ifndef FACTS_MEASURE_PEAK_H
#define FACTS_MEASURE_PEAK_H

#include <fattn/fattn.h>
#include <jansson.h>

/* Returns {copy_gbs, gemm_tflops, gemm}. copy_gbs: GB/s read and written by a copy of 512 MiB.
 * gemm_tflops: TFLOP/s of a bf16 GEMM of 8192 x 8192 x 8192 with fp32 sums. gemm: the libcublas
 * that was used: FACTS_CUBLAS of the environment, one beside cuDNN, or the loader's. Members that
 * could not be measured are missing. Waits about 0.2 s. */
json_t *facts_measure_peak(fattn_context *context, struct CUstream_st *stream,
                           const char *cudnn_dir);

#endif
