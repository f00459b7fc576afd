/* facts repro: a picture of each answer that is wrong. */
#ifndef FACTS_PICTURES_H
#define FACTS_PICTURES_H

#include <jansson.h>

#include "worker/exec/trial.h"

/* Returns {"o": text, ...} for every tensor with elements that a gate refused, from the first run
 * that has them; NULL: there are none. The caller owns it. */
json_t *facts_pictures(const facts_trial *trial, facts_reference *reference);

#endif
