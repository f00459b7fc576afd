/* Plans on disk, which are compiled once and then loaded. Only in the folder that a request names. */
#ifndef FACTS_PLANS_H
#define FACTS_PLANS_H

#include <fattn/fattn.h>

/* The plans of one worker. */
typedef struct facts_plans {
    int folder; /* of the current request; -1: none */
    /* Why a file of the folder was not used and was made again, the first of the request; "": every
     * file was used. */
    char not_loaded[300];
    char not_kept[160]; /* why a plan of this request is not in the folder, or "" */
} facts_plans;

/* Returns FATTN_OK; FATTN_NO_MEMORY. Free it. */
fattn_status facts_plans_open(facts_plans **out);
/* Sets the folder of one request. With "", or a folder that is not the user's own, nothing is kept
 * or loaded. */
void facts_plans_begin(facts_plans *plans, const char *folder);
void facts_plans_end(facts_plans *plans);

/* As fattn_plan_create, but loads the plan from the folder if its file is whole, and made by this
 * build of cuDNN for this device. A damaged file is dropped. A plan that is compiled is saved in the
 * folder. `plans` and `loaded` may be NULL. */
fattn_status facts_plan_get(fattn_plan **out, facts_plans *plans, fattn_context *context,
                            const fattn_problem *problem, const fattn_plan_options *options,
                            bool *loaded);

#endif
