#include "keys.h"

#include <string.h>

#include "case/words/case_text.h"

#define AS_ROW(symbol, word, kind, allowed, otherwise, now, help)                                                                  \
    [FACTS_KEY_##symbol] = { word, FACTS_KIND_##kind, allowed, otherwise, now, help },
const facts_key_row facts_keys[FACTS_KEY_COUNT] = { FACTS_KEY_LIST(AS_ROW) };
#undef AS_ROW

facts_key facts_key_find(const char *word, size_t length)
{
    facts_key key = 0;
    while (key < FACTS_KEY_COUNT && !facts_span_is((facts_span){ word, length }, facts_keys[key].word))
        key++;
    return key;
}

const char *facts_key_nearest(const char *word, size_t length)
{
    facts_nearest nearest = facts_nearest_start((facts_span){ word, length });
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        facts_nearest_offer(&nearest, facts_keys[key].word, strlen(facts_keys[key].word));
    return nearest.best;
}

/* What a kind takes beside its templates, for the help. */
static const char *also(facts_kind kind)
{
    switch (kind) {
    case FACTS_KIND_SET:
        return " (joined by +)";
    case FACTS_KIND_LENS:
        return ", lengths (256+0x3/256+1x3)";
    case FACTS_KIND_LAYOUT:
        return ", Q_KV (sbhd_bshd, bshd_bs2hd, thd_th2d)";
    case FACTS_KIND_STRIDE:
        return " gap: broadcast: sum: perm: offset: misaligned: size1:wild";
    case FACTS_KIND_KNOBS:
        return ", name:N (joined by +)";
    default:
        return "";
    }
}

void facts_keys_help(FILE *out)
{
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        const facts_key_row *row = &facts_keys[key];
        size_t length = strlen(row->allowed);
        while (length > 0 && row->allowed[length - 1] == ' ')
            length--;
        const char *state = row->now[0] == '\0' ? " [default only, so far]" : "";
        fprintf(out, "  %-14s %s%s\n  %-14s   %.*s%s; default %s\n", row->word, row->help, state, "", (int)length, row->allowed,
                also(row->kind), row->otherwise);
    }
}
