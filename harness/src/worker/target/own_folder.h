/* The files of a request's plan_dir: plans and refusals. A plan is executable code, so the folder must be the user's own, not a
 * link, and nobody else may write there. */
#ifndef FACTS_OWN_FOLDER_H
#define FACTS_OWN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

/* The folder, or -1. To be closed. */
int facts_folder_open(const char *path);
/* What a file holds, malloc'ed; NULL: it is not there, not the user's own, a link, or longer than `most`. */
char *facts_folder_read(int folder, const char *name, size_t most, size_t *count);
/* Written aside and renamed: whoever reads finds all of it or nothing. What a power failure leaves of it is noticed by its
 * checksum. False: the file is as it was. */
bool facts_folder_write(int folder, const char *name, const char *bytes, size_t count);
void facts_folder_drop(int folder, const char *name);

#endif
