#include "keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "key_values.h"

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

static bool facts_layout_canonical(const facts_key_row *row, facts_span text, char *out,
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

size_t facts_lengths_read(facts_span text, int32_t *out, size_t most)
{
    size_t count = 0;
    if (text.length == 0)
        return 0;
    bool more = true;
    while (more) {
        more = memchr(text.at, '+', text.length) != NULL;
        facts_span item = facts_span_cut(&text, '+');
        facts_span length = facts_span_cut(&item, 'x');
        uint64_t value = 0, times = 1;
        bool repeated = length.at + length.length < item.at + item.length ||
                        item.at > length.at + length.length;
        const bool unused = facts_span_is(length, "-1");
        if ((!unused && !facts_read_integer(length, INT32_MAX, &value)) ||
            (repeated && !facts_read_integer(item, most, &times)) || times == 0 ||
            times > most - count)
            return 0;
        for (uint64_t i = 0; i < times; i++)
            out[count++] = unused ? -1 : (int32_t)value;
        if (more && text.length == 0)
            return 0;
    }
    return count;
}

/* Appends lengths with repeats counted; false when there is no room. */
static bool lengths_write(char *out, size_t *used, const int32_t *lengths, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && lengths[i + run] == lengths[i])
            run++;
        char item[40];
        int written =
            run > 1 ? snprintf(item, sizeof item, "%s%dx%zu", i > 0 ? "+" : "", lengths[i], run)
                    : snprintf(item, sizeof item, "%s%d", i > 0 ? "+" : "", lengths[i]);
        if (*used + (size_t)written >= FACTS_CASE_TEXT)
            return false;
        memcpy(out + *used, item, (size_t)written + 1);
        *used += (size_t)written;
        i += run;
    }
    return true;
}

static bool facts_lengths_canonical(const facts_key_row *row, facts_span value, char *out,
                                    facts_value_fault *fault)
{
    int32_t side[2][FACTS_MAX_LENGTHS];
    facts_span rest = value;
    facts_span queries = facts_span_cut(&rest, '/');
    bool two = queries.length < value.length;
    size_t count[2] = { facts_lengths_read(queries, side[0], FACTS_MAX_LENGTHS), 0 };
    if (count[0] == 0)
        return facts_fault(fault, 0, "%s takes %s, or lengths: 256+0x3/256+1x3 (at most %d)",
                           row->word, row->allowed, FACTS_MAX_LENGTHS);
    if (two && (count[1] = facts_lengths_read(rest, side[1], FACTS_MAX_LENGTHS)) == 0)
        return facts_fault(fault, (size_t)(rest.at - value.at),
                           "%s: lengths of the keys, for example 256+1x3, belong after the /",
                           row->word);
    bool same =
        two && count[0] == count[1] && memcmp(side[0], side[1], count[0] * sizeof side[0][0]) == 0;
    size_t used = 0;
    bool fits = lengths_write(out, &used, side[0], count[0]);
    if (fits && two && !same) {
        fits = used + 1 < FACTS_CASE_TEXT;
        if (fits) {
            out[used++] = '/';
            fits = lengths_write(out, &used, side[1], count[1]);
        }
    }
    return fits || facts_fault(fault, 0, "%s is longer than a case may be", row->word);
}

#define MOST_KNOBS 24

static bool facts_knobs_canonical(const facts_key_row *row, facts_span value, char *out,
                                  facts_value_fault *fault)
{
    (void)row;
    facts_span name[MOST_KNOBS];
    uint64_t number[MOST_KNOBS];
    size_t count = 0;
    facts_span rest = value;
    do {
        facts_span item = facts_span_cut(&rest, '+');
        facts_span left = facts_span_cut(&item, ':');
        size_t letters = 0;
        while (letters < left.length &&
               ((left.at[letters] >= 'a' && left.at[letters] <= 'z') || left.at[letters] == '_' ||
                (left.at[letters] >= '0' && left.at[letters] <= '9')))
            letters++;
        size_t at = (size_t)(left.at - value.at);
        if (count == MOST_KNOBS)
            return facts_fault(fault, at, "knob: at most %d", MOST_KNOBS);
        if (letters == 0 || letters < left.length || left.length > 40 ||
            !facts_read_integer(item, INT64_MAX, &number[count]))
            return facts_fault(fault, at,
                               "knob takes name:number joined by +, for example tile_m:2+stages:4");
        size_t place = count++;
        uint64_t own = number[place];
        for (; place > 0; place--) {
            size_t least =
                name[place - 1].length < left.length ? name[place - 1].length : left.length;
            int order = memcmp(name[place - 1].at, left.at, least);
            if (order == 0)
                order = name[place - 1].length < left.length ? -1
                                                             : name[place - 1].length > left.length;
            if (order == 0)
                return facts_fault(fault, at, "knob: %.*s is there twice", (int)left.length,
                                   left.at);
            if (order < 0)
                break;
            name[place] = name[place - 1];
            number[place] = number[place - 1];
        }
        name[place] = left;
        number[place] = own;
    } while (rest.length > 0 || (rest.at > value.at && rest.at[-1] == '+'));
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        int written = snprintf(out + used, FACTS_CASE_TEXT - used, "%s%.*s:%" PRIu64,
                               i > 0 ? "+" : "", (int)name[i].length, name[i].at, number[i]);
        if (written < 0 || (size_t)written >= FACTS_CASE_TEXT - used)
            return facts_fault(fault, 0, "knob is longer than a case may be");
        used += (size_t)written;
    }
    return true;
}

#define AS_WORD(symbol, word) word,
static const char *const tensor_words[FACTS_STRIDE_COUNT] = { FACTS_STRIDE_TENSORS(AS_WORD) };
#undef AS_WORD

/* clang-format off */
#define FORMS(X)                                                                \
    X(GAP, "gap")                                                               \
    X(BROADCAST, "broadcast") X(SUM, "sum") X(PERM, "perm") X(OFFSET, "offset") \
    X(MISALIGNED, "misaligned") X(SIZE1, "size1")
/* clang-format on */
#define AS_ENUM(symbol, word) FORM_##symbol,
typedef enum form { FORMS(AS_ENUM) FORM_COUNT } form;
#undef AS_ENUM
#define AS_WORD(symbol, word) word,
static const char *const form_words[FORM_COUNT] = { FORMS(AS_WORD) };
#undef AS_WORD

static const char dimension_letters[] = "bhsd";
#define MOST_ELEMENTS                                                                              \
    (UINT64_C(1) << 40) /* a gap or an offset; keeps every sum of a few far from overflow */

static const char *const usage = "stride takes dense, or joined by ;: gap:N gap:q.s.4+k.h.8 "
                                 "broadcast:k.b+v.b sum:dk.b perm:q.hsbd "
                                 "offset:q.8 misaligned:q.2 size1:wild";

static bool complain(facts_value_fault *fault, const char *whole, facts_span at, const char *what)
{
    char quote[FACTS_QUOTE_MAX];
    return facts_fault(fault, (size_t)(at.at - whole), "stride: %s%s%s; %s", what,
                       at.length > 0 ? " " : "", facts_quote(quote, at), usage);
}

static bool read_order(facts_span text, char out[5])
{
    bool seen[4] = { false };
    if (text.length != 4)
        return false;
    for (size_t i = 0; i < 4; i++) {
        const char *place = text.at[i] == '\0' ? NULL : strchr(dimension_letters, text.at[i]);
        if (place == NULL || seen[place - dimension_letters])
            return false;
        seen[place - dimension_letters] = true;
        out[i] = text.at[i];
    }
    out[4] = '\0';
    return true;
}

/* The tensor that an item starts with, taken off it; FACTS_STRIDE_ALL when it names none. */
static facts_stride_tensor read_tensor(facts_span *item)
{
    facts_span rest = *item;
    facts_span word = facts_span_cut(&rest, '.');
    for (facts_stride_tensor t = 0; t < FACTS_STRIDE_ALL; t++) {
        if (facts_span_is(word, tensor_words[t]) && word.length < item->length) {
            *item = rest;
            return t;
        }
    }
    return FACTS_STRIDE_ALL;
}

static int read_dimension(facts_span text)
{
    const char *place =
        text.length == 1 && *text.at != '\0' ? strchr(dimension_letters, *text.at) : NULL;
    return place == NULL ? -1 : (int)(place - dimension_letters);
}

static bool is_gradient(facts_stride_tensor t)
{
    return t == FACTS_STRIDE_DQ || t == FACTS_STRIDE_DK || t == FACTS_STRIDE_DV ||
           t == FACTS_STRIDE_DBIAS;
}

static bool read_item(facts_stride *out, form f, facts_span item, bool *again)
{
    facts_stride_tensor t = read_tensor(&item);
    facts_stride_form *to = &out->of[t];
    uint64_t number = 0;
    int dimension = 2;
    switch (f) {
    case FORM_GAP:
        if (t != FACTS_STRIDE_ALL)
            dimension = read_dimension(facts_span_cut(&item, '.'));
        if (dimension < 0 || !facts_read_integer(item, MOST_ELEMENTS, &number))
            return false;
        *again = to->gap[dimension] != 0;
        to->gap[dimension] = (int64_t)number;
        return true;
    case FORM_BROADCAST:
        dimension = read_dimension(item);
        if (dimension < 0 || t == FACTS_STRIDE_ALL)
            return false;
        *again = to->broadcast[dimension];
        return to->broadcast[dimension] = true;
    case FORM_SUM:
        dimension = read_dimension(item);
        if (dimension < 0 || !is_gradient(t))
            return false;
        *again = to->sum[dimension];
        return to->sum[dimension] = true;
    case FORM_PERM:
        *again = to->perm[0] != '\0';
        return read_order(item, to->perm);
    case FORM_OFFSET:
        *again = to->offset != 0;
        if (!facts_read_integer(item, MOST_ELEMENTS, &number))
            return false;
        to->offset = (int64_t)number;
        return true;
    case FORM_MISALIGNED:
        *again = to->misaligned != 0;
        if (!facts_read_integer(item, 255, &number))
            return false;
        to->misaligned = (int64_t)number;
        return true;
    default:
        *again = out->wild;
        out->wild = true;
        return t == FACTS_STRIDE_ALL && facts_span_is(item, "wild");
    }
}

bool facts_stride_read(facts_span text, facts_stride *out, facts_value_fault *fault)
{
    *out = (facts_stride){ 0 };
    if (facts_span_is(text, "dense"))
        return true;
    const char *whole = text.at, *end = text.at + text.length;
    for (bool more = true; more;) {
        facts_span one = facts_span_cut(&text, ';');
        more = one.at + one.length < end;
        facts_span items = one;
        facts_span word = facts_span_cut(&items, ':');
        form f = 0;
        while (f < FORM_COUNT && !facts_span_is(word, form_words[f]))
            f++;
        if (f == FORM_COUNT || word.length == one.length)
            return complain(fault, whole, one, "not a form:");
        for (bool next = true; next;) {
            facts_span item = facts_span_cut(&items, '+');
            next = item.at + item.length < one.at + one.length;
            bool again = false;
            if (!read_item(out, f, item, &again))
                return complain(fault, whole, item, "not understood:");
            if (again)
                return complain(fault, whole, item, "given twice:");
        }
    }
    return true;
}

/* Writing: one form at a time, its items in the order of tensors and dimensions, plain ones first.
 */
typedef struct writer {
    char *out;
    size_t used;
    form open; /* FORM_COUNT: none yet */
    bool full;
} writer;

static void put(writer *w, form f, const char *item)
{
    const char *before = w->open == f ? "+" : w->used > 0 ? ";" : "";
    const char *head = w->open == f ? "" : form_words[f];
    int n = snprintf(w->out + w->used, FACTS_CASE_TEXT - w->used, "%s%s%s%s", before, head,
                     w->open == f ? "" : ":", item);
    if (n < 0 || (size_t)n >= FACTS_CASE_TEXT - w->used) {
        w->full = true;
        return;
    }
    w->used += (size_t)n;
    w->open = f;
}

static void put_tensor(writer *w, form f, const facts_stride *stride, int t)
{
    const facts_stride_form *from = &stride->of[t];
    const char *name = t == FACTS_STRIDE_ALL ? "" : tensor_words[t],
               *dot = t == FACTS_STRIDE_ALL ? "" : ".";
    char item[64];
    if (f == FORM_PERM && from->perm[0] != '\0') {
        snprintf(item, sizeof item, "%s%s%s", name, dot, from->perm);
        put(w, f, item);
    }
    int64_t number = f == FORM_OFFSET ? from->offset : f == FORM_MISALIGNED ? from->misaligned : 0;
    if (number != 0) {
        snprintf(item, sizeof item, "%s%s%" PRId64, name, dot, number);
        put(w, f, item);
    }
    for (int d = 0; d < 4; d++) {
        if (f == FORM_GAP && from->gap[d] != 0) {
            if (t == FACTS_STRIDE_ALL)
                snprintf(item, sizeof item, "%" PRId64, from->gap[d]);
            else
                snprintf(item, sizeof item, "%s.%c.%" PRId64, name, dimension_letters[d],
                         from->gap[d]);
            put(w, f, item);
        }
        if ((f == FORM_BROADCAST && from->broadcast[d]) || (f == FORM_SUM && from->sum[d])) {
            snprintf(item, sizeof item, "%s.%c", name, dimension_letters[d]);
            put(w, f, item);
        }
    }
}

static bool facts_stride_canonical(const facts_key_row *row, facts_span text, char *out,
                                   facts_value_fault *fault)
{
    (void)row;
    facts_stride stride;
    if (!facts_stride_read(text, &stride, fault))
        return false;
    writer w = { .out = out, .open = FORM_COUNT };
    for (form f = 0; f < FORM_SIZE1; f++) {
        put_tensor(&w, f, &stride, FACTS_STRIDE_ALL);
        for (int t = 0; t < FACTS_STRIDE_COUNT; t++)
            put_tensor(&w, f, &stride, t);
    }
    if (stride.wild)
        put(&w, FORM_SIZE1, "wild");
    if (w.full)
        return facts_fault(fault, 0, "stride is longer than a case may be");
    if (w.used == 0)
        memcpy(out, "dense", sizeof "dense");
    return true;
}

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

#define FORM_WORD .form = FACTS_FORM_WORD
#define FORM_ALONE .form = FACTS_FORM_WORD, .alone = true
#define FORM_RATIO .form = FACTS_FORM_RATIO
#define FORM_SET .form = FACTS_FORM_SET
#define FORM_LENS .read = facts_lengths_canonical, .also = ", lengths (256+0x3/256+1x3)"
#define FORM_LAYOUT                                                                                \
    .read = facts_layout_canonical, .also = ", Q_KV (sbhd_bshd, bshd_bs2hd, thd_th2d)"
#define FORM_STRIDE                                                                                \
    .read = facts_stride_canonical,                                                                \
    .also = " gap: broadcast: sum: perm: offset: misaligned: size1:wild"
#define FORM_KNOBS .read = facts_knobs_canonical, .also = ", name:N (joined by +)"
#define PARTS(key)                                                                                 \
    ((key) == FACTS_KEY_H   ? "1 or more, or Q/KV: h=8/2"                                          \
     : (key) == FACTS_KEY_S ? "1 or more, or queries/keys: s=1/512"                                \
     : (key) == FACTS_KEY_D ? "1 or more, or Q/V: d=192/128"                                       \
                            : NULL)

/* Defaults that other keys decide. The mx types are formats of inputs: what comes out of them is bf16, and dO is quantised as Q. */
#define END { .other = FACTS_NO_KEY }
static const facts_key_default of_type[] = { { FACTS_KEY_DTYPE, "mx*", "bf16" },
                                             { .other = FACTS_KEY_DTYPE },
                                             END };
static const facts_key_default of_bias_type[] = { { FACTS_KEY_DTYPE, "e*", "bf16" },
                                                  { FACTS_KEY_DTYPE, "mx*", "bf16" },
                                                  { .other = FACTS_KEY_DTYPE },
                                                  END };
static const facts_key_default of_do_type[] = { { FACTS_KEY_DTYPE, "mxe4m3", "mxe4m3" },
                                                { FACTS_KEY_DTYPE, "mxe5m2", "mxe5m2" },
                                                { .other = FACTS_KEY_OUT },
                                                END };
static const facts_key_default of_layout[] = { { .other = FACTS_KEY_LAYOUT }, END };
static const facts_key_default of_stats[] = { { FACTS_KEY_Q, "t*", "th1" }, END };
static const facts_key_default of_bias_fill[] = { { FACTS_KEY_BIAS, "bool:*", "random" }, END };
static const facts_key_default of_window[] = { { FACTS_KEY_MASK, "causal*", "inf:0" }, END };
static const facts_key_default of_align[] = { { FACTS_KEY_MASK, "causal_br", "br" }, END };
static const facts_key_default of_want[] = { { FACTS_KEY_PASS, "bwd", "stats" }, END };
#define DEFAULTS(key)                                                                              \
    ((key) == FACTS_KEY_OUT || (key) == FACTS_KEY_GRAD                      ? of_type              \
     : (key) == FACTS_KEY_BIAS_DTYPE                                        ? of_bias_type         \
     : (key) == FACTS_KEY_DO_DTYPE                                          ? of_do_type           \
     : (key) == FACTS_KEY_Q || (key) == FACTS_KEY_K || (key) == FACTS_KEY_V ? of_layout            \
     : (key) == FACTS_KEY_STATS                                             ? of_stats             \
     : (key) == FACTS_KEY_BIAS_FILL                                         ? of_bias_fill         \
     : (key) == FACTS_KEY_WINDOW                                            ? of_window            \
     : (key) == FACTS_KEY_ALIGN                                             ? of_align             \
     : (key) == FACTS_KEY_WANT                                              ? of_want              \
                                                                            : NULL)

#define AS_ROW(symbol, word_, kind, allowed_, otherwise_, help_)                                   \
    [FACTS_KEY_##symbol] = { .word = word_,                                                        \
                             .allowed = allowed_,                                                  \
                             .otherwise = otherwise_,                                              \
                             .defaults = DEFAULTS(FACTS_KEY_##symbol),                             \
                             .help = help_,                                                        \
                             .parts = PARTS(FACTS_KEY_##symbol),                                   \
                             FORM_##kind },
const facts_key_row facts_keys[FACTS_KEY_COUNT] = { FACTS_KEY_LIST(AS_ROW) };
#undef AS_ROW
_Static_assert(FACTS_KEY_COUNT <= FACTS_KEYS_MOST, "a case has room for every key");

#define AS_PART(word, key, index) { word, FACTS_KEY_##key, index },
const facts_key_part facts_key_parts[FACTS_KEY_PARTS] = { FACTS_PART_LIST(AS_PART) };
#undef AS_PART
