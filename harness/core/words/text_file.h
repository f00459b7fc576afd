/* Reads the files of the case language: whole texts of limited size. */
#ifndef FACTS_CASE_FILE_H
#define FACTS_CASE_FILE_H

#include <stdio.h>

#include "case_text.h"

/* Returns the whole text of a file of at most 16 MiB; the caller frees it. NULL: *error says why.
 */
char *facts_file_text(const char *path, facts_error *error);
/* Opens a new file of that name. An existing name is removed first: a link is removed but not its
 * target, and other names of the same file stay. NULL: errno says why. */
FILE *facts_file_new(const char *path);
/* The paths of a folder's files that end in `suffix`, sorted by name. Returns 0 also if the folder
 * cannot be read completely; errno is then not 0. */
size_t facts_folder_files(const char *folder, const char *suffix, char ***out);
void facts_folder_free(char **paths, size_t count);

#endif
