#ifndef FACTS_PREDICATE_H
#define FACTS_PREDICATE_H

#include "language/case.h"
#include "words/case_text.h"

/* The case and the result that a predicate is evaluated for. A NULL string is unknown: every
 * comparison with it is false. */
typedef struct facts_subject {
    const facts_case *c;
    const char *cudnn, *sm, *build, *backend, *grade, *verdict, *engine, *config, *reason_class;
} facts_subject;

/* "9.10.2" and the like; what follows a - is left out. False: not a version. */
#define FACTS_VERSION_PARTS 4
/* As cudnnGetVersion() returns it: 9.28.1 is 92801. Parts that are not written are `missing` (0, or
 * 99: the last of a range). 0: not a version of two or three parts. */
int32_t facts_version_number(facts_span text, uint32_t missing);

typedef struct facts_predicate facts_predicate;

bool facts_predicate_parse(const facts_language *language, facts_predicate **out, const char *text,
                           facts_error *error);
bool facts_predicate_holds(const facts_predicate *p, const facts_subject *s);
/* Can the predicate hold when the unknown fields are known? A NULL field, and the engine of a case
 * that does not fix one, may become anything. */
bool facts_predicate_possible(const facts_predicate *p, const facts_subject *s);
void facts_predicate_destroy(facts_predicate *p);

#endif
