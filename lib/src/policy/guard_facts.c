#include "guard_facts.h"

#include "score_mod/mod_program.h"

/* ---- score_mod
 * -------------------------------------------------------------------------------------------------------------
 */

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

bool fattn__fact_mod_reads_place(const fattn_problem *p)
{
    const fattn__mod_program *program =
        p->score_mod ? fattn__score_mod_program(p->score_mod) : NULL;
    bool reads = false;
    for (int i = 0; program && i < program->count; i++)
        reads |= program->at[i].op == FATTN__MOD_INDEX || program->at[i].op == FATTN__MOD_TENSOR;
    return reads;
}

bool fattn__fact_mod_gradient_reads(const fattn_problem *p)
{
    if (p->score_mod == NULL || p->pass != FATTN_BACKWARD)
        return false;
    const fattn__mod_program *program = fattn__score_mod_gradient(p->score_mod);
    return reads_more(program, program->result);
}

/* ---- extents and strides
 * ---------------------------------------------------------------------------------------------------
 */

bool fattn__fact_bias_square(const fattn_problem *p)
{
    return p->bias_dim[2] == p->seq_q && p->bias_dim[3] == p->seq_kv;
}

int64_t fattn__fact_query_tiles(const fattn_problem *p)
{
    return p->batch * p->heads_q * ((p->seq_q + 127) / 128);
}

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

int64_t fattn__fact_stride_qkv(const fattn_problem *p)
{
    return largest_stride(p, 3,
                          (const fattn__role[]){ FATTN__ROLE_Q, FATTN__ROLE_K, FATTN__ROLE_V });
}

int64_t fattn__fact_stride_o(const fattn_problem *p)
{
    return largest_stride(p, 2, (const fattn__role[]){ FATTN__ROLE_O, FATTN__ROLE_DO });
}

static int64_t reach(const fattn_problem *p, fattn__role role)
{
    const fattn__shape shape = fattn__problem_shape(p, role);
    int64_t last = 0;
    for (int axis = fattn__problem_ragged(p, role); axis < 4 && shape.used; axis++)
        last += (shape.dim[axis] - 1) * shape.strides[axis];
    return last;
}

int64_t fattn__fact_reach_o(const fattn_problem *p)
{
    const int64_t o = reach(p, FATTN__ROLE_O), gradient = reach(p, FATTN__ROLE_DO);
    return o > gradient ? o : gradient;
}

int64_t fattn__fact_stride_dq(const fattn_problem *p)
{
    return largest_stride(p, 1, (const fattn__role[]){ FATTN__ROLE_DQ });
}

/* ---- ragged tensors
 * --------------------------------------------------------------------------------------------------------
 */

bool fattn__fact_packed_alone(const fattn_problem *p)
{
    static const fattn__role outputs[] = { FATTN__ROLE_O, FATTN__ROLE_DQ, FATTN__ROLE_DK,
                                           FATTN__ROLE_DV };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (fattn__problem_shape(p, outputs[i]).written && fattn__problem_ragged(p, outputs[i]) &&
            !fattn__problem_ragged(p, fattn__problem_input(outputs[i])))
            return true;
    return false;
}

bool fattn__fact_dense_gradient(const fattn_problem *p)
{
    static const fattn__role outputs[] = { FATTN__ROLE_DK, FATTN__ROLE_DV };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++)
        if (fattn__problem_shape(p, outputs[i]).written && !fattn__problem_ragged(p, outputs[i]) &&
            fattn__problem_ragged(p, fattn__problem_input(outputs[i])))
            return true;
    return false;
}

bool fattn__fact_offsets_apart(const fattn_problem *p)
{
    static const fattn__role outputs[] = { FATTN__ROLE_DK, FATTN__ROLE_DV };
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs && p->pass == FATTN_BACKWARD; i++) {
        const fattn__role input = fattn__problem_input(outputs[i]);
        if (fattn__problem_ragged(p, outputs[i]) && fattn__problem_ragged(p, input) &&
            fattn__problem_shape(p, outputs[i]).strides[2] !=
                fattn__problem_shape(p, input).strides[2])
            return true;
    }
    return false;
}

/* ---- the order in memory
 * ---------------------------------------------------------------------------------------------------
 */

bool fattn__fact_order(const fattn_problem *p, fattn__role which, fattn_format format)
{
    static const int orders[][3] = { [FATTN_FORMAT_BSHD] = { 0, 2, 1 },
                                     [FATTN_FORMAT_SBHD] = { 2, 0, 1 },
                                     [FATTN_FORMAT_BHSD] = { 0, 1, 2 } };
    const fattn__shape shape = fattn__problem_shape(p, which);
    int64_t above = INT64_MAX;
    for (int i = 0; i < 3; i++) {
        const int axis = orders[format][i];
        const int64_t stride = shape.strides[axis];
        if (shape.dim[axis] == 1)
            continue;
        if (stride == 0 || stride > above)
            return false;
        above = stride;
    }
    return true;
}

/* ---- words
 * -----------------------------------------------------------------------------------------------------------------
 */

#define AS_ROW(symbol, value, word) { (value), (word) },
typedef struct row {
    int32_t value;
    const char *word;
} row;
static const row formats[] = { FATTN_FORMAT_LIST(AS_ROW){ 0, NULL } };
static const row dtypes[] = { FATTN_DTYPE_LIST(AS_ROW){ FATTN_BOOL, "bool" }, { 0, NULL } };
static const row passes[] = { FATTN_PASS_LIST(AS_ROW){ 0, NULL } };

static const char *word_of(const row *rows, int32_t value)
{
    while (rows->word != NULL && rows->value != value)
        rows++;
    return rows->word != NULL ? rows->word : "?";
}

const char *fattn__fact_order_word(const fattn_problem *p, fattn__role which)
{
    for (int format = FATTN_FORMAT_BSHD; format <= FATTN_FORMAT_BHSD; format++)
        if (fattn__fact_order(p, which, (fattn_format)format))
            return word_of(formats, format);
    return word_of(formats, FATTN_FORMAT_UNSET);
}

const char *fattn__fact_dtype_word(int32_t dtype)
{
    return word_of(dtypes, dtype);
}

const char *fattn__fact_pass_word(int32_t pass)
{
    return word_of(passes, pass);
}

const char *fattn__fact_misaligned_word(const fattn_problem *p)
{
    const fattn__role which = fattn__problem_misaligned(p);
    return which == FATTN__ROLE_COUNT ? "none" : fattn__role_name(which);
}
