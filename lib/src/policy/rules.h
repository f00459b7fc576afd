/* Rules (policy.h) as the library keeps and asks them. */
#ifndef FATTN_RULES_H
#define FATTN_RULES_H

#include "fattn/fattn.h"
#include "fattn/policy.h"

/* Rules with their strings and knobs, in one piece of memory. Each has a name and a why. */
typedef struct fattn__rule_list {
    fattn_rule *at;
    size_t count;
} fattn__rule_list;

/* Checks and copies; `rules` may be of an older, smaller fattn_rule, all of one size. Returns FATTN_OK; FATTN_BAD_PROBLEM (which rule, and
 * what is wrong); FATTN_NO_MEMORY. */
fattn_status fattn__rules_copy(fattn__rule_list *out, const fattn_rule *rules, size_t count);
void fattn__rules_free(fattn__rule_list *list);

/* Versions, sm, pass and condition, for a resolved problem. */
bool fattn__rule_holds(const fattn_rule *rule, const fattn_problem *resolved, int32_t cudnn_version, int32_t sm);

/* Does a rule that names an engine mean this configuration? */
bool fattn__rule_means(const fattn_rule *rule, const fattn_engine *engine);

/* The rule in one sentence: its name, what it says of this problem, and its link. */
void fattn__rule_text(char *out, size_t capacity, const fattn_rule *rule, const fattn_problem *resolved);

#endif
