/* What people paste: a call of scaled_dot_product_attention with shapes, and the line in which
 * TransformerEngine prints a configuration. A call becomes a graph as cudnn-frontend logs it. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "reading.h"
#include "tokens.h"
#include "words/case_text.h"

enum { MOST_LINES = 64 };

/* The arguments of the call, in its order; the last one is a word of ours. */
#define ARGUMENT_LIST(X)                                                                           \
    X(QUERY, "query q")                                                                            \
    X(KEY, "key k")                                                                                \
    X(VALUE, "value v")                                                                            \
    X(MASK, "attn_mask mask bias attn_bias")                                                       \
    X(DROPOUT, "dropout_p dropout")                                                                \
    X(CAUSAL, "is_causal causal")                                                                  \
    X(SCALE, "scale") X(GQA, "enable_gqa") X(TRAINING, "requires_grad training backward")
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
};

typedef struct pasted {
    char text[FACTS_IMPORT_CALL];
    char *argument[ARGUMENTS]; /* parts of `text`; NULL: not given */
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

/* The first list of at least two numbers in brackets; its length, 0: there is none. */
static int numbers_in(const char *text, int64_t out[4])
{
    for (const char *open = strpbrk(text, "[("); open; open = strpbrk(open + 1, "[(")) {
        int count = 0;
        char *end = (char *)(uintptr_t)(open + 1);
        for (const char *at = open + 1; count < 5; at = end + 1) {
            const int64_t number = strtoll(at, &end, 10);
            if (end == at || number < 0)
                break;
            if (count < 4)
                out[count] = number;
            count++;
            end += strspn(end, " ");
            if (*end != ',')
                break;
        }
        if (count > 1)
            return count < 5 ? count : 0;
    }
    return 0;
}

/* "f16[2,16,1000,64]", "torch.Size([2, 16, 1000, 64]) torch.float16 stride (1024000, 64, 1024, 1)" */
static bool read_shape(shape *out, const char *text)
{
    const char *strides = strstr(text, "stride");
    *out = (shape){ .type = type_in(text) };
    out->rank = numbers_in(text, out->dim);
    if (!out->rank || (strides && numbers_in(strides, out->stride) != out->rank))
        return false;
    for (int64_t i = out->rank - 1, step = 1; !strides && i >= 0; step *= out->dim[i--])
        if (out->dim[i] < 1 || out->dim[i] > (INT64_C(1) << 46) / step)
            return false;
        else
            out->stride[i] = step;
    return true;
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
    if (*value == ':' || *value == '=')
        place = argument_named(text, name);
    if (place < ARGUMENTS && *text)
        p->argument[place] = *value == ':' || *value == '=' ? value + 1 : text;
}

static void split(pasted *p)
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
        take_argument(p, begin, place++);
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
                     const shape *v, bool backward, bool training)
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
    if (t->problem >= 0 && q->dim[1] != k->dim[1] && !is_true(p->argument[GQA]))
        facts_import_say_of(&m->problem[t->problem],
                            "fewer heads of K than of Q: PyTorch needs enable_gqa=True");
}

static void read_call(facts_import *m)
{
    pasted p = { 0 };
    shape part[3];
    memcpy(p.text, m->call, m->call_length);
    split(&p);
    for (int i = 0; i < 3; i++) {
        if (!p.argument[i] || !read_shape(&part[i], p.argument[i])) {
            m->calls_without_shapes++;
            return;
        }
        if (part[i].rank != 4) {
            facts_import_say_unread(m, m->call_line,
                                    "query, key and value have four extents each where PyTorch "
                                    "uses cuDNN: batch, heads, sequence, channels (pt/tensors)");
            return;
        }
        if (!part[i].type)
            part[i].type = i ? part[0].type : &type_words[0];
    }
    const bool training = is_true(p.argument[TRAINING]);
    add_call(m, &p, &part[0], &part[1], &part[2], false, training);
    if (training)
        add_call(m, &p, &part[0], &part[1], &part[2], true, true);
}

/* Collects up to the closing parenthesis. */
static void collect(facts_import *m, const char *text, size_t length)
{
    for (size_t i = 0; i < length && m->call_depth > 0; i++) {
        m->call_depth += (text[i] == '(') - (text[i] == ')');
        if (m->call_depth > 0 && m->call_length + 2 < sizeof m->call)
            m->call[m->call_length++] = (char)(text[i] == '"' || text[i] == '\'' ? ' ' : text[i]);
    }
    m->call[m->call_length++] = m->call_depth > 0 ? ' ' : '\0';
    if (m->call_length + 2 >= sizeof m->call || m->line > m->call_line + MOST_LINES)
        m->call_depth = 0; /* no call is so long */
    else if (m->call_depth == 0)
        read_call(m);
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
    value_of(text, "cudnn_version", value);
    facts_import_name(m, "cuDNN", "%s", value);
    const int at = facts_import_add_case(m, w.text, value);
    if (value_of(text, "compute_capability", value))
        facts_import_name(m, "GPU", "sm_%s", value + 2 * (strncmp(value, "sm", 2) == 0));
    if (value_of(text, "transformer_engine_version", value))
        facts_import_name(m, "TransformerEngine", "%s", value);
    if (at < 0)
        return;
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

bool facts_import_call_line(facts_import *m, const char *text, size_t length)
{
    static const char name[] = "scaled_dot_product_attention(",
                      config[] = "DotProductAttention:Running with config=";
    const char *at = facts_import_find(text, length, name);
    if (m->call_depth == 0 && at != NULL) {
        m->call_line = m->line;
        m->call_length = 0;
        m->call_depth = 1;
        at += strlen(name);
        collect(m, at, length - (size_t)(at - text));
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
    if ((at = facts_import_find(text, length, config)) == NULL)
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

bool facts_import_is_failure(const char *text, size_t length)
{
    static const char *const kinds[] = { "Error: ", "Exception: ", "UserWarning: ", "Disabling " },
                             *const owners[] = { "cuDNN",
                                                 "cudnn",
                                                 "CUDNN",
                                                 "sdp_utils",
                                                 "No available kernel",
                                                 "FusedAttention" };
    bool kind = false, owner = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        kind |= facts_import_find(text, length, kinds[i]) != NULL;
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++)
        owner |= facts_import_find(text, length, owners[i]) != NULL;
    return kind && owner;
}
