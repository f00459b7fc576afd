#include "agree.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "fields.h"

const facts_import_placed facts_import_placed_tensors[FACTS_IMPORT_PLACED] = {
    { FACTS_IMPORT_ROLE_Q, FACTS_TENSOR_Q, "q" },
    { FACTS_IMPORT_ROLE_K, FACTS_TENSOR_K, "k" },
    { FACTS_IMPORT_ROLE_V, FACTS_TENSOR_V, "v" },
    { FACTS_IMPORT_ROLE_O, FACTS_TENSOR_O, "o" },
    { FACTS_IMPORT_ROLE_STATS, FACTS_TENSOR_STATS, "stats" },
    { FACTS_IMPORT_ROLE_MAX, FACTS_TENSOR_MAX, "stats" },
    { FACTS_IMPORT_ROLE_SUM_EXP, FACTS_TENSOR_SUM_EXP, "stats" },
    { FACTS_IMPORT_ROLE_DO, FACTS_TENSOR_DO, "do" },
    { FACTS_IMPORT_ROLE_DQ, FACTS_TENSOR_DQ, "dq" },
    { FACTS_IMPORT_ROLE_DK, FACTS_TENSOR_DK, "dk" },
    { FACTS_IMPORT_ROLE_DV, FACTS_TENSOR_DV, "dv" },
    { FACTS_IMPORT_ROLE_BIAS, FACTS_TENSOR_BIAS, "bias" },
    { FACTS_IMPORT_ROLE_DBIAS, FACTS_TENSOR_DBIAS, "dbias" },
};

/* The arrays of a case that a role is. */
static const struct {
    facts_import_role role;
    facts_array_id id;
} arrays[] = {
    { FACTS_IMPORT_ROLE_LEN_Q, FACTS_ARRAY_SEQ_LEN_Q },
    { FACTS_IMPORT_ROLE_LEN_KV, FACTS_ARRAY_SEQ_LEN_KV },
    { FACTS_IMPORT_ROLE_CU_Q, FACTS_ARRAY_SEQ_LEN_Q },
    { FACTS_IMPORT_ROLE_CU_KV, FACTS_ARRAY_SEQ_LEN_KV },
    { FACTS_IMPORT_ROLE_TABLE_K, FACTS_ARRAY_PAGE_TABLE_K },
    { FACTS_IMPORT_ROLE_TABLE_V, FACTS_ARRAY_PAGE_TABLE_V },
    { FACTS_IMPORT_ROLE_SINK, FACTS_ARRAY_SINK },
    { FACTS_IMPORT_ROLE_DSINK, FACTS_ARRAY_DSINK },
    { FACTS_IMPORT_ROLE_SEED, FACTS_ARRAY_SEED },
    { FACTS_IMPORT_ROLE_BLOCK_MASK, FACTS_ARRAY_BLOCK_MASK },
};

static int32_t dtype_of(facts_import_type type, int32_t expected)
{
    const bool mx = expected == FATTN_MXE4M3 || expected == FATTN_MXE5M2;
    switch (type) {
    case FACTS_IMPORT_BF16:
        return FATTN_BF16;
    case FACTS_IMPORT_F16:
        return FATTN_F16;
    case FACTS_IMPORT_F32:
        return FATTN_F32;
    case FACTS_IMPORT_E4M3:
        return mx ? FATTN_MXE4M3 : FATTN_E4M3;
    case FACTS_IMPORT_E5M2:
        return mx ? FATTN_MXE5M2 : FATTN_E5M2;
    case FACTS_IMPORT_BOOL:
        return FATTN_BOOL;
    default:
        return -1;
    }
}

static bool is_array_type(facts_import_type type, facts_array_type expected)
{
    switch (expected) {
    case FACTS_ARRAY_I32:
        return type == FACTS_IMPORT_I32;
    case FACTS_ARRAY_I64:
        return type == FACTS_IMPORT_I64;
    case FACTS_ARRAY_F32:
        return type == FACTS_IMPORT_F32;
    default:
        return type == FACTS_IMPORT_U8 || type == FACTS_IMPORT_I8 || type == FACTS_IMPORT_BOOL;
    }
}

static bool refuse_sizes(facts_error *error, const facts_import_tensor *t, const int64_t dim[4])
{
    snprintf(error->text, sizeof error->text,
             "the tensors disagree: %.60s has sizes %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
             ", and the sizes of the other tensors make it %" PRId64 ",%" PRId64 ",%" PRId64
             ",%" PRId64,
             t->name, t->dim[0], t->dim[1], t->dim[2], t->dim[3], dim[0], dim[1], dim[2], dim[3]);
    return false;
}

static bool refuse_type(facts_error *error, const facts_import_tensor *t, const char *as)
{
    snprintf(error->text, sizeof error->text, "%.60s has a type that no %s of a case has", t->name,
             as);
    return false;
}

/* A tensor of the call. Pages of K and V: their number is the pool's, and no case has it. */
static bool agrees(const facts_import_tensor *t, const facts_tensor *is, const char *as,
                   facts_error *error)
{
    const bool paged = is->page != 0;
    for (int d = 0; d < 4; d++)
        if (t->dim[d] != is->dim[d] && !(paged && (d == 0 || d == 2)))
            return refuse_sizes(error, t, is->dim);
    if (dtype_of(t->type, is->dtype) != is->dtype)
        return refuse_type(error, t, as);
    return true;
}

/* A small array: so many elements without gaps, of its type. */
static bool check_array(facts_import_notes *notes, const facts_import_tensor *t,
                        const facts_array *is, facts_error *error)
{
    int64_t count = 1;
    bool dense = true;
    for (int d = 3; d >= 0; d--) {
        dense = dense && (t->dim[d] == 1 || t->stride[d] == count || t->stride[d] == 0);
        if (__builtin_mul_overflow(count, t->dim[d], &count))
            count = -1;
    }
    if (!dense || (t->rank > 0 && !t->strided))
        facts_import_note(notes, "not understood: the strides of %.60s", t->name);
    if (!is_array_type(t->type, is->type))
        facts_import_note(notes, "not understood: the type of %.60s", t->name);
    if (t->rank > 0 && count != is->count)
        snprintf(error->text, sizeof error->text,
                 "the tensors disagree: %.60s has %" PRId64
                 " elements, and the sizes of the other tensors make it %" PRId64,
                 t->name, count, is->count);
    return error->text[0] == '\0';
}

static void check_place(facts_import_notes *notes, const facts_import_tensor *t)
{
    if (t->is_virtual || t->by_value)
        facts_import_note(notes, "not understood: %.60s is %s", t->name,
                          t->is_virtual ? "virtual" : "passed by value");
    if (t->reordered != (t->type == FACTS_IMPORT_E8M0))
        facts_import_note(notes, "not understood: the reordering of %.60s", t->name);
    if (t->has_value)
        facts_import_note(notes, "not understood: the value of %.60s", t->name);
    if (t->multiplier > 1 && t->multiplier != t->stride[2])
        facts_import_note(notes, "not understood: the ragged multiplier %" PRId64 " of %.60s",
                          t->multiplier, t->name);
}

static bool check_offsets(facts_import_notes *notes, const facts_import_attention *a,
                          const facts_import_tensor *t, facts_error *error)
{
    if (t->ragged < 0 || t->ragged >= a->graph->tensor_count)
        return true;
    const facts_import_tensor *offsets = &a->graph->tensor[t->ragged];
    check_place(notes, offsets);
    return check_array(notes, offsets,
                       &(facts_array){ .count = t->dim[0] + 1,
                                       .type = a->offsets == FACTS_IMPORT_I64 ? FACTS_ARRAY_I64
                                                                              : FACTS_ARRAY_I32 },
                       error);
}

/* The node's arguments that are arrays of the case, by name: what is missing, and what is more. */
static bool check_node(facts_import_notes *notes, const facts_import_attention *a,
                       const facts_problem *p, facts_error *error)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        int tensor = -1;
        const facts_array *is = &p->array[id];
        const bool scale = id >= FACTS_ARRAY_DESCALE_Q && id <= FACTS_ARRAY_AMAX_DV;
        for (int i = 0; i < a->node->port_count; i++)
            if (strcasecmp(a->node->port[i].name, facts_array_words[id]) == 0)
                tensor = a->node->port[i].tensor;
        if (tensor < 0 && is->count > 0 && !is->of_forward &&
            (scale || id == FACTS_ARRAY_OFFSET || id == FACTS_ARRAY_SEED))
            facts_import_note(notes, "not understood: the log does not have %s",
                              facts_array_words[id]);
        if (tensor < 0 || (id == FACTS_ARRAY_ATTN_SCALE && is->count == 0))
            continue;
        const facts_import_tensor *t = &a->graph->tensor[tensor];
        if (a->mx && scale && t->type == FACTS_IMPORT_E8M0)
            continue; /* factors of blocks */
        check_place(notes, t);
        if (is->count == 0)
            facts_import_note(notes, "not understood: %s", facts_array_words[id]);
        else if ((scale || id == FACTS_ARRAY_OFFSET || id == FACTS_ARRAY_ATTN_SCALE) &&
                 !check_array(notes, t, is, error))
            return false;
    }
    return true;
}

/* What a node says twice, or says of something that the graph does not have. */
static void check_flags(facts_import_notes *notes, const facts_import_attention *a,
                        const facts_problem *p)
{
    const json_t *fields = a->node->json;
    const bool stats = a->has[FACTS_IMPORT_ROLE_STATS],
               ragged = a->offsets != FACTS_IMPORT_TYPE_OTHER,
               lengths = a->has[FACTS_IMPORT_ROLE_LEN_Q] || a->has[FACTS_IMPORT_ROLE_LEN_KV] ||
                         a->has[FACTS_IMPORT_ROLE_CU_Q] || a->has[FACTS_IMPORT_ROLE_CU_KV],
               forward = !a->backward, right = a->right.given && a->right.value != 0;
    const struct {
        const char *field;
        int expected; /* 0, 1: the boolean that the graph implies; -1: no number either */
        bool holds;
    } flags[] = {
        { "causal_mask", 0, right },
        { "causal_mask_bottom_right", 0, right },
        { "generate_stats", stats, forward },
        { "is_inference", !stats, forward },
        { "stats_use_log2", 0, !stats },
        { "padding_mask", 1, lengths },
        { "is_deterministic_algorithm", 0, forward },
        { "dropout_probability", -1, p->drop == 0.0 },
        { "max_total_seq_len_q", -1, !ragged },
        { "max_total_seq_len_kv", -1, !ragged },
        { "rope_dim", -1, !a->rope },
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const json_t *is = json_object_get(fields, flags[i].field);
        double number = 0.0;
        const bool against = flags[i].expected < 0
                                 ? facts_import_number(is, &number) && number != 0.0
                                 : json_is_boolean(is) && json_is_true(is) != flags[i].expected;
        if (flags[i].holds && against)
            facts_import_note(notes, "not understood: %s, which the graph contradicts",
                              flags[i].field);
    }
    if (!a->unified && strcmp(facts_import_word(fields, "compute_data_type"), "HALF") == 0)
        facts_import_note(notes, "not understood: compute_data_type HALF");
    if (a->graph->frontend_version < 12000 && a->padding && !ragged)
        facts_import_note(notes, "cudnn-frontend before 1.20 does not log ragged offsets; assuming "
                                 "a dense graph (add layout=thd if it is packed)");
}

/* ---- the graph ---- */

static const facts_import_tensor *port(const facts_import_graph *g,
                                       const facts_import_operation *op, const char *name)
{
    const int at = facts_import_port_of(op, name);
    return at >= 0 ? &g->tensor[at] : NULL;
}

static bool fits_in(const facts_import_tensor *t, const facts_import_tensor *whole)
{
    bool fits = true;
    for (int d = 0; t != NULL && d < 4; d++)
        fits = fits && (t->dim[d] == 1 || t->dim[d] == whole->dim[d]);
    return fits;
}

/* Has an operation the arguments of its kind? */
static bool is_whole(const facts_import_graph *g, const facts_import_operation *op)
{
    static const struct {
        const char *mode;
        int inputs; /* X; X and B; X, B and T */
    } modes[] = { { "GEN_INDEX", 1 },   { "IDENTITY", 1 },     { "EXP", 1 },
                  { "LOG", 1 },         { "TANH_FWD", 1 },     { "RECIPROCAL", 1 },
                  { "ADD", 2 },         { "SUB", 2 },          { "MUL", 2 },
                  { "DIV", 2 },         { "MAX", 2 },          { "MIN", 2 },
                  { "CMP_GE", 2 },      { "CMP_GT", 2 },       { "CMP_LE", 2 },
                  { "CMP_LT", 2 },      { "CMP_EQ", 2 },       { "CMP_NEQ", 2 },
                  { "LOGICAL_AND", 2 }, { "LOGICAL_OR", 2 },   { "LOGICAL_NOT", 1 },
                  { "TANH_BWD", 2 },    { "BINARY_SELECT", 3 } };
    const bool x = port(g, op, "X") != NULL, b = port(g, op, "B") != NULL,
               t = port(g, op, "T") != NULL, y = port(g, op, "Y") != NULL;
    if (op->kind == FACTS_IMPORT_REDUCTION)
        return x && y &&
               (strcmp(op->mode, "MAX") == 0 || strcmp(op->mode, "ADD") == 0 ||
                strcmp(op->mode, "AMAX") == 0);
    if (op->kind == FACTS_IMPORT_RESHAPE || op->kind == FACTS_IMPORT_BAND)
        return x && y && b == (op->kind == FACTS_IMPORT_BAND);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (op->kind == FACTS_IMPORT_POINTWISE && strcmp(op->mode, modes[i].mode) == 0)
            return x && y && b == (modes[i].inputs > 1) && t == (modes[i].inputs > 2);
    return op->kind != FACTS_IMPORT_POINTWISE && op->kind != FACTS_IMPORT_KIND_OTHER;
}

/* Are the sizes of an operation's tensors those that such an operation has? */
static bool is_sized(const facts_import_graph *g, const facts_import_operation *op)
{
    const facts_import_tensor *x = port(g, op, "X"), *y = port(g, op, "Y"), *b = port(g, op, "B"),
                              *t = port(g, op, "T");
    const facts_import_tensor *left = port(g, op, "matA"), *right = port(g, op, "matB"),
                              *out = port(g, op, "matC");
    if (op->kind == FACTS_IMPORT_MATMUL && left != NULL && right != NULL && out != NULL) {
        bool fits = left->dim[3] == right->dim[2] && out->dim[2] == left->dim[2] &&
                    out->dim[3] == right->dim[3] && out->dim[0] == left->dim[0] &&
                    out->dim[0] == right->dim[0];
        const int64_t most = left->dim[1] > right->dim[1] ? left->dim[1] : right->dim[1];
        return fits && out->dim[1] == most && most % left->dim[1] == 0 && most % right->dim[1] == 0;
    }
    if (x == NULL || y == NULL || op->kind == FACTS_IMPORT_RESHAPE)
        return true;
    if (op->kind == FACTS_IMPORT_REDUCTION) /* whole axes, or the heads of a group */
        for (int d = 0; d < 4; d++)
            if (y->dim[d] != 1 && y->dim[d] != x->dim[d] && !(d == 1 && x->dim[d] % y->dim[d] == 0))
                return false;
    if (op->kind != FACTS_IMPORT_POINTWISE && op->kind != FACTS_IMPORT_BAND)
        return true;
    bool whole = true;
    for (int d = 0; d < 4; d++)
        whole = whole && (y->dim[d] == x->dim[d] || (b != NULL && y->dim[d] == b->dim[d]));
    return whole && fits_in(x, y) && fits_in(b, y) && fits_in(t, y);
}

/* A tensor that no operation names, and no ragged tensor as its offsets. */
static void check_use(facts_import_notes *notes, const facts_import_graph *g)
{
    bool used[FACTS_IMPORT_MOST] = { false };
    for (int i = 0; i < g->operation_count; i++)
        for (int p = 0; p < g->operation[i].port_count; p++)
            used[g->operation[i].port[p].tensor] = true;
    for (int i = 0; i < g->tensor_count; i++)
        if (g->tensor[i].ragged >= 0)
            used[g->tensor[i].ragged] = true;
    for (int i = 0; i < g->tensor_count; i++)
        if (!used[i])
            facts_import_note(notes, "not understood: no operation uses the tensor %.60s",
                              g->tensor[i].name);
}

static bool is_role(const facts_import_attention *a, const char *name)
{
    for (facts_import_role role = 0; role < FACTS_IMPORT_ROLES; role++)
        if (a->has[role] && strcmp(a->part[role].name, name) == 0)
            return true;
    return false;
}

static bool is_argument(const facts_import_graph *g, int tensor, const char *name)
{
    for (int i = 0; i < g->operation_count; i++)
        if (facts_import_port_of(&g->operation[i], name) == tensor)
            return true;
    return false;
}

/* Memory that a backward needs between its operations: row sums, gradients before their sum over a
 * group of heads or before their last type. */
static bool is_workspace(const facts_import_attention *a, const facts_import_graph *g, int tensor)
{
    const facts_import_operation *writer = facts_import_writer(g, tensor);
    if (!a->backward || writer == NULL)
        return false;
    if (writer->kind == FACTS_IMPORT_POINTWISE)
        return g->tensor[tensor].dim[3] == 1 && strcmp(writer->mode, "MUL") == 0;
    for (int i = 0; i < g->operation_count; i++) {
        const facts_import_operation *op = &g->operation[i];
        if (facts_import_port_of(op, "X") == tensor &&
            (op->kind == FACTS_IMPORT_REDUCTION || strcmp(op->mode, "IDENTITY") == 0))
            return writer->kind == FACTS_IMPORT_MATMUL;
    }
    return false;
}

/* Tensors of cuDNN's graph that no role is: constants, results between operations, and arrays that
 * follow from the case (scales of 8-bit types, slopes, tables of angles, tensors of a mod). */
static void check_beside(facts_import_notes *notes, const facts_import_attention *a,
                         const facts_import_graph *g, int tensor)
{
    const facts_import_tensor *t = &g->tensor[tensor];
    const facts_import_operation *writer = facts_import_writer(g, tensor);
    bool offsets = false;
    for (int i = 0; i < g->tensor_count; i++)
        offsets = offsets || g->tensor[i].ragged == tensor;
    const bool view = writer != NULL && writer->kind == FACTS_IMPORT_RESHAPE;
    const facts_import_type io = a->part[FACTS_IMPORT_ROLE_Q].type;
    const bool narrow = io == FACTS_IMPORT_E4M3 || io == FACTS_IMPORT_E5M2;
    const bool inside = t->type == FACTS_IMPORT_F32 || t->type == FACTS_IMPORT_I32 ||
                        t->type == FACTS_IMPORT_BOOL || t->type == io || narrow ||
                        t->type == a->part[FACTS_IMPORT_ROLE_O].type;
    const bool follows =
        narrow || (a->scale_tensor && facts_import_is_scalar(t)) || a->alibi || a->rope ||
        a->mod != FACTS_IMPORT_MOD_NONE || a->has[FACTS_IMPORT_ROLE_DROPOUT_MASK] ||
        (facts_import_is_scalar(t) &&
         (is_argument(g, tensor, "offset") || is_argument(g, tensor, "dropoutOffset")));
    const facts_import_tensor *q = &a->part[FACTS_IMPORT_ROLE_Q];
    const bool scores =
        t->dim[0] == q->dim[0] && t->dim[1] == q->dim[1] && t->dim[2] == q->dim[2] &&
        t->dim[3] == (a->seq_kv > 0 ? a->seq_kv : a->part[FACTS_IMPORT_ROLE_K].dim[2]);
    if (t->by_value ? !facts_import_is_scalar(t) || !inside || t->is_virtual
        : t->is_virtual
            ? !inside || (t->ragged != -1 && !view) || (a->unified && writer == NULL && !scores)
            : !offsets && !follows && !is_workspace(a, g, tensor))
        facts_import_note(notes, "not understood: tensor %.60s", t->name);
}

static void check_backend(facts_import_notes *notes, const facts_import_attention *a,
                          const facts_import_graph *g)
{
    int products = 0, lengths = 0;
    for (int i = 0; i < g->tensor_count; i++)
        if (!is_role(a, g->tensor[i].name))
            check_beside(notes, a, g, i);
    for (int i = 0; i < g->operation_count; i++) {
        const facts_import_operation *op = &g->operation[i];
        facts_import_graph inside;
        facts_error error;
        if (!is_whole(g, op) || !is_sized(g, op))
            facts_import_note(notes, "not understood: %s of %.60s %.30s",
                              is_whole(g, op) ? "the sizes" : "the arguments", op->word, op->mode);
        products += op->kind == FACTS_IMPORT_MATMUL;
        lengths += op->kind != FACTS_IMPORT_MATMUL
                       ? 0
                       : (port(g, op, "mOverride") != NULL) + (port(g, op, "nOverride") != NULL) +
                             (port(g, op, "kOverride") != NULL);
        if (facts_import_subgraph(&inside, op, &error)) {
            check_backend(notes, a, &inside);
            facts_import_graph_free(&inside);
        }
    }
    if (lengths != 0 && lengths != 2 * products)
        facts_import_note(notes, "not understood: lengths of some matrix products alone");
}

bool facts_import_agree(facts_import_notes *notes, const facts_import_attention *a,
                        const facts_problem *p, facts_error *error)
{
    for (int i = 0; i < FACTS_IMPORT_PLACED; i++) {
        const facts_import_placed *at = &facts_import_placed_tensors[i];
        if (!a->has[at->role])
            continue;
        if (!agrees(&a->part[at->role], &p->tensor[at->id], at->word, error))
            return false;
        check_place(notes, &a->part[at->role]);
        if (!check_offsets(notes, a, &a->part[at->role], error))
            return false;
    }
    const facts_import_tensor *scale = &a->part[FACTS_IMPORT_ROLE_SCALE];
    if (a->has[FACTS_IMPORT_ROLE_SCALE] &&
        (scale->is_virtual || scale->reordered ||
         !check_array(notes, scale, &(facts_array){ .count = 1, .type = FACTS_ARRAY_F32 }, error)))
        facts_import_note(notes, "not understood: the attention scale %.60s", scale->name);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        const facts_import_tensor *t = &a->part[arrays[i].role];
        if (!a->has[arrays[i].role] || t->ragged != -1)
            continue;
        check_place(notes, t);
        if (p->array[arrays[i].id].count > 1 && (t->dim[0] == 1 && t->dim[1] == 1))
            continue; /* one length for all entries: lens_shape=bcast */
        if (!check_array(notes, t, &p->array[arrays[i].id], error))
            return false;
    }
    if (!a->unified || a->node != NULL) /* cuDNN's one operation has more within */
        check_use(notes, a->graph);
    if (a->node == NULL) {
        check_backend(notes, a, a->graph);
    } else {
        check_flags(notes, a, p);
        return check_node(notes, a, p, error);
    }
    return true;
}
