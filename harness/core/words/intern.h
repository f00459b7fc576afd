/* A table that stores each text once (names of cases, reasons, lists of engines) and gives it a
 * small number, the next one for a new text. A text stays where it is until the table is freed. */
#ifndef FACTS_INTERN_H
#define FACTS_INTERN_H

#include <stdint.h>

typedef struct facts_intern facts_intern;

facts_intern *facts_intern_new(void);
/* Returns the number of a text, from 1; 0 for an empty text. */
uint32_t facts_intern_id(facts_intern *table, const char *text);
/* The number of a text that has one; else 0. */
uint32_t facts_intern_find(const facts_intern *table, const char *text);
const char *facts_intern_text(const facts_intern *table, uint32_t id); /* "" for 0 */
uint32_t facts_intern_count(const facts_intern *table);                /* ids are 1 to this */
void facts_intern_free(facts_intern *table);

#endif
