/* device.h: buffers, streams and time, for programs without a CUDA runtime. On the CPU these are host operations. A described device answers
 * FATTN_UNSUPPORTED.
 *
 * Errors   FATTN_DEVICE_FAULT when the driver fails; fattn_last_error() then holds the driver's words. FATTN_BAD_PROBLEM while a stream is
 *          captured. Owners are NULL after a failure.
 * Threads  any; the GPU's context is current on the thread during the call alone.
 */
#ifndef FATTN_DEVICE_H
#define FATTN_DEVICE_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- buffers
 * -----------------------------------------------------------------------------------------------------------------
 */

/* Device memory, aligned to 256 bytes and not cleared. Returns also FATTN_NO_MEMORY. */
fattn_status fattn_buffer_create(void **out, fattn_context *context, size_t bytes);
void fattn_buffer_destroy(fattn_context *context, void *buffer); /* NULL is allowed */
fattn_status fattn_buffer_write(fattn_context *context, void *to, const void *from_host,
                                size_t bytes); /* synchronous */
fattn_status fattn_buffer_read(fattn_context *context, void *to_host, const void *from,
                               size_t bytes); /* synchronous */

/* ---- streams
 * -----------------------------------------------------------------------------------------------------------------
 */

fattn_status fattn_stream_create(struct CUstream_st **out,
                                 fattn_context *context); /* the CPU: the NULL stream */
void fattn_stream_destroy(fattn_context *context, struct CUstream_st *stream);
/* Waits. FATTN_DEVICE_FAULT when any earlier launch has failed. */
fattn_status fattn_stream_synchronize(fattn_context *context, struct CUstream_st *stream);
/* Runs `launch(argument, stream)` `repeats` times between two events. *out_us is the mean in microseconds. Synchronises.
 * Returns  FATTN_OK; what `launch` returned; FATTN_BAD_PROBLEM (repeats is below 1); FATTN_DEVICE_FAULT. */
fattn_status fattn_stream_time(fattn_context *context, struct CUstream_st *stream,
                               fattn_status (*launch)(void *, struct CUstream_st *), void *argument,
                               int repeats, double *out_us);

/* ---- the GPU's context
 * ---------------------------------------------------------------------------------------------------------
 */

struct CUctx_st;
/* Makes the GPU's context current on this thread, for a program that launches kernels of its own
 * beside the library's. *previous is for fattn_context_leave, which makes the earlier context
 * current again. Other devices: nothing to do. */
fattn_status fattn_context_enter(struct CUctx_st **previous, fattn_context *context);
void fattn_context_leave(fattn_context *context, struct CUctx_st *previous);

/* ---- a call's small arrays
 * ------------------------------------------------------------------------------------------------------
 */

/* Checks values that a launch cannot check without waiting. It reads lengths, offsets, page tables, scale factors and scales of a call back
 *        from
 * the device. `elements`: how many elements each buffer of FATTN_RAGGED_LIST holds, 0 where unknown; NULL: none is known.
 * Order    waits for `stream`; launches nothing. Not for a stream that is being captured.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (argument, index, value and what is allowed in the message); FATTN_DEVICE_FAULT. */
fattn_status fattn_call_check(const fattn_plan *plan, const fattn_tensors *tensors,
                              const int64_t elements[FATTN_RAGGED_TENSORS],
                              struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif
#endif
