/* One spelling for each setting of attention (language.h says when each is called). */
#ifndef FACTS_NORMAL_FORM_H
#define FACTS_NORMAL_FORM_H

#include "language/draft.h"

const char *facts_follows(facts_key key, const char *value);
const char *facts_normalise(facts_draft *draft, facts_key *at);
void facts_unfold(facts_draft *draft, const facts_case *c, facts_key key);

#endif
