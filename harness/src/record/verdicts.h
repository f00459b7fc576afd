/* What each verdict means to whoever counts: the words themselves are FACTS_VERDICT_LIST (numbers/judge/judge.h). */
#ifndef FACTS_VERDICTS_H
#define FACTS_VERDICTS_H

#include <stdbool.h>

#include "numbers/judge/judge.h"
#include "scan.h"

/* FACTS_VERDICT_COUNT when it is none of the words. */
facts_verdict facts_verdict_parse(facts_slice json_string);
const char *facts_verdict_name(facts_verdict verdict);
/* Something is broken unless an expectation says so: wrong nan unwritten overrun nondeterministic graph_mismatch build_fail
 * exec_fail crash hang exit_crash. */
bool facts_verdict_is_finding(facts_verdict verdict);

#endif
