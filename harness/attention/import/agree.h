/* A case against the graph that it was made of: sizes, types and outputs. */
#ifndef FACTS_IMPORT_AGREE_H
#define FACTS_IMPORT_AGREE_H

#include "attention.h"
#include "problem/case_problem.h"

/* The tensors of a case that a graph names, with their words in stride=. */
enum { FACTS_IMPORT_PLACED = 13 };
typedef struct facts_import_placed {
    facts_import_role role;
    facts_tensor_id id;
    const char *word;
} facts_import_placed;
extern const facts_import_placed facts_import_placed_tensors[FACTS_IMPORT_PLACED];

/* False with a sentence: a tensor of the graph has a size or a type that it lacks in the case. What
 * the graph has beyond the case becomes a note. */
bool facts_import_agree(facts_import_notes *notes, const facts_import_attention *attention,
                        const facts_problem *problem, facts_error *error);

#endif
