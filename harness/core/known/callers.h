/* The rules of other projects that refuse a case before cuDNN is asked (cases/claims,
 * docs/audit.md). */
#ifndef FACTS_CALLERS_H
#define FACTS_CALLERS_H

#include <jansson.h>

#include "record/text.h"
#include "suites/predicate.h"

/* One rule: an object of claims.jsonl with project, version, rule and says. */
typedef struct facts_caller {
    json_t *said;
    facts_predicate *refuses;
} facts_caller;

typedef struct facts_callers {
    const facts_language *language; /* of their conditions */
    facts_caller *at;               /* the rules of a project stand together */
    size_t count;
} facts_callers;

/* Reads claims.jsonl. A missing file has no rules. */
bool facts_callers_load(facts_callers *out, const facts_language *language, const char *path,
                        facts_error *error);
/* For people: a line for each project that refuses the case with this cuDNN on this architecture.
 */
void facts_callers_lines(facts_text *out, const char *prefix, const facts_callers *callers,
                         const facts_subject *subject);
/* The member `callers`, with a comma behind it: the rules that refuse the case. */
void facts_callers_member(facts_text *out, const facts_callers *callers,
                          const facts_subject *subject);
/* The first rule whose message is part of a log's line; NULL: there is none. */
const facts_caller *facts_callers_saying(const facts_callers *callers, const char *line);
void facts_callers_free(facts_callers *callers);

#endif
