/* The folders of FACTS: its data, and the user's cache. FACTS writes to no other folder unless the
 * user names one. */
#ifndef FACTS_HOME_H
#define FACTS_HOME_H

#include <stdbool.h>

#include "words/fail.h"

#define FACTS_PATH 1024

/* Finds a part of the data of FACTS: "cases", "devices", "reports", "ci", "repro", "nulldriver", or
 * a file below one
 * ("devices/h100-sxm.json"). It looks in $FACTS_HOME, then near the running program: <exe>/.. (a
 * bundle) and <exe>/../../.. (a build folder inside the sources). The names are the same in the
 * sources (where devices/ is in lib/) and in a bundle. Returns `out`, or NULL if there is no such
 * file or folder. */
const char *facts_home_path(const char *part, char out[FACTS_PATH]);

/* A file that the build made of a folder of cases/: known.jsonl of "known", claims.jsonl of
 * "claims". A bundle has it in that folder; for a build it lies beside the folder of the running
 * program. Without the folder of cases/ there is none. Returns `out`, or NULL. */
const char *facts_made_path(const char *folder, char out[FACTS_PATH]);

/* The folder of the running program, without a slash at its end. Returns `out`, or NULL. */
const char *facts_program_dir(char out[FACTS_PATH]);

/* $XDG_CACHE_HOME/facts, else $HOME/.cache/facts, with `part` below it; nothing is created. Returns
 * `out`, or NULL when neither is set. */
const char *facts_cache_path(const char *part, char out[FACTS_PATH]);

/* Joins with one slash. Returns false, with out empty, when it does not fit. */
bool facts_join(char out[FACTS_PATH], const char *folder, const char *name);

/* Makes the folders above a path: "a/b/c" needs a and a/b, "a/b/c/" all three. False: errno says
 * why. */
bool facts_make_folders(char *path);

/* Calls `each` for every path below `folder` that fits the pattern ("*" and "?" in names), sorted
 * by name. `trouble` names an existing folder that could not be listed. */
void facts_find_paths(const char *folder, const char *pattern,
                      void (*each)(void *to, const char *path), void *to, facts_error *trouble);

#endif
