/* Builds an operation graph for cuDNN from tensors and operations.
 *
 * A graph owns every descriptor made through it and frees them together. After the first failure
 * every helper returns NULL and does nothing. So a builder need not check each step: it calls
 * fattn__graph_status() once, at the end. Operations enter the operation graph in the order in
 * which they are made. */
#ifndef FATTN_CUDNN_BACKEND_H
#define FATTN_CUDNN_BACKEND_H

#include "api.h"
#include "fattn/fattn.h"
#include "fattn/score_mod.h"
#include "problem/auxiliary.h"
#include "repeat.h"

/* What a real tensor of a graph is bound to at a call. X(SYMBOL, field of fattn_tensors) */
/* clang-format off */
#define FATTN__CALL_SLOT_LIST(X)                                                        \
    X(Q, q) X(K, k) X(V, v) X(O, o) X(STATS, stats) X(MAX, max) X(SUM_EXP, sum_exp)     \
    X(SEQ_LEN_Q, seq_len_q)                                                             \
    X(SEQ_LEN_KV, seq_len_kv) X(DO, d_o) X(DQ, dq) X(DK, dk) X(DV, dv) X(BIAS, bias)    \
    X(DBIAS, dbias)                                                                     \
    X(MOD_0, mod_tensors[0]) X(MOD_1, mod_tensors[1]) X(MOD_2, mod_tensors[2])          \
    X(MOD_3, mod_tensors[3])                                                            \
    X(MOD_4, mod_tensors[4]) X(MOD_5, mod_tensors[5]) X(MOD_6, mod_tensors[6])          \
    X(MOD_7, mod_tensors[7])                                                            \
    X(DMOD_0, mod_gradients[0]) X(DMOD_1, mod_gradients[1]) X(DMOD_2, mod_gradients[2]) \
    X(DMOD_3, mod_gradients[3])                                                         \
    X(DMOD_4, mod_gradients[4]) X(DMOD_5, mod_gradients[5]) X(DMOD_6, mod_gradients[6]) \
    X(DMOD_7, mod_gradients[7])
/* clang-format on */

#define FATTN__AS_SLOT_(symbol, field) FATTN__SLOT_##symbol,
#define FATTN__AS_AUXILIARY_SLOT_(symbol, field, written) FATTN__SLOT_##symbol,
typedef enum fattn__slot {
    FATTN__CALL_SLOT_LIST(FATTN__AS_SLOT_) FATTN__AUXILIARY_LIST(FATTN__AS_AUXILIARY_SLOT_)
        FATTN__SLOT_SCRATCH, /* workspace */
    FATTN__SLOT_VALUE        /* by value: a constant of the graph */
} fattn__slot;
#undef FATTN__AS_SLOT_
#undef FATTN__AS_AUXILIARY_SLOT_

/* Slots of a score_mod's tensor i and of its gradient. */
_Static_assert(FATTN_MOD_MAX_TENSORS == 8 && FATTN__SLOT_MOD_7 == FATTN__SLOT_MOD_0 + 7 &&
                   FATTN__SLOT_DMOD_7 == FATTN__SLOT_DMOD_0 + 7,
               "a slot for each tensor of a score_mod");
static inline fattn__slot fattn__slot_of_mod(size_t i)
{
    return (fattn__slot)((size_t)FATTN__SLOT_MOD_0 + i);
}

/* The slot of an array of fattn__auxiliary. */
static inline fattn__slot fattn__slot_of_auxiliary(fattn__auxiliary which)
{
    return (fattn__slot)((int)FATTN__SLOT_Q_OFFSETS + (int)which);
}

/* One entry of the variant pack. */
typedef struct fattn__binding {
    int64_t uid;
    int32_t slot; /* fattn__slot */
    union {
        float f32;
        int32_t i32;
        uint32_t bits;
    } value; /* FATTN__SLOT_VALUE */
    size_t
        offset; /* FATTN__SLOT_SCRATCH: bytes from the start of the workspace, a multiple of 16 */
} fattn__binding;

/* A sum that the library computes after cuDNN's launch: from a gradient of every element, in the
 * workspace, to the gradient of a broadcast input. The type may change. */
typedef struct fattn__graph_sum {
    size_t offset;              /* of the source in the workspace */
    int64_t dim[4], strides[4]; /* of the source */
    int64_t out_strides[4];     /* of the destination; 0 where it is summed */
    int32_t dtype, out_dtype;   /* fattn_dtype */
    int32_t slot;               /* fattn__slot of the destination */
    int32_t reserved;
} fattn__graph_sum;

#define FATTN__MAX_BINDINGS 160 /* a score_mod has up to 64 constants, its gradient more */
#define FATTN__MAX_OPERATIONS 768
#define FATTN__MAX_DESCRIPTORS 3072
#define FATTN__MAX_SUMS (4 + FATTN_MOD_MAX_TENSORS)

typedef struct fattn__graph {
    const fattn__cudnn *api;
    int sm; /* 90 for sm_90 */
    fattn_status status;
    int cudnn_status; /* cuDNN's status if a call of cuDNN failed; 0 otherwise */
    char text[768];   /* the message of the failure */
    int64_t next_uid; /* the same problem always has the same uids: a saved plan is bound by them */
    uint64_t hash;    /* of every descriptor and attribute so far, in order */
    size_t scratch_bytes; /* the library's workspace, a multiple of 16 */
    int descriptor_count;
    int operation_count;
    int binding_count;
    int sum_count;
    bool overrides; /* a call may change extents and strides; set before fattn__graph_finalize */
    const fattn__repeat *repeat; /* how to make a deterministic backward repeat; NULL otherwise */
    fattn__desc operation_graph; /* after fattn__graph_finalize */
    fattn__desc matmul;          /* one for the whole graph */
    fattn__desc descriptors[FATTN__MAX_DESCRIPTORS];
    fattn__desc operations[FATTN__MAX_OPERATIONS];
    fattn__binding bindings[FATTN__MAX_BINDINGS];
    fattn__graph_sum sums[FATTN__MAX_SUMS];
} fattn__graph;

void fattn__graph_init(fattn__graph *g, const fattn__cudnn *api, int sm);
/* Frees every descriptor. The graph may be used again after fattn__graph_init. */
void fattn__graph_release(fattn__graph *g);
fattn_status fattn__graph_status(const fattn__graph *g);
/* cudnnGetVersion() of the loaded build, for instance 92000. */
int fattn__graph_version(const fattn__graph *g);
/* Identifies a graph by its descriptors, the bindings of its tensors, and the way in which it
 * repeats. Must be called before fattn__graph_finalize. */
uint64_t fattn__graph_id(const fattn__graph *g);

/* A refusal by the builder: FATTN_UNSUPPORTED, FATTN_BAD_PROBLEM or FATTN_INTERNAL, with a message.
 * Returns `status`. */
fattn_status fattn__graph_refuse(fattn__graph *g, fattn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* DNN_DATA_ of a fattn_dtype that is not the default. FATTN_BOOL is UINT8. */
int fattn__data_type(int32_t dtype);

/* ---- tensors: rank 4, aligned to 16 bytes, each with a new uid
 * --------------------------------------------------------------- */

/* A tensor of the call. Two calls for one slot make two tensors that are bound to the same address
 * (K, and K transposed). */
fattn__desc fattn__tensor(fattn__graph *g, fattn__slot slot, int data_type, const int64_t dim[4],
                          const int64_t strides[4]);
/* A tensor that exists only inside the graph. `strides` NULL: dense, in the order of `dim`. */
fattn__desc fattn__virtual(fattn__graph *g, int data_type, const int64_t dim[4],
                           const int64_t strides[4]);
/* Properties of a tensor beyond its type, extents and strides; zero: none. */
typedef struct fattn__traits {
    fattn__desc
        offsets;        /* int32 or int64 [batch + 1,1,1,1]: where each entry starts, in elements */
    int64_t multiplier; /* from 9.24: elements that an offset of 1 stands for; 0: one */
    bool tiled;         /* scale factors in the order F8_128x4 */
    int rank;           /* 1: dim[0] and strides[0] alone; 0: 4 */
    int64_t total; /* of a ragged scratch tensor: reserved tokens for all entries; 0: batch times
                      dim[2] */
} fattn__traits;
/* `traits` may be NULL. */
fattn__desc fattn__tensor_with(fattn__graph *g, fattn__slot slot, int data_type,
                               const int64_t dim[4], const int64_t strides[4],
                               const fattn__traits *traits);
fattn__desc fattn__virtual_with(fattn__graph *g, int data_type, const int64_t dim[4],
                                const int64_t strides[4], const fattn__traits *traits);
fattn__desc fattn__scratch_with(fattn__graph *g, int data_type, const int64_t dim[4],
                                const int64_t strides[4], const fattn__traits *traits);
/* A real tensor in the library's workspace. Its bytes follow those of the scratch tensors made
 * before it. */
fattn__desc fattn__scratch(fattn__graph *g, int data_type, const int64_t dim[4],
                           const int64_t strides[4]);
/* When cuDNN is done, sums the scratch tensor at sum->offset into a tensor of the call. */
void fattn__sum_later(fattn__graph *g, const fattn__graph_sum *sum);
/* [1,1,1,1], passed by value. */
fattn__desc fattn__value_f32(fattn__graph *g, float value);
fattn__desc fattn__value_i32(fattn__graph *g, int32_t value);

/* ---- operations; a NULL tensor is left out
 * --------------------------------------------------------------------------------- */

typedef struct fattn__pointwise {
    int mode; /* DNN_POINTWISE_ */
    int math; /* DNN_DATA_ of the arithmetic; 0 is fp32 */
    int axis; /* DNN_POINTWISE_GEN_INDEX only */
    fattn__desc x;
    fattn__desc b; /* second input; BINARY_SELECT: the value where t is false */
    fattn__desc t; /* BINARY_SELECT: the predicate */
    fattn__desc y;
} fattn__pointwise;
void fattn__op_pointwise(fattn__graph *g, const fattn__pointwise *op);

/* y = reduction of x in fp32 over the dimensions where y has extent 1 (or fewer heads). mode:
 * DNN_REDUCE_TENSOR_ */
void fattn__op_reduce(fattn__graph *g, int mode, fattn__desc x, fattn__desc y);

typedef struct fattn__matmul {
    fattn__desc a, b, c;
    fattn__desc m, n, k; /* int32 [batch,1,1,1]: the extents that are used in each batch entry */
} fattn__matmul;
void fattn__op_matmul(fattn__graph *g, const fattn__matmul *op); /* c = a b, accumulated in fp32 */

/* The same memory with other extents, strides or type: the transpose of a virtual tensor. */
void fattn__op_reshape(fattn__graph *g, fattn__desc x, fattn__desc y);

/* One bound of the diagonal band, as one operation. From 9.20. */
typedef struct fattn__band {
    fattn__desc x, y;
    fattn__desc fill;  /* by value: the value of a masked score */
    int compare;       /* DNN_POINTWISE_CMP_GE: right bound; DNN_POINTWISE_CMP_GT: left bound */
    fattn__desc left;  /* by value */
    fattn__desc right; /* by value */
    fattn__desc seq_len_q, seq_len_kv;
    fattn__desc cu_seq_len_q, cu_seq_len_kv; /* from 9.24: prefix sums, instead of the lengths */
} fattn__band;
void fattn__op_band(fattn__graph *g, const fattn__band *op);

/* y = softmax(x) over the last dimension, as one operation. From 9.20. */
typedef struct fattn__softmax {
    fattn__desc x, y;
    fattn__desc stats, max, sum_exp;
    fattn__desc sink; /* fp32 [1,heads_q,1,1]: joins every denominator */
    bool log2;        /* from 9.27: Stats in base 2 */
} fattn__softmax;
void fattn__op_softmax(fattn__graph *g, const fattn__softmax *op);
/* The same descriptor, not added to the graph: for an operation that contains it. */
fattn__desc fattn__softmax_desc(fattn__graph *g, const fattn__softmax *op);

/* y = the keep mask of cuDNN's Philox: 1 with probability `keep`, otherwise 0. */
typedef struct fattn__rng {
    double keep;
    fattn__desc seed, offset, y;
} fattn__rng;
void fattn__op_rng(fattn__graph *g, const fattn__rng *op);

/* y = x times the scale factor of its block of 32. y and x have the same extents; `scale` has the
 * padded extents of the blocks (F8_128x4). */
typedef struct fattn__block_scale {
    fattn__desc x, scale, y;
} fattn__block_scale;
void fattn__op_block_scale(fattn__graph *g, const fattn__block_scale *op);

/* y = the keys or values of every batch entry, gathered from pages [pages,heads,page,dim] by a
 * table [batch,1,pages of an entry,1]. */
typedef struct fattn__paged_load {
    fattn__desc pages, table, seq_len, y;
} fattn__paged_load;
void fattn__op_paged_load(fattn__graph *g, const fattn__paged_load *op);

/* ---- the builders (graph_forward.c, graph_backward.c)
 * ----------------------------------------------------------------------- */

/* Fill `g` with the operations of a resolved problem. A builder refuses what it cannot express
 * through fattn__graph_refuse. Returns fattn__graph_status(g). */
fattn_status fattn__build_forward(fattn__graph *g, const fattn_problem *problem);
fattn_status fattn__build_backward(fattn__graph *g, const fattn_problem *problem);
/* The same for e4m3 and e5m2 (graph_fp8_*.c) and for block-scaled types (graph_mx_*.c). */
fattn_status fattn__build_fp8_forward(fattn__graph *g, const fattn_problem *problem);
fattn_status fattn__build_fp8_backward(fattn__graph *g, const fattn_problem *problem);
fattn_status fattn__build_mx_forward(fattn__graph *g, const fattn_problem *problem);
fattn_status fattn__build_mx_backward(fattn__graph *g, const fattn_problem *problem);

/* Makes g->operation_graph. `handle` may be NULL (described device). Returns
 * fattn__graph_status(g). */
fattn_status fattn__graph_finalize(fattn__graph *g, fattn__handle handle);

#endif
