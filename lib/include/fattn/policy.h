/* policy.h: which backends and engines may be chosen, and what is known to be wrong. Included by fattn.h.
 *
 * Rules are data: a range of cuDNN versions, of architectures, a predicate over the problem, a link. The library has a list of its own,
 * the guards (off with fattn_problem.guards_off); a policy adds a caller's. Decisions name the rule that removed something.
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

/* Denies a backend, an engine, or an engine with certain knobs, where everything that the rule says holds; or pins an engine (then only
 * it is used where the rule holds). Strings are the caller's until the rule has been copied (push). */
typedef struct fattn_rule {
    size_t struct_size;
    const char *name; /* what a decision calls it */
    const char *why;  /* one sentence */
    const char *link; /* or NULL */
    const char *when; /* predicate over fields of fattn_problem: "pass=bwd & seq_kv%128!=0 & padding=0"; NULL: always */
    const char *remedy; /* what to do instead, or NULL */
    int32_t action;   /* fattn_action */
    int32_t backend;  /* fattn_backend */
    int32_t pass;     /* fattn_pass, or FATTN_ANY */
    int32_t knob_count;
    int64_t engine;       /* FATTN_ANY: every engine, so the backend */
    int32_t cudnn_from;   /* 91000; 0: open. Both ends belong to the range */
    int32_t cudnn_to;     /* 0: open */
    int32_t sm_from, sm_to; /* 90; 0: open */
    const fattn_knob *knobs; /* the configuration has every one of these; none: whatever its knobs */
    int32_t unasked;  /* deny of a backend: 1: say no before it is asked, because asking is what fails; 0: its own refusal comes first */
    int32_t reserved; /* 0 */
} fattn_rule;

/* Predicates
 *   tests      field = != word · field [% N] = != < <= > >= number, or another field [% N] · field [% N] in (a, b) · & | ! ( )
 *   fields     those of fattn_problem once it is resolved, by their names: numbers (batch, heads_q … attn_scale, padding, capture,
 *              bias_dim.b .h .q .kv), words (pass=bwd, dtype=bf16, align=br, impl, spelling, determinism, scaling, scale_format); and what
 *              follows from them: causal, has_score_mod, want_stats, want_max, want_sum_exp, broadcast (an input has a stride 0), sums (a
 *              gradient is summed), misaligned (the first tensor with a stride that is not a multiple of 16 bytes: none, q, k …),
 *              q_format k_format v_format o_format do_format stats_format (the order in memory: bshd, sbhd, bhsd; gaps do not count; where an
 *              extent is 1 several hold).
 * In `why`, {field} stands for the field's value. */

#define FATTN_RULE_INIT { .struct_size = sizeof(fattn_rule), .pass = FATTN_ANY, .engine = FATTN_ANY }

#define FATTN_BACKEND_COUNT 3

/* Backends in the order of preference; those that the context's device lacks are passed over. The default policy is cuDNN alone on a GPU
 * and the cpu backend on the CPU: the math backend is never chosen unless a policy allows it. */
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
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (an unknown field or word in a predicate, with its place: nothing was pushed); FATTN_NO_MEMORY. */
fattn_status fattn_policy_push(const fattn_policy *policy, int *depth);
/* Back to what held before the push that gave `depth`, whatever was pushed since and forgotten. A depth that is not held (0, below, or
 * above fattn_policy_depth(): popped already) does nothing. */
void fattn_policy_pop(int depth);
int fattn_policy_depth(void);
/* push, body(argument), pop: exactly what held before holds again, also when body leaves pushes behind or pops what is not its own. Returns what body returns, or why not pushed. */
fattn_status fattn_policy_with(const fattn_policy *policy, fattn_status (*body)(void *argument), void *argument);

/* Rules out of JSON. A rule with "operation" is of cudnn-frontend's form, another is of ours; one file may hold both.
 *   ours       {"version":1,"rules":[{"name":…,"why":…,"link":…,"remedy":…,"deny":"cudnn" or "pin":"cudnn","pass":"bwd","engine":7,
 *              "knobs":{"TILE_M":2 or "k40":2},"cudnn":"9.14.0..9.25.1","sm":"90..100","when":"seq_kv%128!=0","unasked":true}]}
 *              An end of a range that is missing is open; both ends belong to it; "9.14.0" alone is that version.
 *   frontend's {"version":1,"rules":[{"rule_id":…,"operation":…,"engine":2,"knob":["k31=7"],"cudnn_version_start":91400,
 *              "cudnn_version_end":92600}]}: start belongs to the range, end does not (it is the version with the repair; -1 or absent: open), every
 *              knob must match, "arch" is not read: as its source has it (include/cudnn_frontend_Errata.h). Its operations are the names of
 *              whole graphs; two Matmul are forward attention, more are backward, and rules of other graphs are left out. Knobs are compared by
 *              value, so that k2=1 does not block k2=13.
 * The owner keeps the strings that `rules` points to.
 * Returns  FATTN_OK; FATTN_BAD_PROBLEM (the rule and what is wrong; a line where the text is no JSON). */
typedef struct fattn_rules fattn_rules;
fattn_status fattn_rules_read(fattn_rules **out, const char *json);
size_t fattn_rules_count(const fattn_rules *rules);
const fattn_rule *fattn_rules_at(const fattn_rules *rules, size_t i);
void fattn_rules_destroy(fattn_rules *rules);

/* The library's own list. Static. */
size_t fattn_guard_count(void);
const fattn_rule *fattn_guard_at(size_t i);
/* Does `rule` hold for this problem on that target: its versions, its sm, its pass and its predicate? Engine and knobs are not asked. False for
 * a problem that is none, and for a rule that push would refuse. */
bool fattn_rule_holds(const fattn_rule *rule, const fattn_problem *problem, int32_t cudnn_version, int32_t sm);

/* ---- what a decision says of each backend that the policy named ---------------------------------------------------------------- */

typedef struct fattn_answer {
    int32_t backend; /* fattn_backend */
    int32_t reason;  /* fattn_reason; NONE: yes */
    const char *status, *text, *remedy; /* as those of the decision */
    const char *rule; /* the rule that said no, or removed an engine; "" */
} fattn_answer;
size_t fattn_decision_answer_count(const fattn_decision *decision);
const fattn_answer *fattn_decision_answer(const fattn_decision *decision, size_t i); /* in the order of the policy */

/* ---- neighbours ------------------------------------------------------------------------------------------------------------------ */

#define FATTN_MAX_NEIGHBOURS 16

/* A problem near a refused one that the target accepts. */
typedef struct fattn_neighbour {
    fattn_problem problem;
    char change[96]; /* "dim_qk 104 instead of 100" */
    int32_t changes; /* number of fields changed: 1, or 2 */
    int32_t reserved;
} fattn_neighbour;
/* Finds accepted neighbours of a refused problem by asking (fattn_decide), nearest first: one field changed (or both head dims, where they are
 * equal), and only if none helps two. Nothing is compiled.
 * At most `budget` questions (0: 200). Returns the status of the asking; *count neighbours in out[FATTN_MAX_NEIGHBOURS]. */
fattn_status fattn_explain(fattn_context *context, const fattn_problem *problem, int budget, fattn_neighbour *out, size_t *count);

/* ---- the old narrow entry ---------------------------------------------------------------------------------------------------------- */

/* May this be run? The form of before 0.2: no batch, no output format, no reason but a text. Batch is 1; Q, K and V have `format` (unset: b,s,h,d),
 * and what could not be said is derived: O has the format of Q, dO that of O, each gradient that of its input. heads_kv 0: heads_q; dim_v 0: dim_qk.
 * window_left and window_right are those of fattn_problem; -1: no bound. Training asks the backward as well, and only training does; one backend
 * must do both. A probe: nothing is compiled. New callers use fattn_decide.
 * Returns  a fattn_backend, or -1; *message (may be NULL) is fattn_last_error()'s sentence, or "". */
int fattn_backend_v1(fattn_context *context, int training, fattn_dtype dtype, fattn_format format, int64_t heads_q, int64_t heads_kv,
                     int64_t seq_q, int64_t seq_kv, int64_t dim_qk, int64_t dim_v, int64_t window_left, int64_t window_right,
                     int deterministic, int capture, const char **message);

#ifdef __cplusplus
}
#endif
#endif
