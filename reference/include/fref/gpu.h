/* gpu.h: the oracle on a GPU. The same problem, the same answers (1e-12 relative of the C one), as CUDA C kernels in double precision; sigmas and bounds of
 * O, dQ, dK and dV from rough sums: never below the C one's, at most 0.5 % above (docs/numerics.md, section 2).
 *
 * The CUDA driver is loaded with dlopen; a CUDA context is current on the calling thread (the caller's; nothing here makes one).
 * Pointers in fref_problem, fref_tensor and the outs are device addresses where this header says so. Calls enqueue on `stream`.
 * Threads  one fref_gpu from one thread at a time.
 */
#ifndef FREF_GPU_H
#define FREF_GPU_H

#include "fref.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;
typedef struct fref_gpu fref_gpu;

/* Owns the kernels and scratch memory that grows with use. Returns 0; ENODEV (no driver, no current context); ENOEXEC (no kernels in this
 * build, or none for this GPU); ENOMEM. The sentence goes to `error`. */
int fref_gpu_create(fref_gpu **out, char error[256]);
void fref_gpu_destroy(fref_gpu *gpu); /* its context is current, or gone */

/* Score modifications in closed form, as a callback cannot run there. X(SYMBOL, "word") : parameters[], tensors a and b as in the harness's mod.h */
#define FREF_MOD_LIST(X)                                                                                                           \
    X(NONE, "none") X(CAUSAL, "causal") X(WINDOW, "window") X(SOFTCAP, "softcap") X(TEMPERATURE, "temperature") X(PREFIX_LM, "prefix") \
    X(POST_SCALE_BIAS, "post_scale_bias") X(RELPOS, "relpos") X(DOCUMENT, "document")
#define FREF_AS_ENUM(symbol, word) FREF_MOD_##symbol,
typedef enum fref_mod_kind { FREF_MOD_LIST(FREF_AS_ENUM) FREF_MOD_COUNT } fref_mod_kind;
#undef FREF_AS_ENUM

typedef struct fref_gpu_mod {
    fref_mod_kind kind;
    double parameter[2];
    fref_tensor a, b; /* device addresses */
    /* Masks, judged as a bias of 0 and -inf would be, beside the bias if there is one; device addresses. */
    fref_tensor seen;     /* data NULL: all. A byte for each (b,h,i,j), 0: masked; `type` is not read */
    const uint8_t *tiles; /* NULL: all. [batch, heads_q, rows / 128, keys / 128], rounded up; 0: the tile is masked */
} fref_gpu_mod;

/* problem: len_q, len_kv, sink, keep, bias->data, alibi, row_sample, key_sample are device addresses; `modify` is not read, `mod` (NULL: none) is
 * instead. Tensors: data, first and pages are device addresses. out: every array is on the device, as in fref.h.
 * They wait for the stream before they return. ENOTSUP, with what is missing in `error`, also for a NaN, an infinity or more than 2^120 in what is read (the C
 * oracle knows those). Returns 0; ENOMEM; ENOTSUP; EIO when the GPU failed. */
int fref_gpu_forward(fref_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod, const fref_tensor *q, const fref_tensor *k,
                     const fref_tensor *v, const fref_rounding *rounding, const fref_forward_out *out, struct CUstream_st *stream, char error[256]);
/* scores: 0, or what fref_gpu_scores said after the forward of the same problem, Q and K; then Stats are -inf exactly where that forward's are. */
int fref_gpu_backward(fref_gpu *gpu, const fref_problem *problem, const fref_gpu_mod *mod, const fref_tensor *q, const fref_tensor *k,
                      const fref_tensor *v, const fref_tensor *o, const fref_tensor *stats, const fref_tensor *d_o, const fref_rounding *rounding,
                      const fref_backward_out *out, uint64_t scores, struct CUstream_st *stream, char error[256]);
/* From now on a forward returns as soon as all is enqueued (true), or waits as it does at first. What it would have said, ENOTSUP or EIO, is said by the next
 * call that waits: the backward whose O and Stats it makes. Another forward that waits knows nothing of it. */
void fref_gpu_run_ahead(fref_gpu *gpu, bool yes);
/* The name of the scores that the last forward has left in scratch memory, for a backward to take instead of making them again; 0: it left none.
 * Any later call makes it void: a backward then makes them again. */
uint64_t fref_gpu_scores(const fref_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
