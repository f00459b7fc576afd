/* From the probabilities back to the scores: each operation on the way is a scale, a mask, a bias,
 * a softmax, or one that no case says. */
#include <stdio.h>
#include <string.h>

#include "recognition.h"

enum { AXIS_ROW = 2, AXIS_KEY = 3 };

static const facts_import_tensor *tensor(const facts_import_search *s, int at)
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

static const facts_import_operation *writer(const facts_import_search *s, int at)
{
    return facts_import_writer(s->graph, at);
}

bool facts_import_made_of(const facts_import_graph *graph, int at, int from)
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

static side side_of(const facts_import_search *s, int at)
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
static bool read_band(facts_import_search *s, const facts_import_operation *op)
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

static bool read_padding(facts_import_search *s, const facts_import_operation *op)
{
    const facts_import_operation *one = writer(s, facts_import_port_of(op, "X")),
                                 *other = writer(s, facts_import_port_of(op, "B"));
    if (!is_pointwise(one, "CMP_LT") || !is_pointwise(other, "CMP_LT"))
        return false;
    const facts_import_operation *both[2] = { one, other };
    for (int i = 0; i < 2; i++) {
        int axis = side_of(s, facts_import_port_of(both[i], "X")).axis,
            lengths = facts_import_port_of(both[i], "B");
        if ((axis != AXIS_ROW && axis != AXIS_KEY) || lengths < 0 || writer(s, lengths) != NULL)
            return false;
        facts_import_take(s, axis == AXIS_ROW ? FACTS_IMPORT_ROLE_LEN_Q : FACTS_IMPORT_ROLE_LEN_KV,
                          lengths, false);
    }
    s->out->padding = true;
    return true;
}

static bool read_mod(facts_import_search *s, facts_import_mod mod)
{
    if (s->out->mod != FACTS_IMPORT_MOD_NONE && s->out->mod != mod)
        return facts_import_refuse(s->error, "two modifications of the scores: a case has one", "");
    s->out->mod = mod;
    return true;
}

/* What decides which scores are kept. */
static bool read_predicate(facts_import_search *s, int at)
{
    const facts_import_operation *op = writer(s, at);
    if (op == NULL) {
        facts_import_take(s, FACTS_IMPORT_ROLE_BIAS, at, false);
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
    return facts_import_refuse(s->error, "a mask that no case says: it comes from", op->mode);
}

/* A product with a number: the scale, or what only undoes another. */
static void read_factor(facts_import_search *s, int at, bool after_softmax)
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

void facts_import_rng(facts_import_search *s, const facts_import_operation *op)
{
    const json_t *keep = json_object_get(op->json, "bernoulli_dist_probability");
    int seed = facts_import_port_of(op, "seedTensor"), dump = facts_import_port_of(op, "Y");
    facts_import_take(s, FACTS_IMPORT_ROLE_SEED, seed, false);
    s->out->dropout_known = json_is_number(keep);
    s->out->dropout = 1.0 - json_number_value(keep);
    if (dump >= 0 && !tensor(s, dump)->is_virtual)
        facts_import_take(s, FACTS_IMPORT_ROLE_RNG_DUMP, dump, false);
}

static bool read_product(facts_import_search *s, const facts_import_operation *op, int other,
                         bool after_softmax)
{
    const facts_import_operation *made = writer(s, other);
    if (made != NULL && made->kind == FACTS_IMPORT_RNG) {
        facts_import_rng(s, made);
        return true;
    }
    if (facts_import_is_scalar(tensor(s, other))) {
        if (is_pointwise(writer(s, facts_import_port_of(op, "X")), "TANH_FWD"))
            return read_mod(s, FACTS_IMPORT_MOD_SOFTCAP);
        read_factor(s, other, after_softmax);
        return true;
    }
    if (made == NULL && after_softmax) {
        facts_import_take(s, FACTS_IMPORT_ROLE_DROPOUT_MASK, other, false);
        return true;
    }
    return facts_import_refuse(
        s->error, "a product with a tensor that no case says:", tensor(s, other)->name);
}

/* slope * (key - row) beside the scores: ALiBi, as cuDNN spells it; anything else that is added. */
static bool read_sum(facts_import_search *s, int other)
{
    const facts_import_operation *made = writer(s, other);
    if (made == NULL) {
        if (s->out->has[FACTS_IMPORT_ROLE_BIAS])
            return facts_import_refuse(
                s->error, "the graph adds two tensors to the scores; a case can have one bias", "");
        facts_import_take(s, FACTS_IMPORT_ROLE_BIAS, other, false);
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
    return facts_import_refuse(
        s->error,
        "the graph adds a tensor to the scores that a case cannot express; the tensor comes from",
        made->mode);
}

/* The two reductions and what hangs on them: exp(x - max) / sum. Returns x; -1: it is no softmax.
 */
static int read_softmax(facts_import_search *s, const facts_import_operation *division)
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
            facts_import_take(s, FACTS_IMPORT_ROLE_SINK, largest->port[i].tensor, false);
    if (max < 0 || largest == NULL)
        return -1;
    if (!tensor(s, max)->is_virtual)
        facts_import_take(s, FACTS_IMPORT_ROLE_MAX, max, false);
    if (!tensor(s, sum)->is_virtual)
        facts_import_take(s, FACTS_IMPORT_ROLE_SUM_EXP, sum, false);
    for (int i = 0; i < s->graph->operation_count; i++) {
        const facts_import_operation *op = &s->graph->operation[i];
        int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B"),
            y = facts_import_port_of(op, "Y");
        bool stats = is_pointwise(op, "ADD") && y >= 0 && !tensor(s, y)->is_virtual &&
                     (x == max || b == max);
        if (stats && is_pointwise(writer(s, x == max ? b : x), "LOG"))
            facts_import_take(s, FACTS_IMPORT_ROLE_STATS, y, false);
    }
    return facts_import_port_of(below, "X");
}

static int read_single_softmax(facts_import_search *s, const facts_import_operation *op)
{
    facts_import_take(s, FACTS_IMPORT_ROLE_STATS, facts_import_port_of(op, "statsDesc"), false);
    facts_import_take(s, FACTS_IMPORT_ROLE_MAX, facts_import_port_of(op, "maxDesc"), false);
    facts_import_take(s, FACTS_IMPORT_ROLE_SUM_EXP, facts_import_port_of(op, "sumExpDesc"), false);
    facts_import_take(s, FACTS_IMPORT_ROLE_SINK, facts_import_port_of(op, "sinkDesc"), false);
    s->out->stats_log2 = json_is_true(json_object_get(op->json, "statsLog2"));
    s->out->single = true;
    return facts_import_port_of(op, "X");
}

static int read_single_band(facts_import_search *s, const facts_import_operation *op)
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
static int step_pointwise(facts_import_search *s, const facts_import_operation *op, int until,
                          bool *after_softmax)
{
    int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B"), next = -1;
    if (x >= 0 && b >= 0 && !is_pointwise(op, "BINARY_SELECT") && !is_pointwise(op, "DIV") &&
        !facts_import_made_of(s->graph, x, until)) {
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
        facts_import_take(s, FACTS_IMPORT_ROLE_STATS, b, false);
    else if (is_pointwise(op, "MUL") && b >= 0)
        ok = read_product(s, op, b, *after_softmax);
    else if (is_pointwise(op, "ADD") && b >= 0)
        ok = read_sum(s, b);
    else if (!is_pointwise(op, "IDENTITY") &&
             !(is_pointwise(op, "TANH_FWD") && s->out->mod == FACTS_IMPORT_MOD_SOFTCAP))
        ok = facts_import_refuse(s->error,
                                 "an operation on the scores that no case says:", op->mode);
    return ok ? x : -1;
}

bool facts_import_walk(facts_import_search *s, int from, int until)
{
    bool after_softmax = false;
    int at = from;
    for (int i = 0; i < s->graph->operation_count; i++) { /* a softmax is still to come? */
        const facts_import_operation *op = &s->graph->operation[i];
        bool softmax = op->kind == FACTS_IMPORT_SOFTMAX ||
                       (is_pointwise(op, "DIV") &&
                        is_pointwise(writer(s, facts_import_port_of(op, "X")), "EXP"));
        int y = facts_import_written(op);
        after_softmax =
            after_softmax || (softmax && y >= 0 && facts_import_made_of(s->graph, from, y) &&
                              facts_import_made_of(s->graph, y, until));
    }
    for (int steps = 0; at != until; steps++) {
        const facts_import_operation *op = writer(s, at);
        if (op == NULL || steps > s->graph->operation_count)
            return facts_import_refuse(
                s->error, "the scores of the second product do not come from the first", "");
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
            return facts_import_refuse(s->error,
                                       "an operation on the scores that no case says:", op->word);
        }
        if (at < 0)
            return s->error->text[0] != '\0'
                       ? false
                       : facts_import_refuse(
                             s->error, "an operation on the scores without an input:", op->word);
    }
    return true;
}
