#include "flash_liars.h"

#define AS_WORD(symbol, id, scene, types, fills, what) [FACTS_LIAR_##symbol] = id,
const char *const facts_liar_words[FACTS_LIAR_COUNT] = { "honest", FACTS_LIAR_LIST(AS_WORD) };
#undef AS_WORD
#define AS_WHAT(symbol, id, scene, types, fills, what) [FACTS_LIAR_##symbol] = what,
const char *const facts_liar_what[FACTS_LIAR_COUNT] = { "nothing", FACTS_LIAR_LIST(AS_WHAT) };
#undef AS_WHAT
