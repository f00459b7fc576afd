/* Nodes while a program is recorded or derived. Equal nodes are one node, and every node is in
 * normal form (mod_program.h). */
#ifndef FATTN_SCORE_MOD_BUILDER_H
#define FATTN_SCORE_MOD_BUILDER_H

#include <stdbool.h>

#include "mod_program.h"

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

#endif
