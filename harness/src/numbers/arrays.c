#include "arrays.h"

#include <string.h>

#define AS_WORD(symbol, field, output) #field,
const char *const facts_array_words[FACTS_ARRAY_COUNT] = { FACTS_ARRAY_LIST(AS_WORD) };
#undef AS_WORD

size_t facts_array_bytes(const facts_array *array)
{
    static const size_t sizes[] = { [FACTS_ARRAY_I32] = 4, [FACTS_ARRAY_I64] = 8, [FACTS_ARRAY_F32] = 4, [FACTS_ARRAY_U8] = 1 };
    return (size_t)array->count * sizes[array->type];
}

size_t facts_array_place(facts_array_id id)
{
#define AS_PLACE(symbol, field, output) offsetof(fattn_tensors, field),
    static const size_t places[FACTS_ARRAY_COUNT] = { FACTS_ARRAY_LIST(AS_PLACE) };
#undef AS_PLACE
    return places[id];
}

void facts_array_fill(const facts_problem *p, facts_array_id id, void *out)
{
    memset(out, 0, facts_array_bytes(&p->array[id]));
    if (id == FACTS_ARRAY_SEQ_LEN_Q || id == FACTS_ARRAY_SEQ_LEN_KV)
        memcpy(out, id == FACTS_ARRAY_SEQ_LEN_Q ? p->len_q : p->len_kv, facts_array_bytes(&p->array[id]));
}
