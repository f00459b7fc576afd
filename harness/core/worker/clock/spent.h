/* Measures the stages of a request. Off unless FACTS_TIMES is set in the environment. Then a call
 * costs two readings of the clock. */
#ifndef FACTS_SPENT_H
#define FACTS_SPENT_H

#include <stdbool.h>

/* X(SYMBOL, "word of spent_ms") */
#define FACTS_SPENT_LIST(X)                                                                        \
    X(OTHER, "other")                                                                              \
    X(DECIDE, "decide")                                                                            \
    X(PLAN, "plan") /* compiling or loading plans, also for the forward before a backward and for  \
                       the dump of dropout */                                                      \
    X(ALLOCATE, "allocate") /* memory of the tensors and of the workspace */                       \
    X(FILL, "fill")                                                                                \
    X(ORACLE, "oracle")                                                                            \
    X(DISTURB, "disturb") /* allocating and freeing buffers of other sizes between runs */         \
    X(ARM, "arm")         /* poison and guards before a run */                                     \
    X(UPLOAD, "upload")   /* lengths, offsets, tables, scales before a run */                      \
    X(CHECK, "check")     /* checking the call before its first launch */                          \
    X(EXECUTE, "execute")                                                                          \
    X(READ_BACK, "read_back") /* guards and small arrays after a run */                            \
    X(COMPARE, "compare")     /* comparing later runs with the first */                            \
    X(JUDGE, "judge")         /* comparing with the expected values, and hashing the answers */    \
    X(TIME, "time")           /* the launches for exec_us */                                       \
    X(RELEASE, "release")     /* releasing the earlier case, after its row was sent */
#define AS_ENUM(symbol, word) FACTS_SPENT_##symbol,
typedef enum facts_spent { FACTS_SPENT_LIST(AS_ENUM) FACTS_SPENT_COUNT } facts_spent;
#undef AS_ENUM

/* From now on the time counts for this stage. Returns the earlier stage; a second call restores it.
 */
facts_spent facts_spend(facts_spent on);
/* A request begins: the time counts for `other`. Cleaning up after the row before still counts. */
void facts_spent_start(void);
/* NULL: times are not measured. Otherwise the milliseconds of each stage since the last
 * facts_spent_clear. */
const double *facts_spent_ms(void);
void facts_spent_clear(void);
extern const char *const facts_spent_words[FACTS_SPENT_COUNT];

#endif
