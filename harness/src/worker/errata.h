/* The rules of policy=guard: cases/errata.json, read from its text and chosen for a case.
 *
 * One file may hold two forms of a rule. A rule with "operation" has cudnn-frontend's form; every other rule has ours.
 *   ours       {"version":1,"rules":[{"name":…,"why":…,"link":…,"remedy":…,"deny":"cudnn" or "pin":"cudnn","pass":"bwd","engine":7,
 *              "knobs":{"TILE_M":2 or "k40":2},"cudnn":"9.14.0..9.25.1","sm":"90..100","when":"s.kv%128!=0","unasked":true}]}
 *              `when` is a predicate of the case language. A missing end of a range is open; both ends belong to the range; "9.14.0" alone is
 *              that version.
 *   frontend's {"version":1,"rules":[{"rule_id":…,"operation":…,"engine":2,"knob":["k31=7"],"cudnn_version_start":91400,
 *              "cudnn_version_end":92600}]}, as cudnn-frontend's include/cudnn_frontend_Errata.h reads it: the range includes its start and not its
 *              end (-1 or absent: open), the configuration must have every knob, and "arch" is not read. An operation is the name of a whole
 *              graph. Two Matmul are forward attention, more are backward attention; rules of other graphs are left out. Knobs are compared
 *              by value: k2=1 does not block k2=13. */
#ifndef FACTS_WORKER_ERRATA_H
#define FACTS_WORKER_ERRATA_H

#include <fattn/policy.h>

#include "../case/case.h"

#define FACTS_ERRATA_ERROR 300

typedef struct facts_errata facts_errata;

/* False: one line in `error`, with the rule, the key and what is wrong. */
bool facts_errata_read(facts_errata **out, const char *json, char error[FACTS_ERRATA_ERROR]);
void facts_errata_destroy(facts_errata *errata);
size_t facts_errata_count(const facts_errata *errata);
/* Fills `chosen` (room for facts_errata_count) with the rules whose `when` holds for the case, in the order of the file. Returns their number.
 * Their texts and knobs belong to the errata. */
size_t facts_errata_choose(const facts_errata *errata, const facts_case *c, fattn_rule *chosen);

#endif
