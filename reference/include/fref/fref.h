/* fref.h: attention in double precision. Its answers are the reference results.
 *
 * The reference is plain C with libc, libm and OpenMP. It includes nothing of lib/. It reads inputs as the exact bits of their
 * type, computes in double, and rounds nothing. For each answer it also computes the error that a correct kernel may make, in the
 * unit of the answer: `sigma` is a model standard deviation, `bound` is a worst case. docs/numerics.md derives both.
 *
 * Order    b batch, h head, i row (query) or j key, c channel. Every array that fref writes is dense and holds doubles.
 * Memory   The caller owns every array. Inputs are not written.
 * Errors   Functions return 0 or an errno. A failed call leaves the outputs undefined. */
#ifndef FREF_H
#define FREF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fref_type {
    FREF_F32 = 0,
    FREF_F16 = 1,
    FREF_BF16 = 2,
    FREF_E4M3 = 3,
    FREF_E5M2 = 4
} fref_type;

/* A tensor to read. Element (b,h,s,c) is at data + (b*stride[0] + h*stride[1] + s*stride[2] +
 * c*stride[3]) elements. A stride may be 0. Ragged: first[b] replaces b*stride[0]. Paged: page
 * pages[b*pages_of_batch + s/page_size] replaces b, and s % page_size replaces s. */
typedef struct fref_tensor {
    const void *data;
    fref_type type;
    int64_t stride[4];
    double descale;       /* the value is the element times this; 0 means 1 */
    const int64_t *first; /* [batch], elements; NULL: not ragged */
    const int32_t *pages; /* [batch, pages_of_batch]; NULL: not paged */
    int64_t page_size, pages_of_batch;
} fref_tensor;

/* 8-bit types: the factors of P, dS and the answers before their casts, and the factors that undo
 * them. 0 means 1. Answers, sigmas and bounds are in real units (code / scale). If scale_s *
 * descale_s is not 1, the answer contains the product, as a kernel's answer does. */
typedef struct fref_scales {
    double scale_s, descale_s;   /* of P' */
    double scale_dp, descale_dp; /* of dS */
    double scale_o, scale_dq, scale_dk, scale_dv;
} fref_scales;

/* A modified score, in closed form. */
typedef struct fref_modified {
    double value;     /* -INFINITY: this row does not have this key */
    double slope;     /* d value / d score */
    double curvature; /* d slope / d score */
    /* How far fp32 arithmetic may be from the value and from the slope. `rounded` is the sum of the magnitudes that fp32 rounds on
     * the way; a choice is exact and adds 0. `approximated` is the part that transcendental functions give, which an engine may
     * approximate (eps_mod). */
    double rounded, approximated, slope_rounded, slope_approximated;
} fref_modified;
/* Modifies one score; `at` is b,h,i,j. Several threads call it at once. */
typedef fref_modified (*fref_modification)(const void *owner, double score, const int64_t at[4]);

/* One attention problem, forward or backward. Query head h reads key head h / (heads_q/heads_k) and
 * value head h / (heads_q/heads_v). */
typedef struct fref_problem {
    int64_t batch, heads_q, heads_k, heads_v, rows, keys, dim_qk, dim_v;
    double scale;
    bool has_left, has_right, bottom_right;
    int64_t left;  /* key j is kept iff j > i + shift - left  (left = 1 keeps the diagonal) */
    int64_t right; /* key j is kept iff j <= i + shift + right */
    const int32_t *len_q,
        *len_kv; /* [batch]; NULL: rows, keys. shift = bottom_right ? len_kv[b] - len_q[b] : 0 */
    /* The score is x = modify(scale q.k) + bias, then masked. If x is -INFINITY, the row does not
     * have the key. */
    fref_modification modify; /* NULL: the score is not modified */
    const void *modify_owner;
    const fref_tensor *bias; /* element (b,h,i,j); stride 0 broadcasts; NULL: none */
    const double *alibi; /* [heads_q] slopes: slope (j - i) is added after the bias; NULL: none */
    const float *sink;   /* [heads_q]: one more term of the denominator; NULL: none */
    const uint8_t *keep; /* dropout, [batch, heads_q, rows, keys]: 0 drops P_ij, but not its term of
                            the denominator; NULL: none */
    double keep_scale;   /* the factor of the P_ij that are kept: 1/(1-p) */
    fref_scales scales;  /* 8-bit types */
    /* A sample, in ascending order; NULL: all. The forward and dQ are computed for these rows of every head, and the row dimension
     * of the answers is row_count. dK and dV are computed for these keys. A row's largest score and amax are those of the sample;
     * dsink and dbias are of everything. The cost is that of the sample. */
    const int64_t *row_sample, *key_sample;
    int64_t row_count, key_count;
} fref_problem;

/* Rounding points of the kernel that is compared (docs/numerics.md, section 2). fref_rounding_of()
 * fills in the starting values. */
typedef struct fref_rounding {
    fref_type in, out; /* type of P's cast; type of O (forward) or of the gradients (backward) */
    fref_type ds;      /* backward: type of dS's cast; starts as `in` */
    double ua, chunk, cw, cl, eps_exp;
    double acc_pv;     /* narrow accumulators: one ulp of the accumulator of P V; 0: fp32 */
    double acc_run;    /* narrow accumulators: keys that are added before the sum moves to fp32 */
    double thr;        /* 8-bit types: P is scaled by 2^-thr before its cast, and back after it */
    bool p_normalised; /* P is divided by Sum_exp before its cast */
    bool discrete;  /* forward: the probabilities have few values, so the roundings of a lane that
                       adds a row key by key may have one sign (Stats, Sum_exp) */
    double eps_mod; /* relative error of a modification's transcendental functions, beyond fp32's */
    fref_type bias; /* backward: type of dbias */
    bool own_o; /* backward: o and stats are exactly what the engine reads (false adds the fallback
                   term) */
    bool partials_cast; /* backward, GQA: partial dK and dV are cast to `in` before the sum over the
                           group */
    bool
        bias_parts_cast; /* backward: the terms of dbias are cast to its type before the sum, and again after each dimension (b, h,
                          * rows). With a scale that is no power of two they are cast once more: scale times the term is cast first */
    unsigned
        coherent; /* backward: bits of fref_gradient. The rounding errors of these sums may have one sign, so amax_* is bounded
                   * by the bound alone */
} fref_rounding;

typedef enum fref_gradient {
    FREF_GRADIENT_Q = 1,
    FREF_GRADIENT_K = 2,
    FREF_GRADIENT_V = 4
} fref_gradient;

fref_rounding fref_rounding_of(fref_type in, fref_type out);

/* One answer. Each pointer is the caller's array, or NULL if it is not wanted. */
typedef struct fref_answer {
    double *value, *sigma, *bound;
    double *nu,
        *neff;    /* [batch, heads, rows or keys]: degrees of freedom of a row's errors; effective
                     number of weights */
    double *amax; /* [3]: max |value| before its scale; the least and the largest value that a
                     correct kernel may write */
} fref_answer;

/* Forward answers. A row without a
 * key is masked, has only x of -INFINITY, or is at or past len_q. It has O 0, lse and max -inf,
 * sum_exp 0, and sigma, bound and taus 0. Before len_q such a row still has its sink. Then lse and
 * max are the sink, sum_exp is 1, and the taus are those of a row with no other term. */
typedef struct fref_forward_out {
    fref_answer o;                   /* [batch, heads_q, rows, dim_v] */
    double *lse, *lse_tau;           /* [batch, heads_q, rows] */
    double *max, *max_tau, *sum_exp; /* [batch, heads_q, rows] */
    double *amax_s;                  /* as o.amax, of P' */
} fref_forward_out;

/* Degrees of freedom (docs/numerics.md, section 2). neff and nu of rows and keys without an answer
 * are 0. neff is 1 if the sum of the weights is below 2^-400. A gradient of K or V has one weight
 * for each row: the sum over the heads of its group. Effective channels come from the rows first +
 * r n / min(n, 1024), between the first and the last row with an answer. Rows without an answer in
 * between, and rows with a NaN, count as zeros. */

/* Computes the forward answers.
 * Threads  Uses OpenMP inside. Call it from one thread at a time.
 * Returns  0, or ENOMEM. */
int fref_forward(const fref_problem *problem, const fref_tensor *q, const fref_tensor *k,
                 const fref_tensor *v, const fref_rounding *rounding, const fref_forward_out *out);

/* Backward answers, dense. Gradients of K and V have heads_k and heads_v heads. Rows and keys
 * without a gradient have exactly 0, with sigma and bound 0. dbias is summed over each dimension
 * whose extent is 1 in dbias_dim. An entry of dbias that no row reads is exactly 0. */
typedef struct fref_backward_out {
    fref_answer dq;       /* [batch, heads_q, rows, dim_qk] */
    fref_answer dk;       /* [batch, heads_k, keys, dim_qk] */
    fref_answer dv;       /* [batch, heads_v, keys, dim_v] */
    fref_answer dbias;    /* dbias_dim; without nu, neff and amax */
    int64_t dbias_dim[4]; /* 1 or the full extent of batch, heads_q and rows; always the full extent
                             of keys */
    double *dsink, *dsink_bound; /* [heads_q] */
    double *amax_dp;             /* as dq.amax, of dP */
} fref_backward_out;

/* Computes the backward answers. `o` and `stats` (fp32, element (b,h,i,0)) are inputs: the same bits that the engine reads.
 * Threads  As fref_forward.
 * Returns  0, or ENOMEM. */
int fref_backward(const fref_problem *problem, const fref_tensor *q, const fref_tensor *k,
                  const fref_tensor *v, const fref_tensor *o, const fref_tensor *stats,
                  const fref_tensor *d_o, const fref_rounding *rounding,
                  const fref_backward_out *out);

/* The first key that row i of batch entry b may read, and the last one plus 1. *first == *last: the
 * row has no key. The fills also use it to place needles. */
void fref_keys_of_row(const fref_problem *problem, int64_t b, int64_t i, int64_t *first,
                      int64_t *last);

/* Is the answer wanted? Its errors? Its degrees of freedom? */
static inline bool fref_has_freedom(const fref_answer *a)
{
    return a->nu || a->neff;
}
static inline bool fref_has_errors(const fref_answer *a)
{
    return a->sigma || a->bound || a->nu || a->amax;
}
static inline bool fref_is_wanted(const fref_answer *a)
{
    return a->value || a->neff || fref_has_errors(a);
}

#ifdef __cplusplus
}
#endif
#endif
