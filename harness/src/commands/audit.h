/* An audit: rules, the cases of their edges, and what targets answered. cmd_audit.c makes it, audit_print.c prints it. */
#ifndef FACTS_COMMANDS_AUDIT_H
#define FACTS_COMMANDS_AUDIT_H

#include "audit/audit_verdict.h"
#include "audit/claims.h"
#include "commands/session/session.h"

/* One side of an edge of a chosen rule. */
typedef struct facts_audit_case {
    size_t claim;        /* of facts_claims */
    const facts_case *c; /* as its file says it, without guards=off */
    size_t work;         /* of the session */
} facts_audit_case;

/* What was found of a rule on one device, for a run of versions that agree. */
typedef struct facts_audit_row {
    size_t claim, first, last; /* targets */
    facts_audit_verdict verdict;
    size_t trials; /* the first of `cases`: verdict.shows counts from it */
} facts_audit_row;

/* Something that no rule of a project refuses and the backend does. */
typedef struct facts_audit_gap {
    const facts_audit_case *by; /* that shows it first */
    size_t target;
    uint32_t reason; /* of the tally's texts */
} facts_audit_gap;

typedef struct facts_audit {
    facts_claims claims;
    bool *chosen;
    facts_audit_case *cases; /* in the order of the rules */
    size_t count;
    facts_session session;
    facts_reply *replies;  /* [target * work_count + work] */
    facts_audit_row *rows; /* by rule, device and version */
    size_t row_count;
    facts_audit_gap *gaps;
    size_t gap_count;
    bool measured; /* ran on a GPU */
    bool partial;  /* of --from: not every line of the records could be read */
    char **known;  /* of --from: the names of the cases that the records have, sorted; owned */
    size_t known_count;
} facts_audit;

/* One row's answer, beside what the case had already. */
void facts_audit_take(facts_audit *audit, size_t target, size_t work, const facts_line *row, facts_verdict verdict);

/* --from RECORD, each of them: their targets and the names of their cases, before the cases are chosen; then their answers, as of
 * one record. Return an exit code; say why. */
int facts_audit_targets_from(facts_audit *audit, const facts_options *options);
bool facts_audit_knows(const facts_audit *audit, const facts_case *c);
int facts_audit_answers_from(facts_audit *audit, const facts_options *options);

/* For people, and for programs: an object a line. */
void facts_audit_print(const facts_audit *audit, FILE *out);
void facts_audit_print_json(const facts_audit *audit, FILE *out);
/* For the documentation, on stdout by the report package. Returns its exit code. */
int facts_audit_print_markdown(const facts_audit *audit);

#endif
