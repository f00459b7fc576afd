/* Attention as products of matrices with operations between them: two in a forward, five in a
 * backward. */
#include <string.h>

#include "recognition.h"

enum { FORWARD_PRODUCTS = 2, BACKWARD_PRODUCTS = 5 };

static const facts_import_tensor *tensor(const facts_import_search *s, int at)
{
    return &s->graph->tensor[at];
}

static bool is_pointwise(const facts_import_operation *op, const char *mode)
{
    return op != NULL && op->kind == FACTS_IMPORT_POINTWISE && strcmp(op->mode, mode) == 0;
}

static bool is_reduction(const facts_import_operation *op, const char *mode)
{
    return op != NULL && op->kind == FACTS_IMPORT_REDUCTION && strcmp(op->mode, mode) == 0;
}

/* The tensor in memory that a product reads: behind views, scale factors and pages. */
static int source(facts_import_search *s, int at, bool *pool, facts_import_role table)
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
            facts_import_take(s, table, pages, false);
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
static int sink_of(const facts_import_search *s, int at)
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

static void take_lengths(facts_import_search *s, const facts_import_operation *scores)
{
    int m = facts_import_port_of(scores, "mOverride"),
        n = facts_import_port_of(scores, "nOverride");
    facts_import_take(s, FACTS_IMPORT_ROLE_LEN_Q, m, false);
    facts_import_take(s, FACTS_IMPORT_ROLE_LEN_KV, n, false);
    s->out->padding = s->out->padding || m >= 0 || n >= 0;
}

static bool take_query_and_key(facts_import_search *s, const facts_import_operation *scores)
{
    bool pool;
    int q = source(s, facts_import_port_of(scores, "matA"), &pool, FACTS_IMPORT_ROLE_TABLE_K);
    int k = source(s, facts_import_port_of(scores, "matB"), &pool, FACTS_IMPORT_ROLE_TABLE_K);
    facts_import_take(s, FACTS_IMPORT_ROLE_Q, q, false);
    facts_import_take(s, FACTS_IMPORT_ROLE_K, k, !pool);
    take_lengths(s, scores);
    return q >= 0 && k >= 0
               ? true
               : facts_import_refuse(s->error, "the first matrix product does not multiply Q and K",
                                     "");
}

static bool forward(facts_import_search *s, const facts_import_operation *product[FORWARD_PRODUCTS])
{
    int first = facts_import_made_of(s->graph, facts_import_port_of(product[1], "matA"),
                                     facts_import_port_of(product[0], "matC"))
                    ? 0
                    : 1;
    const facts_import_operation *scores = product[first], *values = product[1 - first];
    int c = facts_import_port_of(scores, "matC"), a = facts_import_port_of(values, "matA");
    bool pool;
    if (c < 0 || a < 0 || !facts_import_made_of(s->graph, a, c))
        return facts_import_refuse(
            s->error, "the graph has two matrix products, and neither uses the result of the other",
            "");
    if (!take_query_and_key(s, scores))
        return false;
    int v = source(s, facts_import_port_of(values, "matB"), &pool, FACTS_IMPORT_ROLE_TABLE_V);
    facts_import_take(s, FACTS_IMPORT_ROLE_V, v, false);
    facts_import_take(s, FACTS_IMPORT_ROLE_O, sink_of(s, facts_import_port_of(values, "matC")),
                      false);
    return facts_import_walk(s, a, c);
}

/* What a backward reads and writes beside the five products. */
static void take_beside(facts_import_search *s, int dp)
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
            facts_import_take(
                s, FACTS_IMPORT_ROLE_O,
                strcmp(tensor(s, b)->name, s->out->part[FACTS_IMPORT_ROLE_DO].name) == 0 ? x : b,
                false);
        else if (is_reduction(op, "ADD") && facts_import_made_of(s->graph, x, dp) &&
                 !tensor(s, y)->is_virtual && tensor(s, x)->is_virtual &&
                 tensor(s, y)->dim[3] == tensor(s, dp)->dim[3] &&
                 tensor(s, x)->dim[2] == tensor(s, dp)->dim[2] &&
                 tensor(s, x)->dim[3] == tensor(s, dp)->dim[3])
            facts_import_take(s, FACTS_IMPORT_ROLE_DBIAS, y, false);
        else if (is_reduction(op, "ADD") && per_head)
            facts_import_take(s, FACTS_IMPORT_ROLE_DSINK, y, false);
        else if (is_pointwise(op, "SUB") && facts_import_writer(s->graph, x) == NULL &&
                 tensor(s, x)->dim[2] == 1 && tensor(s, x)->dim[3] == 1)
            facts_import_take(s, FACTS_IMPORT_ROLE_SINK, x, false);
    }
}

/* Dropout of a backward is a factor of P after its exponential, which the walk does not pass. */
static void take_dropout(facts_import_search *s, int p)
{
    for (int i = 0; i < s->graph->operation_count; i++) {
        const facts_import_operation *op = &s->graph->operation[i];
        int x = facts_import_port_of(op, "X"), b = facts_import_port_of(op, "B");
        if (op->kind == FACTS_IMPORT_RNG)
            facts_import_rng(s, op);
        else if (is_pointwise(op, "MUL") && x >= 0 && b >= 0 &&
                 facts_import_made_of(s->graph, x, p) && facts_import_writer(s->graph, b) == NULL &&
                 !facts_import_is_scalar(tensor(s, b)) &&
                 tensor(s, b)->dim[3] == tensor(s, p)->dim[3])
            facts_import_take(s, FACTS_IMPORT_ROLE_DROPOUT_MASK, b, false);
    }
}

static void take_gradients(facts_import_search *s,
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
        bool of_scores = facts_import_made_of(s->graph, a, dp),
             transposed = facts_import_writer(s->graph, a)->kind == FACTS_IMPORT_RESHAPE;
        int out = sink_of(s, c);
        facts_import_role role = !of_scores   ? FACTS_IMPORT_ROLE_DV
                                 : transposed ? FACTS_IMPORT_ROLE_DK
                                              : FACTS_IMPORT_ROLE_DQ;
        facts_import_take(s, role, out, false);
        if (role == FACTS_IMPORT_ROLE_DQ)
            s->out->dq_direct = out == c && b >= 0;
        s->out->totals =
            s->out->totals || (!tensor(s, c)->is_virtual && out != c && tensor(s, c)->ragged != -1);
    }
}

static bool backward(facts_import_search *s,
                     const facts_import_operation *product[BACKWARD_PRODUCTS])
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
        if (facts_import_made_of(s->graph, exp, c))
            scores = product[i];
        else
            dp = product[i];
    }
    if (exp < 0 || scores == NULL || dp == NULL)
        return facts_import_refuse(s->error, "five products that are no backward", "");
    int last = facts_import_port_of(dp, "matC"),
        from = facts_import_port_of(facts_import_writer(s->graph, exp), "X");
    if (!take_query_and_key(s, scores))
        return false;
    facts_import_take(s, FACTS_IMPORT_ROLE_DO,
                      source(s, facts_import_port_of(dp, "matA"), &pool, FACTS_IMPORT_ROLE_TABLE_V),
                      false);
    facts_import_take(s, FACTS_IMPORT_ROLE_V,
                      source(s, facts_import_port_of(dp, "matB"), &pool, FACTS_IMPORT_ROLE_TABLE_V),
                      true);
    if (!s->out->has[FACTS_IMPORT_ROLE_DO] || !s->out->has[FACTS_IMPORT_ROLE_V])
        return facts_import_refuse(s->error, "five products, none of which is of dO and V", "");
    take_gradients(s, product, last);
    take_beside(s, last);
    take_dropout(s, exp);
    return facts_import_walk(s, from, facts_import_port_of(scores, "matC"));
}

bool facts_import_composite(facts_import_search *s)
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
            return facts_import_refuse(s->error, "a product of matrices that lacks one", "");
    if (count == FORWARD_PRODUCTS)
        return forward(s, product);
    if (count == BACKWARD_PRODUCTS)
        return backward(s, product);
    return facts_import_refuse(
        s->error,
        "the graph does not have the two matrix products of a forward or the five of a backward",
        "");
}
