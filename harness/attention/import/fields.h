/* Every field of a graph is used, harmless, or reported: import drops nothing in silence. */
#ifndef FACTS_IMPORT_FIELDS_H
#define FACTS_IMPORT_FIELDS_H

#include "attention.h"

/* The objects that have fields: those of cudnn-frontend, and those of cuDNN's operationGraph. */
typedef enum facts_import_place {
    FACTS_IMPORT_CONTEXT,
    FACTS_IMPORT_NODE,
    FACTS_IMPORT_TENSOR,
    FACTS_IMPORT_GRAPH,
    FACTS_IMPORT_OPERATION,
    FACTS_IMPORT_STORED /* a tensor of cuDNN */
} facts_import_place;

/* A note for each field of `graph` that import does not understand: an unknown name, a value that
 * no case has, the name of a tensor that is not there. */
void facts_import_fields(facts_import_notes *notes, const facts_import_graph *graph);
/* What import makes of a field. NULL: it reads the field, or does not know it; "*": no case depends
 * on it; "#int", "#bool", "#number": it reads a field of that type; else the accepted values, with |
 * between them. */
const char *facts_import_field_values(facts_import_place place, const char *name);

/* A note, once. */
__attribute__((format(printf, 2, 3))) void facts_import_note(facts_import_notes *notes,
                                                             const char *format, ...);

#endif
