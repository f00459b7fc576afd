/* A recording is made once. Then it is immutable and shared. */
#include "recording.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "operations.h"

const char *fattn__mod_word(int op)
{
#define AS_WORD(symbol, value, word, inputs) [value] = (word),
    static const char *const table[] = { FATTN_MOD_OP_LIST(AS_WORD)[FATTN__MOD_SCORE] = "score",
                                         [FATTN__MOD_GRADIENT] = "gradient",
                                         [FATTN__MOD_INDEX] = "index",
                                         [FATTN__MOD_CONSTANT] = "constant",
                                         [FATTN__MOD_TENSOR] = "tensor" };
#undef AS_WORD
    return op > 0 && op < (int)(sizeof table / sizeof *table) && table[op] != NULL ? table[op]
                                                                                   : "?";
}

bool fattn__mod_is_condition(int op)
{
    return op >= FATTN_MOD_EQ && op <= FATTN_MOD_NOT;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Constants are compared by their bits: -0 is not 0, and a NaN equals itself. */
static bool same_node(const fattn__mod_node *x, const fattn__mod_node *y)
{
    return x->op == y->op && x->a == y->a && x->b == y->b && x->c == y->c &&
           bits_of(x->constant) == bits_of(y->constant);
}

/* The score comes first, then the gradient, then computed values, then indices; within a class the
 * hash of the structure decides. */
static uint64_t rank_of(const fattn__mod_builder *b, const fattn__mod_node *node)
{
    uint64_t below[5] = { (uint64_t)node->op, 0, 0, 0, 0 };
    const int inputs = fattn__mod_inputs(node->op), at[3] = { node->a, node->b, node->c };
    memcpy(&below[1], &node->constant, sizeof node->constant);
    if (inputs == 0)
        below[2] = (uint64_t)node->a;
    for (int i = 0; i < inputs && i < 3; i++)
        below[2 + i] = b->rank[at[i]];
    const uint64_t of_kind = node->op == FATTN__MOD_SCORE      ? 0
                             : node->op == FATTN__MOD_GRADIENT ? 1
                             : node->op == FATTN__MOD_INDEX    ? 3
                                                               : 2;
    return of_kind << 62 | XXH3_64bits(below, sizeof below) >> 2;
}

/* The position of the node; an equal node is used again. */
static int place(fattn__mod_builder *b, fattn__mod_node node)
{
    for (int i = 0; i < b->count; i++)
        if (same_node(&b->at[i], &node))
            return i;
    if (b->count == FATTN__MOD_BUILDER_NODES) {
        b->full = true;
        return 0;
    }
    b->rank[b->count] = rank_of(b, &node);
    b->at[b->count] = node;
    return b->count++;
}

static int put(fattn__mod_builder *b, int op, int x, int y, int z)
{
    return place(b, (fattn__mod_node){
                        .op = (int16_t)op, .a = (int16_t)x, .b = (int16_t)y, .c = (int16_t)z });
}

int fattn__mod_leaf(fattn__mod_builder *b, int kind, int a)
{
    return put(b, kind, a, 0, 0);
}

int fattn__mod_constant(fattn__mod_builder *b, float value)
{
    return place(b, (fattn__mod_node){ .op = FATTN__MOD_CONSTANT, .constant = value });
}

static bool is_constant(const fattn__mod_builder *b, int x)
{
    return b->at[x].op == FATTN__MOD_CONSTANT;
}

static bool is_virtual(const fattn__mod_builder *b, int x)
{
    return !is_constant(b, x) && b->at[x].op != FATTN__MOD_TENSOR;
}

/* key * -0 + x. An index is never negative, so the product is -0, and -0 + x is x, also when x is
 * -0. */
static int virtually(fattn__mod_builder *b, int x)
{
    if (is_virtual(b, x))
        return x;
    const int key = fattn__mod_leaf(b, FATTN__MOD_INDEX, FATTN_MOD_KEY),
              zero = fattn__mod_constant(b, -0.0f);
    return put(b, FATTN_MOD_ADD, put(b, FATTN_MOD_MUL, key, zero, 0), x, 0);
}

static int as_condition(fattn__mod_builder *b, int x)
{
    if (fattn__mod_is_condition(b->at[x].op))
        return x;
    if (is_constant(b, x))
        return fattn__mod_constant(b, b->at[x].constant != 0.0f);
    return fattn__mod_apply(b, FATTN_MOD_NE, x, fattn__mod_constant(b, 0), 0);
}

static int as_number(fattn__mod_builder *b, int x)
{
    if (!fattn__mod_is_condition(b->at[x].op))
        return x;
    return put(b, FATTN_MOD_SELECT, x, virtually(b, fattn__mod_constant(b, 1)),
               fattn__mod_constant(b, 0));
}

int fattn__mod_as_result(fattn__mod_builder *b, int x)
{
    return virtually(b, as_number(b, x));
}

/* Sums of indices and of constants below 2^40: too few nodes to overflow, so never a NaN. */
static bool is_number_for_sure(const fattn__mod_builder *b, int x)
{
    const fattn__mod_node *n = &b->at[x];
    switch (n->op) {
    case FATTN__MOD_INDEX:
        return true;
    case FATTN__MOD_CONSTANT:
        return fabsf(n->constant) <= 0x1p40f;
    case FATTN_MOD_NEG:
        return is_number_for_sure(b, n->a);
    case FATTN_MOD_ADD:
    case FATTN_MOD_SUB:
        /* One side is a leaf: the walk stays linear. */
        return fattn__mod_inputs(b->at[n->b].op) == 0 && is_number_for_sure(b, n->b) &&
               is_number_for_sure(b, n->a);
    default:
        return false;
    }
}

/* The comparison that holds exactly where `op` does not, provided that nothing is a NaN; eq and ne
 * also with one. 0: none. */
static int opposite(int op)
{
    static const int16_t table[] = { [FATTN_MOD_EQ] = FATTN_MOD_NE, [FATTN_MOD_NE] = FATTN_MOD_EQ,
                                     [FATTN_MOD_LT] = FATTN_MOD_GE, [FATTN_MOD_GE] = FATTN_MOD_LT,
                                     [FATTN_MOD_GT] = FATTN_MOD_LE, [FATTN_MOD_LE] = FATTN_MOD_GT };
    return (size_t)op < sizeof table / sizeof *table ? table[op] : 0;
}

/* `x` is a condition or a constant. */
static int negation(fattn__mod_builder *b, int x)
{
    const fattn__mod_node n = b->at[x];
    if (n.op == FATTN__MOD_CONSTANT)
        return fattn__mod_constant(b, n.constant == 0.0f);
    if (n.op == FATTN_MOD_NOT)
        return n.a;
    const int other = opposite(n.op);
    if (other == FATTN_MOD_EQ || other == FATTN_MOD_NE ||
        (other != 0 && is_number_for_sure(b, n.a) && is_number_for_sure(b, n.b)))
        return put(b, other, n.a, n.b, 0);
    return put(b, FATTN_MOD_NOT, x, 0, 0);
}

/* The operation with its inputs exchanged; 0 when there is none. */
static int mirrored(int op)
{
    static const int16_t table[] = {
        [FATTN_MOD_ADD] = FATTN_MOD_ADD, [FATTN_MOD_MUL] = FATTN_MOD_MUL,
        [FATTN_MOD_MAX] = FATTN_MOD_MAX, [FATTN_MOD_MIN] = FATTN_MOD_MIN,
        [FATTN_MOD_EQ] = FATTN_MOD_EQ,   [FATTN_MOD_NE] = FATTN_MOD_NE,
        [FATTN_MOD_AND] = FATTN_MOD_AND, [FATTN_MOD_OR] = FATTN_MOD_OR,
        [FATTN_MOD_LT] = FATTN_MOD_GT,   [FATTN_MOD_GT] = FATTN_MOD_LT,
        [FATTN_MOD_LE] = FATTN_MOD_GE,   [FATTN_MOD_GE] = FATTN_MOD_LE
    };
    return (size_t)op < sizeof table / sizeof *table ? table[op] : 0;
}

/* Constants only: the number, rounded once, unless it is NaN. -1: not folded. */
static int folded(fattn__mod_builder *b, int op, int x, int y)
{
    if (!is_constant(b, x) || (fattn__mod_inputs(op) > 1 && !is_constant(b, y)))
        return -1;
    const float value =
        (float)fattn__mod_compute(op, (double)b->at[x].constant, (double)b->at[y].constant, 0);
    return isnan(value) ? -1 : fattn__mod_constant(b, value);
}

static int apply_select(fattn__mod_builder *b, int condition, int x, int y)
{
    condition = as_condition(b, condition), x = as_number(b, x), y = as_number(b, y);
    if (is_constant(b, condition))
        return b->at[condition].constant != 0.0f ? x : y;
    if (x == y)
        return x;
    if (!is_virtual(b, x) && is_virtual(b, y))
        return put(b, FATTN_MOD_SELECT, negation(b, condition), y, x);
    return put(b, FATTN_MOD_SELECT, condition, virtually(b, x), y);
}

static int apply_logic(fattn__mod_builder *b, int op, int x, int y)
{
    x = as_condition(b, x), y = as_condition(b, y);
    const int known = is_constant(b, x) ? x : y, other = known == x ? y : x;
    if (x == y)
        return x;
    if (is_constant(b, known)) /* and: true is neutral; or: false is */
        return (b->at[known].constant != 0.0f) == (op == FATTN_MOD_AND) ? other : known;
    return b->rank[y] < b->rank[x] ? put(b, op, y, x, 0) : put(b, op, x, y, 0);
}

static int apply_unary(fattn__mod_builder *b, int op, int x)
{
    if (op == FATTN_MOD_NOT)
        return negation(b, as_condition(b, x));
    x = as_number(b, x);
    const int fold = folded(b, op, x, x);
    if (fold >= 0)
        return fold;
    if (op == FATTN_MOD_NEG && b->at[x].op == FATTN_MOD_NEG)
        return b->at[x].a;
    return put(b, op, virtually(b, x), 0, 0);
}

static int apply_binary(fattn__mod_builder *b, int op, int x, int y)
{
    x = as_number(b, x), y = as_number(b, y);
    const int fold = folded(b, op, x, y);
    if (fold >= 0)
        return fold;
    if (op == FATTN_MOD_SUB && is_constant(b, y))
        return apply_binary(b, FATTN_MOD_ADD, x, fattn__mod_constant(b, -b->at[y].constant));
    if (op == FATTN_MOD_SUB && !is_virtual(b, x) && is_virtual(b, y))
        return apply_binary(b, FATTN_MOD_ADD, apply_unary(b, FATTN_MOD_NEG, y), x);
    const int mirror = mirrored(op);
    const bool x_first = is_virtual(b, x), y_first = is_virtual(b, y);
    if (mirror != 0 && (x_first == y_first ? b->rank[y] < b->rank[x] : y_first)) {
        const int swap = x;
        x = y, y = swap, op = mirror;
    }
    if ((op == FATTN_MOD_MUL || op == FATTN_MOD_DIV) && is_constant(b, y) &&
        b->at[y].constant == 1.0f)
        return x;
    return put(b, op, virtually(b, x), y, 0);
}

int fattn__mod_apply(fattn__mod_builder *b, fattn_mod_op op, int x, int y, int z)
{
    if (b->full)
        return 0;
    if (op == FATTN_MOD_SELECT)
        return apply_select(b, x, y, z);
    if (op == FATTN_MOD_AND || op == FATTN_MOD_OR)
        return apply_logic(b, (int)op, x, y);
    return fattn__mod_inputs((int)op) == 1 ? apply_unary(b, (int)op, x)
                                           : apply_binary(b, (int)op, x, y);
}

/* Returns the node's place in `out`, after its inputs. */
static int emit(const fattn__mod_builder *b, int from, int16_t *placed, fattn__mod_program *out)
{
    if (placed[from] >= 0 || out->count < 0)
        return placed[from];
    fattn__mod_node node = b->at[from];
    const int inputs = fattn__mod_inputs(node.op);
    int16_t *const at[3] = { &node.a, &node.b, &node.c };
    for (int i = 0; i < 3 && i < inputs; i++)
        *at[i] = (int16_t)emit(b, *at[i], placed, out);
    if (out->count < 0 || out->count == FATTN__MOD_MAX_NODES) {
        out->count = -1;
        return -1;
    }
    out->at[out->count] = node;
    placed[from] = (int16_t)out->count;
    return out->count++;
}

bool fattn__mod_compact(const fattn__mod_builder *b, const int *roots, int count,
                        fattn__mod_program *out, int32_t *places)
{
    int16_t placed[FATTN__MOD_BUILDER_NODES];
    memset(placed, -1, sizeof placed);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < count && out->count >= 0; i++)
        places[i] = roots[i] < 0 ? -1 : emit(b, roots[i], placed, out);
    return out->count >= 0;
}

void fattn__mod_load(fattn__mod_builder *b, const fattn__mod_program *program)
{
    b->count = 0;
    b->full = false;
    for (int i = 0; i < program->count; i++)
        place(b, program->at[i]);
}

#define OR_DONE(expr)                                                                              \
    do {                                                                                           \
        if ((st = (expr)) != FATTN_OK)                                                             \
            goto done;                                                                             \
    } while (0)

static fattn_status too_long(const char *what)
{
    return fattn__fail(FATTN_BAD_PROBLEM,
                       "%s: more than %d nodes are needed; record fewer operations", what,
                       FATTN__MOD_MAX_NODES);
}

static fattn_status record_score(fattn_score_mod *mod, fattn__mod_builder *b,
                                 fattn_score_mod_callback callback, void *user)
{
    fattn_recorder recorder;
    int place;
    fattn__recorder_open(&recorder, mod, b);
    const int score = fattn__mod_leaf(b, FATTN__MOD_SCORE, 0);
    const fattn_value returned = callback(&recorder, fattn__recorder_value(&recorder, score), user);
    TRY(fattn__recorder_close(&recorder, returned, "score_mod", &place));
    for (int i = 0; i < FATTN_MOD_MAX_TENSORS; i++)
        mod->program.tensor_results[i] = -1;
    if (b->full || !fattn__mod_compact(b, &place, 1, &mod->program, &mod->program.result))
        return too_long("score_mod");
    return FATTN_OK;
}

static fattn_status record_gradient(fattn_score_mod *mod, fattn__mod_builder *b,
                                    fattn_score_mod_gradient_callback callback, void *user,
                                    int *place)
{
    fattn_recorder recorder;
    fattn__recorder_open(&recorder, mod, b);
    const int score = fattn__mod_leaf(b, FATTN__MOD_SCORE, 0),
              gradient = fattn__mod_leaf(b, FATTN__MOD_GRADIENT, 0);
    const fattn_value returned = callback(&recorder, fattn__recorder_value(&recorder, score),
                                          fattn__recorder_value(&recorder, gradient), user);
    return fattn__recorder_close(&recorder, returned, "score_mod gradient", place);
}

/* The gradient is built from the normalised program, so equal recordings get equal gradients. */
static fattn_status make_gradient(fattn_score_mod *mod, fattn__mod_builder *b,
                                  fattn_score_mod_gradient_callback callback, void *user)
{
    int roots[1 + FATTN_MOD_MAX_TENSORS];
    int32_t places[1 + FATTN_MOD_MAX_TENSORS];
    fattn__mod_load(b, &mod->program);
    fattn__mod_derive(b, &mod->program, roots);
    const int derived = roots[0];
    if (callback != NULL) {
        TRY(record_gradient(mod, b, callback, user, &roots[0]));
        mod->user_gradient = roots[0] != derived;
    }
    if (b->full || !fattn__mod_compact(b, roots, 1 + FATTN_MOD_MAX_TENSORS, &mod->gradient, places))
        return too_long("score_mod gradient");
    mod->gradient.result = places[0];
    for (int i = 0; i < FATTN_MOD_MAX_TENSORS; i++)
        mod->gradient.tensor_results[i] = places[1 + i];
    return FATTN_OK;
}

static void dispose(fattn_score_mod *mod)
{
    for (int i = 0; mod != NULL && i < mod->tensor_count; i++)
        free((char *)(uintptr_t)mod->tensors[i].name);
    if (mod != NULL)
        free(mod->text);
    free(mod);
}

fattn_status fattn_score_mod_create(fattn_score_mod **out, fattn_score_mod_callback callback,
                                    fattn_score_mod_gradient_callback gradient, void *user)
{
    NEED(out);
    fattn_status st = FATTN_OK;
    if (out != NULL)
        *out = NULL;
    if (out == NULL || callback == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "score_mod: %s: NULL is not allowed",
                           out == NULL ? "out" : "callback");
    fattn_score_mod *mod = calloc(1, sizeof *mod);
    fattn__mod_builder *b = calloc(1, sizeof *b);
    if (mod == NULL || b == NULL) {
        st = fattn__fail(FATTN_NO_MEMORY, "no memory");
        goto done;
    }
    atomic_init(&mod->references, 1);
    OR_DONE(record_score(mod, b, callback, user));
    OR_DONE(make_gradient(mod, b, gradient, user));
    OR_DONE(fattn__mod_describe(mod));
    *out = mod;
done:
    free(b);
    if (st != FATTN_OK)
        dispose(mod);
    return st;
}

const fattn_score_mod *fattn__score_mod_retain(const fattn_score_mod *mod)
{
    if (mod != NULL)
        atomic_fetch_add(&((fattn_score_mod *)(uintptr_t)mod)->references, 1);
    return mod;
}

void fattn__score_mod_release(const fattn_score_mod *mod)
{
    fattn_score_mod *mine = (fattn_score_mod *)(uintptr_t)mod;
    if (mine != NULL && atomic_fetch_sub(&mine->references, 1) == 1)
        dispose(mine);
}

void fattn_score_mod_destroy(fattn_score_mod *mod)
{
    fattn__score_mod_release(mod);
}

const fattn__mod_program *fattn__score_mod_program(const fattn_score_mod *mod)
{
    return &mod->program;
}

const fattn__mod_program *fattn__score_mod_gradient(const fattn_score_mod *mod)
{
    return &mod->gradient;
}

size_t fattn_score_mod_tensor_count(const fattn_score_mod *mod)
{
    return mod != NULL ? (size_t)mod->tensor_count : 0;
}

const fattn_mod_tensor *fattn_score_mod_tensor(const fattn_score_mod *mod, size_t i)
{
    return i < fattn_score_mod_tensor_count(mod) ? &mod->tensors[i] : NULL;
}
