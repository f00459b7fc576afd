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
/* Makes a tensor of the graph a part of the problem. `transposed`: its last two dimensions are
 * swapped. */
void facts_import_take(facts_import_search *s, facts_import_role role, int tensor, bool transposed);
/* Walks from the tensor `from` back to the scores: to tensor `until`, or to any matrix product if
 * `until` is -1. It notes the operations on the way. False: no case can express one of them. */
bool facts_import_walk(facts_import_search *s, int from, int until);
/* The random numbers of dropout, and what they say of it. */
void facts_import_rng(facts_import_search *s, const facts_import_operation *op);
/* Does `tensor` depend on `from`, through any operations? */
bool facts_import_made_of(const facts_import_graph *graph, int tensor, int from);
/* Recognises the composite graph: matrix products and the operations between them. False with
 * *error. The caller has already handled FACTS_IMPORT_NO_ATTENTION. */
bool facts_import_composite(facts_import_search *s);
/* A node of cudnn-frontend, or cuDNN's one operation. */
bool facts_import_node(facts_import_search *s, const facts_import_operation *op);
bool facts_import_unified(facts_import_search *s, const facts_import_operation *op,
                          const facts_import_graph *part);

#endif
