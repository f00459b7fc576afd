#include "lies.h"

#include <string.h>

fattn__liar fattn__liar_now = FATTN__LIAR_NONE;

#define AS_ROW(symbol, word, seed, what) { word, seed, what },
static const struct {
    const char *word, *seed, *what;
} liars[] = { { "", "", "" }, FATTN__LIAR_LIST(AS_ROW) };
#undef AS_ROW

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
    for (int i = 1; i < FATTN__LIAR_COUNT; i++)
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
