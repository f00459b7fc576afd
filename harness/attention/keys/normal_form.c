#include "normal_form.h"

#include <stdio.h>
#include <string.h>

#include "keys.h"
#include "layout_word.h"

static bool is(const char *text, const char *word)
{
    return text != NULL && strcmp(text, word) == 0;
}

/* The word of `text` as a member of a static list, so that it outlives every draft. */
static const char *static_word(const char *const *words, size_t count, facts_span text)
{
    for (size_t i = 0; i < count; i++) {
        if (facts_span_is(text, words[i]))
            return words[i];
    }
    return words[0];
}

static const char *const layout_words[] = { "bshd",  "sbhd",  "bhsd",  "bs3hd", "sb3hd", "bsh3d",
                                            "sbh3d", "bs2hd", "sb2hd", "bsh2d", "sbh2d", "thd",
                                            "t3hd",  "th3d",  "t2hd",  "th2d" };

const char *facts_follows(facts_key key, const char *value)
{
    facts_layout layout;
    if (key != FACTS_KEY_Q && key != FACTS_KEY_K && key != FACTS_KEY_V)
        return value;
    if (!facts_layout_read(facts_span_of(value), &layout))
        return layout_words[0];
    facts_span word = key == FACTS_KEY_Q ? layout.q : key == FACTS_KEY_K ? layout.k : layout.v;
    return static_word(layout_words, sizeof layout_words / sizeof *layout_words, word);
}

/* One band, one spelling: causal and causal_br where they say it all, otherwise window and align.
 * Where mask and window are both given, a key must satisfy both. */
static const char *normalise_band(facts_draft *draft, facts_key *at)
{
    const char **mask = &draft->value[FACTS_KEY_MASK], **window = &draft->value[FACTS_KEY_WINDOW],
               **align = &draft->value[FACTS_KEY_ALIGN];
    bool causal = is(*mask, "causal"), causal_br = is(*mask, "causal_br");
    if (causal_br && is(*align, "tl")) {
        *at = FACTS_KEY_ALIGN;
        return "align=tl contradicts mask=causal_br; mask=causal is the top-left one";
    }
    bool bottom_right = causal_br || is(*align, "br");
    char left[32] = "inf";
    const char *right = "inf";
    if (*window != NULL) {
        size_t letters = strcspn(*window, ":");
        snprintf(left, sizeof left, "%.*s", (int)letters, *window);
        right = *window + letters + 1;
    }
    if (causal || causal_br)
        right = "0"; /* no right bound is below the causal one */
    bool no_left = strcmp(left, "inf") == 0, no_right = strcmp(right, "inf") == 0,
         zero = strcmp(right, "0") == 0;
    *mask = no_left && zero ? (bottom_right ? "causal_br" : "causal") : NULL;
    *align = bottom_right && !(no_left && (zero || no_right)) ? "br" : NULL;
    char text[sizeof draft->room[0]];
    snprintf(text, sizeof text, "%s:%.31s", left, right);
    memcpy(draft->room[0], text, sizeof text);
    *window = no_left && (zero || no_right) ? NULL : draft->room[0];
    return NULL;
}

/* If a layout can express q=, k= and v=, it is used instead of them. */
static void normalise_layout(facts_draft *draft)
{
    const char *q = draft->value[FACTS_KEY_Q], *k = draft->value[FACTS_KEY_K],
               *v = draft->value[FACTS_KEY_V];
    if (q == NULL && k == NULL && v == NULL)
        return;
    q = facts_draft_get(draft, FACTS_KEY_Q);
    k = facts_draft_get(draft, FACTS_KEY_K);
    v = facts_draft_get(draft, FACTS_KEY_V);
    if (strcmp(k, v) != 0 ||
        !facts_layout_write(facts_span_of(q), facts_span_of(k), draft->room[1]))
        return;
    draft->value[FACTS_KEY_LAYOUT] = draft->room[1];
    draft->value[FACTS_KEY_Q] = draft->value[FACTS_KEY_K] = draft->value[FACTS_KEY_V] = NULL;
}

const char *facts_normalise(facts_draft *draft, facts_key *at)
{
    const char *complaint = normalise_band(draft, at);
    if (complaint != NULL)
        return complaint;
    normalise_layout(draft);
    if (is(draft->value[FACTS_KEY_WANT], "none"))
        draft->value[FACTS_KEY_WANT] = NULL;
    if (strcmp(facts_draft_get(draft, FACTS_KEY_LENS), "none") != 0 &&
        strcmp(facts_draft_get(draft, FACTS_KEY_PADDING), "none") != 0) {
        *at = FACTS_KEY_LENS;
        return "lens= and padding= both set the lengths; give one of them";
    }
    return NULL;
}

/* An existing case gets a new value for one key. The old spelling of the band or the layout may set
 * other keys: those are kept. */
void facts_unfold(facts_draft *draft, const facts_case *c, facts_key key)
{
    bool causal_br = strcmp(facts_case_get(c, FACTS_KEY_MASK), "causal_br") == 0;
    if (key == FACTS_KEY_ALIGN && causal_br) {
        draft->value[FACTS_KEY_MASK] = "causal";
    } else if (key == FACTS_KEY_WINDOW) {
        draft->value[FACTS_KEY_MASK] = NULL;
        if (causal_br)
            draft->value[FACTS_KEY_ALIGN] = "br";
    }
}
