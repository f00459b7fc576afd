/* The policy of this thread, for the rest of the library. */
#ifndef FATTN_POLICY_STACK_H
#define FATTN_POLICY_STACK_H

#include "fattn/fattn.h"
#include "fattn/policy.h"

/* The backends to ask for this context, in order, without those that its device lacks. Returns
 * their number, 1 to FATTN_BACKEND_COUNT. If the policy names none that the device has, the default
 * order is used. */
int fattn__policy_order(const fattn_context *context, int32_t out[FATTN_BACKEND_COUNT]);

/* The rule that denies a whole backend for a resolved problem, from the guards (unless they are
 * off) or from the policy; NULL if there is none. A rule with `unasked` comes before one without. A
 * pin denies every other backend. The cudnn engine calls this function itself. */
const fattn_rule *fattn__policy_denies(const fattn_context *context, const fattn_problem *problem,
                                       fattn_backend backend);

/* The rule that removes this configuration, because it denies it or pins another; NULL if there is
 * none. */
const fattn_rule *fattn__policy_removes(const fattn_context *context, const fattn_problem *problem,
                                        fattn_backend backend, const fattn_engine *engine);

/* A hash of everything that decides which configuration is compiled first: the order of the
 * backends, and the rules (guards too) that hold for a resolved problem and may remove an engine of
 * cuDNN. It is the same in every process. */
uint64_t fattn__policy_choice(const fattn_context *context, const fattn_problem *problem);

/* 128 bits: a hash of this thread's policy. Equal policies have equal hashes. It is a part of the
 * key of a cached plan. */
void fattn__policy_hash(uint64_t out[2]);

#endif
