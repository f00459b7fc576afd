#include "problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lengths.h"
#include "storage.h"
#include "text.h"
#include "value.h"

/* One resolution: the case, what comes out, and where to say no. The first letter of an error is the key's name. */
typedef struct resolution {
    const facts_case *c;
    facts_problem *out;
    facts_error *error;
    facts_stride stride;
} resolution;

static facts_resolve_status say(facts_error *error, facts_resolve_status status, facts_key key, const char *what)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s: %s", facts_keys[key].word, what);
        error->line = 1;
        error->column = 1;
    }
    return status;
}

static bool is(const facts_case *c, facts_key key, const char *word)
{
    return strcmp(facts_case_get(c, key), word) == 0;
}

/* ---- what nothing implements yet ------------------------------------------------------------------------------------------- */

static bool set_is_in(const char *now, facts_span value)
{
    char scratch[FACTS_CASE_TEXT];
    do {
        if (!facts_template_match(now, facts_span_cut(&value, '+'), scratch))
            return false;
    } while (value.length > 0);
    return true;
}

static bool implemented(const facts_case *c, facts_key key)
{
    const facts_key_row *row = &facts_keys[key];
    if (c->at[key] == 0 || strcmp(row->now, "*") == 0)
        return true;
    char scratch[FACTS_CASE_TEXT];
    facts_span value = facts_span_of(c->text + c->at[key]);
    return row->kind == FACTS_KIND_SET ? set_is_in(row->now, value) : facts_template_match(row->now, value, scratch);
}

static facts_resolve_status check_implemented(resolution *r)
{
    char what[200];
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        if (implemented(r->c, key))
            continue;
        snprintf(what, sizeof what, "%.120s is not implemented yet", facts_case_get(r->c, key));
        return say(r->error, FACTS_NOT_IMPLEMENTED, key, what);
    }
    static const facts_key layouts[] = { FACTS_KEY_LAYOUT, FACTS_KEY_DQKV };
    for (size_t i = 0; i < 2; i++) {
        const char *value = facts_case_get(r->c, layouts[i]);
        if (value[0] == 't' || strstr(value, "_t") != NULL) {
            snprintf(what, sizeof what, "%s (ragged) is not implemented yet", value);
            return say(r->error, FACTS_NOT_IMPLEMENTED, layouts[i], what);
        }
    }
    const char *stride = facts_case_get(r->c, FACTS_KEY_STRIDE);
    if (strstr(stride, "bias.") != NULL)
        return say(r->error, FACTS_NOT_IMPLEMENTED, FACTS_KEY_STRIDE, "strides of bias are not implemented yet");
    const char *want = facts_case_get(r->c, FACTS_KEY_WANT);
    if (is(r->c, FACTS_KEY_PASS, "bwd") && strcmp(want, "stats") != 0)
        return say(r->error, FACTS_NOT_IMPLEMENTED, FACTS_KEY_WANT, "more than stats in a backward is not implemented yet");
    return FACTS_RESOLVED;
}

/* ---- sizes and types ------------------------------------------------------------------------------------------------------- */

static int word_value(const char *word, const char *const *words, const int *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(word, words[i]) == 0)
            return values[i];
    }
    return -1;
}

#define AS_WORD(symbol, value, word) word,
#define AS_VALUE(symbol, value, word) value,
#define READER(name, LIST)                                                                                                         \
    static int name(const facts_case *c, facts_key key)                                                                            \
    {                                                                                                                              \
        static const char *const words[] = { LIST(AS_WORD) };                                                                      \
        static const int values[] = { LIST(AS_VALUE) };                                                                            \
        return word_value(facts_case_get(c, key), words, values, sizeof values / sizeof *values);                                  \
    }
READER(dtype_of, FATTN_DTYPE_LIST)
READER(pass_of, FATTN_PASS_LIST)
READER(align_of, FATTN_ALIGN_LIST)
READER(impl_of, FATTN_IMPL_LIST)
READER(spelling_of, FATTN_SPELLING_LIST)

/* The parts of 8/2/2; a part that is absent repeats the one before. Returns false when one is not a size anybody has. */
static bool read_parts(const facts_case *c, facts_key key, int64_t *out, size_t count)
{
    facts_span rest = facts_span_of(facts_case_get(c, key));
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        if (i > 0 && rest.length == 0) {
            out[i] = out[i - 1];
            continue;
        }
        if (!facts_read_integer(facts_span_cut(&rest, '/'), INT32_MAX, &value) || value == 0)
            return false;
        out[i] = (int64_t)value;
    }
    return true;
}

static facts_resolve_status resolve_sizes(resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    int64_t heads[3], seq[2], dim[2];
    const struct {
        facts_key key;
        int64_t *out;
        size_t count;
    } part[] = { { FACTS_KEY_B, &ask->batch, 1 }, { FACTS_KEY_H, heads, 3 }, { FACTS_KEY_S, seq, 2 }, { FACTS_KEY_D, dim, 2 } };
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        if (!read_parts(r->c, part[i].key, part[i].out, part[i].count))
            return say(r->error, FACTS_BAD_PROBLEM, part[i].key, "a size must lie between 1 and 2147483647");
    }
    if (heads[0] % heads[1] != 0 || heads[0] % heads[2] != 0)
        return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_H, "heads of Q must be a multiple of the heads of K and of V");
    ask->heads_q = heads[0];
    ask->heads_k = heads[1];
    ask->heads_v = heads[2];
    ask->seq_q = seq[0];
    ask->seq_kv = seq[1];
    ask->dim_qk = dim[0];
    ask->dim_v = dim[1];
    ask->pass = pass_of(r->c, FACTS_KEY_PASS);
    ask->dtype = dtype_of(r->c, FACTS_KEY_DTYPE);
    ask->o_dtype = dtype_of(r->c, FACTS_KEY_OUT);
    ask->grad_dtype = dtype_of(r->c, FACTS_KEY_GRAD);
    return FACTS_RESOLVED;
}

#define MOST_WINDOW (UINT64_C(1) << 30) /* of the library */

static facts_resolve_status resolve_band(resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    facts_span right = facts_span_of(facts_case_get(r->c, FACTS_KEY_WINDOW));
    facts_span left = facts_span_cut(&right, ':');
    uint64_t bound;
    if (!facts_span_is(left, "inf")) {
        if (!facts_read_integer(left, MOST_WINDOW, &bound))
            return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_WINDOW, "a bound is at most 2^30; inf for none");
        ask->has_left = 1;
        ask->window_left = (int64_t)bound;
    }
    if (!facts_span_is(right, "inf")) {
        if (!facts_read_integer(right, MOST_WINDOW, &bound))
            return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_WINDOW, "a bound is at most 2^30; inf for none");
        ask->has_right = 1;
        ask->window_right = (int64_t)bound;
    }
    ask->align = align_of(r->c, FACTS_KEY_ALIGN);
    return FACTS_RESOLVED;
}

/* ---- tensors --------------------------------------------------------------------------------------------------------------- */

static void dims_of(const fattn_problem *ask, facts_tensor_id id, int64_t dim[4])
{
    bool queries = id != FACTS_TENSOR_K && id != FACTS_TENSOR_V && id != FACTS_TENSOR_DK && id != FACTS_TENSOR_DV;
    bool row = id == FACTS_TENSOR_STATS || id == FACTS_TENSOR_MAX || id == FACTS_TENSOR_SUM_EXP;
    bool value = id == FACTS_TENSOR_V || id == FACTS_TENSOR_DV || id == FACTS_TENSOR_O || id == FACTS_TENSOR_DO;
    dim[0] = ask->batch;
    dim[1] = queries ? ask->heads_q : value ? ask->heads_v : ask->heads_k;
    dim[2] = queries ? ask->seq_q : ask->seq_kv;
    dim[3] = row ? 1 : value ? ask->dim_v : ask->dim_qk;
}

/* The key that an error about a tensor's place belongs to, and the tensor's place in stride=. */
static facts_stride_tensor form_of(facts_tensor_id id)
{
    static const facts_stride_tensor form[FACTS_TENSOR_COUNT] = {
        [FACTS_TENSOR_Q] = FACTS_STRIDE_Q,           [FACTS_TENSOR_K] = FACTS_STRIDE_K,
        [FACTS_TENSOR_V] = FACTS_STRIDE_V,           [FACTS_TENSOR_O] = FACTS_STRIDE_O,
        [FACTS_TENSOR_STATS] = FACTS_STRIDE_STATS,   [FACTS_TENSOR_MAX] = FACTS_STRIDE_STATS,
        [FACTS_TENSOR_SUM_EXP] = FACTS_STRIDE_STATS, [FACTS_TENSOR_DO] = FACTS_STRIDE_DO,
        [FACTS_TENSOR_DQ] = FACTS_STRIDE_DQ,         [FACTS_TENSOR_DK] = FACTS_STRIDE_DK,
        [FACTS_TENSOR_DV] = FACTS_STRIDE_DV
    };
    return form[id];
}

#define AS_WORD3(symbol, word, fwd, bwd) word,
static const char *const tensor_words[FACTS_TENSOR_COUNT] = { FACTS_TENSOR_LIST(AS_WORD3) };

static facts_resolve_status place(resolution *r, facts_tensor_id id, facts_span order, int slice)
{
    facts_tensor *tensor = &r->out->tensor[id];
    bool input = id <= FACTS_TENSOR_V;
    bool row = id == FACTS_TENSOR_STATS || id == FACTS_TENSOR_MAX || id == FACTS_TENSOR_SUM_EXP;
    const facts_stride_form *form = &r->stride.of[form_of(id)];
    facts_place_request request = { .slice = slice,
                                    .form = form,
                                    .plain = row ? NULL : &r->stride.of[FACTS_STRIDE_ALL],
                                    .takes_offsets = input,
                                    .takes_order = input,
                                    .wild = r->stride.wild };
    dims_of(&r->out->ask, id, request.dim);
    memcpy(request.order, order.at, order.length);
    char what[200];
    bool written = id != FACTS_TENSOR_DO && !input;
    if (written && (form->broadcast[0] || form->broadcast[1] || form->broadcast[2] || form->broadcast[3])) {
        snprintf(what, sizeof what, "%s is written: two of its elements may not share an address", tensor_words[id]);
        return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_STRIDE, what);
    }
    const char *wrong = facts_place_tensor(&request, tensor);
    if (wrong != NULL) {
        snprintf(what, sizeof what, "%s: %s", tensor_words[id], wrong);
        return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_STRIDE, what);
    }
    tensor->present = true;
    tensor->dtype = row                                             ? FATTN_F32
                    : id == FACTS_TENSOR_O || id == FACTS_TENSOR_DO ? r->out->ask.o_dtype
                    : id >= FACTS_TENSOR_DQ                         ? r->out->ask.grad_dtype
                                                                    : r->out->ask.dtype;
    return FACTS_RESOLVED;
}

static facts_resolve_status check_packs(resolution *r, facts_key key, int64_t dim[3][4], int from)
{
    for (int i = from + 1; i < 3; i++) {
        if (memcmp(dim[i], dim[from], sizeof dim[i]) != 0)
            return say(r->error, FACTS_BAD_PROBLEM, key, "tensors packed in one storage need equal heads, lengths and head dims");
    }
    return FACTS_RESOLVED;
}

/* Places three tensors by their words; those with the same packed word share a storage, owned by the first of them. */
static facts_resolve_status place_three(resolution *r, const facts_tensor_id id[3], const facts_span word[3], facts_key key)
{
    int64_t dim[3][4];
    for (int i = 0; i < 3; i++)
        dims_of(&r->out->ask, id[i], dim[i]);
    for (int i = 0; i < 3; i++) {
        int packs = facts_layout_packs(word[i]);
        int slice = packs == 1 ? 0 : i - (3 - packs);
        if (slice < 0)
            return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_Q, "Q is not part of a storage that packs K and V");
        facts_resolve_status status = packs == 1 ? FACTS_RESOLVED : check_packs(r, key, dim, 3 - packs);
        if (status == FACTS_RESOLVED)
            status = place(r, id[i], word[i], slice);
        if (status != FACTS_RESOLVED)
            return status;
        for (int owner = 0; packs > 1 && owner < i; owner++) {
            bool same = word[owner].length == word[i].length && memcmp(word[owner].at, word[i].at, word[i].length) == 0;
            if (!same)
                continue;
            r->out->tensor[id[i]].shares = 1 + (int32_t)id[owner];
            break;
        }
    }
    return FACTS_RESOLVED;
}

static facts_resolve_status place_inputs(resolution *r)
{
    static const facts_tensor_id id[3] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V };
    facts_span word[3] = { facts_span_of(facts_case_get(r->c, FACTS_KEY_Q)), facts_span_of(facts_case_get(r->c, FACTS_KEY_K)),
                           facts_span_of(facts_case_get(r->c, FACTS_KEY_V)) };
    return place_three(r, id, word, FACTS_KEY_LAYOUT);
}

/* An output with a word of its own, or one that follows the memory order of another tensor. */
static facts_resolve_status place_following(resolution *r, facts_tensor_id id, facts_key key, facts_tensor_id like)
{
    char order[6];
    const char *word = facts_case_get(r->c, key);
    if (strcmp(word, "auto") == 0) {
        facts_order_of(&r->out->tensor[like], order);
        word = order;
    }
    return place(r, id, facts_span_of(word), 0);
}

static facts_resolve_status place_gradients(resolution *r)
{
    static const facts_tensor_id id[3] = { FACTS_TENSOR_DQ, FACTS_TENSOR_DK, FACTS_TENSOR_DV };
    static const facts_tensor_id like[3] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V };
    static const facts_key key[3] = { FACTS_KEY_Q, FACTS_KEY_K, FACTS_KEY_V };
    char order[3][6];
    facts_span word[3];
    const char *dqkv = facts_case_get(r->c, FACTS_KEY_DQKV);
    facts_layout layout;
    if (strcmp(dqkv, "auto") != 0 && facts_layout_read(facts_span_of(dqkv), &layout)) {
        word[0] = layout.q;
        word[1] = layout.k;
        word[2] = layout.v;
    } else {
        for (int i = 0; i < 3; i++) {
            word[i] = facts_span_of(facts_case_get(r->c, key[i]));
            if (facts_layout_packs(word[i]) > 1)
                continue;
            facts_order_of(&r->out->tensor[like[i]], order[i]);
            word[i] = facts_span_of(order[i]);
        }
    }
    return place_three(r, id, word, FACTS_KEY_DQKV);
}

static facts_resolve_status place_rows(resolution *r)
{
    static const struct {
        facts_tensor_id id;
        uint32_t bit;
    } rows[] = { { FACTS_TENSOR_STATS, FATTN_WANT_STATS },
                 { FACTS_TENSOR_MAX, FATTN_WANT_MAX },
                 { FACTS_TENSOR_SUM_EXP, FATTN_WANT_SUM_EXP } };
    bool token_major = is(r->c, FACTS_KEY_STATS, "bsh1");
    facts_span want = facts_span_of(facts_case_get(r->c, FACTS_KEY_WANT)), rest = want;
    while (rest.length > 0) {
        facts_span part = facts_span_cut(&rest, '+');
        for (size_t i = 0; i < 3; i++) {
            if (!facts_span_is(part, tensor_words[rows[i].id]))
                continue;
            facts_resolve_status status = place(r, rows[i].id, facts_span_of(token_major ? "bshd" : "bhsd"), 0);
            if (status != FACTS_RESOLVED)
                return status;
            if (r->out->ask.pass == FATTN_FORWARD)
                r->out->ask.outputs |= rows[i].bit;
        }
    }
    return FACTS_RESOLVED;
}

static facts_resolve_status place_all(resolution *r)
{
    facts_value_fault fault = { 0 };
    if (!facts_stride_read(facts_span_of(facts_case_get(r->c, FACTS_KEY_STRIDE)), &r->stride, &fault))
        return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_STRIDE, fault.text);
    facts_resolve_status status = place_inputs(r);
    if (status == FACTS_RESOLVED)
        status = place_following(r, FACTS_TENSOR_O, FACTS_KEY_O, FACTS_TENSOR_Q);
    if (status == FACTS_RESOLVED)
        status = place_rows(r);
    if (status == FACTS_RESOLVED && r->out->ask.pass == FATTN_BACKWARD) {
        status = place_following(r, FACTS_TENSOR_DO, FACTS_KEY_DO, FACTS_TENSOR_O);
        if (status == FACTS_RESOLVED)
            status = place_gradients(r);
    }
    return status;
}

static void ask_strides(facts_problem *out)
{
    fattn_problem *ask = &out->ask;
    const struct {
        facts_tensor_id id;
        int64_t *to;
    } pair[] = { { FACTS_TENSOR_Q, ask->q_strides },           { FACTS_TENSOR_K, ask->k_strides },
                 { FACTS_TENSOR_V, ask->v_strides },           { FACTS_TENSOR_O, ask->o_strides },
                 { FACTS_TENSOR_DO, ask->do_strides },         { FACTS_TENSOR_DQ, ask->dq_strides },
                 { FACTS_TENSOR_DK, ask->dk_strides },         { FACTS_TENSOR_DV, ask->dv_strides },
                 { FACTS_TENSOR_SUM_EXP, ask->stats_strides }, { FACTS_TENSOR_MAX, ask->stats_strides },
                 { FACTS_TENSOR_STATS, ask->stats_strides } };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        if (out->tensor[pair[i].id].present)
            memcpy(pair[i].to, out->tensor[pair[i].id].stride, sizeof out->tensor[0].stride);
    }
}

/* ---- the rest -------------------------------------------------------------------------------------------------------------- */

static facts_resolve_status resolve_how(resolution *r)
{
    static const char *const fills[] = { "gauss", "uniform", "spiky", "needle", "neglse", "stair_up", "stair_dn" };
    static const char *const poisons[] = { "fill", "nan", "inf", "big" };
    _Static_assert(FACTS_FILL_GAUSS == 0 && FACTS_FILL_OTHER == sizeof fills / sizeof *fills, "fills in the order of facts_fill");
    static const int order[] = { 0, 1, 2, 3, 4, 5, 6 };
    facts_problem *out = r->out;
    const facts_case *c = r->c;
    int fill = word_value(facts_case_get(c, FACTS_KEY_FILL), fills, order, FACTS_FILL_OTHER);
    out->fill = fill < 0 ? FACTS_FILL_OTHER : (facts_fill)fill;
    out->poison = (facts_poison)word_value(facts_case_get(c, FACTS_KEY_POISON), poisons, order, 4);
    out->seed = strtoull(facts_case_get(c, FACTS_KEY_SEED), NULL, 10);
    const char *engine = facts_case_get(c, FACTS_KEY_ENGINE);
    out->engine = strcmp(engine, "auto") == 0  ? FACTS_ENGINE_AUTO
                  : strcmp(engine, "all") == 0 ? FACTS_ENGINE_ALL
                                               : (int64_t)strtoll(engine, NULL, 10);
    unsigned long long repeat = strtoull(facts_case_get(c, FACTS_KEY_REPEAT), NULL, 10);
    if (repeat > 1000000)
        return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_REPEAT, "at most 1000000 runs");
    out->repeat = (int32_t)repeat;
    fattn_problem *ask = &out->ask;
    const char *scale = facts_case_get(c, FACTS_KEY_SCALE);
    ask->has_attn_scale = strcmp(scale, "auto") != 0;
    if (ask->has_attn_scale && !facts_read_real(facts_span_of(scale), &ask->attn_scale))
        return say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_SCALE, "not a number");
    ask->impl = impl_of(c, FACTS_KEY_IMPL);
    ask->spelling = spelling_of(c, FACTS_KEY_SPELLING);
    ask->deterministic = !is(c, FACTS_KEY_DETERMINISTIC, "0");
    ask->guards_off = is(c, FACTS_KEY_GUARDS, "off");
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_lengths(resolution *r)
{
    facts_key key = is(r->c, FACTS_KEY_LENS, "none") ? FACTS_KEY_PADDING : FACTS_KEY_LENS;
    if (key == FACTS_KEY_PADDING && !is(r->c, FACTS_KEY_PADDING, "none") && r->out->ask.batch > FACTS_MAX_BATCH_LENS)
        return say(r->error, FACTS_NOT_IMPLEMENTED, key, "lengths of more than 512 batch entries are not implemented yet");
    const char *wrong = facts_lengths_resolve(r->out, r->c);
    return wrong == NULL ? FACTS_RESOLVED : say(r->error, FACTS_BAD_PROBLEM, key, wrong);
}

facts_resolve_status facts_problem_resolve(facts_problem *out, const facts_case *c, facts_error *error)
{
    *out = (facts_problem){ .ask = FATTN_PROBLEM_INIT };
    resolution r = { .c = c, .out = out, .error = error };
    facts_resolve_status (*const steps[])(resolution *) = { check_implemented, resolve_sizes,   resolve_band,
                                                            resolve_how,       resolve_lengths, place_all };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        facts_resolve_status status = steps[i](&r);
        if (status != FACTS_RESOLVED)
            return status;
    }
    ask_strides(out);
    return FACTS_RESOLVED;
}
