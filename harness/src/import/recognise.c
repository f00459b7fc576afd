#include <stdio.h>
#include <string.h>

#include "case/words/case_text.h"
#include "recognition.h"

bool facts_import_refuse(facts_error *error, const char *what, const char *of)
{
    char quote[FACTS_QUOTE_MAX];
    snprintf(error->text, sizeof error->text, "%s%s%s", what, of[0] != '\0' ? " " : "",
             facts_quote(quote, facts_span_of(of)));
    return false;
}

void facts_import_take(facts_import_search *s, facts_import_role role, int tensor, bool transposed)
{
    if (tensor < 0)
        return;
    facts_import_tensor t = s->graph->tensor[tensor];
    if (transposed) {
        int64_t dim = t.dim[2], stride = t.stride[2];
        t.dim[2] = t.dim[3];
        t.stride[2] = t.stride[3];
        t.dim[3] = dim;
        t.stride[3] = stride;
    }
    s->out->has[role] = true;
    s->out->part[role] = t;
    if (t.ragged >= 0)
        s->out->offsets = s->graph->tensor[t.ragged].type;
}

/* Everything that a unified operation or a node of cudnn-frontend names. */
static void take_named(facts_import_search *s, const facts_import_operation *op,
                       const char *const names[FACTS_IMPORT_ROLES])
{
    for (facts_import_role role = 0; role < FACTS_IMPORT_ROLES; role++)
        if (names[role][0] != '\0' && !s->out->has[role])
            facts_import_take(s, role, facts_import_port_of(op, names[role]), false);
}

static void take_scale(facts_import_attention *out)
{
    const facts_import_tensor *scale = &out->part[FACTS_IMPORT_ROLE_SCALE];
    if (!out->has[FACTS_IMPORT_ROLE_SCALE])
        return;
    out->has_scale = true;
    out->scale_tensor = !scale->by_value && !scale->has_value;
    out->scale_known = scale->has_value;
    out->scale = scale->value;
}

static facts_import_bound bound_of(const json_t *fields, const char *key)
{
    const json_t *number = json_object_get(fields, key);
    return json_is_integer(number) ? (facts_import_bound){ .given = true,
                                                           .known = true,
                                                           .value = json_integer_value(number) }
                                   : (facts_import_bound){ 0 };
}

static bool is_true(const json_t *fields, const char *key)
{
    return json_is_true(json_object_get(fields, key));
}

static bool is_word(const json_t *fields, const char *key, const char *word)
{
    const char *is = json_string_value(json_object_get(fields, key));
    return is != NULL && strcmp(is, word) == 0;
}

/* causal_mask, of the frontends that had it beside the bounds, is a right bound of 0. */
static void read_band(facts_import_attention *out, const json_t *fields)
{
    out->left = bound_of(fields, "left_bound");
    out->right = bound_of(fields, "right_bound");
    out->bottom_right = is_word(fields, "diagonal_alignment", "BOTTOM_RIGHT") ||
                        is_true(fields, "causal_mask_bottom_right");
    bool causal = is_true(fields, "causal_mask") || is_true(fields, "causal_mask_bottom_right");
    if (causal && !out->right.given)
        out->right = (facts_import_bound){ .given = true, .known = true, .value = 0 };
}

/* cudnn-frontend drops the one-lengths-are-absent probabilities to null. */
static void read_dropout(facts_import_attention *out, const json_t *fields, const char *key)
{
    const json_t *p = json_object_get(fields, key);
    out->dropout_known = facts_import_number(p, &out->dropout);
    if (out->dropout_known && out->dropout == 0.0 && !out->has[FACTS_IMPORT_ROLE_RNG_DUMP])
        out->has[FACTS_IMPORT_ROLE_SEED] = false; /* nothing is dropped */
}

/* What cudnn-frontend derives when nobody says it: b,h,s,d, dense. */
static void take_shapes(facts_import_attention *out)
{
    const facts_import_tensor *q = &out->part[FACTS_IMPORT_ROLE_Q],
                              *k = &out->part[FACTS_IMPORT_ROLE_K],
                              *v = &out->part[FACTS_IMPORT_ROLE_V];
    for (facts_import_role role = FACTS_IMPORT_ROLE_O; role <= FACTS_IMPORT_ROLE_DV; role++) {
        facts_import_tensor *t = &out->part[role];
        const facts_import_tensor *like = role == FACTS_IMPORT_ROLE_DK   ? k
                                          : role == FACTS_IMPORT_ROLE_DV ? v
                                                                         : q;
        bool row = role == FACTS_IMPORT_ROLE_STATS || role == FACTS_IMPORT_ROLE_MAX ||
                   role == FACTS_IMPORT_ROLE_SUM_EXP;
        if (!out->has[role] || t->rank != 0)
            continue;
        memcpy(t->dim, like->dim, sizeof t->dim);
        t->dim[3] = row                                                           ? 1
                    : role == FACTS_IMPORT_ROLE_O || role == FACTS_IMPORT_ROLE_DO ? v->dim[3]
                                                                                  : like->dim[3];
        /* A dimension of 0 or below is refused later; here it must not end the arithmetic. */
        for (int64_t d = 3, run = 1;
             d >= 0 && t->dim[d] > 0 && t->dim[d] <= (INT64_C(1) << 46) / run; run *= t->dim[d--])
            t->stride[d] = run;
        t->rank = 4;
        if (row && t->type == FACTS_IMPORT_TYPE_OTHER)
            t->type = FACTS_IMPORT_F32;
    }
}

bool facts_import_node(facts_import_search *s, const facts_import_operation *op)
{
#define AS_WORD(symbol, frontend, forward, backward) frontend,
    static const char *const names[FACTS_IMPORT_ROLES] = { FACTS_IMPORT_ROLE_LIST(AS_WORD) };
#undef AS_WORD
    facts_import_attention *out = s->out;
    const json_t *fields = op->json, *scale = json_object_get(fields, "attn_scale_value"),
                 *most = json_object_get(fields, "max_seq_len_kv");
    out->backward = op->kind == FACTS_IMPORT_SDPA_BACKWARD;
    take_named(s, op, names);
    take_scale(out);
    double number;
    if (facts_import_number(scale, &number)) {
        out->has_scale = out->scale_known = true;
        out->scale = number;
    }
    take_shapes(out);
    read_band(out, fields);
    read_dropout(out, fields, "dropout_probability");
    out->alibi = is_true(fields, "alibi_mask");
    out->padding = is_true(fields, "padding_mask");
    out->stats_log2 = is_true(fields, "stats_use_log2");
    out->mx = is_true(fields, "is_mxfp8") || strstr(op->word, "MXFP8") != NULL;
    out->unified = is_word(fields, "implementation", "UNIFIED");
    out->deterministic = is_true(fields, "is_deterministic_algorithm");
    out->unfuse_fma = is_true(fields, "unfuse_fma");
    out->half_accumulation = out->unified && is_word(fields, "compute_data_type", "HALF");
    out->totals = json_is_integer(json_object_get(fields, "max_total_seq_len_q")) ||
                  json_is_integer(json_object_get(fields, "max_total_seq_len_kv"));
    out->seq_kv = json_integer_value(most);
    out->bool_mask = out->has[FACTS_IMPORT_ROLE_BIAS] &&
                     out->part[FACTS_IMPORT_ROLE_BIAS].type == FACTS_IMPORT_BOOL;
    if (json_is_number(json_object_get(fields, "rescale_threshold")))
        out->rescale = (int64_t)json_number_value(json_object_get(fields, "rescale_threshold"));
    for (int i = 0; i < op->port_count; i++)
        if (strstr(op->port[i].name, "Page_table") != NULL &&
            s->graph->tensor[op->port[i].tensor].ragged != -1)
            *(op->port[i].name[11] == 'K' ? &out->table_packed_k : &out->table_packed_v) = true;
    return true;
}

/* The operation of a softmax that is printed inside a unified operation. */
static void take_softmax_inside(facts_import_search *s, const json_t *fields)
{
    static const struct {
        const char *name;
        facts_import_role role;
    } rows[] = { { "statsDesc", FACTS_IMPORT_ROLE_STATS },
                 { "maxDesc", FACTS_IMPORT_ROLE_MAX },
                 { "sumExpDesc", FACTS_IMPORT_ROLE_SUM_EXP },
                 { "sinkDesc", FACTS_IMPORT_ROLE_SINK } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = json_string_value(json_object_get(fields, rows[i].name));
        if (name != NULL)
            facts_import_take(s, rows[i].role, facts_import_tensor_named(s->graph, name), false);
    }
    s->out->stats_log2 = is_true(fields, "statsLog2");
}

/* The scores' own graph: from its one output back to its one input. */
static bool walk_inside(facts_import_search *s, const facts_import_graph *inside,
                        const json_t *fields)
{
    char in[24] = "", last[24] = "";
    const json_t *input = json_object_get(fields, "subgraphInputUid"),
                 *output = json_object_get(fields, "subgraphOutputUid");
    if (json_is_integer(input) && json_is_integer(output)) {
        snprintf(in, sizeof in, "%lld", (long long)json_integer_value(input));
        snprintf(last, sizeof last, "%lld", (long long)json_integer_value(output));
    }
    facts_import_search inner = {
        .graph = inside, .out = s->out, .error = s->error, .row_max = -1, .row_sum = -1
    };
    int from = facts_import_tensor_named(inside, last),
        until = facts_import_tensor_named(inside, in);
    for (int t = 0; from < 0 && t < inside->tensor_count;
         t++) { /* absent: a tensor that no operation reads or writes */
        bool read = false;
        for (int i = 0; i < inside->operation_count; i++)
            for (int p = 0; p < inside->operation[i].port_count; p++)
                read = read || (inside->operation[i].port[p].tensor == t &&
                                facts_import_written(&inside->operation[i]) != t);
        if (!read)
            from = t;
    }
    for (int t = 0; until < 0 && t < inside->tensor_count; t++)
        if (inside->tensor[t].is_virtual && facts_import_writer(inside, t) == NULL)
            until = t;
    if (from < 0 || until < 0)
        return facts_import_refuse(
            s->error,
            "the score graph of a unified operation does not connect its input and its output", "");
    bool single = s->out->single;
    bool ok = facts_import_walk(&inner, from, until);
    s->out->single = single; /* a unified operation has no other spelling */
    return ok;
}

bool facts_import_unified(facts_import_search *s, const facts_import_operation *op,
                          const facts_import_graph *part)
{
#define AS_FORWARD(symbol, frontend, forward, backward) forward,
#define AS_BACKWARD(symbol, frontend, forward, backward) backward,
    static const char *const forward_names[FACTS_IMPORT_ROLES] = { FACTS_IMPORT_ROLE_LIST(
        AS_FORWARD) };
    static const char *const backward_names[FACTS_IMPORT_ROLES] = { FACTS_IMPORT_ROLE_LIST(
        AS_BACKWARD) };
    facts_import_attention *out = s->out;
    facts_import_graph inside;
    out->unified = true;
    out->backward = op->kind == FACTS_IMPORT_SDPA_BACKWARD;
    take_named(s, op, out->backward ? backward_names : forward_names);
    take_scale(out);
    read_dropout(out, op->json, "dropoutProbability");
    take_softmax_inside(s, json_object_get(op->json, "softmax"));
    out->padding = (out->has[FACTS_IMPORT_ROLE_LEN_Q] || out->has[FACTS_IMPORT_ROLE_CU_Q]) &&
                   (out->has[FACTS_IMPORT_ROLE_LEN_KV] || out->has[FACTS_IMPORT_ROLE_CU_KV]);
    out->totals = json_is_integer(json_object_get(op->json, "maxTotalSeqLenQ"));
    out->unfuse_fma = is_true(op->json, "unfuseFma");
    out->mx = out->has[FACTS_IMPORT_ROLE_DESCALE_Q] &&
              out->part[FACTS_IMPORT_ROLE_DESCALE_Q].type == FACTS_IMPORT_E8M0;
    if (facts_import_subgraph(&inside, op, s->error)) {
        bool ok = walk_inside(s, &inside, op->json);
        facts_import_graph_free(&inside);
        return ok;
    }
    if (s->error->text[0] != '\0')
        return false;
    if (out->backward && part != NULL)
        return walk_inside(s, part, op->json);
    out->score_hidden = out->backward;
    return true;
}

/* X of a rotation takes the place of the Y that attention reads, DX of the gradient's that of the
 * DY that it writes. */
static void see_through_rope(facts_import_search *s, const facts_import_graph *graph)
{
    for (int i = 0; i < graph->operation_count; i++) {
        const facts_import_operation *op = &graph->operation[i];
        if (op->kind != FACTS_IMPORT_ROPE && op->kind != FACTS_IMPORT_ROPE_BACKWARD)
            continue;
        bool forward = op->kind == FACTS_IMPORT_ROPE;
        int outside = facts_import_port_of(op, forward ? "X" : "DX"),
            inside = facts_import_port_of(op, forward ? "Y" : "DY");
        static const facts_import_role rotated[] = { FACTS_IMPORT_ROLE_Q, FACTS_IMPORT_ROLE_K,
                                                     FACTS_IMPORT_ROLE_DQ, FACTS_IMPORT_ROLE_DK };
        for (size_t r = 0; outside >= 0 && inside >= 0 && r < sizeof rotated / sizeof *rotated; r++)
            if (s->out->has[rotated[r]] &&
                strcmp(s->out->part[rotated[r]].name, graph->tensor[inside].name) == 0) {
                facts_import_take(s, rotated[r], outside, false);
                s->out->rope = true;
                s->out->rope_dim = json_integer_value(json_object_get(op->json, "rope_dim"));
            }
    }
}

facts_import_found facts_import_recognise(facts_import_attention *out,
                                          const facts_import_graph *graph,
                                          const facts_import_graph *part, facts_error *error)
{
    *out = (facts_import_attention){ .offsets = FACTS_IMPORT_TYPE_OTHER, .rescale = -1 };
    *error = (facts_error){ .line = 0 };
    facts_import_search s = {
        .graph = graph, .out = out, .error = error, .row_max = -1, .row_sum = -1
    };
    const facts_import_operation *one = NULL;
    int products = 0, ones = 0;
    bool open = false;
    for (int i = 0; i < graph->operation_count; i++) {
        const facts_import_operation *op = &graph->operation[i];
        products += op->kind == FACTS_IMPORT_MATMUL;
        if (op->kind == FACTS_IMPORT_SDPA || op->kind == FACTS_IMPORT_SDPA_BACKWARD) {
            one = op;
            ones++;
        }
        int x = facts_import_port_of(op, "X");
        open = open ||
               (x >= 0 && graph->tensor[x].is_virtual && facts_import_writer(graph, x) == NULL);
    }
    if (ones == 0 && products < 2)
        return products == 0 && open ? FACTS_IMPORT_PART : FACTS_IMPORT_NO_ATTENTION;
    bool ok;
    if (ones > 1 || (ones == 1 && products > 0))
        ok = facts_import_refuse(error, "the graph has several attentions; a case has one", "");
    else if (one != NULL && graph->frontend)
        ok = facts_import_node(&s, one);
    else if (one != NULL)
        ok = facts_import_unified(&s, one, part);
    else
        ok = facts_import_composite(&s);
    if (ok)
        see_through_rope(&s, graph);
    if (ok && (!out->has[FACTS_IMPORT_ROLE_Q] || !out->has[FACTS_IMPORT_ROLE_K] ||
               !out->has[FACTS_IMPORT_ROLE_V]))
        ok = facts_import_refuse(error, "attention without Q, K or V", "");
    static const facts_import_role gradients[] = { FACTS_IMPORT_ROLE_DO, FACTS_IMPORT_ROLE_DQ,
                                                   FACTS_IMPORT_ROLE_DK, FACTS_IMPORT_ROLE_DV };
    if (ok && !out->has[FACTS_IMPORT_ROLE_O])
        ok = facts_import_refuse(error, "attention without O", "");
    for (size_t i = 0; ok && out->backward && i < sizeof gradients / sizeof *gradients; i++)
        if (!out->has[gradients[i]])
            ok = facts_import_refuse(error, "a backward without dO, dQ, dK or dV", "");
    return ok ? FACTS_IMPORT_FOUND : FACTS_IMPORT_UNREAD;
}
