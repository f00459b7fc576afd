/* fref.h: attention in double precision, the oracle.
 *
 * Plain C, libc and libm (and OpenMP); its own words; it includes nothing of lib/. Inputs are read as the exact bits of their
 * type; everything is evaluated in double and nothing is rounded. Beside every answer stands the error that a right kernel may
 * make: `sigma` (a model standard deviation) and `bound` (a worst case), in the unit of the answer. The derivations are in
 * docs/numerics.md and above the code.
 *
 * Order of dimensions: b batch, h head, i row (query) or j key, c channel. Every array that fref writes is dense, doubles.
 */
#ifndef FREF_H
#define FREF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum fref_type { FREF_F32 = 0, FREF_F16 = 1, FREF_BF16 = 2, FREF_E4M3 = 3, FREF_E5M2 = 4 } fref_type;

/* A tensor to read: element (b,h,s,c) is at data + (b*stride[0] + h*stride[1] + s*stride[2] + c*stride[3]) elements. Stride 0 is
 * fine. Ragged: `first` replaces b*stride[0]. Paged: page pages[b*pages_of_batch + s/page_size] replaces b, s % page_size replaces s.
 */
typedef struct fref_tensor {
    const void *data;
    fref_type type;
    int64_t stride[4];
    double descale;       /* the value is the element times this; 0 means 1 */
    const int64_t *first; /* [batch], elements; NULL: not ragged */
    const int32_t *pages; /* [batch, pages_of_batch]; NULL: not paged */
    int64_t page_size, pages_of_batch;
} fref_tensor;

/* fp8: what P, dS and the answers are multiplied with before their casts, and what undoes it. 0 means 1. Answers, sigmas and bounds are in
 * real units (code / scale); scale_s * descale_s need not be 1 and then shows in the answer, as it is due. */
typedef struct fref_scales {
    double scale_s, descale_s;   /* of P' */
    double scale_dp, descale_dp; /* of dS */
    double scale_o, scale_dq, scale_dk, scale_dv;
} fref_scales;

/* What a modification of the score makes of one score, in closed form. */
typedef struct fref_modified {
    double value;     /* -INFINITY: a key that this row does not have */
    double slope;     /* d value / d score */
    double curvature; /* d slope / d score */
    /* How far fp32 arithmetic may be from it: the sum of the magnitudes that it rounds on the way to the value (to the slope); 0
     * for a choice, which is exact. And of those the results of transcendental functions, which an engine may approximate
     * (eps_mod). */
    double rounded, approximated, slope_rounded, slope_approximated;
} fref_modified;
/* `at` is b,h,i,j. Called from several threads. */
typedef fref_modified (*fref_modification)(const void *owner, double score, const int64_t at[4]);

/* One attention problem, forward or backward. Query head h reads key head h / (heads_q/heads_k), value head h / (heads_q/heads_v).
 */
typedef struct fref_problem {
    int64_t batch, heads_q, heads_k, heads_v, rows, keys, dim_qk, dim_v;
    double scale;
    bool has_left, has_right, bottom_right;
    int64_t left;                  /* key j is kept iff j > i + shift - left  (left = 1 keeps the diagonal) */
    int64_t right;                 /* key j is kept iff j <= i + shift + right */
    const int32_t *len_q, *len_kv; /* [batch], or NULL: rows, keys. shift = bottom_right ? len_kv[b] - len_q[b] : 0 */
    /* The score is x = modify(scale q.k) + bias, then masked. x of -INFINITY is a key that the row does not have. */
    fref_modification modify; /* NULL: the score as it is */
    const void *modify_owner;
    const fref_tensor *bias; /* element (b,h,i,j), stride 0 where it is broadcast; NULL: none */
    const double *alibi;     /* [heads_q] slopes: + slope (j - i), after the bias; NULL: none */
    const float *sink;       /* [heads_q]: joins the denominator; NULL: none */
    const uint8_t *keep;     /* [batch, heads_q, rows, keys]: 0 drops P_ij (dropout; the denominator does not see it); NULL: none */
    double keep_scale;       /* what is kept is multiplied with this: 1/(1-p) */
    fref_scales scales;      /* 8 bit types */
    /* Only these rows (ascending) of every head get answers of the forward and dQ: the answers' row dimension is then row_count. And
     * only these keys get dK and dV; a row's largest score is then that over the sampled keys. The cost is the sample's. NULL: all.
     * amax is over the sample; dsink and dbias are over everything. */
    const int64_t *row_sample, *key_sample;
    int64_t row_count, key_count;
} fref_problem;

/* Rounding points of the kernel that is judged (docs/numerics.md section 2). fref_rounding_of() fills in the starting values. */
typedef struct fref_rounding {
    fref_type in, out; /* type of P's cast; type of O (forward) or of the gradients (backward) */
    fref_type ds;      /* backward: type of dS's cast; `in` to begin with */
    double ua, chunk, cw, cl, eps_exp;
    double acc_pv;      /* narrow accumulators: one ulp of P V's; 0: fp32 */
    double acc_run;     /* and the keys that are added in one before the sum moves to fp32 */
    double thr;         /* 8 bit types: P is scaled by 2^-thr more before its cast, which is undone */
    bool p_normalised;  /* P is divided by Sum_exp before its cast */
    double eps_mod;     /* relative error of a modification's transcendental functions, beyond fp32's */
    fref_type bias;     /* backward: type of dbias */
    bool own_o;         /* backward: o and stats are exactly what the engine reads (false adds the fallback term) */
    bool partials_cast; /* backward, grouped heads: partial dK, dV are cast to `in` before the sum over the group */
    bool bias_parts_cast; /* backward: what is summed up to dbias is cast to its type first, and again after each dimension (b, h, rows); where
                             nothing is summed, scale times it is */
    unsigned coherent; /* backward: bits of fref_gradient. Roundings of these sums may have one sign: amax_* is then bounded by the bound alone */
} fref_rounding;

typedef enum fref_gradient { FREF_GRADIENT_Q = 1, FREF_GRADIENT_K = 2, FREF_GRADIENT_V = 4 } fref_gradient;

fref_rounding fref_rounding_of(fref_type in, fref_type out);

/* Forward answers. Each pointer is the caller's array, or NULL when not wanted. A row without a key (masked, all x -INFINITY, or at
 * or past len_q): O 0, lse and max -inf, sum_exp 0; its sigma, bound and taus 0. Before len_q a sink is still there: lse and max are the sink,
 * sum_exp 1, and the taus those of a row with no other term. */
typedef struct fref_forward_out {
    double *o, *o_sigma, *o_bound;   /* [batch, heads_q, rows, dim_v] */
    double *lse, *lse_tau;           /* [batch, heads_q, rows] */
    double *max, *max_tau, *sum_exp; /* [batch, heads_q, rows] */
    double *o_nu, *o_neff;           /* [batch, heads_q, rows]: degrees of freedom of a row's errors; effective number of keys */
    double *amax_s, *amax_o;         /* [3]: max |P'|, max |O| before scale_o; the least and the most that a right kernel may say */
} fref_forward_out;

/* Degrees of freedom (docs/numerics.md section 2): neff and nu of dead rows and keys are 0. neff is 1 where the weights' sum is below
 * 2^-400. A gradient of K or V has one weight for each row: the sum over the heads of its group. Effective channels are taken from the rows
 * between the first and the last live one, row first + r n / min(n, 1024); dead rows in between, and rows with a NaN, count as zeros. */

/* Threads  uses OpenMP inside; may be called from one thread at a time.
 * Returns  0, or ENOMEM. */
int fref_forward(const fref_problem *problem, const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                 const fref_rounding *rounding, const fref_forward_out *out);

/* Backward answers; dense; gradients of K and V have heads_k and heads_v heads. Dead rows and keys: exactly 0, sigma and bound 0.
 * dbias is the sum over what dbias_dim has extent 1 in; an entry that no row reads is exactly 0. */
typedef struct fref_backward_out {
    double *dq, *dq_sigma, *dq_bound;          /* [batch, heads_q, rows, dim_qk] */
    double *dk, *dk_sigma, *dk_bound;          /* [batch, heads_k, keys, dim_qk] */
    double *dv, *dv_sigma, *dv_bound;          /* [batch, heads_v, keys, dim_v] */
    double *dbias, *dbias_sigma, *dbias_bound; /* dbias_dim */
    int64_t dbias_dim[4];                      /* 1 or the full extent of batch, heads_q, rows; the full one of keys */
    double *dsink, *dsink_bound;               /* [heads_q] */
    double *dq_nu, *dq_neff;                   /* [batch, heads_q, rows]; as o_nu and o_neff */
    double *dk_nu, *dk_neff;                   /* [batch, heads_k, keys] */
    double *dv_nu, *dv_neff;                   /* [batch, heads_v, keys] */
    double *amax_dp, *amax_dq, *amax_dk, *amax_dv; /* [3]: value, least, most */
} fref_backward_out;

/* `o` and `stats` (fp32, element (b,h,i,0)) are inputs, the same bits that the engine reads. */
int fref_backward(const fref_problem *problem, const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                  const fref_tensor *o, const fref_tensor *stats, const fref_tensor *d_o, const fref_rounding *rounding,
                  const fref_backward_out *out);

/* The first and last+1 key that row i of batch b may read; empty: *first == *last. Also what the fills use to place needles. */
void fref_keys_of_row(const fref_problem *problem, int64_t b, int64_t i, int64_t *first, int64_t *last);

#ifdef __cplusplus
}
#endif
#endif
