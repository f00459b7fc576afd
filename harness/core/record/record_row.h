/* Members of a row that several readers need. Texts are cut to their buffers and have no control
 * characters. */
#ifndef FACTS_RECORD_ROW_H
#define FACTS_RECORD_ROW_H

#include "reader.h"

/* The engine numbers of mode A in their order, "8 9 10"; empty: none. */
void facts_row_engines(const facts_line *row, char *out, size_t capacity);
/* The knobs of the row's configuration of mode A (the first, if the row names none), by name:
 * "KERNEL_CFG=1 TILE_M=3"; empty: it has none. False: the row does not contain them. */
bool facts_row_knobs(const facts_line *row, char *out, size_t capacity);
/* A member of the row's reason: "class", "text", "rule"; empty: absent. */
void facts_row_text(const facts_line *row, const char *key, char *out, size_t capacity);

#endif
