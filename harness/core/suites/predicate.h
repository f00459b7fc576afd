/* Predicates: "d.qk>128 & pass=bwd & cudnn<9.10.2 & layout~thd*". The keys of the language and their parts (s.kv) plus cudnn sm
 * build backend grade verdict engine config class; = != < <= > >= in (a, b) ~glob ! & | ( ). Versions compare by their parts. */
#ifndef FACTS_PREDICATE_H
#define FACTS_PREDICATE_H

#include "language/case.h"

typedef struct facts_predicate facts_predicate;

/* The case and the result that a predicate is evaluated for. A NULL string is unknown: every
 * comparison with it is false. */
typedef struct facts_subject {
    const facts_case *c;
    const char *cudnn, *sm, *build, *backend, *grade, *verdict, *engine, *config, *reason_class;
} facts_subject;

bool facts_predicate_parse(const facts_language *language, facts_predicate **out, const char *text,
                           facts_error *error);
bool facts_predicate_holds(const facts_predicate *p, const facts_subject *s);
/* Can the predicate hold when the unknown fields are known? A NULL field, and the engine of a case
 * that does not fix one, may become anything. */
bool facts_predicate_possible(const facts_predicate *p, const facts_subject *s);
void facts_predicate_destroy(facts_predicate *p);

#endif
