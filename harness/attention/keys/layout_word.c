#include "layout_word.h"

#include <string.h>

static bool among(const char *words, facts_span word)
{
    facts_span rest = facts_span_of(words), one;
    while ((one = facts_span_word(&rest)).length > 0) {
        if (one.length == word.length && memcmp(one.at, word.at, word.length) == 0)
            return true;
    }
    return false;
}

static bool same(facts_span a, facts_span b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

static bool goes_together(facts_span q, facts_span kv)
{
    if (same(q, kv))
        return among(FACTS_WORDS_LAYOUT, q);
    return among(FACTS_WORDS_DENSE " thd", q) &&
           among(FACTS_WORDS_DENSE " thd " FACTS_WORDS_PACK2 " t2hd th2d", kv);
}

bool facts_layout_read(facts_span text, facts_layout *out)
{
    facts_span part[3];
    size_t count = 0;
    const char *end = text.at + text.length;
    bool more = true;
    while (more && count < 3) {
        part[count] = facts_span_cut(&text, '_');
        more = part[count].at + part[count].length < end;
        count++;
    }
    if (more || (count == 3 && !same(part[1], part[2])))
        return false;
    out->q = part[0];
    out->k = out->v = count == 1 ? part[0] : part[1];
    return goes_together(out->q, out->k);
}

bool facts_layout_write(facts_span q, facts_span kv, char out[24])
{
    if (!goes_together(q, kv))
        return false;
    memcpy(out, q.at, q.length);
    size_t used = q.length;
    if (!same(q, kv)) {
        out[used++] = '_';
        memcpy(out + used, kv.at, kv.length);
        used += kv.length;
    }
    out[used] = '\0';
    return true;
}

bool facts_layout_canonical(const facts_key_row *row, facts_span text, char *out,
                            facts_value_fault *fault)
{
    (void)row, (void)fault;
    facts_layout layout;
    return facts_layout_read(text, &layout) && facts_layout_write(layout.q, layout.k, out);
}

int facts_layout_packs(facts_span word)
{
    return memchr(word.at, '3', word.length) != NULL   ? 3
           : memchr(word.at, '2', word.length) != NULL ? 2
                                                       : 1;
}

bool facts_layout_ragged(facts_span word)
{
    return word.length > 0 && word.at[0] == 't';
}
