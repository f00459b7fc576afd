/* Rules (policy.h): the library's copies, and questions about them. */
#ifndef FATTN_RULES_H
#define FATTN_RULES_H

#include "fattn/fattn.h"
#include "fattn/policy.h"

/* Rules with their strings and knobs, in one block of memory. Each rule has a name and a `why`. */
typedef struct fattn__rule_list {
    fattn_rule *at;
    size_t count;
} fattn__rule_list;

/* Checks and copies rules. `rules` may be an older, smaller fattn_rule; all have one size. Returns
 * FATTN_OK; FATTN_BAD_PROBLEM (the message names the rule and its error); FATTN_NO_MEMORY. */
fattn_status fattn__rules_copy(fattn__rule_list *out, const fattn_rule *rules, size_t count);
void fattn__rules_free(fattn__rule_list *list);

/* Does the rule hold for a resolved problem: by cuDNN version, sm, pass and condition? */
bool fattn__rule_holds(const fattn_rule *rule, const fattn_problem *resolved, int32_t cudnn_version,
                       int32_t sm);

/* Does a rule that names an engine match this configuration? */
bool fattn__rule_means(const fattn_rule *rule, const fattn_engine *engine);

/* The rule in one sentence: its name, its reason for this problem, and its link. */
void fattn__rule_text(char *out, size_t capacity, const fattn_rule *rule,
                      const fattn_problem *resolved);

#endif
