/* Parts of a row as JSON: decisions and judgements. Fields as in harness/PROTOCOL.md. */
#ifndef FACTS_ROW_H
#define FACTS_ROW_H

#include <fattn/fattn.h>
#include <jansson.h>

#include "numbers/judge/judge.h"

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
/* impl (what the case asks for) and pins{engine,knobs{}} (of a case that names them). */
void facts_row_asked(json_t *row, const facts_problem *problem);

#endif
