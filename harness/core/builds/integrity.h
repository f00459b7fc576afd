/* Is a library equal to the one in its package? A package's RECORD has a sha256 for each of its
 * files. */
#ifndef FACTS_INTEGRITY_H
#define FACTS_INTEGRITY_H

#include "builds.h"

typedef enum facts_integrity {
    FACTS_INTEGRITY_OK,       /* the RECORD names this file with this sha256 */
    FACTS_INTEGRITY_MISMATCH, /* the RECORD has another sha256 */
    FACTS_INTEGRITY_UNKNOWN,  /* no RECORD, or it does not name the file */
} facts_integrity;

const char *facts_integrity_name(facts_integrity integrity); /* "ok" "mismatch" "unknown" */

/* Compares a library of the build, by its file name, with the build's RECORD. `sha256` is its
 * own, as 64 hex digits. */
facts_integrity facts_library_check(const facts_build *build, const char *path, const char *sha256);

#endif
