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

static const char *default_layout(const facts_draft *draft, facts_key key)
{
    facts_layout layout;
    if (!facts_layout_read(facts_span_of(facts_draft_get(draft, FACTS_KEY_LAYOUT)), &layout))
        return layout_words[0];
    facts_span word = key == FACTS_KEY_Q ? layout.q : key == FACTS_KEY_K ? layout.k : layout.v;
    return static_word(layout_words, sizeof layout_words / sizeof *layout_words, word);
}

/* Types that follow dtype. The mx types are formats of inputs only: what comes out of them is bf16.
 */
static const char *default_type(const char *dtype, facts_key key)
{
    static const char *const types[] = { "bf16", "f16", "f32", "e4m3", "e5m2" };
    bool eight = key == FACTS_KEY_BIAS_DTYPE && dtype[0] == 'e';
    return eight ? types[0]
                 : static_word(types, sizeof types / sizeof *types, facts_span_of(dtype));
}

/* Of a block-scaled type dO is quantised as Q is. */
static const char *default_do_type(const facts_draft *draft)
{
    static const char *const types[] = { "mxe4m3", "mxe5m2" };
    const char *dtype = facts_draft_get(draft, FACTS_KEY_DTYPE);
    if (dtype[0] == 'm')
        return static_word(types, sizeof types / sizeof *types, facts_span_of(dtype));
    return default_type(facts_draft_get(draft, FACTS_KEY_OUT), FACTS_KEY_OUT);
}

const char *facts_otherwise(const facts_draft *draft, facts_key key)
{
    switch (key) {
    case FACTS_KEY_OUT:
    case FACTS_KEY_GRAD:
    case FACTS_KEY_BIAS_DTYPE:
        return default_type(facts_draft_get(draft, FACTS_KEY_DTYPE), key);
    case FACTS_KEY_DO_DTYPE:
        return default_do_type(draft);
    case FACTS_KEY_Q:
    case FACTS_KEY_K:
    case FACTS_KEY_V:
        return default_layout(draft, key);
    case FACTS_KEY_STATS:
        return facts_draft_get(draft, FACTS_KEY_Q)[0] == 't' ? "th1" : "bhs1";
    case FACTS_KEY_BIAS_FILL:
        return strncmp(facts_draft_get(draft, FACTS_KEY_BIAS), "bool:", 5) == 0
                   ? "random"
                   : facts_keys[key].otherwise;
    case FACTS_KEY_WINDOW:
        return is(draft->value[FACTS_KEY_MASK], "causal") ||
                       is(draft->value[FACTS_KEY_MASK], "causal_br")
                   ? "inf:0"
                   : "inf:inf";
    case FACTS_KEY_ALIGN:
        return is(draft->value[FACTS_KEY_MASK], "causal_br") ? "br" : "tl";
    case FACTS_KEY_WANT:
        return is(draft->value[FACTS_KEY_PASS], "bwd") ? "stats" : "none";
    default:
        return facts_keys[key].otherwise;
    }
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
