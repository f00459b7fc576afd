/* gpu.h: the reference on a GPU, as CUDA C kernels in double precision.
 *
 * The problem and the answers are those of fref.h, equal to the C reference within 1e-12 relative.
 *
 * Driver   The CUDA driver is loaded with dlopen. The caller makes its CUDA context current on the thread; no function here makes
 *          one.
 * Memory   Pointers in fref_problem, fref_tensor and the outputs are device addresses where this header says so.
 * Order    Calls enqueue work on `stream`.
 * Threads  Use one fref_gpu from one thread at a time. */
#ifndef FREF_GPU_H
#define FREF_GPU_H

#include "fref.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;
typedef struct fref_gpu fref_gpu;

/* Creates an fref_gpu, which owns the kernels and scratch memory that grows with use.
 * Returns  0; ENODEV (no driver, or no current context); ENOEXEC (this build has no kernels, or none for this GPU); ENOMEM. `error`
 *          then has the sentence. */
int fref_gpu_create(fref_gpu **out, char error[256]);
void fref_gpu_destroy(fref_gpu *gpu); /* its CUDA context is current, or destroyed */

/* Score modifications in closed form, because a GPU cannot call a C callback. X(SYMBOL, "word").
 * The harness's mod.h says what parameter[], a and b mean */
/* clang-format off */
#define FREF_MOD_LIST(X)                                                              \
    X(NONE, "none") X(CAUSAL, "causal") X(WINDOW, "window") X(SOFTCAP, "softcap")     \
    X(TEMPERATURE, "temperature") X(PREFIX_LM, "prefix")                              \
    X(POST_SCALE_BIAS, "post_scale_bias") X(RELPOS, "relpos") X(DOCUMENT, "document")
/* clang-format on */
#define FREF_AS_ENUM(symbol, word) FREF_MOD_##symbol,
typedef enum fref_mod_kind { FREF_MOD_LIST(FREF_AS_ENUM) FREF_MOD_COUNT } fref_mod_kind;
#undef FREF_AS_ENUM

typedef struct fref_gpu_mod {
    fref_mod_kind kind;
    double parameter[2];
    fref_tensor a, b; /* device addresses */
    /* Masks. They act as a bias of 0 and -inf does, in addition to the bias. Device addresses. */
    fref_tensor
        seen; /* data NULL: no mask. A byte for each (b,h,i,j); 0 masks. `type` is not read */
    const uint8_t *tiles; /* NULL: no mask. [batch, heads_q, rows / 128, keys / 128], rounded up; 0
                             masks the tile */
} fref_gpu_mod;

/* Compute the forward and the backward answers on the GPU.
 * Memory   These fields of the problem are device addresses: len_q, len_kv, sink, keep, bias->data and alibi.
 *          row_sample and key_sample are not supported. Data, first and pages of each tensor and every array of `out` are device addresses too. `mod` (NULL: none)
 *          replaces `modify`, which is not read.
 * Order    The functions wait for `stream` before they return.
 * Returns  0; ENOMEM; EIO (the GPU failed); ENOTSUP (`error` says what is not supported. A NaN, an infinity or a value above 2^120
 *          in an input is not supported here; the C reference supports them). */
int fref_gpu_forward(fref_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod,
                     const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                     const fref_rounding *rounding, const fref_forward_out *out,
                     struct CUstream_st *stream, char error[256]);
/* `scores` is 0, or what fref_gpu_scores returned after the forward of the same problem, Q and K.
 * Stats must then be -inf exactly where that forward's are. */
int fref_gpu_backward(fref_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod,
                      const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                      const fref_tensor *o, const fref_tensor *stats, const fref_tensor *d_o,
                      const fref_rounding *rounding, const fref_backward_out *out, uint64_t scores,
                      struct CUstream_st *stream, char error[256]);
/* `yes`: from now on a forward returns as soon as its work is enqueued. Otherwise it waits, as at
 * first. The next backward that waits, with the O and Stats of that forward, returns the ENOTSUP or
 * EIO that the forward did not return. Another forward that waits does not return it. */
void fref_gpu_run_ahead(fref_gpu *gpu, bool yes);
/* The number of the scores that the last forward left in scratch memory. A backward with this
 * number uses them and does not compute them again. 0: the forward left none. Any later call makes
 * the number invalid: a backward then computes the scores again. */
uint64_t fref_gpu_scores(const fref_gpu *gpu);
/* Gives back the scratch memory, which calls keep for the next call. The number of the scores
 * becomes invalid. The context must be current; waits for the work that uses the memory. False:
 * there was none. */
bool fref_gpu_trim(fref_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
