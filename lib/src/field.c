#include "field.h"

#include <string.h>

#include "cudnn/builders.h"
#include "problem.h"
#include "score_mod/program.h"

/* ---- words --------------------------------------------------------------------------------------------------------------------
 */

#define AS_WORD(symbol, value, word) { (value), (word) },
static const fattn__word dtype_words[] = { FATTN_DTYPE_LIST(AS_WORD){ FATTN_BOOL, "bool" }, { 0, NULL } };
static const fattn__word pass_words[] = { FATTN_PASS_LIST(AS_WORD){ 0, NULL } };
static const fattn__word align_words[] = { FATTN_ALIGN_LIST(AS_WORD){ 0, NULL } };
static const fattn__word impl_words[] = { FATTN_IMPL_LIST(AS_WORD){ 0, NULL } };
static const fattn__word spelling_words[] = { FATTN_SPELLING_LIST(AS_WORD){ 0, NULL } };
static const fattn__word determinism_words[] = { FATTN_DETERMINISM_LIST(AS_WORD){ 0, NULL } };
static const fattn__word scaling_words[] = { FATTN_SCALING_LIST(AS_WORD){ 0, NULL } };
static const fattn__word format_words[] = { FATTN_FORMAT_LIST(AS_WORD){ 0, NULL } };
#undef AS_WORD
#define AS_ROLE(symbol, name) { FATTN__ROLE_##symbol, #name },
static const fattn__word role_words[] = { FATTN__ROLE_LIST(AS_ROLE){ FATTN__ROLE_COUNT, "none" }, { 0, NULL } };
#undef AS_ROLE

/* ---- what follows from the fields
 * ------------------------------------------------------------------------------------------------ */

static int64_t is_causal(const fattn_problem *p)
{
    return p->has_right && p->window_right == 0 && !p->has_left;
}

static int64_t has_score_mod(const fattn_problem *p)
{
    return p->score_mod != NULL;
}

static bool reads_more(const fattn__mod_program *program, int place)
{
    const fattn__mod_node *node = &program->at[place];
    if (node->op >= FATTN__MOD_SCORE)
        return node->op != FATTN__MOD_GRADIENT && node->op != FATTN__MOD_CONSTANT;
    const int inputs = fattn__mod_inputs(node->op), from[3] = { node->a, node->b, node->c };
    bool more = false;
    for (int i = 0; i < 3 && i < inputs && !more; i++)
        more = reads_more(program, from[i]);
    return more;
}

/* Does the gradient of the score_mod read anything but the gradient that comes to it: the score, an index, a tensor? */
static int64_t mod_gradient_reads(const fattn_problem *p)
{
    if (p->score_mod == NULL || p->pass != FATTN_BACKWARD)
        return 0;
    const fattn__mod_program *program = fattn__score_mod_gradient(p->score_mod);
    return reads_more(program, program->result);
}

static int64_t want_stats(const fattn_problem *p)
{
    return (p->outputs & FATTN_WANT_STATS) != 0;
}

static int64_t want_stats_log2(const fattn_problem *p)
{
    return (p->outputs & FATTN_WANT_STATS_LOG2) != 0;
}

static int64_t want_rng_dump(const fattn_problem *p)
{
    return (p->outputs & FATTN_WANT_RNG_DUMP) != 0;
}

static int64_t is_paged(const fattn_problem *p)
{
    return p->page_size_k != 0 || p->page_size_v != 0;
}

static int64_t is_unified(const fattn_problem *p)
{
    return fattn__is_unified(p);
}

static int64_t want_max(const fattn_problem *p)
{
    return (p->outputs & FATTN_WANT_MAX) != 0;
}

static int64_t want_sum_exp(const fattn_problem *p)
{
    return (p->outputs & FATTN_WANT_SUM_EXP) != 0;
}

static int64_t broadcasts(const fattn_problem *p)
{
    for (fattn__role which = 0; which < FATTN__ROLE_COUNT; which++) {
        const fattn__shape shape = fattn__problem_shape(p, which);
        for (int axis = 0; axis < 3 && shape.used && !shape.written; axis++) {
            if (shape.dim[axis] > 1 && shape.strides[axis] == 0)
                return 1;
        }
    }
    return 0;
}

static int64_t sums(const fattn_problem *p)
{
    bool any = false;
    for (fattn__role which = 0; which < FATTN__ROLE_COUNT; which++)
        any = any || (fattn__problem_shape(p, which).used && fattn__problem_sums(p, which, NULL));
    return any;
}

static int64_t misaligned(const fattn_problem *p)
{
    return fattn__problem_misaligned(p);
}

static const struct {
    fattn__role output, input;
} follows[] = { { FATTN__ROLE_O, FATTN__ROLE_Q },
                { FATTN__ROLE_DQ, FATTN__ROLE_Q },
                { FATTN__ROLE_DK, FATTN__ROLE_K },
                { FATTN__ROLE_DV, FATTN__ROLE_V } };
enum { FOLLOWS = sizeof follows / sizeof *follows };

/* Tiles of 128 query rows, of all heads and batch entries. */
static int64_t query_tiles(const fattn_problem *p)
{
    return p->batch * p->heads_q * ((p->seq_q + 127) / 128);
}

/* The largest stride, in elements, that an address is made with: where an extent is 1 none is. That of a packed tensor's batch is not read. */
static int64_t largest_stride(const fattn_problem *p, int count, const fattn__role *roles)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++) {
        const fattn__shape shape = fattn__problem_shape(p, roles[i]);
        for (int axis = fattn__problem_ragged(p, roles[i]); axis < 4 && shape.used; axis++)
            if (shape.dim[axis] > 1 && shape.strides[axis] > most)
                most = shape.strides[axis];
    }
    return most;
}

static int64_t stride_qkv(const fattn_problem *p)
{
    return largest_stride(p, 3, (const fattn__role[]){ FATTN__ROLE_Q, FATTN__ROLE_K, FATTN__ROLE_V });
}

static int64_t stride_o(const fattn_problem *p)
{
    return largest_stride(p, 2, (const fattn__role[]){ FATTN__ROLE_O, FATTN__ROLE_DO });
}

static int64_t stride_dq(const fattn_problem *p)
{
    return largest_stride(p, 1, (const fattn__role[]){ FATTN__ROLE_DQ });
}

/* Is an output of this pass packed whose input is not? */
static int64_t packed_alone(const fattn_problem *p)
{
    for (int i = 0; i < FOLLOWS; i++) {
        if (fattn__problem_shape(p, follows[i].output).written && fattn__problem_ragged(p, follows[i].output) &&
            !fattn__problem_ragged(p, follows[i].input))
            return 1;
    }
    return 0;
}

/* Is dK or dV packed with tokens of another size than its input's, so that their offsets cannot be the same? */
static int64_t offsets_apart(const fattn_problem *p)
{
    for (int i = 2; i < FOLLOWS && p->pass == FATTN_BACKWARD; i++) {
        const fattn__shape output = fattn__problem_shape(p, follows[i].output), input = fattn__problem_shape(p, follows[i].input);
        if (fattn__problem_ragged(p, follows[i].output) && fattn__problem_ragged(p, follows[i].input) &&
            output.strides[2] != input.strides[2])
            return 1;
    }
    return 0;
}

static int64_t stats_packed(const fattn_problem *p)
{
    return fattn__problem_ragged(p, FATTN__ROLE_STATS);
}

/* Do the strides fall in this order of the axes? An extent of 1 is anywhere. */
static bool in_order(const fattn__shape *shape, const int order[3])
{
    int64_t above = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        const int64_t stride = shape->strides[order[i]];
        if (shape->dim[order[i]] == 1)
            continue;
        if (stride == 0 || stride > above)
            return false;
        above = stride;
    }
    return true;
}

static int64_t format_of(const fattn_problem *p, fattn__role which)
{
    static const int orders[][3] = {
        [FATTN_FORMAT_BSHD] = { 0, 2, 1 }, [FATTN_FORMAT_SBHD] = { 2, 0, 1 }, [FATTN_FORMAT_BHSD] = { 0, 1, 2 }
    };
    const fattn__shape shape = fattn__problem_shape(p, which);
    int64_t bits = 0;
    for (int format = FATTN_FORMAT_BSHD; format <= FATTN_FORMAT_BHSD; format++)
        bits |= (int64_t)in_order(&shape, orders[format]) << format;
    return bits != 0 ? bits : (int64_t)1 << FATTN_FORMAT_UNSET;
}

/* ---- the table -----------------------------------------------------------------------------------------------------------------
 */

#define NUMBER_FIELDS(X)                                                                                                           \
    X(batch)                                                                                                                       \
    X(heads_q)                                                                                                                     \
    X(heads_k) X(heads_v) X(seq_q) X(seq_kv) X(dim_qk) X(dim_v) X(window_left) X(window_right) X(has_left) X(has_right) X(padding) \
        X(outputs) X(deterministic) X(capture) X(training) X(ragged_bits) X(len_broadcast) X(has_bias) X(dbias) X(mod_gradients)   \
            X(ragged) X(ragged_tokens) X(total_q) X(total_kv) X(cumulative) X(len_rank) X(page_size_k) X(page_size_v)              \
                X(packed_table) X(alibi) X(sink) X(dsink) X(rng_bits) X(dropout_mask) X(scale_in_memory) X(block_mask)             \
                    X(unfuse_fma) X(rope) X(rope_dim)
/* X(field, words) */
#define WORD_FIELDS(X)                                                                                                             \
    X(pass, pass)                                                                                                                  \
    X(dtype, dtype)                                                                                                                \
    X(o_dtype, dtype) X(grad_dtype, dtype) X(do_dtype, dtype) X(bias_dtype, dtype) X(stats_dtype, dtype) X(align, align) X(impl, impl)                \
        X(spelling, spelling) X(determinism, determinism) X(scaling, scaling) X(scale_format, format)
#define DERIVED_FIELDS(X)                                                                                                          \
    X("causal", is_causal)                                                                                                         \
    X("has_score_mod", has_score_mod)                                                                                              \
    X("want_stats", want_stats) X("want_max", want_max) X("want_sum_exp", want_sum_exp) X("broadcast", broadcasts) X("sums", sums) \
        X("mod_gradient_reads", mod_gradient_reads) X("want_stats_log2", want_stats_log2) X("want_rng_dump", want_rng_dump)        \
            X("paged", is_paged) X("unified", is_unified) X("packed_alone", packed_alone) X("offsets_apart", offsets_apart)        \
                X("stats_packed", stats_packed) X("query_tiles", query_tiles) X("stride_qkv", stride_qkv) X("stride_o", stride_o)            \
                    X("stride_dq", stride_dq)
#define EXTENT_FIELDS(X) X("bias_dim.b", 0) X("bias_dim.h", 1) X("bias_dim.q", 2) X("bias_dim.kv", 3)
#define FORMAT_FIELDS(X) X(q, Q) X(k, K) X(v, V) X(o, O) X(do, DO) X(stats, STATS)

#define AS_NUMBER_READER(field)                                                                                                    \
    static int64_t read_##field(const fattn_problem *p)                                                                            \
    {                                                                                                                              \
        return (int64_t)p->field;                                                                                                  \
    }
#define AS_WORD_READER(field, words) AS_NUMBER_READER(field)
#define AS_EXTENT_READER(name, axis)                                                                                               \
    static int64_t read_bias_dim_##axis(const fattn_problem *p)                                                                    \
    {                                                                                                                              \
        return p->bias_dim[axis];                                                                                                  \
    }
#define AS_FORMAT_READER(name, symbol)                                                                                             \
    static int64_t read_##name##_format(const fattn_problem *p)                                                                    \
    {                                                                                                                              \
        return format_of(p, FATTN__ROLE_##symbol);                                                                                 \
    }
NUMBER_FIELDS(AS_NUMBER_READER)
WORD_FIELDS(AS_WORD_READER)
EXTENT_FIELDS(AS_EXTENT_READER)
FORMAT_FIELDS(AS_FORMAT_READER)

static double read_attn_scale(const fattn_problem *p)
{
    return p->attn_scale;
}

static double read_dropout(const fattn_problem *p)
{
    return p->dropout;
}

#define AS_NUMBER_ROW(field) { #field, FATTN__FIELD_NUMBER, NULL, read_##field, NULL },
#define AS_WORD_ROW(field, words) { #field, FATTN__FIELD_WORD, words##_words, read_##field, NULL },
#define AS_DERIVED_ROW(name, reader) { name, FATTN__FIELD_NUMBER, NULL, reader, NULL },
#define AS_EXTENT_ROW(name, axis) { name, FATTN__FIELD_NUMBER, NULL, read_bias_dim_##axis, NULL },
#define AS_FORMAT_ROW(name, symbol) { #name "_format", FATTN__FIELD_FORMAT, format_words, read_##name##_format, NULL },
static const fattn__field fields[] = {
    NUMBER_FIELDS(AS_NUMBER_ROW) WORD_FIELDS(AS_WORD_ROW) DERIVED_FIELDS(AS_DERIVED_ROW) EXTENT_FIELDS(AS_EXTENT_ROW)
        FORMAT_FIELDS(AS_FORMAT_ROW){ "misaligned", FATTN__FIELD_WORD, role_words, misaligned, NULL },
    { "attn_scale", FATTN__FIELD_REAL, NULL, NULL, read_attn_scale },
    { "dropout", FATTN__FIELD_REAL, NULL, NULL, read_dropout },
};

const fattn__field *fattn__field_find(const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, name, length) == 0)
            return &fields[i];
    }
    return NULL;
}
