/* What several readers take from a row. All text is cut to its room and free of control characters. */
#ifndef FACTS_RECORD_ROW_H
#define FACTS_RECORD_ROW_H

#include "reader.h"

/* The engine numbers of mode A in their order, "8 9 10"; empty: none. */
void facts_row_engines(const facts_line *row, char *out, size_t capacity);
/* The knobs of the configuration of mode A that the row is of (the first, where it says none), by their names: "KERNEL_CFG=1
 * TILE_M=3"; empty: it has none. False: the row does not say. */
bool facts_row_knobs(const facts_line *row, char *out, size_t capacity);
/* A member of the row's reason: "class", "text", "rule"; empty: absent. */
void facts_row_text(const facts_line *row, const char *key, char *out, size_t capacity);

#endif
