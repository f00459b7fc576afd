/* Nodes while they are being recorded or derived: equal ones are one node, and every one is in normal form (program.h). */
#ifndef FATTN_SCORE_MOD_BUILDER_H
#define FATTN_SCORE_MOD_BUILDER_H

#include <stdbool.h>

#include "mod_program.h"

enum { FATTN__MOD_BUILDER_NODES = 2048 };

/* Places stay valid; an input always stands before its use. */
typedef struct fattn__mod_builder {
    int count;
    bool full; /* sticks; places are 0 from then on */
    fattn__mod_node at[FATTN__MOD_BUILDER_NODES];
    uint64_t rank[FATTN__MOD_BUILDER_NODES]; /* of the structure below a node: orders inputs that may be exchanged */
} fattn__mod_builder;

/* A leaf; `a` is an axis or the number of a tensor. */
int fattn__mod_leaf(fattn__mod_builder *b, int kind, int a);
int fattn__mod_constant(fattn__mod_builder *b, float value);
/* An operation of FATTN_MOD_OP_LIST; inputs that it does not have are not read. */
int fattn__mod_apply(fattn__mod_builder *b, fattn_mod_op op, int x, int y, int z);
/* The same number as a node that cuDNN accepts as a first input: not a truth value, a constant or a tensor. */
int fattn__mod_as_result(fattn__mod_builder *b, int x);

/* Everything that `roots` need, inputs first, in an order that depends on the structure only. `places` receives the roots' places; a root
 * below 0 has place -1. False: more than FATTN__MOD_MAX_NODES. */
bool fattn__mod_compact(const fattn__mod_builder *b, const int *roots, int count, fattn__mod_program *out, int32_t *places);
/* Takes over the nodes of a program into an empty builder: their places are the same. */
void fattn__mod_load(fattn__mod_builder *b, const fattn__mod_program *program);

const char *fattn__mod_word(int op);     /* "add", "score"; "?" */
bool fattn__mod_is_condition(int op);    /* gives 1 or 0 */

#endif
