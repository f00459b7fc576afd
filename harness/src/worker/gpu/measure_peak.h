/* Measures the speed of the card: a GEMM of cuBLAS, and a copy on the device. */
#ifndef FACTS_MEASURE_PEAK_H
#define FACTS_MEASURE_PEAK_H

#include <fattn/fattn.h>
#include <jansson.h>

/* {copy_gbs, gemm_tflops, gemm}: GB/s read and written of a copy of 512 MiB; TFLOP/s of a bf16 GEMM of 8192 x 8192 x 8192 with fp32
 * sums by `gemm`, the libcublas that was found: FACTS_CUBLAS of the environment, one beside cuDNN, or the loader's. What could not
 * be measured is left out. Waits; about 0.2 s. */
json_t *facts_measure_peak(fattn_context *context, struct CUstream_st *stream, const char *cudnn_dir);

#endif
