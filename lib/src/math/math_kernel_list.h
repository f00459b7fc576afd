#ifndef FATTN_MATH_KERNEL_LIST_H
#define FATTN_MATH_KERNEL_LIST_H

/* Every kernel of lib/cuda. The members of a family are in the order of their types (bf16, f16,
 * f32), then of their widths (64, 128). */
/* clang-format off */
#define FATTN__KERNEL_LIST(X)                                                                     \
    X(scores_bf16) X(scores_f16) X(scores_f32)                                                    \
    X(gradients_bf16) X(gradients_f16) X(gradients_f32)                                           \
    X(output_bf16_64) X(output_bf16_128) X(output_f16_64) X(output_f16_128) X(output_f32_64)      \
    X(output_f32_128)                                                                             \
    X(over_keys_bf16_64) X(over_keys_bf16_128) X(over_keys_f16_64) X(over_keys_f16_128)           \
    X(over_keys_f32_64) X(over_keys_f32_128)                                                      \
    X(over_rows_bf16_64) X(over_rows_bf16_128) X(over_rows_f16_64) X(over_rows_f16_128)           \
    X(over_rows_f32_64) X(over_rows_f32_128)                                                      \
    X(statistics) X(dot) X(modify) X(modify_weights) X(modify_gradients) X(sum) X(sink) X(gather) \
    X(dump)
/* clang-format on */

#endif
