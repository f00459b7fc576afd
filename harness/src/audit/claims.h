/* Claims: the support rules that other projects have written down (cases/claims/, one project a file), as predicates of the case
 * language, each with the cases that lie on both sides of its edge. Pure; files are read elsewhere.
 *
 *   project: cudnn-frontend 1.32.0            opens a project; every rule below belongs to it
 *   link: https://...                         where its text can be read
 *   rule: fe/H04                              opens a rule
 *   says: sdpa_support_surface.h: hidden_dim should be multiple of 8
 *   kind: decision                            decision, numbers or caller
 *   refuse: d.qk%8!=0 | d.v%8!=0              one predicate a line; the rule refuses what satisfies any of them
 *   unless: cudnn>=9.99                       and none of these
 *   edge: pass=fwd,bwd | d=100 | d=104        COMMON | REFUSED | LET THROUGH: pairs one axis apart; COMMON alone: the edge lies
 * between versions untestable: WHY                           instead of refuse and edge note: TEXT for readers of the report
 */
#ifndef FACTS_AUDIT_CLAIMS_H
#define FACTS_AUDIT_CLAIMS_H

#include "case/language/token.h"
#include "case/suites/predicate.h"

/* What a rule is about. X(SYMBOL, "word", what can be said of it) */
#define FACTS_CLAIM_LIST(X)                                                                                                        \
    X(DECISION, "decision", "cuDNN itself should refuse")                                                                          \
    X(NUMBERS, "numbers", "a guard against wrong numbers, faults or hangs of what cuDNN takes")                                    \
    X(CALLER, "caller", "about the project's own interface: nothing that a backend could answer")
#define AS_ENUM(symbol, word, what) FACTS_CLAIM_##symbol,
typedef enum facts_claim_kind { FACTS_CLAIM_LIST(AS_ENUM) FACTS_CLAIM_COUNT } facts_claim_kind;
#undef AS_ENUM
const char *facts_claim_word(facts_claim_kind kind);

/* A pair of cases that differ in one key (mask, window and align count as one); without `has_other` the edge lies between versions
 * or devices. */
typedef struct facts_edge {
    facts_case refused, other;
    bool has_other;
    facts_place place;
} facts_edge;

typedef struct facts_claim {
    char *id, *says, *note, *untestable; /* "" when not said */
    char *refuses;                       /* its predicates as they are written, for people */
    facts_claim_kind kind;
    size_t project;
    facts_predicate **refuse, **unless;
    size_t refuse_count, unless_count;
    facts_edge *edge;
    size_t edges;
    facts_place place;
} facts_claim;

typedef struct facts_project {
    char *name, *version, *link;
} facts_project;

typedef struct facts_claims {
    facts_project *project;
    size_t projects;
    facts_claim *claim;
    size_t count;
} facts_claims;

/* Appends what `text` says. `where` must live as long as the claims. Every rule of the text is complete and straddles its edge:
 * some version and device refuse the one side and not the other; otherwise false and *error has the place. */
bool facts_claims_read(facts_claims *claims, const char *text, const char *where, facts_error *error);
/* Whether a rule refuses a case for a version and an sm ("9.20.0", "90"). */
bool facts_claim_refuses(const facts_claim *claim, const facts_case *c, const char *cudnn, const char *sm);
/* Whether the rule refuses any of its cases for a version and an sm; sm NULL: for any device. */
bool facts_claim_refuses_any(const facts_claim *claim, const char *cudnn, const char *sm);
/* Where the rule refuses any of its cases, for people: "cudnn 9.10.0..9.10.1, sm 90". Of the versions and devices that
 * facts_claims_read looks at. `out` has room for 200. Returns `out`. */
const char *facts_claim_reach(const facts_claim *claim, char out[200]);
/* The name of a case as it is asked: the backend as it is and, where it runs (`measured`), every engine offered. False: no case, or
 * *error says why. */
bool facts_claim_asked(char out[FACTS_NAME_MAX], const facts_case *c, bool measured, facts_error *error);
void facts_claims_clear(facts_claims *claims);

#endif
