/* The old narrow entry. */
#include "engine.h"
#include "layout.h"
#include "problem.h"

/* Q, K and V in one format; what the old entry could not say stays unset, and is derived. */
static void place(fattn_problem *p, fattn_format format)
{
#define AS_WORD(symbol, value, word) [value] = word,
    static const char *const orders[] = { FATTN_FORMAT_LIST(AS_WORD) };
#undef AS_WORD
    if (format == FATTN_FORMAT_UNSET)
        return;
    fattn__dense_strides((int64_t[4]){ p->batch, p->heads_q, p->seq_q, p->dim_qk }, orders[format], p->q_strides);
    fattn__dense_strides((int64_t[4]){ p->batch, p->heads_k, p->seq_kv, p->dim_qk }, orders[format], p->k_strides);
    fattn__dense_strides((int64_t[4]){ p->batch, p->heads_v, p->seq_kv, p->dim_v }, orders[format], p->v_strides);
}

/* A backend, or -1 and the sentence. */
static int ask(fattn_context *context, const fattn_problem *p)
{
    fattn_decision *decision;
    if (fattn_decide(&decision, context, p, FATTN_ASK_A) != FATTN_OK && decision == NULL)
        return -1;
    const int backend = fattn_decision_supported(decision) ? (int)fattn_decision_backend(decision) : -1;
    if (backend < 0) {
        const char *status = fattn_decision_status(decision);
        fattn__keep_sentence("%s: %s%s%s", p->pass == FATTN_BACKWARD ? "backward" : "forward", status, *status != '\0' ? ": " : "",
                             fattn_decision_text(decision));
    }
    fattn_decision_destroy(decision);
    return backend;
}

/* One backend must do all that is asked: the old entry has one answer. */
static int ask_passes(fattn_context *context, fattn_problem *p, bool training)
{
    const int forward = ask(context, p);
    if (forward < 0 || !training)
        return forward;
    p->pass = FATTN_BACKWARD;
    const int backward = ask(context, p);
    if (backward >= 0 && backward != forward)
        fattn__keep_sentence("forward and backward would be computed by two backends, %d and %d", forward, backward);
    return backward == forward ? forward : -1;
}

int fattn_backend_v1(fattn_context *context, int training, fattn_dtype dtype, fattn_format format, int64_t heads_q,
                     int64_t heads_kv, int64_t seq_q, int64_t seq_kv, int64_t dim_qk, int64_t dim_v, int64_t window_left,
                     int64_t window_right, int deterministic, int capture, const char **message)
{
    fattn_problem p = { .struct_size = sizeof p,
                        .dtype = (int32_t)dtype,
                        .batch = 1,
                        .heads_q = heads_q,
                        .heads_k = heads_kv,
                        .heads_v = heads_kv,
                        .seq_q = seq_q,
                        .seq_kv = seq_kv,
                        .dim_qk = dim_qk,
                        .dim_v = dim_v,
                        .window_left = window_left,
                        .window_right = window_right,
                        .has_left = window_left != -1,
                        .has_right = window_right != -1,
                        .training = training != 0,
                        .deterministic = deterministic != 0,
                        .capture = capture != 0 };
    int backend = -1;
    fattn_problem resolved;
    if ((int)format < FATTN_FORMAT_UNSET || (int)format > FATTN_FORMAT_BHSD) {
        fattn__keep_sentence("format: %d is not allowed; want 0 (unset) to 3 (bhsd)", (int)format);
    } else if (fattn_problem_resolve(&p, &resolved) == FATTN_OK) { /* so that extents are there to make strides of */
        p.heads_k = resolved.heads_k, p.heads_v = resolved.heads_v, p.dim_v = resolved.dim_v;
        place(&p, format);
        backend = ask_passes(context, &p, training != 0);
    }
    if (message != NULL)
        *message = backend >= 0 ? "" : fattn_last_error();
    return backend;
}
