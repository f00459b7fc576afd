/* Inside the recogniser. */
#ifndef FACTS_IMPORT_RECOGNITION_H
#define FACTS_IMPORT_RECOGNITION_H

#include "attention.h"

/* One recognition: a graph, what comes out, where to say no. */
typedef struct facts_import_search {
    const facts_import_graph *graph;
    facts_import_attention *out;
    facts_error *error;
    int row_max, row_sum; /* tensors of the expanded softmax; -1 */
} facts_import_search;

/* Fills *error; false. */
bool facts_import_refuse(facts_error *error, const char *what, const char *of);
/* A tensor of the graph becomes a part of the problem. `transposed`: its last two dimensions change places. */
void facts_import_take(facts_import_search *s, facts_import_role role, int tensor, bool transposed);
/* Walks from the tensor `from`, which is made of scores, back to the scores themselves: `until`, or any product of two matrices when that is -1. What is
 * done on the way is written down. False: something that no case says. */
bool facts_import_walk(facts_import_search *s, int from, int until);
/* The random numbers of dropout, and what they say of it. */
void facts_import_rng(facts_import_search *s, const facts_import_operation *op);
/* Is `tensor` made, through whatever operations, out of `from`? */
bool facts_import_made_of(const facts_import_graph *graph, int tensor, int from);
/* The composite graph: products of matrices and what lies between them. False with *error; FACTS_IMPORT_NO_ATTENTION's are told before. */
bool facts_import_composite(facts_import_search *s);
/* A node of cudnn-frontend, or cuDNN's one operation. */
bool facts_import_node(facts_import_search *s, const facts_import_operation *op);
bool facts_import_unified(facts_import_search *s, const facts_import_operation *op, const facts_import_graph *part);

#endif
