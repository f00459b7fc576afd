/* policy.h: which backends and engines may be chosen, and what is known to be wrong.
 *
 * A rule names a range of cuDNN versions, a range of architectures, a condition on the problem, and a link. The library has its own rules,
 * the guards (fattn_problem.guards_off switches them off). A policy adds the caller's rules. Decisions name the rule that refused a backend
 * or removed an engine.
 * Threads  the stack of policies is the calling thread's own; no thread ever sees another's.
 */
#ifndef FATTN_POLICY_H
#define FATTN_POLICY_H

#include "fattn.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FATTN_ACTION_LIST(X) X(DENY, 0, "deny") X(PIN, 1, "pin")
#define FATTN_AS_ENUM_(symbol, value, word) FATTN_##symbol = (value),
typedef enum fattn_action { FATTN_ACTION_LIST(FATTN_AS_ENUM_) } fattn_action;
#undef FATTN_AS_ENUM_

#define FATTN_ANY (-1)

/* Denies a backend, an engine, or an engine with certain knobs, where the rule holds. Or pins an engine: where the rule holds, only that
 * engine is used.
 * Memory   the caller owns strings and knobs; push copies them. The functions must stay callable while the policy is pushed. */
typedef struct fattn_rule {
    size_t struct_size;
    const char *name;   /* decisions call the rule by this name */
    const char *why;    /* one sentence */
    const char *link;   /* or NULL */
    const char *remedy; /* what to do instead, or NULL */
    const char *when;   /* the condition in words. The library gives it to `holds` and compares it
                           when it compares policies; or NULL */
    /* The condition: does the rule hold for this resolved problem? The answer must depend on `when` and the problem alone. NULL: the rule holds
     * for every problem; `when` must then be NULL too. */
    bool (*holds)(const char *when, const fattn_problem *resolved);
    /* Writes the sentence for this problem, cut at `capacity` bytes with the final NUL. NULL: the
     * sentence is `why`. */
    void (*say)(char *out, size_t capacity, const char *why, const fattn_problem *resolved);
    const fattn_knob *knobs; /* the configuration has every one of these; none: any knobs */
    int64_t engine;          /* FATTN_ANY: every engine, so the backend */
    int32_t action;          /* fattn_action */
    int32_t backend;         /* fattn_backend */
    int32_t pass;            /* fattn_pass, or FATTN_ANY */
    int32_t knob_count;
    int32_t cudnn_from, cudnn_to; /* 91000; both ends belong to the range; 0: open */
    int32_t sm_from, sm_to;       /* 90; 0: open */
    int32_t unasked;  /* deny of a backend: 1: refuse before the backend is asked, because asking
                         fails; 0: the backend's own refusal comes first */
    int32_t reserved; /* 0 */
} fattn_rule;

#define FATTN_RULE_INIT                                                                            \
    { .struct_size = sizeof(fattn_rule), .pass = FATTN_ANY, .engine = FATTN_ANY }

/* Backends in the order of preference; backends that the context's device lacks are skipped. The
 * default policy is cuDNN alone on a GPU and the cpu backend on the CPU. The library chooses the
 * math backend only if a policy allows it. */
typedef struct fattn_policy {
    size_t struct_size;
    int32_t order[FATTN_BACKEND_COUNT]; /* fattn_backend */
    int32_t order_count;                /* 0: the default order */
    const fattn_rule *rules;
    size_t rule_count;
} fattn_policy;

#define FATTN_POLICY_INIT { .struct_size = sizeof(fattn_policy) }

/* From now on, on this thread, `policy` holds as well: its order replaces the one below, its rules are added to those below. Copied.
 * *depth is for fattn_policy_pop.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (the rule, and what is wrong with it: nothing was pushed); FATTN_NO_MEMORY. */
fattn_status fattn_policy_push(const fattn_policy *policy, int *depth);
/* Restores the state before the push that gave `depth`, and drops everything that was pushed since.
 * A depth that is not on the stack does nothing (0, below, or above fattn_policy_depth()). */
void fattn_policy_pop(int depth);
int fattn_policy_depth(void);
/* The library's own rules. Static. Several may have one name: one rule for each engine and range of
 * versions. */
size_t fattn_guard_count(void);
const fattn_rule *fattn_guard_at(size_t i);
/* Does `rule` hold for this problem on that target? Versions, sm, pass and condition count; engine
 * and knobs do not. False for a problem that fattn_problem_resolve refuses, and for a rule that
 * push would refuse. */
bool fattn_rule_holds(const fattn_rule *rule, const fattn_problem *problem, int32_t cudnn_version,
                      int32_t sm);

#ifdef __cplusplus
}
#endif
#endif
