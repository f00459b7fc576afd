#include "stride.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

bool facts_stride_canonical(const facts_key_row *row, facts_span text, char *out,
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
