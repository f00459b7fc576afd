/* Finds the layout words for given strides, by trying: the inverse of
 * problem/resolve_tensors.c. */
#ifndef FACTS_IMPORT_LAYOUTS_H
#define FACTS_IMPORT_LAYOUTS_H

#include "attention.h"

/* Adds layouts and strides to the case of `text` (tokens without them). The result is resolved and
 * compared with the problem, tensor by tensor; what the graph has beyond it becomes a note. False with a sentence: it is no case, or no layout
 * and no form of stride= has these strides. */
bool facts_import_layouts(facts_case *out, facts_import_notes *notes,
                          const facts_import_attention *attention, const char *text,
                          facts_error *error);

/* cuDNN's composite backward writes a bias of one row as a bias of all rows that share memory. Is
 * it such a bias? */
bool facts_import_bias_row(const facts_import_attention *attention);

#endif
