#include "lies.h"

#include <string.h>

fattn__liar fattn__liar_now = FATTN__LIAR_NONE;

#define AS_ROW(symbol, word, what) { word, what },
static const struct {
    const char *word, *what;
} liars[] = { { "", "" }, FATTN__LIAR_LIST(AS_ROW) };
#undef AS_ROW

const fattn__fault *fattn__fault_at(int index)
{
#define AS_FAULT(symbol, id, types, scene, what)                                                   \
    { id, FATTN__SCENE_##scene, what, FATTN__TYPES_##types, FATTN__LIAR_##symbol },
#define AS_DATA(symbol, id, types, cases, what)                                                    \
    { id, cases, what, FATTN__TYPES_##types, FATTN__LIAR_##symbol },
#define AS_PLACE(id, types, cases, what) { id, cases, what, FATTN__TYPES_##types, FATTN__LIAR_FAR },
    static const fattn__fault faults[] = { FATTN__FAULT_LIST(AS_FAULT) FATTN__DATA_LIST(AS_DATA)
                                               FATTN__PLACE_LIST(AS_PLACE) };
#undef AS_PLACE
#undef AS_DATA
#undef AS_FAULT
    return index >= 0 && (size_t)index < sizeof faults / sizeof *faults ? &faults[index] : NULL;
}

bool fattn__liar_take(const char *word)
{
    const fattn__fault *fault;
    fattn__liar found = FATTN__LIAR_NONE;
    for (int i = 1; i < FATTN__LIAR_CAUSAL_LOOSE; i++)
        found = strcmp(liars[i].word, word) == 0 ? (fattn__liar)i : found;
    for (int i = 0; (fault = fattn__fault_at(i)) != NULL; i++)
        found = strcmp(fault->word, word) == 0 ? fault->liar : found;
    fattn__liar_now = found != FATTN__LIAR_NONE ? found : fattn__liar_now;
    return found != FATTN__LIAR_NONE;
}

void fattn__liar_print(FILE *out)
{
    for (int i = 1; i < FATTN__LIAR_CAUSAL_LOOSE; i++) /* the kernel's faults come behind */
        fprintf(out, "%s\t%s\n", liars[i].word, liars[i].what);
}

void fattn__liar_bend(fattn_problem *question)
{
    fattn_problem bent = *question;
    if (FATTN__LIE(PROBE_O_FORMAT)) {
        memset(bent.o_strides, 0, sizeof bent.o_strides);
        memset(bent.do_strides, 0, sizeof bent.do_strides);
    }
    if (FATTN__LIE(PROBE_BATCH))
        bent.batch = 1;
    if (FATTN__LIE(PROBE_ALIGN))
        bent.align = FATTN_TOP_LEFT;
    fattn_problem resolved;
    if (fattn_problem_resolve(&bent, &resolved) == FATTN_OK)
        *question = resolved;
}
