#include "keys.h"

#include <string.h>

#include "case/words/case_text.h"

#define AS_ROW(symbol, word, kind, allowed, otherwise, help)                                       \
    [FACTS_KEY_##symbol] = { word, FACTS_KIND_##kind, allowed, otherwise, help },
const facts_key_row facts_keys[FACTS_KEY_COUNT] = { FACTS_KEY_LIST(AS_ROW) };
#undef AS_ROW

facts_key facts_key_find(const char *word, size_t length)
{
    facts_key key = 0;
    while (key < FACTS_KEY_COUNT &&
           !facts_span_is((facts_span){ word, length }, facts_keys[key].word))
        key++;
    return key;
}

int facts_key_allowed_letters(facts_key key)
{
    return (int)facts_span_trim(facts_span_of(facts_keys[key].allowed)).length;
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

void facts_keys_help(facts_key which, FILE *out)
{
    facts_key end = which == FACTS_KEY_COUNT ? FACTS_KEY_COUNT : which + 1;
    for (facts_key key = which % FACTS_KEY_COUNT; key < end; key++) {
        const facts_key_row *row = &facts_keys[key];
        fprintf(out, "  %-14s %s\n  %-14s   %.*s%s; default %s\n", row->word, row->help, "",
                facts_key_allowed_letters(key), row->allowed, also(row->kind), row->otherwise);
    }
}
