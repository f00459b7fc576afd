/* Plans on disk, which are compiled once and then loaded, and cuDNN's refusals beside them. Only in
 * the folder that a request names. */
#ifndef FACTS_PLANS_H
#define FACTS_PLANS_H

#include <fattn/cache.h>
#include <sys/types.h>

#include "plan_seal.h"

#define FACTS_REFUSALS_MOST 65536 /* the most refusals in a folder: about 200 MB */

/* The plans of one worker. */
typedef struct facts_plans {
    int folder;          /* of the current request; -1: none */
    bool refusal_loaded; /* cuDNN's last refusal came from the folder */
    char not_loaded
        [300]; /* the reason why a file of the folder was not used and was made again, the first of the request; "":
                  every file was used */
    dev_t device; /* the folder whose refusals were counted */
    ino_t inode;
    size_t refusals;
    bool has_key, trusts; /* trusts: load files without a seal of FACTS too */
    unsigned char key[FACTS_SEAL_KEY];
} facts_plans;

/* Makes the context look in the folder before it asks cuDNN. `key`: hexadecimal, or "". Returns
 * FATTN_OK; FATTN_NO_MEMORY. Free it after the context. */
fattn_status facts_plans_open(facts_plans **out, fattn_context *context, const char *key,
                              bool trusts);
/* Sets the folder of one request. With "", or a folder that is not the user's own, nothing is kept
 * or loaded. */
void facts_plans_begin(facts_plans *plans, const char *folder);
void facts_plans_end(facts_plans *plans);

/* As fattn_plan_create, but loads the plan from the folder if its file is whole, sealed with the
 * user's key, and made by this build of cuDNN for this device. A damaged file is dropped; a file
 * with another user's seal is left alone. A plan that is compiled is saved in the folder. `plans`
 * and `loaded` may be NULL. */
fattn_status facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                            const fattn_problem *problem, const fattn_plan_options *options,
                            bool *loaded);

#endif
