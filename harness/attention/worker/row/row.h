/* Rows as JSON: decisions and judgements. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_H
#define FACTS_ROW_H

#include <fattn/fattn.h>
#include <jansson.h>

#include "numbers/judge/judge.h"

/* The verdict of a call that did not succeed. */
facts_verdict facts_verdict_of(fattn_status status);
/* {"case","verdict"}; the caller owns it. */
json_t *facts_row(const char *name, facts_verdict verdict);
void facts_row_verdict(json_t *row, facts_verdict verdict);
/* reason{class,text}; a NULL or empty part is left out. */
void facts_row_reason(json_t *row, const char *reason_class, const char *status, const char *text,
                      const char *remedy);
/* A failed call: its class and this thread's last error. */
void facts_row_failure(json_t *row, fattn_status status);
/* backend, supported, engines, and reason with its chain. reason.rule is the first rule that
 * refused or removed an engine. answers[] if several backends were asked. */
void facts_row_decision(json_t *row, const fattn_decision *decision);
/* The backend that really answered. */
void facts_row_backend(json_t *row, fattn_backend backend);
/* engine, config, and workspace_bytes as cuDNN states it. */
void facts_row_engine(json_t *row, const fattn_engine *engine);
/* errors.<tensor>, and padded.<tensor> if there are padded rows. `bits`: hash of the answer's
 * bytes; 0: none. */
void facts_row_judgement(json_t *row, const char *tensor, const facts_judgement *judgement,
                         uint64_t bits);
/* spent_ms: the time of each stage of the request (worker/clock) that took time. `ms` NULL: times
 * are not measured. */
void facts_row_spent(json_t *row, const double *ms);
/* impl (what the case asks for) and pins{engine,knobs{}} (of a case that names them). */
void facts_row_asked(json_t *row, const facts_problem *problem);

#endif
