#include "lies.h"

#include <string.h>

fattn__liar fattn__liar_now = FATTN__LIAR_NONE;

#define AS_ROW(symbol, word, seed, what) { word, seed, what },
#define AS_FAULT(symbol, id, types, scene, what) { id, "kernel", what },
static const struct {
    const char *word, *seed, *what;
} liars[] = { { "", "", "" },
              FATTN__LIAR_LIST(AS_ROW) FATTN__FAULT_LIST(AS_FAULT) FATTN__PLACE_LIST(AS_FAULT) };
#undef AS_FAULT
#undef AS_ROW

enum {
#define AS_SCENE(scene, cases) SCENE_##scene,
    FATTN__SCENE_LIST(AS_SCENE)
#undef AS_SCENE
};

static const char *const scenes[] = {
#define AS_CASES(scene, cases) cases,
    FATTN__SCENE_LIST(AS_CASES)
#undef AS_CASES
};

const fattn__fault *fattn__fault_at(int index)
{
#define AS_FAULT(symbol, id, types, scene, what)                                                   \
    { id, #scene, NULL, what, FATTN__TYPES_##types, FATTN__LIAR_##symbol },
#define AS_FAR(symbol, id, types, cases, what)                                                     \
    { id, "FAR", cases, what, FATTN__TYPES_##types, FATTN__LIAR_##symbol },
    static fattn__fault faults[] = { FATTN__FAULT_LIST(AS_FAULT) FATTN__PLACE_LIST(AS_FAR) };
#undef AS_FAR
#undef AS_FAULT
#define AS_PLACE(symbol, id, types, scene, what) SCENE_##scene,
    static const int places[] = { FATTN__FAULT_LIST(AS_PLACE) };
#undef AS_PLACE
    if (index < 0 || (size_t)index >= sizeof faults / sizeof *faults)
        return NULL;
    if ((size_t)index < sizeof places / sizeof *places)
        faults[index].cases = scenes[places[index]];
    return &faults[index];
}

bool fattn__liar_take(const char *word)
{
    for (int i = 1; i < FATTN__LIAR_COUNT; i++) {
        if (strcmp(liars[i].word, word) == 0) {
            fattn__liar_now = (fattn__liar)i;
            return true;
        }
    }
    return false;
}

void fattn__liar_print(FILE *out)
{
    for (int i = 1; i < FATTN__LIAR_CAUSAL_LOOSE; i++) /* the kernel's faults come behind */
        fprintf(out, "%s\t%s\t%s\n", liars[i].word, liars[i].seed, liars[i].what);
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
