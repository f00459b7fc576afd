/* What people paste: a call of scaled_dot_product_attention with shapes, and the line in which
 * TransformerEngine prints a configuration. A call becomes a graph as cudnn-frontend logs it. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "attention.h"
#include "reading.h"
#include "words/case_text.h"

enum { MOST_LINES = 64 };

#define NAMES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_, "

/* The arguments of the call, in its order; the last two are words of ours. */
#define ARGUMENT_LIST(X)                                                                           \
    X(QUERY, "query q")                                                                            \
    X(KEY, "key k")                                                                                \
    X(VALUE, "value v")                                                                            \
    X(MASK, "attn_mask mask bias attn_bias")                                                       \
    X(DROPOUT, "dropout_p dropout")                                                                \
    X(CAUSAL, "is_causal causal")                                                                  \
    X(SCALE, "scale")                                                                              \
    X(GQA, "enable_gqa") X(TRAINING, "requires_grad training backward") X(CALLS, "calls")
#define AS_ENUM(symbol, words) symbol,
#define AS_WORDS(symbol, words) words,
enum { ARGUMENT_LIST(AS_ENUM) ARGUMENTS };
static const char *const argument_words[] = { ARGUMENT_LIST(AS_WORDS) };
#undef AS_ENUM
#undef AS_WORDS

/* A type in anybody's words. A word that is part of another comes behind it. */
static const struct type_word {
    const char *word, *cudnn, *of_case;
} type_words[] = {
    { "bfloat16", "BFLOAT16", "bf16" }, { "bf16", "BFLOAT16", "bf16" },
    { "float16", "HALF", "f16" },       { "f16", "HALF", "f16" },
    { "half", "HALF", "f16" },          { "float32", "FLOAT", "f32" },
    { "f32", "FLOAT", "f32" },          { "e4m3", "FP8_E4M3", "e4m3" },
    { "e5m2", "FP8_E5M2", "e5m2" },     { "bool", "BOOLEAN", NULL },
    { "float64", "DOUBLE", "f64" },     { "double", "DOUBLE", "f64" },
    { "f64", "DOUBLE", "f64" },
};

typedef struct pasted {
    char text[FACTS_IMPORT_CALL];
    char *argument[ARGUMENTS]; /* parts of `text`; NULL: not given */
    char *unknown;             /* the first keyword that is not read; NULL: none */
} pasted;

typedef struct shape {
    int rank;
    int64_t dim[4], stride[4];
    const struct type_word *type; /* NULL: not given */
} shape;

static const struct type_word *type_in(const char *text)
{
    for (size_t i = 0; i < sizeof type_words / sizeof *type_words; i++)
        if (strstr(text, type_words[i].word))
            return &type_words[i];
    return NULL;
}

/* A whole number: "2048", "2 * 1024", "2**11", "4096 // 2". *end is `text` if there is none. */
static int64_t number_at(const char *text, char **end)
{
    int64_t out = strtoll(text, end, 10);
    for (;;) {
        char *behind, *at = *end + strspn(*end, " ");
        const size_t signs = strspn(at, "*/");
        const int64_t by = strtoll(at + signs, &behind, 10), base = out;
        const bool power = signs == 2 && *at == '*', ratio = signs == 2 && *at == '/';
        if (*end == text || behind == at + signs || by < 1 || by > 1 << 20 ||
            !(power || ratio || (signs == 1 && *at == '*')))
            return out;
        *end = behind;
        out = ratio ? out / by : out;
        for (int64_t i = power; !ratio && i < (power ? by : 1); i++)
            if (__builtin_mul_overflow(out, power ? base : by, &out))
                return -1;
    }
}

static size_t word_at(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_')
        length++;
    return isdigit((unsigned char)*text) ? 0 : length;
}

/* The first list of at least two numbers in brackets; its length, 0: there is none. */
static int numbers_in(const char *text, int64_t out[4])
{
    for (const char *open = strpbrk(text, "[("); open; open = strpbrk(open + 1, "[(")) {
        int count = 0;
        char *end = (char *)(uintptr_t)(open + 1);
        const char *at = open + 1;
        for (; count < 5; at = end + 1) {
            const int64_t number = number_at(at, &end);
            if (end == at || number < 0)
                break;
            if (count < 4)
                out[count] = number;
            count++;
            end += strspn(end, " ");
            if (*end != ',')
                break;
        }
        at += strspn(at, " ");
        const size_t word = word_at(at);
        const bool unknown = word > 0 && at[word + strspn(at + word, " ")] != '=';
        if (count > 1 && !unknown) /* an extent that is a name is not known */
            return count < 5 ? count : 0;
    }
    return 0;
}

static bool is_word(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

/* Calls that change a shape in a way that is not read here. */
static bool is_changed(const char *text)
{
    static const char *const words[] = { ".view(",  ".reshape(", ".permute(", ".expand(",
                                         ".repeat", "squeeze(",  ".flatten",  ".chunk(",
                                         ".split(", ".unbind(",  "swapaxes",  "rearrange(",
                                         "shape[",  "size(",     "cat(",      "stack(" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

/* One element behind the other. */
static bool pack(shape *s)
{
    for (int64_t i = s->rank - 1, step = 1; i >= 0; step *= s->dim[i--])
        if (s->dim[i] < 1 || s->dim[i] > (INT64_C(1) << 46) / step)
            return false;
        else
            s->stride[i] = step;
    return true;
}

/* Heads behind the sequence, or before it again. */
static void turn(shape *s)
{
    const int64_t dim = s->dim[1], stride = s->stride[1];
    s->dim[1] = s->dim[2], s->dim[2] = dim;
    s->stride[1] = s->stride[2], s->stride[2] = stride;
}

/* "f16[2,16,1000,64]", "torch.Size([2, 16, 1000, 64]) torch.float16 stride (1024000, 64, 1024, 1)" */
static bool read_shape(shape *out, const char *text)
{
    const char *strides = strstr(text, "stride");
    *out = (shape){ .type = type_in(text) };
    if (is_changed(text))
        return false;
    out->rank = numbers_in(text, out->dim);
    if (!out->rank || (strides && numbers_in(strides, out->stride) != out->rank))
        return false;
    if (!strides && !pack(out))
        return false;
    for (const char *at = text; (at = strstr(at, ".transpose(")); at++) {
        if (out->rank != 4 ||
            (!is_word(at + 11, "1, 2)") && !is_word(at + 11, "1,2)") && !is_word(at + 11, "2, 1)")))
            return false;
        turn(out);
        if (strstr(at, ".contiguous("))
            pack(out);
    }
    return true;
}

/* ---- names: what a pasted program gave to its variables ---- */

static const char *given_to(const facts_import *m, const char *name, size_t length)
{
    for (size_t i = m->given_count; i-- > 0;)
        if (strlen(m->given[i].name) == length && memcmp(m->given[i].name, name, length) == 0)
            return m->given[i].text;
    return NULL;
}

/* `text` with what each variable was given in place of its name. An attribute, a keyword and a
 * function keep their names. False: a tensor is part of something whose shape is not known. */
static bool expand(const facts_import *m, char *out, size_t room, const char *text)
{
    size_t used = 0;
    bool known = true;
    for (const char *at = text; *at;) {
        const size_t word = word_at(at), length = word ? word : 1;
        const char *behind = at + length + strspn(at + length, " "),
                   *value = word && (at == text || at[-1] != '.') && *behind != '(' &&
                                    (*behind != '=' || behind[1] == '=')
                                ? given_to(m, at, word)
                                : NULL;
        const bool like = at - text >= 6 && memcmp(at - 6, "_like(", 6) == 0;
        known &=
            !value || at == text || like || *value == '(' || *value == '[' || !strchr(value, '(');
        if (used + length < room)
            used += (size_t)snprintf(out + used, room - used, "%.*s",
                                     value ? (int)strlen(value) : (int)length, value ? value : at);
        used = used < room ? used : room - 1;
        at += length;
    }
    out[used] = '\0';
    return known;
}

static void give(facts_import *m, const char *name, size_t length, const char *text, size_t letters)
{
    char part[FACTS_IMPORT_GIVEN_TEXT];
    if (m->given_count == FACTS_IMPORT_GIVEN) {
        m->given_count--;
        memmove(m->given, m->given + 1, m->given_count * sizeof *m->given);
    }
    const size_t blank = strspn(text, " ");
    snprintf(part, sizeof part, "%.*s", letters > blank ? (int)(letters - blank) : 0, text + blank);
    snprintf(m->given[m->given_count].name, sizeof m->given->name, "%.*s", (int)length, name);
    if (!expand(m, m->given[m->given_count].text, sizeof m->given->text, part))
        m->given[m->given_count].text[0] = '\0';
    m->given_count++;
}

/* The first comma outside brackets, or the end. */
static size_t part_of(const char *text)
{
    int depth = 0;
    size_t i = 0;
    for (; text[i] && (text[i] != ',' || depth > 0); i++)
        depth += (strchr("([{", text[i]) != NULL) - (strchr(")]}", text[i]) != NULL);
    return i;
}

/* "q, k = A, B" gives each its own; "q = k = A" and "q, k, v = [A for _ in range(3)]" the same. */
static void read_assignment(facts_import *m)
{
    const char *value = m->call, *end;
    while ((end = strchr(value, '=')) && strspn(value, NAMES) == (size_t)(end - value))
        value = end + 1;
    const char *names_end = value;
    const bool parts = value[part_of(value)] == ',';
    for (const char *at = m->call; at < names_end; at++) {
        const size_t word = word_at(at), letters = part_of(value);
        if (!word)
            continue;
        give(m, at, word, value, parts ? letters : strlen(value));
        value += parts && value[letters] ? letters + 1 : 0;
        at += word - 1;
    }
}

/* ---- the call ---- */

/* The argument of a name, in blanks between `words`; ARGUMENTS: none. */
static int argument_named(const char *name, size_t length)
{
    for (int i = 0; i < ARGUMENTS; i++) {
        facts_span words = facts_span_of(argument_words[i]), word;
        while ((word = facts_span_word(&words)).length)
            if (word.length == length && memcmp(word.at, name, length) == 0)
                return i;
    }
    return ARGUMENTS;
}

/* One argument: "k: f16[2,16,900,64]", "is_causal=True", or the next in its place. */
static void take_argument(pasted *p, char *text, int place)
{
    text += strspn(text, " *\t");
    const size_t name = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    char *value = text + name + strspn(text + name, " ");
    const bool named = *value == ':' || *value == '=';
    if (named)
        place = argument_named(text, name);
    if (named && place == ARGUMENTS && !p->unknown && strncmp(text, "implementation", name) != 0) {
        p->unknown = text;
        text[name] = '\0';
    }
    if (place < ARGUMENTS && *text && !p->argument[place])
        p->argument[place] = named ? value + 1 : text;
}

/* JAX has bias and mask where PyTorch has a mask. */
static void split(pasted *p, bool jax)
{
    int depth = 0, place = 0;
    char *begin = p->text;
    for (char *at = p->text;; at++) {
        depth +=
            (*at == '(' || *at == '[' || *at == '{') - (*at == ')' || *at == ']' || *at == '}');
        if (*at && (*at != ',' || depth > 0))
            continue;
        const bool last = !*at;
        *at = '\0';
        take_argument(p, begin, jax && place > MASK ? place == MASK + 1 ? MASK : ARGUMENTS : place);
        place++;
        begin = at + 1;
        if (last)
            return;
    }
}

static bool is_true(const char *text)
{
    return text && (strstr(text, "True") || strstr(text, "true") || strstr(text, "1"));
}

static json_t *list(const int64_t number[4])
{
    return json_pack("[I,I,I,I]", number[0], number[1], number[2], number[3]);
}

static void add_tensor(json_t *graph, const char *places, const char *name, const char *type,
                       const int64_t dim[4], const int64_t stride[4])
{
    json_t *node = json_array_get(json_object_get(graph, "nodes"), 0);
    json_object_set_new(json_object_get(node, places), name, json_string(name));
    json_object_set_new(json_object_get(graph, "tensors"), name,
                        json_pack("{s:s,s:s,s:o,s:o}", "name", name, "data_type", type, "dim",
                                  list(dim), "stride", list(stride)));
}

/* Strides of an output that lies in memory in the order of Q, as PyTorch makes it. */
static void follow(int64_t out[4], const int64_t dim[4], const shape *q)
{
    int order[4] = { 3, 2, 1, 0 };
    for (int i = 1; i < 4; i++)
        for (int j = i; j > 0 && q->stride[order[j]] < q->stride[order[j - 1]]; j--) {
            const int other = order[j];
            order[j] = order[j - 1];
            order[j - 1] = other;
        }
    for (int64_t i = 0, step = 1; i < 4; step *= dim[order[i++]])
        out[order[i]] = step;
}

/* PyTorch expands a mask over the batch without a copy; a boolean one becomes 0 and -inf in the
 * type of Q. */
static bool add_mask(json_t *graph, const char *text, const shape *q, const shape *k)
{
    shape mask;
    if (!read_shape(&mask, text) || mask.rank < 2)
        return false;
    const int missing = 4 - mask.rank;
    const int64_t heads = missing ? 1 : mask.dim[1],
                  full[4] = { q->dim[0], heads, q->dim[2], k->dim[2] };
    int64_t stride[4] = { 0 };
    for (int i = missing; i < 4; i++) {
        const int64_t extent = mask.dim[i - missing];
        if ((extent != 1 && extent != full[i]) || (i == 1 && extent != 1 && extent != q->dim[1]))
            return false;
        stride[i] = extent == 1 && full[i] > 1 ? 0 : mask.stride[i - missing];
    }
    const bool boolean = !mask.type || !mask.type->of_case;
    add_tensor(graph, "inputs", "Bias", boolean ? q->type->cudnn : mask.type->cudnn, full, stride);
    return true;
}

static json_t *graph_of(const pasted *p, const shape *q, const shape *k, const shape *v,
                        bool backward, bool training)
{
    static const int64_t one[4] = { 1, 1, 1, 1 };
    const int64_t o[4] = { q->dim[0], q->dim[1], q->dim[2], v->dim[3] },
                  rows[4] = { q->dim[0], q->dim[1], q->dim[2], 1 },
                  row_stride[4] = { rows[1] * rows[2], rows[2], 1, 1 };
    int64_t o_stride[4];
    const char *type = q->type->cudnn;
    const double scale = p->argument[SCALE] ? strtod(p->argument[SCALE], NULL) : 0,
                 dropout = p->argument[DROPOUT] ? strtod(p->argument[DROPOUT], NULL) : 0;
    json_t *graph =
        json_pack("{s:{s:s},s:[{s:s,s:{},s:{},s:f}],s:{}}", "context", "io_data_type", type,
                  "nodes", "tag", backward ? "SDPA_BWD" : "SDPA_FWD", "inputs", "outputs",
                  "attn_scale_value", scale != 0 ? scale : 1 / sqrt((double)q->dim[3]), "tensors");
    json_t *node = json_array_get(json_object_get(graph, "nodes"), 0);
    follow(o_stride, o, q);
    add_tensor(graph, "inputs", "Q", type, q->dim, q->stride);
    add_tensor(graph, "inputs", "K", type, k->dim, k->stride);
    add_tensor(graph, "inputs", "V", type, v->dim, v->stride);
    add_tensor(graph, backward ? "inputs" : "outputs", "O", type, o, o_stride);
    if (training)
        add_tensor(graph, backward ? "inputs" : "outputs", "Stats", "FLOAT", rows, row_stride);
    if (backward) {
        add_tensor(graph, "inputs", "dO", type, o, o_stride);
        add_tensor(graph, "outputs", "dQ", type, q->dim, q->stride);
        add_tensor(graph, "outputs", "dK", type, k->dim, k->stride);
        add_tensor(graph, "outputs", "dV", type, v->dim, v->stride);
    }
    if (is_true(p->argument[CAUSAL]))
        json_object_set_new(node, "right_bound", json_integer(0));
    if (dropout > 0) {
        json_object_set_new(node, "dropout_probability", json_real(dropout));
        add_tensor(graph, "inputs", "Seed", "INT64", one, one);
        add_tensor(graph, "inputs", "Offset", "INT64", one, one);
    }
    return graph;
}

static void add_call(facts_import *m, const pasted *p, const shape *q, const shape *k,
                     const shape *v, bool backward, bool training, uint64_t calls)
{
    const char *mask = p->argument[MASK];
    facts_import_thread *t = facts_import_thread_named(m, "");
    json_t *graph = graph_of(p, q, k, v, backward, training);
    const bool masked = mask && !strstr(mask, "None");
    if (masked && !add_mask(graph, mask, q, k)) {
        facts_import_say_unread(m, m->call_line, "attn_mask: a shape is needed that fits q and k");
        json_decref(graph);
        return;
    }
    facts_import_add_graph(m, t, graph, 0, m->call_line);
    if (t->problem < 0)
        return;
    facts_import_add_calls(m, t->problem, calls);
    if (!m->call_jax && q->dim[1] != k->dim[1] && !is_true(p->argument[GQA]))
        facts_import_say_of(&m->problem[t->problem],
                            "fewer heads of K than of Q: PyTorch needs enable_gqa=True");
    if (p->unknown)
        facts_import_note(&m->problem[t->problem].notes, "not understood: the argument %.40s",
                          p->unknown);
}

/* False: its shapes are not known here. */
static bool read_call(facts_import *m, const char *text)
{
    pasted p = { 0 };
    shape part[3];
    expand(m, p.text, sizeof p.text, text);
    split(&p, m->call_jax);
    bool training = m->gradients || is_true(p.argument[TRAINING]);
    for (int i = 0; i < 3; i++) {
        if (!p.argument[i] || !read_shape(&part[i], p.argument[i]))
            return false;
        if (part[i].rank != 4) {
            facts_import_say_unread(m, m->call_line,
                                    m->call_jax
                                        ? "query, key and value need four extents each: batch, "
                                          "sequence, heads, channels"
                                        : "query, key and value have four extents each where "
                                          "PyTorch uses cuDNN: batch, heads, sequence, channels "
                                          "(pt/tensors)");
            return true;
        }
        if (!part[i].type)
            part[i].type = i ? part[0].type : &type_words[0];
        if (m->call_jax)
            turn(&part[i]);
        training |= strstr(p.argument[i], "requires_grad=True") != NULL;
    }
    char *end = NULL; /* "calls=12", or of forward and backward: "calls=12/10" */
    const char *said = p.argument[CALLS] ? p.argument[CALLS] : "";
    const uint64_t calls = strtoull(said, &end, 10),
                   back = *end == '/' ? strtoull(end + 1, NULL, 10) : calls;
    if (calls || !*said)
        add_call(m, &p, &part[0], &part[1], &part[2], false, training, calls);
    if (training && (back || !*said))
        add_call(m, &p, &part[0], &part[1], &part[2], true, true, back);
    return true;
}

/* Collects up to the closing parenthesis; what a variable is given ends with a line. */
static void collect(facts_import *m, const char *text, size_t length)
{
    for (size_t i = 0; i < length && m->call_depth > 0 && text[i] != '#'; i++) {
        m->call_depth += (text[i] == '(' || text[i] == '[') - (text[i] == ')' || text[i] == ']');
        if (m->call_depth > 0 && m->call_length + 2 < sizeof m->call)
            m->call[m->call_length++] = (char)(text[i] == '"' || text[i] == '\'' ? ' ' : text[i]);
    }
    m->call_depth -= m->call_gives && m->call_depth == 1;
    m->call[m->call_length++] = m->call_depth > 0 ? ' ' : '\0';
    if (m->call_length + 2 >= sizeof m->call || m->line > m->call_line + MOST_LINES)
        m->call_depth = 0; /* no call is so long */
    else if (m->call_depth == 0 && m->call_gives)
        read_assignment(m);
    else if (m->call_depth == 0) {
        m->call_waits = !read_call(m, m->call);
        free(m->last_call);
        m->last_call = m->gradients && !m->call_waits ? NULL : strdup(m->call);
        m->last_line = m->call_line;
    }
}

/* A program that asks gradients asks them of the call before, too. */
static void see_gradients(facts_import *m, const char *text, size_t length)
{
    static const char *const words[] = { ".backward(", ".requires_grad_(", "jax.grad(", "vjp(",
                                         "value_and_grad(" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        m->gradients |= facts_import_find(text, length, words[i]) != NULL;
    if (m->gradients && m->last_call && !m->call_waits)
        facts_import_last_call(m);
}

void facts_import_last_call(facts_import *m)
{
    m->call_line = m->last_line;
    (void)read_call(m, m->last_call);
    free(m->last_call);
    m->last_call = NULL;
    m->call_waits = false;
}

static void begin_call(facts_import *m, const char *text, size_t length, bool jax, bool gives)
{
    m->call_line = m->line;
    m->call_length = 0;
    m->call_depth = 1;
    m->call_jax = gives ? m->call_jax : jax;
    m->call_gives = gives;
    collect(m, text, length);
}

/* "q, k = ": does the line give something to variables? */
static bool is_assignment(const char *text, size_t length)
{
    size_t i = 0;
    while (i < length && strchr(NAMES, text[i]))
        i++;
    return i && i + 1 < length && text[i] == '=' && text[i + 1] != '=';
}

/* A line of a traceback, or a fence: a call that is open does not go on behind it. */
static bool ends_call(const char *text, size_t length)
{
    static const char *const words[] = { "File \"", "^^^^",      "```",
                                         "Error: ", "Traceback", "Running with" };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (facts_import_find(text, length, words[i]) != NULL)
            return true;
    return false;
}

/* ---- TransformerEngine ---- */

/* The value of a key of Python's dictionary: 'key': value. */
static bool value_of(const char *text, const char *key, char out[64])
{
    char quoted[64];
    const int letters = snprintf(quoted, sizeof quoted, "'%s': ", key);
    const char *at = strstr(text, quoted);
    if (!at)
        return false;
    at += letters;
    const size_t length = *at == '(' ? strcspn(at, ")") + 1 : strcspn(at, ",}");
    snprintf(out, 64, "%.*s", (int)(length < 63 ? length : 63), at);
    if (out[0] == '\'') {
        memmove(out, out + 1, strlen(out));
        out[strcspn(out, "'")] = '\0';
    }
    return true;
}

static bool is_set(const char *text, const char *key, const char *value)
{
    char is[64];
    return value_of(text, key, is) && strcmp(is, value) == 0;
}

static long long number_of(const char *text, const char *key)
{
    char is[64];
    return value_of(text, key, is) ? strtoll(is, NULL, 10) : 0;
}

/* "thd_thd_thd" is thd, "sbhd_sb2hd" stays: a case has one word for K and V. */
static void add_layout(tokens *w, const char *text)
{
    char layout[64], q[64], k[64];
    if (!value_of(text, "qkv_layout", layout))
        return;
    const char *at = strncmp(layout, "paged_kv_", 9) == 0 ? layout + 9 : layout;
    const size_t first = strcspn(at, "_");
    snprintf(q, sizeof q, "%.*s", (int)first, at);
    snprintf(k, sizeof k, "%.*s", at[first] ? (int)strcspn(at + first + 1, "_") : 0,
             at + first + (at[first] != '\0'));
    if (!*k || strcmp(q, k) == 0)
        add(w, "layout=%s", q);
    else
        add(w, "layout=%s_%s", q, k);
}

static void add_band(tokens *w, const char *text)
{
    char mask[64] = "", window[64];
    long long left = -1, right = -1;
    value_of(text, "attn_mask_type", mask);
    const bool causal = strstr(mask, "causal") != NULL, br = strstr(mask, "bottom_right") != NULL;
    if (value_of(text, "window_size", window) && *window == '(') {
        char *end;
        left = strtoll(window + 1, &end, 10);
        right = *end == ',' ? strtoll(end + 1, NULL, 10) : -1;
    }
    if (left < 0 && (causal || right == 0))
        add(w, "mask=%s", br ? "causal_br" : "causal");
    else if (left >= 0 || right >= 0) {
        char l[24] = "inf", r[24] = "inf";
        if (left >= 0)
            snprintf(l, sizeof l, "%lld", left + 1);
        if (right >= 0 || causal)
            snprintf(r, sizeof r, "%lld", causal ? 0 : right);
        add(w, "window=%s:%s%s", l, r, br ? " align=br" : "");
    }
    if (strstr(mask, "padding") || is_set(text, "qkv_layout", "thd_thd_thd"))
        add(w, "padding=random");
}

static void add_options(tokens *w, const char *text, bool backward)
{
    char value[64];
    if (is_set(text, "core_attention_bias_type", "alibi"))
        add(w, "alibi=1");
    else if (is_set(text, "core_attention_bias_type", "post_scale_bias") &&
             value_of(text, "core_attention_bias_shape", value))
        add(w, "bias=%s%s", value,
            backward && is_set(text, "core_attention_bias_requires_grad", "True") ? " dbias=1"
                                                                                  : "");
    if (value_of(text, "attention_dropout", value) && strtod(value, NULL) > 0)
        add(w, "dropout=%s", value);
    if (is_set(text, "softmax_type", "learnable"))
        add(w, "softmax=sink%s", backward ? " dsink=1" : "");
    else if (is_set(text, "softmax_type", "off-by-one"))
        add(w, "softmax=off_by_one");
    if (backward && is_set(text, "deterministic", "True"))
        add(w, "deterministic=1");
}

static void add_configuration(facts_import *m, const char *text, bool backward, bool training)
{
    tokens w = { .between = ' ' };
    char value[64] = "";
    const bool eight = is_set(text, "fp8", "True");
    value_of(text, "qkv_dtype", value);
    const struct type_word *type = type_in(value);
    add(&w, "pass=%s dtype=%s", backward ? "bwd" : "fwd",
        eight  ? "e4m3"
        : type ? type->of_case
               : "bf16");
    add(&w, "b=%lld h=%lld/%lld s=%lld/%lld d=%lld/%lld", number_of(text, "batch_size"),
        number_of(text, "num_heads"), number_of(text, "num_gqa_groups"),
        number_of(text, "max_seqlen_q"), number_of(text, "max_seqlen_kv"),
        number_of(text, "head_dim_qk"), number_of(text, "head_dim_v"));
    add_layout(&w, text);
    add_band(&w, text);
    add_options(&w, text, backward);
    if (training && !backward)
        add(&w, "want=stats");
    if (!value_of(text, "cudnn_version", value))
        value[0] = '\0';
    else
        facts_import_name(m, "cuDNN", "%s", value);
    const int at = facts_import_add_case(m, w.text, value);
    if (value_of(text, "compute_capability", value))
        facts_import_name(m, "GPU", "sm_%s", value + 2 * (strncmp(value, "sm", 2) == 0));
    if (value_of(text, "transformer_engine_version", value))
        facts_import_name(m, "TransformerEngine", "%s", value);
    if (at < 0)
        return;
    facts_import_add_calls(m, at, (uint64_t)number_of(text, "calls")); /* fattn.watch's */
    if (is_set(text, "context_parallel", "True"))
        facts_import_say_of(&m->problem[at], "context parallel: a case is of one GPU's part");
    if (eight)
        facts_import_say_of(&m->problem[at], "8 bits: e4m3 stands for the recipe's type");
    facts_import_thread_named(m, "")->problem = at;
}

/* ---- XLA ---- */

/* A call of cuDNN in HLO: the result has the sizes of Q, the scores have both lengths. */
static bool add_hlo(facts_import *m, const char *text)
{
    static const char target[] = "custom_call_target=\"__cudnn$fmha";
    tokens w = { .between = ' ' };
    int64_t result[4];
    long long of[4];
    const char *call = strstr(text, target), *wrote = strchr(text, '='),
               *scores = strstr(text, "\"intermediate_tensor_shape\"");
    scores = scores ? strstr(scores, "\"dimensions\"") : NULL;
    const struct type_word *type = call && wrote ? type_in(wrote) : NULL;
    if (!type || !scores || numbers_in(wrote, result) != 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char *end;
        const char *digits = strpbrk(scores, "0123456789]");
        if (!digits || *digits == ']')
            return false;
        of[i] = strtoll(digits, &end, 10);
        scores = end;
    }
    const char *order = strchr(wrote, '{'), *scale = strstr(text, "\"fmha_scale\":"),
               *dropout = strstr(text, "\"dropout_rate\":");
    add(&w, "pass=%s dtype=%s b=%lld h=%lld s=%lld/%lld d=%lld",
        strstr(call, "Backward") ? "bwd" : "fwd", type->of_case, (long long)result[0],
        (long long)result[1], of[2], of[3], (long long)result[3]);
    if (order && strncmp(order, "{3,2,1,0}", 9) == 0)
        add(&w, "layout=bhsd");
    if (strstr(text, "CAUSAL\""))
        add(&w, "mask=causal");
    if (strstr(text, "\"PADDING"))
        add(&w, "padding=random");
    if (strstr(call, "Bias"))
        add(&w, "bias=bhss");
    if (dropout && strtod(dropout + strlen("\"dropout_rate\":"), NULL) > 0)
        add(&w, "dropout=%g", strtod(dropout + strlen("\"dropout_rate\":"), NULL));
    const double by = scale ? strtod(scale + strlen("\"fmha_scale\":"), NULL) : 0;
    if (by > 0 && fabs(by * sqrt((double)result[3]) - 1) > 1e-6)
        add(&w, "scale=%.9g", by);
    m->call_line = m->line;
    const int at = facts_import_add_case(m, w.text, "");
    if (at >= 0)
        facts_import_note(&m->problem[at].notes,
                          "HLO names no heads of K and V and no shape of a bias; assuming those of "
                          "Q and of the scores");
    return true;
}

/* ---- a line ---- */

/* "calls 12 pass=fwd ...": a line of a file of cases. */
static bool add_case_line(facts_import *m, const char *text, size_t length)
{
    facts_span rest = { text, length }, behind = rest;
    uint64_t calls = 0;
    if (facts_span_is(facts_span_word(&behind), "calls") &&
        facts_read_integer(facts_span_word(&behind), UINT64_C(1) << 40, &calls))
        rest = facts_span_trim(behind);
    if (!facts_import_starts(rest.at, rest.length, "pass="))
        return false;
    char *name = strndup(rest.at, rest.length);
    m->call_line = m->line;
    const int at = facts_import_add_case(m, name, "");
    free(name);
    facts_import_add_calls(m, at, calls);
    facts_import_thread_named(m, "")->problem = at;
    return true;
}

static bool call_line(facts_import *m, const char *text, size_t length)
{
    static const char name[] = "dot_product_attention(", config[] = "Running with config={";
    const char *at = facts_import_find(text, length, name);
    const bool torch = at && at - text >= 7 && memcmp(at - 7, "scaled_", 7) == 0;
    if (!m->gradients)
        see_gradients(m, text, length);
    if (m->call_depth > 0 && (ends_call(text, length) || (m->call_gives && at)))
        m->call_depth = 0;
    if (m->call_depth == 0 && at != NULL && (torch || at == text || at[-1] != '_')) {
        at += strlen(name);
        begin_call(m, at, length - (size_t)(at - text), !torch, false);
        return true;
    }
    if (m->call_depth > 0) {
        collect(m, text, length);
        return true;
    }
    if (facts_import_find(text, length, "__cudnn$fmha") != NULL) {
        char *hlo = strndup(text, length);
        const bool read = add_hlo(m, hlo);
        free(hlo);
        return read;
    }
    at = facts_import_find(text, length, config);
    const bool configures = at && facts_import_find(text, length, "'qkv_layout'");
    size_t prompt = 0;
    while (prompt < length && strchr(" \t>.", text[prompt]))
        prompt++;
    if (!configures && is_assignment(text + prompt, length - prompt)) {
        begin_call(m, text + prompt, length - prompt, false, true);
        return true;
    }
    if (!configures)
        return false;
    char *line = strndup(at, length - (size_t)(at - text));
    const bool training = is_set(line, "is_training", "True");
    m->call_line = m->line;
    add_configuration(m, line, false, training);
    if (training)
        add_configuration(m, line, true, true);
    free(line);
    return true;
}

bool facts_import_call_line(facts_import *m, const char *text, size_t length)
{
    static const char assumed[] = " # assumed: "; /* by the reader of a trace */
    const char *note = facts_import_find(text, length, assumed);
    const size_t said = note ? length - (size_t)(note - text) - 3 : 0;
    facts_import_thread *t = facts_import_thread_named(m, "");
    if (note)
        t->problem = FACTS_IMPORT_NO_PROBLEM;
    length -= note ? said + 3 : 0;
    const bool read = add_case_line(m, text, length) || call_line(m, text, length);
    if (note && t->problem >= 0)
        facts_import_note(&m->problem[t->problem].notes, "%.*s", (int)said, note + 3);
    return read;
}

/* ---- what else the text says ---- */

/* "cuDNN version: 9.12.0.46", "nvidia-cudnn-cu12==9.10.2.21", "libcudnn.so.9.1.0", but not "cudnn
 * version below 9.0.0". */
static void name_cudnn(facts_import *m, const char *text, size_t length)
{
    static const char *const between[] = { "version", "backend", "runtime", "cu11", "cu12",
                                           "cu13",    "so",      "is",      "v" };
    const char *end = text + length;
    for (const char *at = text; at + 5 < end; at++) {
        if (strncasecmp(at, "cudnn", 5) != 0)
            continue;
        const char *number = at + 5;
        for (bool skipped = true; skipped;) {
            skipped = false;
            while (number < end && strchr(" \t:=_-.()'\"", *number))
                number++;
            for (size_t i = 0; i < sizeof between / sizeof *between && !skipped; i++)
                if (facts_import_starts(number, (size_t)(end - number), between[i])) {
                    number += strlen(between[i]);
                    skipped = true;
                }
        }
        char said[40], *stop = said;
        long part[3] = { 0 };
        int parts = 0;
        facts_import_printable(said, sizeof said, number, (size_t)(end - number));
        for (char *from = said; parts < 3; from = stop + 1) {
            part[parts] = strtol(from, &stop, 10);
            if (stop == from || part[parts] < 0 || part[parts] > 99 || (parts < 2 && *stop != '.'))
                break;
            parts++;
        }
        if (parts == 3)
            facts_import_name(m, "cuDNN", "%ld.%ld.%ld", part[0], part[1], part[2]);
    }
}

/* "H100", "RTX 5090", "A10G": a word of capitals and digits that has a description. */
static void name_product(facts_import *m, const char *text, size_t length)
{
    for (size_t i = 0; i < length && m->is_gpu && m->gpus_left > 0; i++) {
        char word[16] = "";
        size_t n = 0, capitals = 0;
        if (!isupper((unsigned char)text[i]) || (i && isalnum((unsigned char)text[i - 1])))
            continue;
        for (; i + n < length && n < sizeof word - 1 &&
               (isupper((unsigned char)text[i + n]) || isdigit((unsigned char)text[i + n]) ||
                (text[i + n] == ' ' && n == 3 && capitals == 3));
             n++) {
            capitals += isupper((unsigned char)text[i + n]) != 0;
            word[n] = text[i + n];
        }
        if (capitals < n && capitals < 5 && strpbrk(word, "0123456789") && n > 1 &&
            !isalnum((unsigned char)(i + n < length ? text[i + n] : ' '))) {
            m->gpus_left--;
            if (m->is_gpu(word)) {
                m->gpus_left = 0;
                facts_import_name(m, "GPU", "%s", word);
            }
        }
        i += n ? n - 1 : 0;
    }
}

void facts_import_environment(facts_import *m, const char *text, size_t length)
{
    name_cudnn(m, text, length);
    name_product(m, text, length);
}

bool facts_import_is_failure(const char *text, size_t length)
{
    static const char *const kinds[] = { "Error: ", "error: ", "Exception: ", "UserWarning: ",
                                         "Disabling " },
                             *const owners[] = { "cuDNN",
                                                 "cudnn",
                                                 "CUDNN",
                                                 "sdp_utils",
                                                 "No available kernel",
                                                 "No valid engine configs",
                                                 "FusedAttention" };
    bool kind = false, owner = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        kind |= facts_import_find(text, length, kinds[i]) != NULL;
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        owner |= facts_import_find(text, length, owners[i]) != NULL;
    return kind && owner;
}
