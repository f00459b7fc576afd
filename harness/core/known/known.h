/* What is known of a case: the failures of cases/known that speak of it, with this version of cuDNN
 * on this architecture. reports/facts_reports/known/knowledge.py answers alike. */
#ifndef FACTS_KNOWN_H
#define FACTS_KNOWN_H

#include <jansson.h>

#include "record/text.h"
#include "suites/predicate.h"

/* One failure: an object of known.jsonl (docs/known.md has its members), and its conditions. */
typedef struct facts_known {
    json_t *said;
    facts_predicate *problem, *data; /* problem NULL: a case cannot tell; data NULL: any data */
} facts_known;

/* Rows that are known to fail, of one failure on the architectures where it was seen, or where it
 * is suspected. */
typedef struct facts_expectation {
    size_t known; /* its place in the list */
    facts_predicate *where;
    bool sometimes; /* only in some runs, or suspected: a pass is no news */
    bool left_out;  /* it is about other suites than those that are run */
    bool used, met; /* some result fitted; some such result had its verdict (set by the caller) */
} facts_expectation;

typedef struct facts_knowledge {
    const facts_language *language; /* of its conditions */
    facts_known *at;
    size_t count;
    facts_expectation *expected;
    size_t expected_count;
} facts_knowledge;

/* A failure that speaks of a case. How sure: seen on this version and architecture; between two
 * versions that were seen; in a later version than all that were seen; suspected on this
 * architecture; open: the version or the architecture is not known. */
typedef struct facts_known_answer {
    const facts_known *known;
    bool such_data;    /* the case has the data that show it */
    const char *sure;  /* see above */
    const char *fixed; /* the version; "": none */
} facts_known_answer;

/* Gives each line of a file to `take`, which owns the object. A missing file has none. */
bool facts_knowledge_lines(const char *path, bool (*take)(void *list, json_t *said, facts_error *),
                           void *list, facts_error *error);
/* Reads known.jsonl. A missing file has no failures. */
bool facts_knowledge_load(facts_knowledge *out, const facts_language *language, const char *path,
                          facts_error *error);
/* A member of a failure that is text: "id", "title", "says"; "" if there is none. */
const char *facts_known_text(const facts_known *known, const char *key);
bool facts_known_is(const facts_known *known, const char *key);
/* Is the verdict the one of the failure, or one of them? */
bool facts_known_names(const facts_known *known, const char *verdict);
/* Its verdicts, joined: "wrong/nan". */
void facts_known_verdicts(facts_text *out, const facts_known *known);
/* From now on only expectations about one of `suites` apply (separated by blanks; "": all). */
void facts_knowledge_choose(facts_knowledge *knowledge, const char *suites);
/* The expectation for this result, or NULL; marks all that fit as used. Several may fit, because
 * several failures may meet in one case: the first that names the verdict counts, otherwise the
 * first. */
facts_expectation *facts_knowledge_expect(facts_knowledge *knowledge, const facts_subject *subject);
/* The failures that speak of a case, in `out`, which has room for all; returns their number. First
 * those whose data the case has, and among these the serious ones. The subject's `engine` is the one that is
 * offered first. Its NULL members are not known, and its case is needed. */
size_t facts_known_of(const facts_knowledge *knowledge, const facts_subject *subject,
                      facts_known_answer *out);
/* "TITLE (ID)". */
void facts_known_title(facts_text *out, const facts_known *known);
/* "known to be wrong for very negative scores: TITLE; fixed in 9.26.0 (ID)". */
void facts_known_sentence(facts_text *out, const facts_known_answer *answer);
/* A line for each of the first `most` answers, and below it what to do instead, for people. */
void facts_known_lines(facts_text *out, const char *prefix, const facts_known_answer *answers,
                       size_t count, size_t most);
/* The member `known` of a row, with a comma behind it (docs/records.md). */
void facts_known_member(facts_text *out, const facts_known_answer *answers, size_t count);
void facts_knowledge_free(facts_knowledge *knowledge);

#endif
