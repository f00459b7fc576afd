/* Plans on disk, compiled once and loaded ever after, and beside them what cuDNN refused. Only in the folder that a request names.
 */
#ifndef FACTS_PLANS_H
#define FACTS_PLANS_H

#include <fattn/cache.h>
#include <sys/types.h>

#include "plan_seal.h"

#define FACTS_RESCALE "CUDNN_RESCALE_THRESHOLD" /* what rescale= of a case sets in the environment; cuDNN reads it */
#define FACTS_REFUSALS_MOST 65536               /* in a folder: some 200 MB */

/* Of one worker. */
typedef struct facts_plans {
    int folder;           /* of the request in hand; -1: none */
    bool refusal_loaded;  /* cuDNN's last refusal came out of the folder */
    char not_loaded[300]; /* why a file of the folder was not taken, and was made again; "": each was taken. The first of the
                             request */
    dev_t device;         /* of the folder whose refusals were counted */
    ino_t inode;
    size_t refusals;
    bool has_key, trusts; /* trusts: load files without a seal of FACTS too */
    unsigned char key[FACTS_SEAL_KEY];
} facts_plans;

/* From now on the context looks there before it asks cuDNN. `key`: hexadecimal, or "". Returns FATTN_OK; FATTN_NO_MEMORY. To be
 * freed after the context. */
fattn_status facts_plans_open(facts_plans **out, fattn_context *context, const char *key, bool trusts);
/* For one request; "", or a folder that is not the user's own: nothing is kept or loaded. */
void facts_plans_begin(facts_plans *plans, const char *folder);
void facts_plans_end(facts_plans *plans);

/* As fattn_plan_create, but a plan that lies in the folder is loaded: where it is sealed by our key, whole, of this build of cuDNN
 * and of this device. A damaged file in its place is dropped, one that somebody else sealed is left alone. What is compiled is
 * saved there. `plans` and `loaded` may be NULL. */
fattn_status facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options, bool *loaded);

#endif
