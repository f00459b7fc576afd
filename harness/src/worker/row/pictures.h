/* facts repro: a picture of each answer that is wrong. */
#ifndef FACTS_PICTURES_H
#define FACTS_PICTURES_H

#include <jansson.h>

#include "worker/exec/trial.h"

/* {"o": text, ...}, of every tensor with elements that a gate refused, of the first run in which they are; NULL: of none. The
 * caller owns it. */
json_t *facts_pictures(const facts_trial *trial, facts_reference *reference);

#endif
