/* Reading the files of the case language: whole texts, bounded. */
#ifndef FACTS_CASE_FILE_H
#define FACTS_CASE_FILE_H

#include <stdio.h>

#include "case_text.h"

/* The whole text of a file of at most 16 MiB; free() it. NULL: *error says why. */
char *facts_file_text(const char *path, facts_error *error);
/* A file of that name that is new. What was there goes, but not what it was a name of: the aim of a link, another name of a file.
 * NULL: errno says why. */
FILE *facts_file_new(const char *path);
/* The paths of a folder's files that end in `suffix`, in the order of their names. 0 also when the folder cannot be read, or not
 * whole. */
/* 0: errno is 0 where the folder has none, else why it could not be listed. */
size_t facts_folder_files(const char *folder, const char *suffix, char ***out);
void facts_folder_free(char **paths, size_t count);

#endif
