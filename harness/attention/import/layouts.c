#include "attention.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "keys/key_values.h"
#include "problem/case_problem.h"
#include "problem/resolution.h"

/* A case against the graph that it was made of: sizes, types and outputs. */

/* The tensors of a case that a graph names, with their words in stride=. */
enum { PLACED = 13 };
typedef struct placed_tensor {
    facts_import_role role;
    facts_tensor_id id;
    const char *word;
} placed_tensor;

static const placed_tensor placed_tensors[PLACED] = {
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

/* False with a sentence: a tensor of the graph has a size or a type that it lacks in the case. What
 * the graph has beyond the case becomes a note. */
static bool facts_import_agree(facts_import_notes *notes, const facts_import_attention *a,
                               const facts_problem *p, facts_error *error)
{
    for (int i = 0; i < PLACED; i++) {
        const placed_tensor *at = &placed_tensors[i];
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

static const char letters[] = "bhsd";
static const char *const dense_words[] = { "bshd", "sbhd", "bhsd" }, *const packed_words[] = {
    "thd"
};
static const char *const three_words[] = { "bs3hd", "sb3hd", "bsh3d", "sbh3d" },
                         *const three_packed[] = { "t3hd", "th3d" };
static const char *const two_words[] = { "bs2hd", "sb2hd", "bsh2d", "sbh2d" },
                         *const two_packed[] = { "t2hd", "th2d" };

/* The case in the making. */
typedef struct shaping {
    const facts_import_attention *a;
    char keys[300];                   /* layouts */
    tokens gap, broadcast, sum, perm; /* of the forms of stride= */
    int64_t gap_of_all;               /* tried first: `gap:N`; 0: each tensor for itself */
    facts_problem *problem;           /* of the last try */
} shaping;

static void add_key(shaping *s, const char *key, const char *word)
{
    size_t used = strlen(s->keys);
    snprintf(s->keys + used, sizeof s->keys - used, " %s=%s", key, word);
}

/* Packed rows' numbers head by head: heads are as far apart as all tokens together, which follows
 * from lengths that the log does not say. */
static bool is_head_major(const facts_import_tensor *t)
{
    return t->ragged != -1 && t->dim[3] == 1 && t->dim[1] > 1 && t->stride[1] > t->stride[2];
}

/* Strides that are never used do not count: of extents of 1, and of b in ragged tensors. */
static bool same_strides(const facts_import_tensor *t, const int64_t stride[4])
{
    for (int d = 0; d < 4; d++)
        if (t->dim[d] > 1 && !(d == 0 && t->ragged != -1) && !(d == 1 && is_head_major(t)) &&
            t->stride[d] != stride[d])
            return false;
    return true;
}

static bool has_word(const facts_import_tensor *t, const char *word)
{
    static const facts_stride_form nothing = { 0 };
    facts_place_request request = { .form = &nothing, .tokens = t->dim[2] };
    facts_tensor out = { 0 };
    if (t->dim[0] < 1 || t->dim[1] < 1 || t->dim[2] < 1 || t->dim[3] < 1)
        return false;
    memcpy(request.dim, t->dim, sizeof request.dim);
    snprintf(request.order, sizeof request.order, "%s", word);
    return facts_place_tensor(&request, &out) == NULL && same_strides(t, out.stride);
}

static const char *word_of(const facts_import_tensor *t)
{
    const char *const *words = t->ragged != -1 ? packed_words : dense_words;
    size_t count = t->ragged != -1 ? sizeof packed_words / sizeof *packed_words
                                   : sizeof dense_words / sizeof *dense_words;
    for (size_t i = 0; i < count; i++)
        if (has_word(t, words[i]))
            return words[i];
    return NULL;
}

/* The elements after each index when the memory order is `order`; false when some would be fewer
 * than none. */
static bool gaps_in(const facts_import_tensor *t, const char *order, int64_t gap[4])
{
    int64_t run = 1;
    memset(gap, 0, 4 * sizeof *gap);
    for (size_t i = strlen(order); i-- > 0;) {
        int d = order[i] == 't' ? 2 : (int)(strchr(letters, order[i]) - letters);
        if (t->dim[d] == 1 || t->stride[d] == 0)
            continue;
        gap[d] = t->stride[d] - run;
        if (gap[d] < 0)
            return false;
        run = t->stride[d] * t->dim[d];
    }
    return true;
}

/* Outermost first, by stride; dimensions that nobody steps by stay where b,h,s,d has them. */
static void order_by_stride(const facts_import_tensor *t, char out[5])
{
    int sorted[4] = { 0, 1, 2, 3 };
    for (int i = 1; i < 3; i++)
        for (int j = i; j > 0; j--) {
            int x = sorted[j - 1], y = sorted[j];
            bool free_x = t->dim[x] == 1 || t->stride[x] == 0,
                 free_y = t->dim[y] == 1 || t->stride[y] == 0;
            if (free_x || free_y || t->stride[x] >= t->stride[y])
                continue;
            sorted[j - 1] = y;
            sorted[j] = x;
        }
    for (int i = 0; i < 4; i++)
        out[i] = letters[sorted[i]];
    out[4] = '\0';
}

/* Forms of stride= for a tensor that no word has; `base` receives the word they start from. */
static bool forms_of(shaping *s, const facts_import_tensor *t, const char *name,
                     const char *const *words, size_t count, const char **base)
{
    int64_t gap[4];
    char order[5];
    *base = NULL;
    for (size_t i = 0; *base == NULL && i < count; i++)
        if (gaps_in(t, words[i], gap))
            *base = words[i];
    if (*base == NULL) {
        order_by_stride(t, order);
        if (t->ragged != -1 || !gaps_in(t, order, gap))
            return false;
        *base = words[0];
        add(&s->perm, "%s.%s", name, order);
    }
    for (int d = 0; d < 4; d++) {
        if (t->dim[d] > 1 && t->stride[d] == 0)
            add(&s->broadcast, "%s.%c", name, letters[d]);
        else if (gap[d] > 0 && !(d == 1 && is_head_major(t)))
            add(&s->gap, "%s.%c.%" PRId64, name, letters[d], gap[d]);
    }
    return true;
}

static bool plain_forms(shaping *s, const facts_import_tensor *t, const char *name,
                        const char **base)
{
    return t->ragged != -1 ? forms_of(s, t, name, packed_words, 1, base)
                           : forms_of(s, t, name, dense_words, 3, base);
}

static bool all_have(const facts_import_tensor *const t[3], int from, const char *word)
{
    for (int i = from; i < 3; i++)
        if (!has_word(t[i], word) || memcmp(t[i]->dim, t[from]->dim, sizeof t[i]->dim) != 0 ||
            (t[i]->ragged != -1) != (t[from]->ragged != -1))
            return false;
    return true;
}

/* The words of three tensors: their own, or those of one storage for three or for two of them; NULL
 * where forms are needed. */
static void three_words_of(const facts_import_tensor *const t[3], const char *word[3])
{
    for (int i = 0; i < 3; i++)
        word[i] = word_of(t[i]);
    bool ragged = t[1]->ragged != -1;
    for (int n = 0; n < (ragged ? 2 : 4) && (word[0] == NULL || word[1] == NULL || word[2] == NULL);
         n++) {
        const char *three = ragged ? three_packed[n] : three_words[n],
                   *two = ragged ? two_packed[n] : two_words[n];
        if (word[0] == NULL && word[1] == NULL && word[2] == NULL && all_have(t, 0, three))
            word[0] = word[1] = word[2] = three;
        else if (word[1] == NULL && word[2] == NULL && all_have(t, 1, two))
            word[1] = word[2] = two;
    }
}

/* Tries what is there. False: it is no case, or nobody could compute it. */
static bool try_case(shaping *s, facts_case *out, const char *text, facts_error *error)
{
    tokens forms = { .between = ';' };
    char whole[8 * 1024];
    const struct {
        const char *word;
        const tokens *list;
    } rows[] = {
        { "gap", &s->gap }, { "broadcast", &s->broadcast }, { "sum", &s->sum }, { "perm", &s->perm }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].list->length > 0)
            add(&forms, "%s:%s", rows[i].word, rows[i].list->text);
    snprintf(whole, sizeof whole, "%s%s%s%s", text, s->keys, forms.length > 0 ? " stride=" : "",
             forms.text);
    if (!facts_case_parse(out, whole, error))
        return false;
    return facts_problem_resolve(s->problem, out, error) == FACTS_RESOLVED;
}

static bool fits(const shaping *s, const placed_tensor *p)
{
    const facts_tensor *is = &s->problem->tensor[p->id];
    const facts_import_tensor *t = &s->a->part[p->role];
    return !s->a->has[p->role] || (is->present && same_strides(t, is->stride) &&
                                   (is->packed != FACTS_PACKED_NOT) == (t->ragged != -1));
}

static bool fits_word(const shaping *s, const char *word)
{
    for (int i = 0; i < PLACED; i++)
        if (strcmp(placed_tensors[i].word, word) == 0 && !fits(s, &placed_tensors[i]))
            return false;
    return true;
}

static const facts_import_tensor *part(const shaping *s, facts_import_role role)
{
    return &s->a->part[role];
}

/* One order for Q, K and V that no layout has: `perm:hbsd`. */
static bool shape_order(shaping *s, const facts_import_tensor *const t[3])
{
    char order[3][5];
    int64_t gap[4];
    for (int i = 0; i < 3; i++) {
        order_by_stride(t[i], order[i]);
        bool dense = t[i]->ragged == -1 && gaps_in(t[i], order[i], gap) &&
                     (gap[0] | gap[1] | gap[2] | gap[3]) == 0;
        if (!dense || word_of(t[i]) != NULL || strcmp(order[i], order[0]) != 0)
            return false;
    }
    add(&s->perm, "%s", order[0]);
    return true;
}

/* The gap after each token that is the same in Q, K and V: `gap:N` says it of O and the gradients
 * too. 0: there is none. */
static int64_t gap_of_all(const facts_import_attention *a)
{
    int64_t gap[4], all = 0;
    for (facts_import_role role = FACTS_IMPORT_ROLE_Q; role <= FACTS_IMPORT_ROLE_V; role++) {
        const facts_import_tensor *t = &a->part[role];
        const char *const *words = t->ragged != -1 ? packed_words : dense_words;
        size_t i = 0, count = t->ragged != -1 ? 1 : 3;
        while (i < count && !gaps_in(t, words[i], gap))
            i++;
        if (i == count || gap[0] != 0 || gap[1] != 0 || gap[3] != 0 || gap[2] == 0 ||
            (all != 0 && gap[2] != all))
            return 0;
        all = gap[2];
    }
    return all;
}

static bool shape_inputs(shaping *s)
{
    static const char *const name[3] = { "q", "k", "v" };
    const facts_import_tensor *t[3] = { part(s, FACTS_IMPORT_ROLE_Q), part(s, FACTS_IMPORT_ROLE_K),
                                        part(s, FACTS_IMPORT_ROLE_V) };
    const char *word[3];
    if (shape_order(s, t))
        return true;
    three_words_of(t, word);
    int64_t gap[4];
    for (int i = 0; s->gap_of_all != 0 && i < 3; i++) { /* the word that the gap is in */
        const char *const *words = t[i]->ragged != -1 ? packed_words : dense_words;
        while (!gaps_in(t[i], *words, gap))
            words++;
        word[i] = *words;
    }
    if (s->gap_of_all != 0)
        add(&s->gap, "%" PRId64, s->gap_of_all);
    for (int i = 0; i < 3; i++) {
        if (word[i] == NULL && !plain_forms(s, t[i], name[i], &word[i]))
            return false;
        add_key(s, name[i], word[i]);
    }
    return true;
}

/* The rows' numbers: Stats, or where there are none Max or Sum_exp, which lie as they do. */
static bool shape_rows(shaping *s)
{
    static const facts_import_role roles[] = { FACTS_IMPORT_ROLE_STATS, FACTS_IMPORT_ROLE_MAX,
                                               FACTS_IMPORT_ROLE_SUM_EXP };
    const char *base;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const facts_import_tensor *t = part(s, roles[i]);
        if (!s->a->has[roles[i]])
            continue;
        bool ragged = t->ragged != -1,
             other = ragged ? is_head_major(t) : has_word(t, "bshd") && !has_word(t, "bhsd");
        static const char *const order[2][2] = { { "bhsd", "bshd" }, { "thd", "htd" } },
                                 *const key[2][2] = { { "bhs1", "bsh1" }, { "th1", "ht1" } };
        add_key(s, "stats", key[ragged][other]);
        return has_word(t, order[ragged][other]) ||
               forms_of(s, t, "stats", &order[ragged][other], 1, &base);
    }
    return true;
}

bool facts_import_bias_row(const facts_import_attention *a)
{
    const facts_import_tensor *bias = &a->part[FACTS_IMPORT_ROLE_BIAS];
    return a->backward && !a->unified && a->has[FACTS_IMPORT_ROLE_BIAS] && bias->dim[2] > 1 &&
           bias->stride[2] == 0;
}

static bool shape_bias(shaping *s, facts_import_role role, const char *name)
{
    static const char *const row_major[] = { "bhsd" };
    const char *base;
    const facts_import_tensor *t = part(s, role);
    return !s->a->has[role] || has_word(t, "bhsd") || forms_of(s, t, name, row_major, 1, &base);
}

/* O and dO, when they do not lie as they would of themselves. */
static bool shape_following(shaping *s, facts_import_role role, const char *name)
{
    const char *word = word_of(part(s, role));
    if (word == NULL && !plain_forms(s, part(s, role), name, &word))
        return false;
    add_key(s, name, word);
    return true;
}

static bool shape_gradients(shaping *s)
{
    static const char *const name[3] = { "dq", "dk", "dv" };
    const facts_import_tensor *t[3] = { part(s, FACTS_IMPORT_ROLE_DQ),
                                        part(s, FACTS_IMPORT_ROLE_DK),
                                        part(s, FACTS_IMPORT_ROLE_DV) };
    const char *word[3];
    char layout[24];
    three_words_of(t, word);
    if (word[1] != NULL && word[2] != NULL &&
        strcmp(word[1], word[2]) != 0) /* dqkv= has one word for both */
        if (!forms_of(s, t[2], "dv", &word[1], 1, &word[2]))
            return false;
    for (int i = 0; i < 3; i++)
        if (word[i] == NULL) {
            bool alone = i == 0 || t[i]->ragged != -1 || word[3 - i] == NULL;
            if (!(alone ? plain_forms(s, t[i], name[i], &word[i])
                        : forms_of(s, t[i], name[i], &word[3 - i], 1, &word[i])))
                return false;
        }
    if (!facts_layout_write(facts_span_of(word[0]), facts_span_of(word[1]), layout))
        return false;
    add_key(s, "dqkv", layout);
    return true;
}

/* A gradient that has one element where its input has many is a sum. */
static void shape_sums(shaping *s)
{
    static const facts_import_role of[][2] = { { FACTS_IMPORT_ROLE_DQ, FACTS_IMPORT_ROLE_Q },
                                               { FACTS_IMPORT_ROLE_DK, FACTS_IMPORT_ROLE_K },
                                               { FACTS_IMPORT_ROLE_DV, FACTS_IMPORT_ROLE_V },
                                               { FACTS_IMPORT_ROLE_DBIAS,
                                                 FACTS_IMPORT_ROLE_BIAS } };
    static const char *const name[] = { "dq", "dk", "dv", "dbias" };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int d = 0; s->a->has[of[i][0]] && d < 4; d++)
            if (part(s, of[i][0])->dim[d] == 1 && part(s, of[i][1])->dim[d] > 1)
                add(&s->sum, "%s.%c", name[i], letters[d]);
}

static bool refuse_strides(const shaping *s, const char *word, facts_error *error)
{
    for (int i = 0; i < PLACED; i++)
        if (strcmp(placed_tensors[i].word, word) == 0 && s->a->has[placed_tensors[i].role]) {
            const facts_import_tensor *t = part(s, placed_tensors[i].role);
            snprintf(error->text, sizeof error->text,
                     "no layout has %s with sizes %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                     " and strides %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
                     word, t->dim[0], t->dim[1], t->dim[2], t->dim[3], t->stride[0], t->stride[1],
                     t->stride[2], t->stride[3]);
        }
    return false;
}

/* What follows something else is left alone where that is right already. */
static bool shape_outputs(shaping *s, facts_case *out, const char *text, facts_error *error)
{
    if (!fits_word(s, "o") &&
        (!shape_following(s, FACTS_IMPORT_ROLE_O, "o") || !try_case(s, out, text, error)))
        return error->text[0] != '\0' ? false : refuse_strides(s, "o", error);
    if (!fits_word(s, "do") &&
        (!shape_following(s, FACTS_IMPORT_ROLE_DO, "do") || !try_case(s, out, text, error)))
        return error->text[0] != '\0' ? false : refuse_strides(s, "do", error);
    bool gradients = fits_word(s, "dq") && fits_word(s, "dk") && fits_word(s, "dv");
    if (!gradients && (!shape_gradients(s) || !try_case(s, out, text, error)))
        return error->text[0] != '\0' ? false : refuse_strides(s, "dq", error);
    for (int i = 0; i < PLACED; i++)
        if (!fits(s, &placed_tensors[i]))
            return refuse_strides(s, placed_tensors[i].word, error);
    return true;
}

/* One way through: inputs, rows, bias; then what follows from them is looked at. */
static bool shape(shaping *s, facts_case *out, const char *text, facts_error *error)
{
    *error = (facts_error){ .line = 0 };
    if (!shape_inputs(s))
        return refuse_strides(s,
                              word_of(part(s, FACTS_IMPORT_ROLE_Q)) == NULL   ? "q"
                              : word_of(part(s, FACTS_IMPORT_ROLE_K)) == NULL ? "k"
                                                                              : "v",
                              error);
    if (!shape_rows(s))
        return refuse_strides(s, "stats", error);
    if (!shape_bias(s, FACTS_IMPORT_ROLE_BIAS, "bias") ||
        !shape_bias(s, FACTS_IMPORT_ROLE_DBIAS, "dbias"))
        return refuse_strides(s, "bias", error);
    shape_sums(s);
    if (!try_case(s, out, text, error))
        return false;
    if (s->gap_of_all == 0)
        return shape_outputs(s, out, text, error);
    for (int i = 0; i < PLACED; i++)
        if (!fits(s, &placed_tensors[i]))
            return refuse_strides(s, placed_tensors[i].word, error);
    return true;
}

bool facts_import_layouts(facts_case *out, facts_import_notes *notes,
                          const facts_import_attention *attention, const char *text,
                          facts_error *error)
{
    facts_problem *problem = calloc(1, sizeof *problem);
    facts_import_attention one_row = *attention;
    if (facts_import_bias_row(attention)) {
        one_row.part[FACTS_IMPORT_ROLE_BIAS].dim[2] = 1;
        one_row.has[FACTS_IMPORT_ROLE_DBIAS] =
            false; /* the gradient of one row is a sum over what cuDNN gives */
        attention = &one_row;
    }
    const tokens none = { .between = '+' };
    const shaping fresh = { .a = attention,
                            .gap = none,
                            .broadcast = none,
                            .sum = none,
                            .perm = none,
                            .problem = problem };
    shaping s = fresh;
    s.gap_of_all = gap_of_all(attention);
    bool ok = s.gap_of_all != 0 && shape(&s, out, text, error);
    if (!ok) {
        s = fresh;
        ok = shape(&s, out, text, error);
    }
    ok = ok && facts_import_agree(notes, attention, problem, error);
    free(problem);
    return ok;
}
