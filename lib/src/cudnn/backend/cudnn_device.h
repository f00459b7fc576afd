/* The device as cuDNN sees it: a DEVICEPROP descriptor (from 9.8 on). */
#ifndef FATTN_CUDNN_DEVICE_H
#define FATTN_CUDNN_DEVICE_H

#include "core/context.h"

/* Makes the descriptor of a described device from text, and reads info->sm, multiprocessors and
 * device_name from it. The text is cuDNN's object, or an object that has it as "device", as the
 * files of lib/devices. Returns FATTN_OK; FATTN_ENVIRONMENT (broken JSON with its line, a field
 * that this version requires is missing, a version below 9.8). */
fattn_status fattn__device_describe(fattn__desc *out, fattn_context_info *info,
                                    const fattn__cudnn *api, const char *json);

/* Fills info.device_id: a hash of the device as cuDNN describes it, without its place, driver and
 * clock. A GPU that cuDNN cannot
 * describe is known by architecture, multiprocessors and name. Returns FATTN_OK; FATTN_NO_MEMORY.
 */
fattn_status fattn__device_identify(fattn_context *context);

#endif
