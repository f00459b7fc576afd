/* A recording, and the functions that make one. */
#ifndef FATTN_SCORE_MOD_PRIVATE_H
#define FATTN_SCORE_MOD_PRIVATE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "mod_program.h"

/* Nodes while a program is recorded or derived. Equal nodes are one node, and every node is in
 * normal form (mod_program.h). */
enum { FATTN__MOD_BUILDER_NODES = 2048 };

/* Indices stay valid. An input always comes before its use. */
typedef struct fattn__mod_builder {
    int count;
    bool full; /* no space for another node: every index is 0 from then on */
    fattn__mod_node at[FATTN__MOD_BUILDER_NODES];
    uint64_t rank[FATTN__MOD_BUILDER_NODES]; /* hash of the structure below a node: it orders inputs
                                                that may be exchanged */
} fattn__mod_builder;

/* A leaf; `a` is an axis or the number of a tensor. */
int fattn__mod_leaf(fattn__mod_builder *b, int kind, int a);
int fattn__mod_constant(fattn__mod_builder *b, float value);
/* An operation of FATTN_MOD_OP_LIST. Inputs that the operation does not have are ignored. */
int fattn__mod_apply(fattn__mod_builder *b, fattn_mod_op op, int x, int y, int z);
/* The same number as a node that cuDNN accepts as a first input: not a condition, a constant or a
 * tensor. */
int fattn__mod_as_result(fattn__mod_builder *b, int x);

/* Copies the nodes that `roots` need, inputs first, in an order that depends only on the structure.
 * `places` receives the new indices of the roots; a root below 0 gets -1. Returns false if there
 * are more than FATTN__MOD_MAX_NODES. */
bool fattn__mod_compact(const fattn__mod_builder *b, const int *roots, int count,
                        fattn__mod_program *out, int32_t *places);
/* Copies the nodes of a program into an empty builder. Their indices stay the same. */
void fattn__mod_load(fattn__mod_builder *b, const fattn__mod_program *program);

const char *fattn__mod_word(int op);  /* "add", "score"; "?" */
bool fattn__mod_is_condition(int op); /* its result is 1 or 0 */

struct fattn_score_mod {
    atomic_int references;
    bool user_gradient; /* `gradient` is the user's own recording; false: it is derived */
    int32_t tensor_count;
    fattn_mod_tensor tensors[FATTN_MOD_MAX_TENSORS]; /* the recording owns the names */
    fattn__mod_program program, gradient;
    char *text;
    size_t text_length;
    uint64_t hash[2];
};

/* One call of one callback. */
struct fattn_recorder {
    fattn_score_mod *mod; /* tensors are added to it */
    fattn__mod_builder *builder;
    int32_t tag; /* marks the values of this recorder; values of another recorder are refused */
    int operations;
    bool failed, no_memory; /* no_memory: the reason for `failed` */
    char message[320];
};

void fattn__recorder_open(fattn_recorder *recorder, fattn_score_mod *mod,
                          fattn__mod_builder *builder);
fattn_value fattn__recorder_value(const fattn_recorder *recorder, int place);
/* The index of the value that a callback returned. Fails if the value is not of this recorder, or
 * if the recording has failed before. */
fattn_status fattn__recorder_close(fattn_recorder *recorder, fattn_value returned,
                                   const char *callback, int *place);

/* Derives d(loss)/d(score) and d(loss)/d(tensor i) of `program`, whose nodes have the same indices
 * in the builder. roots[0] is the index of the score's gradient; those of the tensors follow, -1
 * for no gradient. */
void fattn__mod_derive(fattn__mod_builder *b, const fattn__mod_program *program,
                       int roots[1 + FATTN_MOD_MAX_TENSORS]);

/* Fills text, text_length and hash. */
fattn_status fattn__mod_describe(fattn_score_mod *mod);

/* The offset of a tensor's element for an index b,h,row,key, in elements. */
static inline int64_t fattn__mod_offset(const fattn_mod_tensor *tensor, const int64_t at[4])
{
    int64_t offset = 0;
    for (int i = 0; i < 4; i++)
        offset += tensor->dim[i] == 1 ? 0 : at[i] * tensor->strides[i];
    return offset;
}

#endif
