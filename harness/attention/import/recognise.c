#include <stdio.h>
#include <string.h>

#include "attention.h"
#include "words/case_text.h"

/* One recognition: a graph, what comes out, where to say no. */
typedef struct search {
    const facts_import_graph *graph;
    facts_import_attention *out;
    facts_error *error;
    int row_max, row_sum; /* tensors of the expanded softmax; -1 */
} search;

static bool refuse(facts_error *error, const char *what, const char *of)
{
    char quote[FACTS_QUOTE_MAX];
    snprintf(error->text, sizeof error->text, "%s%s%s", what, of[0] != '\0' ? " " : "",
             facts_quote(quote, facts_span_of(of)));
    return false;
}

static void take(search *s, facts_import_role role, int tensor, bool transposed)
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

/* ---- from a tensor back to the scores ---- */

enum { AXIS_ROW = 2, AXIS_KEY = 3 };

static const facts_import_tensor *tensor(const search *s, int at)
{
    return &s->graph->tensor[at];
}

static bool is_mode(const facts_import_operation *op, facts_import_kind kind, const char *mode)
{
    return op != NULL && op->kind == kind && strcmp(op->mode, mode) == 0;
}

static bool is_pointwise(const facts_import_operation *op, const char *mode)
{
    return is_mode(op, FACTS_IMPORT_POINTWISE, mode);
}

static const facts_import_operation *writer(const search *s, int at)
{
    return facts_import_writer(s->graph, at);
}

static bool made_of(const facts_import_graph *graph, int at, int from)
{
    bool seen[FACTS_IMPORT_MOST] = { false };
    int open[FACTS_IMPORT_MOST], count = 0;
    if (at < 0 || from < 0)
        return false;
    open[count++] = at;
    seen[at] = true;
    while (count > 0) {
        int t = open[--count];
        if (t == from)
            return true;
        const facts_import_operation *op = facts_import_writer(graph, t);
        for (int i = 0; op != NULL && i < op->port_count; i++)
            if (!seen[op->port[i].tensor]) {
                seen[op->port[i].tensor] = true;
                open[count++] = op->port[i].tensor;
            }
    }
    return false;
}

/* Which index a side of a comparison counts, and what was added to it. */
typedef struct side {
    int axis; /* AXIS_ROW, AXIS_KEY; 0: neither */
    int added, taken;
    bool lengths; /* a length is among them */
} side;

static side side_of(const search *s, int at)
{
    side out = { 0 };
    const facts_import_operation *op;
    for (int steps = 0;
         steps < 16 && (op = writer(s, at)) != NULL && op->kind == FACTS_IMPORT_POINTWISE;
         steps++) {
        if (is_pointwise(op, "GEN_INDEX")) {
            out.axis = (int)json_integer_value(json_object_get(op->json, "axis"));
            break;
        }
        int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B");
        if (b >= 0 && writer(s, x) == NULL && writer(s, b) != NULL) { /* the number first */
            int number = x;
            x = b;
            b = number;
        }
        out.added += is_pointwise(op, "ADD");
        out.taken += is_pointwise(op, "SUB");
        out.lengths = out.lengths || (b >= 0 && !tensor(s, b)->by_value);
        at = x;
    }
    return out;
}

/* row + … >= key is the right bound, key + … > row the left one. */
static bool read_band(search *s, const facts_import_operation *op)
{
    side x = side_of(s, facts_import_port_of(op, "X")),
         b = side_of(s, facts_import_port_of(op, "B"));
    bool ge = is_pointwise(op, "CMP_GE"), le = is_pointwise(op, "CMP_LE"),
         gt = is_pointwise(op, "CMP_GT"), lt = is_pointwise(op, "CMP_LT");
    side row = x.axis == AXIS_ROW ? x : b, key = x.axis == AXIS_KEY ? x : b;
    if (row.axis != AXIS_ROW || key.axis != AXIS_KEY)
        return false;
    bool right = (ge && x.axis == AXIS_ROW) || (le && x.axis == AXIS_KEY),
         left = (gt && x.axis == AXIS_KEY) || (lt && x.axis == AXIS_ROW);
    const side *moved = right ? &row : &key;
    bool bottom = moved->taken > 0;
    if (right)
        s->out->right =
            (facts_import_bound){ .given = true, .known = moved->added <= (bottom ? 1 : 0) };
    else if (left)
        s->out->left = (facts_import_bound){ .given = true, .known = false };
    s->out->bottom_right = s->out->bottom_right || bottom;
    return right || left;
}

static bool read_padding(search *s, const facts_import_operation *op)
{
    const facts_import_operation *one = writer(s, facts_import_port_of(op, "X")),
                                 *other = writer(s, facts_import_port_of(op, "B"));
    if (!is_pointwise(one, "CMP_LT") || !is_pointwise(other, "CMP_LT"))
        return false;
    const facts_import_operation *both[2] = { one, other };
    if (side_of(s, facts_import_port_of(one, "X")).axis ==
        side_of(s, facts_import_port_of(other, "X")).axis)
        return false;
    for (int i = 0; i < 2; i++) {
        int axis = side_of(s, facts_import_port_of(both[i], "X")).axis,
            lengths = facts_import_port_of(both[i], "B");
        if ((axis != AXIS_ROW && axis != AXIS_KEY) || lengths < 0 || writer(s, lengths) != NULL)
            return false;
        take(s, axis == AXIS_ROW ? FACTS_IMPORT_ROLE_LEN_Q : FACTS_IMPORT_ROLE_LEN_KV, lengths,
             false);
    }
    s->out->padding = true;
    return true;
}

static bool read_mod(search *s, facts_import_mod mod)
{
    if (s->out->mod != FACTS_IMPORT_MOD_NONE && s->out->mod != mod)
        return refuse(s->error, "two modifications of the scores: a case has one", "");
    s->out->mod = mod;
    return true;
}

/* What decides which scores are kept. */
static bool read_predicate(search *s, int at)
{
    const facts_import_operation *op = writer(s, at);
    if (op == NULL) {
        take(s, FACTS_IMPORT_ROLE_BIAS, at, false);
        s->out->bool_mask = true;
        return true;
    }
    if (is_pointwise(op, "LOGICAL_AND") && read_padding(s, op))
        return true;
    if (is_pointwise(op, "LOGICAL_AND")) /* two bounds at once */
        return read_predicate(s, facts_import_port_of(op, "X")) &&
               read_predicate(s, facts_import_port_of(op, "B"));
    if (read_band(s, op))
        return true;
    if (is_pointwise(op, "LOGICAL_OR"))
        return read_mod(s, FACTS_IMPORT_MOD_PREFIX);
    if (is_pointwise(op, "CMP_EQ"))
        return read_mod(s, FACTS_IMPORT_MOD_DOCUMENT);
    return refuse(s->error, "a mask that no case says: it comes from", op->mode);
}

/* A product with a number: the scale, or what only undoes another. */
static void read_factor(search *s, int at, bool after_softmax)
{
    const facts_import_tensor *t = tensor(s, at);
    bool narrow = s->out->part[FACTS_IMPORT_ROLE_Q].type == FACTS_IMPORT_E4M3 ||
                  s->out->part[FACTS_IMPORT_ROLE_Q].type == FACTS_IMPORT_E5M2;
    if (after_softmax || (narrow && !t->by_value && !s->out->mx))
        return; /* 1/(1-p), scale_s; descale_q, descale_k */
    s->out->has_scale = true;
    s->out->scale_tensor = !t->by_value;
    s->out->scale_known = t->has_value;
    s->out->scale = t->value;
}

static void take_rng(search *s, const facts_import_operation *op)
{
    const json_t *keep = json_object_get(op->json, "bernoulli_dist_probability");
    int seed = facts_import_port_of(op, "seedTensor"), dump = facts_import_port_of(op, "Y");
    take(s, FACTS_IMPORT_ROLE_SEED, seed, false);
    s->out->dropout_known = json_is_number(keep);
    s->out->dropout = 1.0 - json_number_value(keep);
    if (dump >= 0 && !tensor(s, dump)->is_virtual)
        take(s, FACTS_IMPORT_ROLE_RNG_DUMP, dump, false);
}

static bool read_product(search *s, const facts_import_operation *op, int other, bool after_softmax)
{
    const facts_import_operation *made = writer(s, other);
    if (made != NULL && made->kind == FACTS_IMPORT_RNG) {
        take_rng(s, made);
        return true;
    }
    if (facts_import_is_scalar(tensor(s, other))) {
        if (is_pointwise(writer(s, facts_import_port_of(op, "X")), "TANH_FWD"))
            return read_mod(s, FACTS_IMPORT_MOD_SOFTCAP);
        read_factor(s, other, after_softmax);
        return true;
    }
    if (made == NULL && after_softmax) {
        take(s, FACTS_IMPORT_ROLE_DROPOUT_MASK, other, false);
        return true;
    }
    return refuse(s->error, "a product with a tensor that no case says:", tensor(s, other)->name);
}

/* slope * (key - row) beside the scores: ALiBi, as cuDNN spells it; anything else that is added. */
static bool read_sum(search *s, int other)
{
    const facts_import_operation *made = writer(s, other);
    if (made == NULL) {
        if (s->out->has[FACTS_IMPORT_ROLE_BIAS])
            return refuse(s->error,
                          "the graph adds two tensors to the scores; a case can have one bias", "");
        take(s, FACTS_IMPORT_ROLE_BIAS, other, false);
        return true;
    }
    int x = facts_import_port_of(made, "X"), b = facts_import_port_of(made, "B");
    if (is_pointwise(made, "MUL") && x >= 0 && b >= 0 &&
        (is_pointwise(writer(s, x), "SUB") || is_pointwise(writer(s, b), "SUB"))) {
        int distance = is_pointwise(writer(s, x), "SUB") ? x : b, slopes = distance == x ? b : x;
        side from = side_of(s, facts_import_port_of(writer(s, distance), "X")),
             to = side_of(s, facts_import_port_of(writer(s, distance), "B"));
        if (from.axis == AXIS_KEY && to.axis == AXIS_ROW && writer(s, slopes) == NULL) {
            s->out->alibi = true;
            return true;
        }
    }
    return refuse(
        s->error,
        "the graph adds a tensor to the scores that a case cannot express; the tensor comes from",
        made->mode);
}

/* The two reductions and what hangs on them: exp(x - max) / sum. Returns x; -1: it is no softmax.
 */
static int read_softmax(search *s, const facts_import_operation *division)
{
    const facts_import_operation *exp = writer(s, facts_import_port_of(division, "X"));
    int sum = facts_import_port_of(division, "B");
    const facts_import_operation *below =
        is_pointwise(exp, "EXP") ? writer(s, facts_import_port_of(exp, "X")) : NULL;
    if (sum < 0 || !is_pointwise(below, "SUB"))
        return -1;
    int max = facts_import_port_of(below, "B");
    const facts_import_operation *largest = writer(s, max);
    for (int i = 0; largest != NULL && is_pointwise(largest, "MAX") && i < largest->port_count; i++)
        if (writer(s, largest->port[i].tensor) == NULL)
            take(s, FACTS_IMPORT_ROLE_SINK, largest->port[i].tensor, false);
    const facts_import_operation *total = writer(s, sum);
    if (max < 0 || largest == NULL || total == NULL ||
        (largest->kind != FACTS_IMPORT_REDUCTION && !is_pointwise(largest, "MAX")))
        return -1;
    if (!tensor(s, max)->is_virtual)
        take(s, FACTS_IMPORT_ROLE_MAX, max, false);
    if (!tensor(s, sum)->is_virtual)
        take(s, FACTS_IMPORT_ROLE_SUM_EXP, sum, false);
    for (int i = 0; i < s->graph->operation_count; i++) {
        const facts_import_operation *op = &s->graph->operation[i];
        int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B"),
            y = facts_import_port_of(op, "Y");
        bool stats = is_pointwise(op, "ADD") && y >= 0 && !tensor(s, y)->is_virtual &&
                     (x == max || b == max);
        if (stats && is_pointwise(writer(s, x == max ? b : x), "LOG"))
            take(s, FACTS_IMPORT_ROLE_STATS, y, false);
    }
    return facts_import_port_of(below, "X");
}

static int read_single_softmax(search *s, const facts_import_operation *op)
{
    take(s, FACTS_IMPORT_ROLE_STATS, facts_import_port_of(op, "statsDesc"), false);
    take(s, FACTS_IMPORT_ROLE_MAX, facts_import_port_of(op, "maxDesc"), false);
    take(s, FACTS_IMPORT_ROLE_SUM_EXP, facts_import_port_of(op, "sumExpDesc"), false);
    take(s, FACTS_IMPORT_ROLE_SINK, facts_import_port_of(op, "sinkDesc"), false);
    s->out->stats_log2 = json_is_true(json_object_get(op->json, "statsLog2"));
    s->out->single = true;
    return facts_import_port_of(op, "X");
}

static int read_single_band(search *s, const facts_import_operation *op)
{
    const char *mode = json_string_value(json_object_get(op->json, "comparisonMode"));
    bool right = mode != NULL && strstr(mode, "CMP_GE") != NULL;
    int bound = facts_import_port_of(op, right ? "shiftRightBoundDesc" : "leftBoundDesc");
    facts_import_bound *out = right ? &s->out->right : &s->out->left;
    *out = (facts_import_bound){ .given = true, .known = bound < 0 || tensor(s, bound)->has_value };
    if (bound >= 0 && out->known)
        out->value = (int64_t)tensor(s, bound)->value;
    static const char *const lengths[] = { "seqLenQDesc", "seqLenKVDesc", "cuSeqLenQDesc",
                                           "cuSeqLenKVDesc" };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        s->out->bottom_right = s->out->bottom_right || facts_import_port_of(op, lengths[i]) >= 0;
    s->out->single = true;
    return facts_import_port_of(op, "X");
}

/* One step through a pointwise operation. Returns what it was made of; -1 with *error. */
static int step_pointwise(search *s, const facts_import_operation *op, int until,
                          bool *after_softmax)
{
    int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B"), next = -1;
    if (x >= 0 && b >= 0 && !is_pointwise(op, "BINARY_SELECT") && !is_pointwise(op, "DIV") &&
        !made_of(s->graph, x, until)) {
        next = x;
        x = b;
        b = next;
    }
    if (is_pointwise(op, "DIV") && (next = read_softmax(s, op)) >= 0) {
        *after_softmax = false;
        return next;
    }
    bool ok = true;
    if (is_pointwise(op, "BINARY_SELECT"))
        ok = read_predicate(s, facts_import_port_of(op, "T"));
    else if (is_pointwise(op, "DIV"))
        ok = s->out->mod == FACTS_IMPORT_MOD_SOFTCAP || read_mod(s, FACTS_IMPORT_MOD_TEMPERATURE);
    else if (is_pointwise(op, "SUB") && b >= 0 && writer(s, b) == NULL && tensor(s, b)->dim[3] == 1)
        take(s, FACTS_IMPORT_ROLE_STATS, b, false);
    else if (is_pointwise(op, "MUL") && b >= 0)
        ok = read_product(s, op, b, *after_softmax);
    else if (is_pointwise(op, "ADD") && b >= 0)
        ok = read_sum(s, b);
    else if (!is_pointwise(op, "IDENTITY") &&
             !(is_pointwise(op, "TANH_FWD") && s->out->mod == FACTS_IMPORT_MOD_SOFTCAP))
        ok = refuse(s->error, "an operation on the scores that no case says:", op->mode);
    return ok ? x : -1;
}

static bool walk(search *s, int from, int until)
{
    bool after_softmax = false;
    int at = from;
    for (int i = 0; i < s->graph->operation_count; i++) { /* a softmax is still to come? */
        const facts_import_operation *op = &s->graph->operation[i];
        bool softmax = op->kind == FACTS_IMPORT_SOFTMAX ||
                       (is_pointwise(op, "DIV") &&
                        is_pointwise(writer(s, facts_import_port_of(op, "X")), "EXP"));
        int y = facts_import_written(op);
        after_softmax = after_softmax || (softmax && y >= 0 && made_of(s->graph, from, y) &&
                                          made_of(s->graph, y, until));
    }
    for (int steps = 0; at != until; steps++) {
        const facts_import_operation *op = writer(s, at);
        if (op == NULL || steps > s->graph->operation_count)
            return refuse(s->error, "the scores of the second product do not come from the first",
                          "");
        switch (op->kind) {
        case FACTS_IMPORT_SOFTMAX:
            at = read_single_softmax(s, op);
            after_softmax = false;
            break;
        case FACTS_IMPORT_BAND:
            at = read_single_band(s, op);
            break;
        case FACTS_IMPORT_RESHAPE:
            at = facts_import_port_of(op, "X");
            break;
        case FACTS_IMPORT_POINTWISE:
            at = step_pointwise(s, op, until, &after_softmax);
            break;
        default:
            return refuse(s->error, "an operation on the scores that no case says:", op->word);
        }
        if (at < 0)
            return s->error->text[0] != '\0'
                       ? false
                       : refuse(s->error, "an operation on the scores without an input:", op->word);
    }
    return true;
}

/* ---- the composite graph: matrix products and the operations between them ---- */

enum { FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5 };

static bool is_reduction(const facts_import_operation *op, const char *mode)
{
    return op != NULL && op->kind == FACTS_IMPORT_REDUCTION && strcmp(op->mode, mode) == 0;
}

/* The tensor in memory that a product reads: behind views, scale factors and pages. */
static int source(search *s, int at, bool *pool, facts_import_role table)
{
    *pool = false;
    for (int steps = 0; steps < 8; steps++) {
        const facts_import_operation *op = facts_import_writer(s->graph, at);
        if (op == NULL)
            return at;
        if (op->kind == FACTS_IMPORT_PAGED_LOAD) {
            const facts_import_tensor *y = tensor(s, facts_import_port_of(op, "Y"));
            int pages = facts_import_port_of(op, "pageTable");
            *pool = true;
            s->out->seq_kv = table == FACTS_IMPORT_ROLE_TABLE_K ? y->dim[3] : y->dim[2];
            take(s, table, pages, false);
            if (pages >= 0 && tensor(s, pages)->ragged != -1)
                *(table == FACTS_IMPORT_ROLE_TABLE_K ? &s->out->table_packed_k
                                                     : &s->out->table_packed_v) = true;
            return facts_import_port_of(op, "container");
        }
        if (op->kind == FACTS_IMPORT_DEQUANTIZE)
            s->out->mx = true;
        else if (op->kind != FACTS_IMPORT_RESHAPE)
            return -1;
        at = facts_import_port_of(op, "X");
    }
    return -1;
}

/* Where a result goes in the end, through factors, sums over a group of heads and changes of type.
 */
static int sink_of(const search *s, int at)
{
    for (int steps = 0; steps < 16; steps++) {
        int next = -1;
        for (int i = 0; i < s->graph->operation_count; i++) {
            const facts_import_operation *op = &s->graph->operation[i];
            bool passes =
                is_pointwise(op, "MUL") || is_pointwise(op, "IDENTITY") || is_reduction(op, "ADD");
            if (passes && facts_import_port_of(op, "X") == at)
                next = facts_import_port_of(op, "Y");
        }
        if (next < 0)
            break;
        at = next;
    }
    return at;
}

static void take_lengths(search *s, const facts_import_operation *scores)
{
    int m = facts_import_port_of(scores, "mOverride"),
        n = facts_import_port_of(scores, "nOverride");
    take(s, FACTS_IMPORT_ROLE_LEN_Q, m, false);
    take(s, FACTS_IMPORT_ROLE_LEN_KV, n, false);
    s->out->padding = s->out->padding || m >= 0 || n >= 0;
}

static bool take_query_and_key(search *s, const facts_import_operation *scores)
{
    bool pool;
    int q = source(s, facts_import_port_of(scores, "matA"), &pool, FACTS_IMPORT_ROLE_TABLE_K);
    int k = source(s, facts_import_port_of(scores, "matB"), &pool, FACTS_IMPORT_ROLE_TABLE_K);
    take(s, FACTS_IMPORT_ROLE_Q, q, false);
    take(s, FACTS_IMPORT_ROLE_K, k, !pool);
    take_lengths(s, scores);
    return q >= 0 && k >= 0
               ? true
               : refuse(s->error, "the first matrix product does not multiply Q and K", "");
}

static bool forward(search *s, const facts_import_operation *product[FORWARD_PRODUCTS])
{
    int first = made_of(s->graph, facts_import_port_of(product[1], "matA"),
                        facts_import_port_of(product[0], "matC"))
                    ? 0
                    : 1;
    const facts_import_operation *scores = product[first], *values = product[1 - first];
    int c = facts_import_port_of(scores, "matC"), a = facts_import_port_of(values, "matA");
    bool pool;
    if (c < 0 || a < 0 || !made_of(s->graph, a, c))
        return refuse(s->error,
                      "the graph has two matrix products, and neither uses the result of the other",
                      "");
    if (!take_query_and_key(s, scores))
        return false;
    int v = source(s, facts_import_port_of(values, "matB"), &pool, FACTS_IMPORT_ROLE_TABLE_V);
    take(s, FACTS_IMPORT_ROLE_V, v, false);
    take(s, FACTS_IMPORT_ROLE_O, sink_of(s, facts_import_port_of(values, "matC")), false);
    return walk(s, a, c);
}

/* What a backward reads and writes beside the five products. */
static void take_beside(search *s, int dp)
{
    for (int i = 0; i < s->graph->operation_count; i++) {
        const facts_import_operation *op = &s->graph->operation[i];
        int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B"),
            y = facts_import_port_of(op, "Y");
        if (x < 0 || y < 0)
            continue;
        bool per_head = tensor(s, y)->dim[0] == 1 && tensor(s, y)->dim[2] == 1 &&
                        tensor(s, y)->dim[3] == 1 && !tensor(s, y)->is_virtual;
        if (is_pointwise(op, "MUL") && b >= 0 && facts_import_writer(s->graph, x) == NULL &&
            facts_import_writer(s->graph, b) == NULL)
            take(s, FACTS_IMPORT_ROLE_O,
                 strcmp(tensor(s, b)->name, s->out->part[FACTS_IMPORT_ROLE_DO].name) == 0 ? x : b,
                 false);
        else if (is_reduction(op, "ADD") && made_of(s->graph, x, dp) && !tensor(s, y)->is_virtual &&
                 tensor(s, x)->is_virtual && tensor(s, y)->dim[3] == tensor(s, dp)->dim[3] &&
                 tensor(s, x)->dim[2] == tensor(s, dp)->dim[2] &&
                 tensor(s, x)->dim[3] == tensor(s, dp)->dim[3])
            take(s, FACTS_IMPORT_ROLE_DBIAS, y, false);
        else if (is_reduction(op, "ADD") && per_head)
            take(s, FACTS_IMPORT_ROLE_DSINK, y, false);
        else if (is_pointwise(op, "SUB") && facts_import_writer(s->graph, x) == NULL &&
                 tensor(s, x)->dim[2] == 1 && tensor(s, x)->dim[3] == 1)
            take(s, FACTS_IMPORT_ROLE_SINK, x, false);
    }
}

/* Dropout of a backward is a factor of P after its exponential, which the walk does not pass. */
static void take_dropout(search *s, int p)
{
    for (int i = 0; i < s->graph->operation_count; i++) {
        const facts_import_operation *op = &s->graph->operation[i];
        int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B");
        if (op->kind == FACTS_IMPORT_RNG)
            take_rng(s, op);
        else if (is_pointwise(op, "MUL") && x >= 0 && b >= 0 && made_of(s->graph, x, p) &&
                 facts_import_writer(s->graph, b) == NULL &&
                 !facts_import_is_scalar(tensor(s, b)) &&
                 tensor(s, b)->dim[3] == tensor(s, p)->dim[3])
            take(s, FACTS_IMPORT_ROLE_DROPOUT_MASK, b, false);
    }
}

static void take_gradients(search *s,
                           const facts_import_operation *const product[BACKWARD_PRODUCTS], int dp)
{
    for (int i = 0; i < BACKWARD_PRODUCTS; i++) {
        int a = facts_import_port_of(product[i], "matA"),
            b = facts_import_port_of(product[i], "matB"),
            c = facts_import_port_of(product[i], "matC");
        if (c == dp || c < 0 || !tensor(s, a)->is_virtual ||
            facts_import_writer(s->graph, a) == NULL ||
            facts_import_writer(s->graph, a)->kind == FACTS_IMPORT_DEQUANTIZE)
            continue;
        bool of_scores = made_of(s->graph, a, dp),
             transposed = facts_import_writer(s->graph, a)->kind == FACTS_IMPORT_RESHAPE;
        int out = sink_of(s, c);
        facts_import_role role = !of_scores   ? FACTS_IMPORT_ROLE_DV
                                 : transposed ? FACTS_IMPORT_ROLE_DK
                                              : FACTS_IMPORT_ROLE_DQ;
        take(s, role, out, false);
        if (role == FACTS_IMPORT_ROLE_DQ)
            s->out->dq_direct = out == c && b >= 0;
        s->out->totals =
            s->out->totals || (!tensor(s, c)->is_virtual && out != c && tensor(s, c)->ragged != -1);
    }
}

static bool backward(search *s, const facts_import_operation *product[BACKWARD_PRODUCTS])
{
    const facts_import_operation *scores = NULL, *dp = NULL;
    int exp = -1;
    bool pool;
    s->out->backward = true;
    for (int i = 0; i < s->graph->operation_count; i++) {
        const facts_import_operation *op = &s->graph->operation[i];
        int y = facts_import_port_of(op, "Y");
        if (is_pointwise(op, "EXP") && y >= 0 && tensor(s, y)->dim[3] > 1 && exp < 0)
            exp = y;
    }
    for (int i = 0; i < BACKWARD_PRODUCTS; i++) {
        int a = facts_import_port_of(product[i], "matA"),
            c = facts_import_port_of(product[i], "matC"),
            ignored = source(s, a, &pool, FACTS_IMPORT_ROLE_TABLE_K);
        if (ignored < 0 || facts_import_writer(s->graph, ignored) != NULL)
            continue;
        if (made_of(s->graph, exp, c))
            scores = product[i];
        else
            dp = product[i];
    }
    if (exp < 0 || scores == NULL || dp == NULL)
        return refuse(s->error, "five products that are no backward", "");
    int last = facts_import_port_of(dp, "matC"),
        from = facts_import_port_of(facts_import_writer(s->graph, exp), "X");
    if (!take_query_and_key(s, scores))
        return false;
    take(s, FACTS_IMPORT_ROLE_DO,
         source(s, facts_import_port_of(dp, "matA"), &pool, FACTS_IMPORT_ROLE_TABLE_V), false);
    take(s, FACTS_IMPORT_ROLE_V,
         source(s, facts_import_port_of(dp, "matB"), &pool, FACTS_IMPORT_ROLE_TABLE_V), true);
    if (!s->out->has[FACTS_IMPORT_ROLE_DO] || !s->out->has[FACTS_IMPORT_ROLE_V])
        return refuse(s->error, "five products, none of which is of dO and V", "");
    take_gradients(s, product, last);
    take_beside(s, last);
    take_dropout(s, exp);
    return walk(s, from, facts_import_port_of(scores, "matC"));
}

static bool recognise_composite(search *s)
{
    const facts_import_operation *product[BACKWARD_PRODUCTS];
    int count = 0;
    for (int i = 0; i < s->graph->operation_count; i++)
        if (s->graph->operation[i].kind == FACTS_IMPORT_MATMUL && count++ < BACKWARD_PRODUCTS)
            product[count - 1] = &s->graph->operation[i];
    for (int i = 0; i < count && i < BACKWARD_PRODUCTS; i++)
        if (facts_import_port_of(product[i], "matA") < 0 ||
            facts_import_port_of(product[i], "matB") < 0 ||
            facts_import_port_of(product[i], "matC") < 0)
            return refuse(s->error, "a product of matrices that lacks one", "");
    if (count == FORWARD_PRODUCTS)
        return forward(s, product);
    if (count == BACKWARD_PRODUCTS)
        return backward(s, product);
    return refuse(
        s->error,
        "the graph does not have the two matrix products of a forward or the five of a backward",
        "");
}

/* ---- nodes of cudnn-frontend, and cuDNN's one operation ---- */

/* Everything that a unified operation or a node of cudnn-frontend names. */
static void take_named(search *s, const facts_import_operation *op,
                       const char *const names[FACTS_IMPORT_ROLES])
{
    for (facts_import_role role = 0; role < FACTS_IMPORT_ROLES; role++)
        if (names[role][0] != '\0' && !s->out->has[role])
            take(s, role, facts_import_port_of(op, names[role]), false);
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

/* causal_mask, of the frontends that had it beside the bounds, is a right bound of 0;
 * sliding_window_length, of those without bounds, the left bound. */
static void take_band(facts_import_attention *out, const json_t *fields)
{
    const bool old = json_is_integer(json_object_get(fields, "sliding_window_length"));
    out->left = bound_of(fields, old ? "sliding_window_length" : "left_bound");
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
        const bool output =
            out->backward ? role >= FACTS_IMPORT_ROLE_DQ : role <= FACTS_IMPORT_ROLE_SUM_EXP;
        if (!out->has[role] || t->strided || !output)
            continue;
        if (t->rank == 0)
            memcpy(t->dim, like->dim, sizeof t->dim);
        t->dim[3] = t->rank != 0                                                  ? t->dim[3]
                    : row                                                         ? 1
                    : role == FACTS_IMPORT_ROLE_O || role == FACTS_IMPORT_ROLE_DO ? v->dim[3]
                                                                                  : like->dim[3];
        /* A dimension of 0 or below is refused later; here it must not end the arithmetic. */
        for (int64_t d = 3, run = 1;
             d >= 0 && t->dim[d] > 0 && t->dim[d] <= (INT64_C(1) << 46) / run; run *= t->dim[d--])
            t->stride[d] = run;
        t->rank = 4;
        t->strided = true;
        if (row && t->type == FACTS_IMPORT_TYPE_OTHER)
            t->type = FACTS_IMPORT_F32;
    }
}

static bool recognise_node(search *s, const facts_import_operation *op)
{
#define AS_WORD(symbol, frontend, forward, backward) frontend,
    static const char *const names[FACTS_IMPORT_ROLES] = { FACTS_IMPORT_ROLE_LIST(AS_WORD) };
#undef AS_WORD
    facts_import_attention *out = s->out;
    const json_t *fields = op->json, *scale = json_object_get(fields, "attn_scale_value"),
                 *most = json_object_get(fields, "max_seq_len_kv");
    out->node = op;
    out->backward = op->kind == FACTS_IMPORT_SDPA_BACKWARD;
    take_named(s, op, names);
    take_scale(out);
    double number;
    if (facts_import_number(scale, &number)) {
        out->has_scale = out->scale_known = true;
        out->scale = number;
    }
    take_shapes(out);
    take_band(out, fields);
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
static void take_softmax_inside(search *s, const json_t *fields)
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
            take(s, rows[i].role, facts_import_tensor_named(s->graph, name), false);
    }
    s->out->stats_log2 = is_true(fields, "statsLog2");
}

/* The scores' own graph: from its one output back to its one input. */
static bool walk_inside(search *s, const facts_import_graph *inside, const json_t *fields)
{
    char in[24] = "", last[24] = "";
    const json_t *input = json_object_get(fields, "subgraphInputUid"),
                 *output = json_object_get(fields, "subgraphOutputUid");
    if (json_is_integer(input) && json_is_integer(output)) {
        snprintf(in, sizeof in, "%lld", (long long)json_integer_value(input));
        snprintf(last, sizeof last, "%lld", (long long)json_integer_value(output));
    }
    search inner = {
        .graph = inside, .out = s->out, .error = s->error, .row_max = -1, .row_sum = -1
    };
    int from = facts_import_tensor_named(inside, last),
        until = facts_import_tensor_named(inside, in);
    if ((json_is_integer(output) && from < 0) || (json_is_integer(input) && until < 0))
        return refuse(s->error, "the score graph does not have the tensor", from < 0 ? last : in);
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
        return refuse(
            s->error,
            "the score graph of a unified operation does not connect its input and its output", "");
    bool single = s->out->single;
    bool ok = walk(&inner, from, until);
    s->out->single = single; /* a unified operation has no other spelling */
    return ok;
}

static bool recognise_unified(search *s, const facts_import_operation *op,
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
static void see_through_rope(search *s, const facts_import_graph *graph)
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
                take(s, rotated[r], outside, false);
                s->out->rope = true;
                s->out->rope_dim = json_integer_value(json_object_get(op->json, "rope_dim"));
            }
    }
}

facts_import_found facts_import_recognise(facts_import_attention *out,
                                          const facts_import_graph *graph,
                                          const facts_import_graph *part, facts_error *error)
{
    *out = (facts_import_attention){ .graph = graph,
                                     .offsets = FACTS_IMPORT_TYPE_OTHER,
                                     .rescale = -1 };
    *error = (facts_error){ .line = 0 };
    search s = { .graph = graph, .out = out, .error = error, .row_max = -1, .row_sum = -1 };
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
        ok = refuse(error, "the graph has several attentions; a case has one", "");
    else if (one != NULL && graph->frontend)
        ok = recognise_node(&s, one);
    else if (one != NULL)
        ok = recognise_unified(&s, one, part);
    else
        ok = recognise_composite(&s);
    if (ok)
        see_through_rope(&s, graph);
    if (ok && (!out->has[FACTS_IMPORT_ROLE_Q] || !out->has[FACTS_IMPORT_ROLE_K] ||
               !out->has[FACTS_IMPORT_ROLE_V]))
        ok = refuse(error, "attention without Q, K or V", "");
    static const facts_import_role gradients[] = { FACTS_IMPORT_ROLE_DO, FACTS_IMPORT_ROLE_DQ,
                                                   FACTS_IMPORT_ROLE_DK, FACTS_IMPORT_ROLE_DV };
    if (ok && !out->has[FACTS_IMPORT_ROLE_O])
        ok = refuse(error, "attention without O", "");
    for (facts_import_role role = 0; ok && role <= FACTS_IMPORT_ROLE_DBIAS; role++)
        if (out->has[role] && !out->part[role].strided)
            ok = refuse(error, "the log does not have the sizes and strides of",
                        out->part[role].name);
    for (size_t i = 0; ok && out->backward && i < sizeof gradients / sizeof *gradients; i++)
        if (!out->has[gradients[i]])
            ok = refuse(error, "a backward without dO, dQ, dK or dV", "");
    return ok ? FACTS_IMPORT_FOUND : FACTS_IMPORT_UNREAD;
}
