/* What makes a case of attention simpler (language/simpler.h). */
#ifndef FACTS_SIMPLER_ATTENTION_H
#define FACTS_SIMPLER_ATTENTION_H

#include "language/simpler.h"

extern const facts_simpler facts_simpler_attention;

#endif
