/* One case in this process: its reference is made once, and any kernel may then run before it. */
#ifndef FACTS_SELF_CASE_H
#define FACTS_SELF_CASE_H

#include "liars/lies.h"
#include "numbers/judge/judge.h"
#include "worker/exec/trial.h"

/* The types of `facts self`: that of Q, K and V, and how a kernel adds products. */
/* X(SYMBOL, "word", "dtype", ADDS, CONSTANTS). ADDS: FP32, or as Hopper's tensor cores add 8-bit
 * types. CONSTANTS of the error model: TABLE, the widest of the table, as for an engine of a GPU;
 * FP32, for sums in fp32. */
/* clang-format off */
#define FACTS_SELF_TYPE_LIST(X)                                                             \
    X(BF16, "bf16", "bf16", FP32, TABLE) X(F16, "f16", "f16", FP32, TABLE)                  \
    X(F32, "f32", "f32", FP32, TABLE)                                                       \
    X(E4M3, "e4m3", "e4m3", FP32, FP32) X(E5M2, "e5m2", "e5m2", FP32, FP32)                 \
    X(E4M3_HOPPER, "e4m3-hopper", "e4m3", HOPPER, TABLE)                                    \
    X(E5M2_HOPPER, "e5m2-hopper", "e5m2", HOPPER, TABLE)
/* clang-format on */
#define FACTS_AS_ENUM(symbol, ...) FACTS_SELF_##symbol,
typedef enum facts_self_type {
    FACTS_SELF_TYPE_LIST(FACTS_AS_ENUM) FACTS_SELF_TYPES
} facts_self_type;
#undef FACTS_AS_ENUM

/* What became of one kernel. */
typedef struct facts_self_end {
    bool found;
    double ratio; /* the largest; 1 is the threshold; INFINITY: no number shows it */
    char gate[24], tensor[24];
    size_t answers;                 /* that were judged */
    double gates[FACTS_GATE_COUNT]; /* the largest ratio of each */
} facts_self_end;

const char *facts_self_type_word(facts_self_type type);
const char *facts_self_type_dtype(facts_self_type type);
bool facts_self_type_is_narrow(facts_self_type type); /* 8 bits */
/* FACTS_SELF_TYPES: there is no such word. */
facts_self_type facts_self_type_find(const char *word);
/* Has this type what the fault bends? */
bool facts_self_type_has(facts_self_type type, const fattn__fault *fault);
/* A right kernel of that type, and from now on the constants that judge every answer. */
fattn__gpu_like facts_self_begin(facts_self_type type);
/* Judge by all limits of the constants, or again by the type's own. */
void facts_self_limits(bool limits);

typedef struct facts_self_case {
    facts_case asked;
    bool asked_is_valid; /* it is a case, whoever refuses it */
    facts_problem problem;
    fattn_score_mod *mod;
    fattn_plan *plan;
    facts_reference reference;
} facts_self_case;

/* Can the worker's cpu run it in a moment? Then resolves it. */
bool facts_self_case_takes(const char *name);
/* Returns false with the reason in `error`: the cpu refuses the case. Close it in any case. */
bool facts_self_case_open(facts_self_case *out, const char *name, facts_error *error);
void facts_self_case_close(facts_self_case *x);

/* Runs a kernel over both poisons, with one fault (FATTN__LIAR_NONE: none). */
void facts_self_case_run(facts_self_end *out, facts_self_case *x, const fattn__gpu_like *like,
                         fattn__liar fault);

#endif
