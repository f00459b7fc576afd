/* From strides back to words: the inverse of case/problem/resolve_tensors.c, by trying. */
#ifndef FACTS_IMPORT_LAYOUTS_H
#define FACTS_IMPORT_LAYOUTS_H

#include "attention.h"

/* The case of `text` (tokens without layouts and strides) with the layouts and strides of the problem's tensors. What comes out is resolved
 * and held against them, tensor by tensor. False with a sentence: it is no case, or no layout and no form of stride= has these strides. */
bool facts_import_layouts(facts_case *out, const facts_import_attention *attention, const char *text, facts_error *error);

/* cuDNN's composite backward takes a bias of one row as one of all rows that lie on each other: is it that? */
bool facts_import_bias_row(const facts_import_attention *attention);

#endif
