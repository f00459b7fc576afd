/* Our numbers against NVIDIA's, where a header is installed. What a header is too old to know is
 * not compared. */
#include <criterion/criterion.h>

#include "cudnn/backend/abi.h"

#ifdef FACTS_CUDNN_HEADER
#include <cudnn_graph.h>

#define AS_ASSERT(name, value)                                                                     \
    _Static_assert((int)CUDNN_##name == (value), "CUDNN_" #name " is not " #value);
DNN_STATUS_LIST(AS_ASSERT)
DNN_TYPE_LIST(AS_ASSERT)
DNN_DATA_LIST(AS_ASSERT)
DNN_DESCRIPTOR_LIST(AS_ASSERT)
DNN_ATTRIBUTE_LIST(AS_ASSERT)
DNN_POINTWISE_LIST(AS_ASSERT)
DNN_MODE_LIST(AS_ASSERT)
#if CUDNN_VERSION >= 90800 && CUDNN_VERSION != 91000
DNN_SINCE_9_8_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 91500
DNN_SINCE_9_15_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 91700
DNN_SINCE_9_17_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 91800
DNN_SINCE_9_18_LIST(AS_ASSERT)
DNN_NUMERICAL_NOTE_LIST(AS_ASSERT)
DNN_BEHAVIOR_NOTE_LIST(AS_ASSERT)
DNN_KNOB_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 91300
DNN_SINCE_9_13_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 92000
DNN_SINCE_9_20_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 92100
DNN_SINCE_9_21_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 92200
DNN_SINCE_9_22_LIST(AS_ASSERT)
DNN_KNOB_SINCE_9_22_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 92400
DNN_SINCE_9_24_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 92500
DNN_SINCE_9_25_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 92700
DNN_SINCE_9_27_LIST(AS_ASSERT)
#endif
#if CUDNN_VERSION >= 92800
DNN_SINCE_9_28_LIST(AS_ASSERT)
#endif
_Static_assert(DNN_SEVERITY_ERROR == CUDNN_SEV_ERROR_EN &&
                   DNN_SEVERITY_WARNING == CUDNN_SEV_WARNING_EN,
               "severities");
_Static_assert(sizeof(cudnnStatus_t) == sizeof(int) &&
                   sizeof(cudnnBackendAttributeName_t) == sizeof(int),
               "enums are passed as int");
_Static_assert(sizeof(cudnnPointwiseMode_t) == sizeof(int) &&
                   sizeof(cudnnBackendKnobType_t) == sizeof(int),
               "enums are passed as int");

Test(abi, our_device_description_has_the_installed_headers_number)
{
    cr_expect_eq(fattn__deviceprop_type(CUDNN_VERSION), (int)CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    cr_expect_eq(fattn__block_scale_dequantize_type(CUDNN_VERSION),
                 (int)CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR);
}
#else
Test(abi, our_device_description_has_the_installed_headers_number)
{
    cr_skip_test("no cudnn_graph.h was found when this was built");
}
#endif

Test(abi, only_9_10_0_numbers_the_device_description_otherwise)
{
    cr_expect_eq(fattn__deviceprop_type(90900), 38);
    cr_expect_eq(fattn__deviceprop_type(91000), 40);
    cr_expect_eq(fattn__deviceprop_type(91001), 38);
    cr_expect_eq(fattn__deviceprop_type(92700), 38);
    cr_expect_eq(fattn__block_scale_dequantize_type(90900), 37);
    cr_expect_eq(fattn__block_scale_dequantize_type(91000), 39);
    cr_expect_eq(fattn__block_scale_dequantize_type(91002), 37);
}
