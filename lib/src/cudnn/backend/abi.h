/* The part of cuDNN's backend C API that this library uses, declared here. cuDNN is loaded with dlopen, so one binary serves every
 * version, and the build needs no header of NVIDIA's. The values are cuDNN's; test_abi.c compares them with an installed header.
 *
 * Names    cuDNN's names with DNN_ for CUDNN_, so that a file can include both.
 * Lists    one for each enum, or for the additions of a release. X(NAME, value) */
#ifndef FATTN_CUDNN_ABI_H
#define FATTN_CUDNN_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* cudnnStatus_t */
#define DNN_STATUS_LIST(X)                                                                        \
    X(STATUS_SUCCESS, 0) X(STATUS_NOT_INITIALIZED, 1001)                                          \
    X(STATUS_SUBLIBRARY_VERSION_MISMATCH, 1002)                                                   \
    X(STATUS_SERIALIZATION_VERSION_MISMATCH, 1003) X(STATUS_SUBLIBRARY_LOADING_FAILED, 1008)      \
    X(STATUS_BAD_PARAM, 2000)                                                                     \
    X(STATUS_NOT_SUPPORTED, 3000) X(STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER, 3005)          \
    X(STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART, 3006) X(STATUS_NOT_SUPPORTED_ARCH_MISMATCH, 3007) \
    X(STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING, 3008)                                    \
    X(STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE, 3009)                                          \
    X(STATUS_INTERNAL_ERROR, 4000) X(STATUS_INTERNAL_ERROR_COMPILATION_FAILED, 4001)              \
    X(STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, 4003)                                         \
    X(STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, 4004)                                       \
    X(STATUS_EXECUTION_FAILED, 5000) X(STATUS_EXECUTION_FAILED_CUDA_DRIVER, 5001)                 \
    X(STATUS_EXECUTION_FAILED_CUDART, 5003)

/* cudnnBackendAttributeType_t */
#define DNN_TYPE_LIST(X)                                                                         \
    X(TYPE_HANDLE, 0) X(TYPE_DATA_TYPE, 1) X(TYPE_BOOLEAN, 2) X(TYPE_INT64, 3) X(TYPE_FLOAT, 4)  \
    X(TYPE_DOUBLE, 5)                                                                            \
    X(TYPE_VOID_PTR, 6) X(TYPE_HEUR_MODE, 8) X(TYPE_KNOB_TYPE, 9) X(TYPE_NUMERICAL_NOTE, 11)     \
    X(TYPE_POINTWISE_MODE, 14)                                                                   \
    X(TYPE_BACKEND_DESCRIPTOR, 15) X(TYPE_REDUCTION_OPERATOR_TYPE, 18) X(TYPE_BEHAVIOR_NOTE, 19) \
    X(TYPE_TENSOR_REORDERING_MODE, 20) X(TYPE_INT32, 23) X(TYPE_CHAR, 24)                        \
    X(TYPE_RNG_DISTRIBUTION, 29)

/* cudnnDataType_t */
#define DNN_DATA_LIST(X)                                                                    \
    X(DATA_FLOAT, 0) X(DATA_DOUBLE, 1) X(DATA_HALF, 2) X(DATA_INT32, 4) X(DATA_BFLOAT16, 9) \
    X(DATA_INT64, 10)                                                                       \
    X(DATA_BOOLEAN, 11) X(DATA_FP8_E4M3, 12) X(DATA_FP8_E5M2, 13) X(DATA_FP8_E8M0, 15)      \
    X(DATA_UINT8, 6)

/* cudnnBackendDescriptorType_t; functions below give DEVICEPROP and BLOCK_SCALE_DEQUANTIZE */
#define DNN_DESCRIPTOR_LIST(X)                                                             \
    X(BACKEND_POINTWISE_DESCRIPTOR, 0) X(BACKEND_ENGINE_DESCRIPTOR, 2)                     \
    X(BACKEND_ENGINECFG_DESCRIPTOR, 3)                                                     \
    X(BACKEND_ENGINEHEUR_DESCRIPTOR, 4) X(BACKEND_EXECUTION_PLAN_DESCRIPTOR, 5)            \
    X(BACKEND_KNOB_CHOICE_DESCRIPTOR, 7)                                                   \
    X(BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 13) X(BACKEND_OPERATIONGRAPH_DESCRIPTOR, 15) \
    X(BACKEND_VARIANT_PACK_DESCRIPTOR, 16) X(BACKEND_TENSOR_DESCRIPTOR, 17)                \
    X(BACKEND_MATMUL_DESCRIPTOR, 18)                                                       \
    X(BACKEND_OPERATION_MATMUL_DESCRIPTOR, 19) X(BACKEND_REDUCTION_DESCRIPTOR, 21)         \
    X(BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 22)                                          \
    X(BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 31) X(BACKEND_RNG_DESCRIPTOR, 32)              \
    X(BACKEND_OPERATION_RNG_DESCRIPTOR, 33)                                                \
    X(BACKEND_OPERATION_PAGED_CACHE_LOAD_DESCRIPTOR, 35)

/* cudnnBackendAttributeName_t */
#define DNN_ATTRIBUTE_LIST(X)                                                                    \
    X(ATTR_POINTWISE_MODE, 0) X(ATTR_POINTWISE_MATH_PREC, 1) X(ATTR_POINTWISE_AXIS, 9)           \
    X(ATTR_ENGINEHEUR_MODE, 200)                                                                 \
    X(ATTR_ENGINEHEUR_OPERATION_GRAPH, 201) X(ATTR_ENGINEHEUR_RESULTS, 202)                      \
    X(ATTR_ENGINECFG_ENGINE, 300)                                                                \
    X(ATTR_ENGINECFG_KNOB_CHOICES, 302) X(ATTR_EXECUTION_PLAN_HANDLE, 400)                       \
    X(ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 401)                                                    \
    X(ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, 402) X(ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, 405)   \
    X(ATTR_KNOB_CHOICE_KNOB_TYPE, 600) X(ATTR_KNOB_CHOICE_KNOB_VALUE, 601)                       \
    X(ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 750)                                               \
    X(ATTR_OPERATION_POINTWISE_XDESC, 751) X(ATTR_OPERATION_POINTWISE_BDESC, 752)                \
    X(ATTR_OPERATION_POINTWISE_YDESC, 753)                                                       \
    X(ATTR_OPERATION_POINTWISE_TDESC, 758) X(ATTR_OPERATIONGRAPH_HANDLE, 800)                    \
    X(ATTR_OPERATIONGRAPH_OPS, 801)                                                              \
    X(ATTR_TENSOR_BYTE_ALIGNMENT, 900) X(ATTR_TENSOR_DATA_TYPE, 901)                             \
    X(ATTR_TENSOR_DIMENSIONS, 902) X(ATTR_TENSOR_STRIDES, 903)                                   \
    X(ATTR_TENSOR_UNIQUE_ID, 906) X(ATTR_TENSOR_IS_VIRTUAL, 907) X(ATTR_TENSOR_IS_BY_VALUE, 908) \
    X(ATTR_TENSOR_REORDERING_MODE, 909) X(ATTR_TENSOR_RAGGED_OFFSET_DESC, 913)                   \
    X(ATTR_VARIANT_PACK_UNIQUE_IDS, 1000) X(ATTR_VARIANT_PACK_DATA_POINTERS, 1001)               \
    X(ATTR_VARIANT_PACK_WORKSPACE, 1003)                                                         \
    X(ATTR_ENGINE_OPERATION_GRAPH, 1300) X(ATTR_ENGINE_GLOBAL_INDEX, 1301)                       \
    X(ATTR_ENGINE_NUMERICAL_NOTE, 1303)                                                          \
    X(ATTR_ENGINE_BEHAVIOR_NOTE, 1305) X(ATTR_MATMUL_COMP_TYPE, 1500)                            \
    X(ATTR_OPERATION_MATMUL_ADESC, 1520)                                                         \
    X(ATTR_OPERATION_MATMUL_BDESC, 1521) X(ATTR_OPERATION_MATMUL_CDESC, 1522)                    \
    X(ATTR_OPERATION_MATMUL_DESC, 1523)                                                          \
    X(ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, 1525)                                          \
    X(ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, 1526)                                          \
    X(ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, 1527) X(ATTR_REDUCTION_OPERATOR, 1600)         \
    X(ATTR_REDUCTION_COMP_TYPE, 1601)                                                            \
    X(ATTR_OPERATION_REDUCTION_XDESC, 1610) X(ATTR_OPERATION_REDUCTION_YDESC, 1611)              \
    X(ATTR_OPERATION_REDUCTION_DESC, 1612)                                                       \
    X(ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC, 1950)                                      \
    X(ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC, 1951)                                               \
    X(ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC, 1952)                                       \
    X(ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC, 1953)                                     \
    X(ATTR_OPERATION_RESHAPE_XDESC, 2200) X(ATTR_OPERATION_RESHAPE_YDESC, 2201)                  \
    X(ATTR_RNG_DISTRIBUTION, 2300)                                                               \
    X(ATTR_RNG_BERNOULLI_DIST_PROBABILITY, 2305) X(ATTR_OPERATION_RNG_YDESC, 2310)               \
    X(ATTR_OPERATION_RNG_SEED, 2311)                                                             \
    X(ATTR_OPERATION_RNG_DESC, 2312) X(ATTR_OPERATION_RNG_OFFSET_DESC, 2313)                     \
    X(ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC, 2600)                                         \
    X(ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC, 2601)                                    \
    X(ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC, 2602)                                         \
    X(ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC, 2603)                                     \
    X(ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE, 2604)

/* cudnnPointwiseMode_t */
#define DNN_POINTWISE_LIST(X)                                                                 \
    X(POINTWISE_ADD, 0) X(POINTWISE_MUL, 1) X(POINTWISE_MIN, 2) X(POINTWISE_MAX, 3)           \
    X(POINTWISE_SQRT, 4) X(POINTWISE_DIV, 6)                                                  \
    X(POINTWISE_MOD, 7) X(POINTWISE_POW, 8) X(POINTWISE_SUB, 9) X(POINTWISE_ABS, 10)          \
    X(POINTWISE_CEIL, 11) X(POINTWISE_COS, 12)                                                \
    X(POINTWISE_EXP, 13) X(POINTWISE_FLOOR, 14) X(POINTWISE_LOG, 15) X(POINTWISE_NEG, 16)     \
    X(POINTWISE_RSQRT, 17)                                                                    \
    X(POINTWISE_SIN, 18) X(POINTWISE_TAN, 19) X(POINTWISE_ERF, 20) X(POINTWISE_IDENTITY, 21)  \
    X(POINTWISE_RECIPROCAL, 22)                                                               \
    X(POINTWISE_RELU_FWD, 100) X(POINTWISE_TANH_FWD, 101) X(POINTWISE_SIGMOID_FWD, 102)       \
    X(POINTWISE_SOFTPLUS_FWD, 105)                                                            \
    X(POINTWISE_GEN_INDEX, 501) X(POINTWISE_BINARY_SELECT, 601) X(POINTWISE_LOGICAL_AND, 400) \
    X(POINTWISE_LOGICAL_OR, 401)                                                              \
    X(POINTWISE_LOGICAL_NOT, 402) X(POINTWISE_CMP_EQ, 300) X(POINTWISE_CMP_NEQ, 301)          \
    X(POINTWISE_CMP_GT, 302)                                                                  \
    X(POINTWISE_CMP_GE, 303) X(POINTWISE_CMP_LT, 304) X(POINTWISE_CMP_LE, 305)

/* cudnnReduceTensorOp_t, cudnnBackendHeurMode_t, cudnnRngDistribution_t and cudnnBackendTensorReordering_t */
#define DNN_MODE_LIST(X)                                                        \
    X(REDUCE_TENSOR_ADD, 0) X(REDUCE_TENSOR_MAX, 3) X(REDUCE_TENSOR_AMAX, 4)    \
    X(HEUR_MODE_INSTANT, 0) X(HEUR_MODE_B, 1)                                   \
    X(HEUR_MODE_FALLBACK, 2) X(HEUR_MODE_A, 3) X(RNG_DISTRIBUTION_BERNOULLI, 0) \
    X(TENSOR_REORDERING_F8_128x4, 3)

/* known from 9.8 on */
#define DNN_SINCE_9_8_LIST(X)                                                       \
    X(BACKEND_DEVICEPROP_DESCRIPTOR, 38) X(ATTR_DEVICEPROP_DEVICE_ID, 2700)         \
    X(ATTR_DEVICEPROP_HANDLE, 2701)                                                 \
    X(ATTR_DEVICEPROP_JSON_REPRESENTATION, 2702) X(ATTR_ENGINEHEUR_DEVICEPROP, 204) \
    X(ATTR_ENGINE_DEVICEPROP, 1307)                                                 \
    X(ATTR_EXECUTION_PLAN_DEVICEPROP, 407) X(ATTR_ENGINECFG_WORKSPACE_SIZE, 303)

/* known from 9.13 on: the unified forward; its later attributes are used from their own version on */
#define DNN_SINCE_9_13_LIST(X)                                                          \
    X(BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, 41) X(ATTR_OPERATION_SDPA_FWD_QDESC, 2800) \
    X(ATTR_OPERATION_SDPA_FWD_KDESC, 2801)                                              \
    X(ATTR_OPERATION_SDPA_FWD_VDESC, 2802) X(ATTR_OPERATION_SDPA_FWD_ODESC, 2803)       \
    X(ATTR_OPERATION_SDPA_FWD_STATSDESC, 2804)                                          \
    X(ATTR_OPERATION_SDPA_FWD_SCALEDESC, 2805)                                          \
    X(ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE, 2605)

/* known from 9.15 on */
#define DNN_SINCE_9_15_LIST(X)                                   \
    X(ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC, 2806)             \
    /* 9.14 */ X(ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC, 2807) \
    X(ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC, 2808)            \
    X(ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC, 2809)               \
    X(ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC, 2810)

/* known from 9.17 on: the unified backward */
#define DNN_SINCE_9_17_LIST(X)                                                                \
    X(BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR, 43) X(ATTR_OPERATION_SDPA_BWD_QDESC, 2851)       \
    X(ATTR_OPERATION_SDPA_BWD_KDESC, 2852)                                                    \
    X(ATTR_OPERATION_SDPA_BWD_VDESC, 2853) X(ATTR_OPERATION_SDPA_BWD_ODESC, 2854)             \
    X(ATTR_OPERATION_SDPA_BWD_STATSDESC, 2855)                                                \
    X(ATTR_OPERATION_SDPA_BWD_SCALEDESC, 2856) X(ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC, 2857) \
    X(ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC, 2858) X(ATTR_OPERATION_SDPA_BWD_DQDESC, 2859)   \
    X(ATTR_OPERATION_SDPA_BWD_DKDESC, 2860) X(ATTR_OPERATION_SDPA_BWD_DVDESC, 2861)           \
    X(ATTR_OPERATION_SDPA_BWD_DODDESC, 2862)

/* known from 9.18 on: extents and strides given at the call. SHAPES and STRIDES take the address of a C++ vector of vectors */
#define DNN_SINCE_9_18_LIST(X)                                                                \
    X(ATTR_VARIANT_PACK_OVERRIDE_UNIQUE_IDS, 1010) X(ATTR_VARIANT_PACK_OVERRIDE_SHAPES, 1011) \
    X(ATTR_VARIANT_PACK_OVERRIDE_STRIDES, 1012)

/* known from 9.20 on: the single operations */
#define DNN_SINCE_9_20_LIST(X)                                                            \
    X(BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR, 44)                                \
    X(BACKEND_OPERATION_SOFTMAX_DESCRIPTOR, 45)                                           \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC, 3000)                                      \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC, 3001)                             \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC, 3002)                              \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_LEFT_BOUND_DESC, 3003)                            \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC, 3004)                     \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC, 3005)                                      \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC, 3006)                                      \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE, 3007)                            \
    X(ATTR_OPERATION_SOFTMAX_XDESC, 3100) X(ATTR_OPERATION_SOFTMAX_YDESC, 3101)           \
    X(ATTR_OPERATION_SOFTMAX_STATS_DESC, 3102)                                            \
    X(ATTR_OPERATION_SOFTMAX_MAX_DESC, 3103) X(ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC, 3104) \
    X(ATTR_OPERATION_SOFTMAX_SINK_DESC, 3105)

/* known from 9.21 on: the softmax, the score's graph and the dropout of the unified operations */
#define DNN_SINCE_9_21_LIST(X)                              \
    X(ATTR_OPERATIONGRAPH_IS_OVERRIDE_SHAPE_ENABLED, 805)   \
    X(ATTR_OPERATION_SDPA_FWD_SUBGRAPH, 2811)               \
    X(ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID, 2812)     \
    X(ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID, 2813)    \
    X(ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC, 2814)           \
    X(ATTR_OPERATION_SDPA_FWD_DROPOUT_SEED_DESC, 2815)      \
    X(ATTR_OPERATION_SDPA_FWD_DROPOUT_OFFSET_DESC, 2816)    \
    X(ATTR_OPERATION_SDPA_FWD_DROPOUT_RNG_DUMP_DESC, 2817)  \
    X(ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY, 2818)    \
    X(ATTR_OPERATION_SDPA_BWD_SINK_DESC, 2863)              \
    X(ATTR_OPERATION_SDPA_BWD_DSINK_DESC, 2864)             \
    X(ATTR_OPERATION_SDPA_BWD_MAX_TOTAL_SEQ_LEN_Q, 2865)    \
    X(ATTR_OPERATION_SDPA_BWD_MAX_TOTAL_SEQ_LEN_KV, 2866)   \
    X(ATTR_OPERATION_SDPA_BWD_SUBGRAPH, 2867)               \
    X(ATTR_OPERATION_SDPA_BWD_SUBGRAPH_INPUT_UID, 2868)     \
    X(ATTR_OPERATION_SDPA_BWD_SUBGRAPH_OUTPUT_UID, 2869)

/* known from 9.22 on */
#define DNN_SINCE_9_22_LIST(X)                                                            \
    X(TYPE_RESHAPE_MODE, 31) X(ATTR_OPERATION_RESHAPE_MODE, 2202) X(RESHAPE_VIEW_ONLY, 0) \
    X(ATTR_OPERATION_SDPA_FWD_UNFUSE_FMA, 2819)

/* known from 9.24 on: cumulative lengths, offsets in coarser units, rotary embedding */
#define DNN_SINCE_9_24_LIST(X)                                                              \
    X(ATTR_TENSOR_RAGGED_OFFSET_MULTIPLIER, 914)                                            \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_KVDESC, 3008)                            \
    X(ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_QDESC, 3009)                             \
    X(ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_QDESC, 2820)                                       \
    X(ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_KVDESC, 2821)                                      \
    X(BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR, 49)                                            \
    X(ATTR_OPERATION_ROPE_FWD_XDESC, 3400) X(ATTR_OPERATION_ROPE_FWD_YDESC, 3401)           \
    X(ATTR_OPERATION_ROPE_FWD_FREQSDESC, 3402)                                              \
    X(ATTR_OPERATION_ROPE_FWD_OUTPUT_SCALE, 3403) X(ATTR_OPERATION_ROPE_FWD_ROPE_DIM, 3404)

/* known from 9.25 on: fp8 in the unified forward, the gradient of the rotary embedding */
#define DNN_SINCE_9_25_LIST(X)                                                                    \
    X(ATTR_OPERATION_SDPA_FWD_DESCALE_QDESC, 2822) X(ATTR_OPERATION_SDPA_FWD_DESCALE_KDESC, 2823) \
    X(ATTR_OPERATION_SDPA_FWD_DESCALE_VDESC, 2824) X(ATTR_OPERATION_SDPA_FWD_DESCALE_SDESC, 2825) \
    X(ATTR_OPERATION_SDPA_FWD_SCALE_SDESC, 2826) X(ATTR_OPERATION_SDPA_FWD_SCALE_ODESC, 2827)     \
    X(ATTR_OPERATION_SDPA_FWD_AMAX_SDESC, 2828) X(ATTR_OPERATION_SDPA_FWD_AMAX_ODESC, 2829)       \
    X(BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, 50) X(ATTR_OPERATION_ROPE_BWD_DYDESC, 3410)          \
    X(ATTR_OPERATION_ROPE_BWD_DXDESC, 3411)                                                       \
    X(ATTR_OPERATION_ROPE_BWD_FREQSDESC, 3412) X(ATTR_OPERATION_ROPE_BWD_OUTPUT_SCALE, 3413)      \
    X(ATTR_OPERATION_ROPE_BWD_ROPE_DIM, 3414)

/* known from 9.27 on */
#define DNN_SINCE_9_27_LIST(X) X(ATTR_OPERATION_SOFTMAX_STATS_LOG2, 3106)

/* known from 9.28 on: what a CUDA graph that was recorded from a plan keeps alive, and more of the unified backward */
#define DNN_SINCE_9_28_LIST(X)                                                        \
    X(TYPE_CUDA_GRAPH_RETENTION, 33) X(ATTR_EXECUTION_PLAN_CUDA_GRAPH_RETENTION, 408) \
    X(CUDA_GRAPH_RETENTION_PER_GRAPH, 0)                                              \
    X(CUDA_GRAPH_RETENTION_NONE, 1) X(ATTR_OPERATION_SDPA_BWD_CU_SEQ_LEN_QDESC, 2870) \
    X(ATTR_OPERATION_SDPA_BWD_CU_SEQ_LEN_KVDESC, 2871)                                \
    X(ATTR_OPERATION_SDPA_BWD_DROPOUT_SEED_DESC, 2872)                                \
    X(ATTR_OPERATION_SDPA_BWD_DROPOUT_OFFSET_DESC, 2873)                              \
    X(ATTR_OPERATION_SDPA_BWD_DROPOUT_PROBABILITY, 2874)                              \
    X(ATTR_OPERATION_SDPA_BWD_DBIAS_DESC, 2875)

/* cudnnBackendNumericalNote_t: bits of fattn_engine.numerical_notes */
#define DNN_NUMERICAL_NOTE_LIST(X)                                                               \
    X(NUMERICAL_NOTE_TENSOR_CORE, 0) X(NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, 1)                    \
    X(NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, 2)                                             \
    X(NUMERICAL_NOTE_FFT, 3) X(NUMERICAL_NOTE_NONDETERMINISTIC, 4) X(NUMERICAL_NOTE_WINOGRAD, 5) \
    X(NUMERICAL_NOTE_WINOGRAD_TILE_4x4, 6) X(NUMERICAL_NOTE_WINOGRAD_TILE_6x6, 7)                \
    X(NUMERICAL_NOTE_WINOGRAD_TILE_13x13, 8)                                                     \
    X(NUMERICAL_NOTE_STRICT_NAN_PROP, 9)

/* cudnnBackendBehaviorNote_t: bits of fattn_engine.behavior_notes */
#define DNN_BEHAVIOR_NOTE_LIST(X)                                                               \
    X(BEHAVIOR_NOTE_RUNTIME_COMPILATION, 0) X(BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER, 1) \
    X(BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER, 2)                                           \
    X(BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API, 3)                                          \
    X(BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY, 4)

/* cudnnBackendKnobType_t */
#define DNN_KNOB_LIST(X)                                                                      \
    X(KNOB_TYPE_SPLIT_K, 0) X(KNOB_TYPE_SWIZZLE, 1) X(KNOB_TYPE_TILE_SIZE, 2)                 \
    X(KNOB_TYPE_USE_TEX, 3) X(KNOB_TYPE_EDGE, 4)                                              \
    X(KNOB_TYPE_KBLOCK, 5) X(KNOB_TYPE_LDGA, 6) X(KNOB_TYPE_LDGB, 7) X(KNOB_TYPE_CHUNK_K, 8)  \
    X(KNOB_TYPE_SPLIT_H, 9)                                                                   \
    X(KNOB_TYPE_WINO_TILE, 10) X(KNOB_TYPE_MULTIPLY, 11) X(KNOB_TYPE_SPLIT_K_BUF, 12)         \
    X(KNOB_TYPE_TILEK, 13)                                                                    \
    X(KNOB_TYPE_STAGES, 14) X(KNOB_TYPE_REDUCTION_MODE, 15) X(KNOB_TYPE_CTA_SPLIT_K_MODE, 16) \
    X(KNOB_TYPE_SPLIT_K_SLC, 17)                                                              \
    X(KNOB_TYPE_IDX_MODE, 18) X(KNOB_TYPE_SLICED, 19) X(KNOB_TYPE_SPLIT_RS, 20)               \
    X(KNOB_TYPE_SINGLEBUFFER, 21)                                                             \
    X(KNOB_TYPE_LDGC, 22) X(KNOB_TYPE_SPECFILT, 23) X(KNOB_TYPE_KERNEL_CFG, 24)               \
    X(KNOB_TYPE_WORKSPACE, 25)                                                                \
    X(KNOB_TYPE_TILE_CGA, 26) X(KNOB_TYPE_TILE_CGA_M, 27) X(KNOB_TYPE_TILE_CGA_N, 28)         \
    X(KNOB_TYPE_BLOCK_SIZE, 29)                                                               \
    X(KNOB_TYPE_OCCUPANCY, 30) X(KNOB_TYPE_ARRAY_SIZE_PER_THREAD, 31)                         \
    X(KNOB_TYPE_NUM_C_PER_BLOCK, 32)                                                          \
    X(KNOB_TYPE_SPLIT_COLS, 33) X(KNOB_TYPE_TILE_ROWS, 34) X(KNOB_TYPE_TILE_COLS, 35)         \
    X(KNOB_TYPE_LOAD_SIZE, 36)                                                                \
    X(KNOB_TYPE_CTA_COUNT, 37) X(KNOB_TYPE_STREAM_K, 38) X(KNOB_TYPE_SPLIT_P_SLC, 39)         \
    X(KNOB_TYPE_TILE_M, 40)                                                                   \
    X(KNOB_TYPE_TILE_N, 41) X(KNOB_TYPE_WARP_SPEC_CFG, 42) X(KNOB_TYPE_SWAP_AB, 43)

/* cudnnBackendKnobType_t, known from 9.22 on */
#define DNN_KNOB_SINCE_9_22_LIST(X) \
    X(KNOB_TYPE_INPUT_TMA_ENABLE, 44) X(KNOB_TYPE_OUTPUT_TMA_ENABLE, 45)
/* clang-format on */

#define DNN_AS_ENUM_(name, value) DNN_##name = (value),
enum fattn__dnn_status { DNN_STATUS_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_type { DNN_TYPE_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_data { DNN_DATA_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_descriptor { DNN_DESCRIPTOR_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_attribute { DNN_ATTRIBUTE_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_pointwise { DNN_POINTWISE_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_mode { DNN_MODE_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_8 { DNN_SINCE_9_8_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_15 { DNN_SINCE_9_15_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_17 { DNN_SINCE_9_17_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_18 { DNN_SINCE_9_18_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_13 { DNN_SINCE_9_13_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_20 { DNN_SINCE_9_20_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_21 { DNN_SINCE_9_21_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_22 { DNN_SINCE_9_22_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_24 { DNN_SINCE_9_24_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_25 { DNN_SINCE_9_25_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_27 { DNN_SINCE_9_27_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_since_9_28 { DNN_SINCE_9_28_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_numerical_note { DNN_NUMERICAL_NOTE_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_behavior_note { DNN_BEHAVIOR_NOTE_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_knob { DNN_KNOB_LIST(DNN_AS_ENUM_) };
enum fattn__dnn_knob_since_9_22 { DNN_KNOB_SINCE_9_22_LIST(DNN_AS_ENUM_) };
#undef DNN_AS_ENUM_

/* Bits of cudnnSetCallback's mask. The library never asks for information messages: they make a
 * decision three to five times slower. */
#define DNN_SEVERITY_ERROR 2u
#define DNN_SEVERITY_WARNING 4u

typedef void *fattn__desc;   /* cudnnBackendDescriptor_t */
typedef void *fattn__handle; /* cudnnHandle_t */
typedef void (*fattn__log)(int severity, void *user, const void *debug,
                           const char *message); /* cudnnCallback_t */

/* Enumerators with another number in one release: 9.10.0 has two new ones before them. */
static inline int fattn__deviceprop_type(int cudnn_version)
{
    return cudnn_version == 91000 ? 40 : DNN_BACKEND_DEVICEPROP_DESCRIPTOR;
}

static inline int fattn__block_scale_dequantize_type(int cudnn_version)
{
    return cudnn_version == 91000 ? 39 : 37;
}

#endif
