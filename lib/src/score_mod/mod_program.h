/* The recording of a score_mod, in the form that backends read: a list of nodes, each input before its use. The CPU backend
 * evaluates it, the kernels of the math backend interpret it, and the cuDNN backend builds its graph from it.
 *
 * Both programs have a normal form, on which backends may rely:
 *   - equal nodes are one node, and a result needs every node;
 *   - the first input of an operation (of a select: `b`, the value that is kept) is never a constant or a tensor, because cuDNN
 * takes no real tensor there. If one must come first, it is written  key * -0 + x,  which is x to the last bit;
 *   - inputs that are conditions (`a` of select, all of and, or, not) are comparisons or logic; every other input is a number. A
 * condition that is used as a number is written  select(condition, 1, 0),  a number that is used as a condition  ne(x, 0);
 *   - results are numbers, and never a constant or a tensor alone. They may be SCORE or GRADIENT itself. */
#ifndef FATTN_SCORE_MOD_PROGRAM_H
#define FATTN_SCORE_MOD_PROGRAM_H

#include "fattn/fattn.h"
#include "fattn/score_mod.h"

/* Node kinds beside the operations of FATTN_MOD_OP_LIST, numbered after them. */
enum {
    FATTN__MOD_SCORE = 64,    /* the scaled score */
    FATTN__MOD_GRADIENT = 65, /* d(loss)/d(modified score); gradient programs only */
    FATTN__MOD_INDEX = 66,    /* `a` is a fattn_mod_axis */
    FATTN__MOD_CONSTANT = 67, /* `constant` */
    FATTN__MOD_TENSOR = 68    /* `a` is the number of the tensor */
};

#define FATTN__MOD_MAX_NODES 256 /* a derived gradient is longer than its recording */

typedef struct fattn__mod_node {
    int16_t op;      /* fattn_mod_op, or a kind above */
    int16_t a, b, c; /* indices of the inputs in the list; 0 if unused */
    float constant;
} fattn__mod_node;

/* How many of a, b, c an operation reads: 1 to 3. 0 for a leaf, and for a number that is no
 * operation. */
static inline int fattn__mod_inputs(int op)
{
#define AS_INPUTS(symbol, value, word, inputs) [value] = (inputs),
    static const unsigned char table[] = { FATTN_MOD_OP_LIST(AS_INPUTS) };
#undef AS_INPUTS
    const int inputs = op > 0 && op < (int)(sizeof table / sizeof *table) ? table[op] : 0;
    return inputs == 1   ? 1
           : inputs == 2 ? 2
           : inputs == 3 ? 3
                         : 0; /* spelled out for the analyzer, which does not look into the table */
}

typedef struct fattn__mod_program {
    int32_t count;
    int32_t result; /* index of the modified score, or of d(loss)/d(score) */
    int32_t tensor_results
        [FATTN_MOD_MAX_TENSORS]; /* gradient programs: index of d(loss)/d(tensor i) before the sum over the
                                    dimensions that the tensor broadcasts; -1: no gradient */
    fattn__mod_node at[FATTN__MOD_MAX_NODES];
} fattn__mod_program;

const fattn__mod_program *
fattn__score_mod_program(const fattn_score_mod *mod); /* computes the score */
const fattn__mod_program *
fattn__score_mod_gradient(const fattn_score_mod *mod); /* inputs: score and gradient */

const fattn_score_mod *fattn__score_mod_retain(const fattn_score_mod *mod); /* NULL is fine */
void fattn__score_mod_release(const fattn_score_mod *mod);

#endif
