/* The files of a request's plan_dir: plans and refusals. A plan is executable code, so the folder
 * must be the user's own, not a link, and nobody else may write there. */
#ifndef FACTS_OWN_FOLDER_H
#define FACTS_OWN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the folder. Returns a descriptor, which the caller closes, or -1. */
int facts_folder_open(const char *path);
/* The contents of a file, malloc'ed. NULL: it does not exist, is not the user's own, is a link, or
 * is longer than `most`. */
char *facts_folder_read(int folder, const char *name, size_t most, size_t *count);
/* Writes a temporary file and renames it, so that a reader finds all of it or nothing. A checksum
 * detects damage after a power failure. False: the file is unchanged. */
bool facts_folder_write(int folder, const char *name, const char *bytes, size_t count);
void facts_folder_drop(int folder, const char *name);

#endif
