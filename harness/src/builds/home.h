/* Where FACTS keeps things: its own data, and the user's cache. Nothing else is ever written to. */
#ifndef FACTS_HOME_H
#define FACTS_HOME_H

#include <stdbool.h>

#include "case/words/fail.h"

#define FACTS_PATH 1024

/* The path of a part of FACTS that is data: "cases", "devices", "reports", "ci", "repro", "nulldriver", or a file below one
 * ("devices/h100-sxm.json"). Looked for in $FACTS_HOME, then beside the running program: <exe>/.. (a bundle), <exe>/../../.. (a
 * build tree inside the sources). The same names hold in the sources (where devices/ lies in lib/) and in a bundle. Returns `out`,
 * or NULL when no such file or folder exists anywhere. */
const char *facts_home_path(const char *part, char out[FACTS_PATH]);

/* The folder of the lines that say which results are known to fail: expect/ in the folder cases; or, where cases has the known
 * failures themselves, what the build made of them, beside the running program. Returns `out`, or NULL. */
const char *facts_expectations_path(char out[FACTS_PATH]);

/* The folder of the running program, without a slash at its end. Returns `out`, or NULL. */
const char *facts_program_dir(char out[FACTS_PATH]);

/* $XDG_CACHE_HOME/facts, else $HOME/.cache/facts, with `part` below it; nothing is created. Returns `out`, or NULL when neither is
 * set. */
const char *facts_cache_path(const char *part, char out[FACTS_PATH]);

/* Joins with one slash. Returns false, with out empty, when it does not fit. */
bool facts_join(char out[FACTS_PATH], const char *folder, const char *name);

/* The user's key for plan folders, 64 hexadecimal digits; made in the cache where there is none. Returns 0; 3: it cannot be made,
 * or others could read it. */
int facts_plan_key(char out[65], facts_error *error);

/* Makes the folders above a path: "a/b/c" needs a and a/b, "a/b/c/" all three. False: errno says why. */
bool facts_make_folders(char *path);

#endif
