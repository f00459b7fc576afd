/* Plans on disk: compiled here once, loaded elsewhere. Only in the folder that a request names. */
#ifndef FACTS_PLANS_H
#define FACTS_PLANS_H

#include <fattn/fattn.h>

#include "request.h"

/* The plan of a configuration. With request->plan_dir: `load` reads it there when it is there (a plan is executable code: the
 * folder must be the user's own, and not a link); otherwise what was compiled is saved there. *loaded says which of the two
 * happened. File: hash of the case, cuDNN, sm, configuration. */
fattn_status facts_plan_get(fattn_plan **out, fattn_context *context, const fattn_problem *problem,
                            const fattn_plan_options *options, const facts_request *request, bool load, bool *loaded);

#endif
