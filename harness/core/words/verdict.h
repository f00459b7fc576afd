/* The verdict: how a case ended. Each verdict is one word of a closed list (docs/records.md). A
 * case that was only decided or compiled is SUPPORTED and never PASS. */
#ifndef FACTS_VERDICT_H
#define FACTS_VERDICT_H

#include <stdbool.h>

#include "span.h"

/* X(SYMBOL, "word"). The findings are WRONG to EXIT_CRASH. */
/* clang-format off */
#define FACTS_VERDICT_LIST(X)                                                                 \
    X(PASS, "pass") X(SUPPORTED, "supported") X(UNSUPPORTED, "unsupported") X(WRONG, "wrong") \
    X(NAN, "nan") X(UNWRITTEN, "unwritten") X(OVERRUN, "overrun")                             \
    X(NONDETERMINISTIC, "nondeterministic") X(GRAPH_MISMATCH, "graph_mismatch")               \
    X(BUILD_FAIL, "build_fail") X(EXEC_FAIL, "exec_fail") X(CRASH, "crash") X(HANG, "hang")   \
    X(EXIT_CRASH, "exit_crash") X(MISTRUSTED, "mistrusted") X(INCONCLUSIVE, "inconclusive")
/* clang-format on */
#define AS_ENUM(symbol, word) FACTS_VERDICT_##symbol,
typedef enum facts_verdict { FACTS_VERDICT_LIST(AS_ENUM) FACTS_VERDICT_COUNT } facts_verdict;
#undef AS_ENUM

/* "?" for FACTS_VERDICT_COUNT. */
const char *facts_verdict_name(facts_verdict verdict);
/* The same of a JSON string with its quotes. */
facts_verdict facts_verdict_parse(facts_span json_string);
/* pass, or supported. */
bool facts_verdict_is_good(facts_verdict verdict);
/* Is it a finding, unless an expectation predicts it? wrong nan unwritten overrun nondeterministic
 * graph_mismatch build_fail exec_fail crash hang exit_crash. */
bool facts_verdict_is_finding(facts_verdict verdict);

#endif
