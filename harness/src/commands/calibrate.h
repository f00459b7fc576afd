/* From rows of a record to rows of cases/calibration.json: what an engine's errors say about the constants of the error model. Pure.
 * docs/numerics.md section 10. */
#ifndef FACTS_CALIBRATE_H
#define FACTS_CALIBRATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct facts_measured facts_measured; /* owner; opaque */

facts_measured *facts_measured_create(void); /* NULL without memory */
void facts_measured_destroy(facts_measured *measured);

/* One row of a record, or the target line before it (whose cuDNN and device the rows name). Rows without numbers, and of engines whose answers are no
 * numbers of a model (NaN, unwritten, more than WILD times their tolerance), are counted and take no part. False: no JSON. */
bool facts_measured_add(facts_measured *measured, const char *text, size_t length);

/* Engines seen, and rows that took part. */
size_t facts_measured_engines(const facts_measured *measured);
size_t facts_measured_rows(const facts_measured *measured);

/* {"version":1,"rows":[…]}: a row for each (sm, backend, dtype, pass, engine), as the table wants it. `constants` has what may be set without another
 * look: it makes no bound wider. `proposed` has what would, each with its limit and the record that forces it; who agrees moves it to
 * `constants`, where beyond its limit the table is not read.
 * The caller owns it. */
json_t *facts_measured_table(const facts_measured *measured, const char *date);
/* The same for a person. */
void facts_measured_print(const facts_measured *measured, FILE *out);

#endif
