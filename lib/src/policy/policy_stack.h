/* The policy that holds on this thread, as the rest of the library asks it. */
#ifndef FATTN_POLICY_STACK_H
#define FATTN_POLICY_STACK_H

#include "fattn/fattn.h"
#include "fattn/policy.h"

/* The backends to ask for this context, in order, those that its device lacks left out. Returns their number, 1 to FATTN_BACKEND_COUNT: the
 * default order where nothing of the policy's is left. */
int fattn__policy_order(const fattn_context *context, int32_t out[FATTN_BACKEND_COUNT]);

/* The rule (of the guards, unless they are off, or of the policy) that denies a backend as a whole for a resolved problem; NULL. A rule that
 * is `unasked` comes before one that is not. A pin denies every other backend. The cudnn engine asks this by itself. */
const fattn_rule *fattn__policy_denies(const fattn_context *context, const fattn_problem *problem, fattn_backend backend);

/* The rule that removes this configuration: it is denied, or another is pinned; NULL. */
const fattn_rule *fattn__policy_removes(const fattn_context *context, const fattn_problem *problem, fattn_backend backend,
                                        const fattn_engine *engine);

/* The rules that hold for a resolved problem and may remove an engine of cuDNN, guards too, as a number that is the same in every
 * process; and the order of the backends. What decides which configuration is compiled first. */
uint64_t fattn__policy_choice(const fattn_context *context, const fattn_problem *problem);

/* 128 bits of everything that holds on this thread; equal policies are equal. Part of the key of a cached plan. */
void fattn__policy_hash(uint64_t out[2]);

#endif
