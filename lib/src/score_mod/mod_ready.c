/* The common modifications. */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "fattn/fattn.h"
#include "fattn/score_mod.h"

typedef struct numbers {
    int64_t left, right;
    double value;
    fattn_dtype dtype;
    const int64_t *dim, *strides;
} numbers;

static fattn_value op2(fattn_recorder *r, fattn_mod_op op, fattn_value a, fattn_value b)
{
    return fattn_record(r, op, a, b, 0);
}

static fattn_value keep_where(fattn_recorder *r, fattn_value condition, fattn_value score)
{
    return fattn_record(r, FATTN_MOD_SELECT, condition, score, fattn_record_constant(r, -INFINITY));
}

static fattn_value causal(fattn_recorder *r, fattn_value score, void *user)
{
    (void)user;
    const fattn_value row = fattn_record_index(r, FATTN_MOD_ROW),
                      key = fattn_record_index(r, FATTN_MOD_KEY);
    return keep_where(r, op2(r, FATTN_MOD_LE, key, row), score);
}

fattn_status fattn_score_mod_causal(fattn_score_mod **out)
{
    return fattn_score_mod_create(out, causal, NULL, NULL);
}

/* key <= row + right and key > row - left */
static fattn_value window(fattn_recorder *r, fattn_value score, void *user)
{
    const numbers *n = user;
    const fattn_value row = fattn_record_index(r, FATTN_MOD_ROW),
                      key = fattn_record_index(r, FATTN_MOD_KEY);
    const fattn_value distance = op2(r, FATTN_MOD_SUB, key, row);
    const fattn_value right =
        op2(r, FATTN_MOD_LE, distance, fattn_record_constant(r, (double)n->right));
    const fattn_value left =
        op2(r, FATTN_MOD_GT, distance, fattn_record_constant(r, -(double)n->left));
    return keep_where(r, op2(r, FATTN_MOD_AND, right, left), score);
}

fattn_status fattn_score_mod_window(fattn_score_mod **out, int64_t left, int64_t right)
{
    const int64_t limit = (int64_t)1 << 24; /* fp32 counts to here */
    if (left < -limit || left > limit || right < -limit || right > limit)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "score_mod window: %" PRId64 ", %" PRId64
                           " is not allowed; want -2^24 to 2^24",
                           left, right);
    numbers n = { .left = left, .right = right };
    return fattn_score_mod_create(out, window, NULL, &n);
}

static fattn_value softcap(fattn_recorder *r, fattn_value score, void *user)
{
    const numbers *n = user;
    const fattn_value cap = fattn_record_constant(r, n->value);
    return op2(r, FATTN_MOD_MUL,
               fattn_record(r, FATTN_MOD_TANH, op2(r, FATTN_MOD_DIV, score, cap), 0, 0), cap);
}

static fattn_status positive(const char *what, double value)
{
    if (isfinite(value) && value > 0)
        return FATTN_OK;
    return fattn__fail(FATTN_BAD_PROBLEM,
                       "score_mod %s: %g is not allowed; want a finite number above 0", what,
                       value);
}

fattn_status fattn_score_mod_softcap(fattn_score_mod **out, double cap)
{
    numbers n = { .value = cap };
    const fattn_status st = positive("softcap", cap);
    return st != FATTN_OK ? st : fattn_score_mod_create(out, softcap, NULL, &n);
}

static fattn_value temperature_of(fattn_recorder *r, fattn_value score, void *user)
{
    const numbers *n = user;
    return op2(r, FATTN_MOD_DIV, score, fattn_record_constant(r, n->value));
}

fattn_status fattn_score_mod_temperature(fattn_score_mod **out, double temperature)
{
    numbers n = { .value = temperature };
    const fattn_status st = positive("temperature", temperature);
    return st != FATTN_OK ? st : fattn_score_mod_create(out, temperature_of, NULL, &n);
}

static fattn_value prefix_lm(fattn_recorder *r, fattn_value score, void *user)
{
    const numbers *n = user;
    const fattn_value row = fattn_record_index(r, FATTN_MOD_ROW),
                      key = fattn_record_index(r, FATTN_MOD_KEY);
    const fattn_value in_prefix =
        op2(r, FATTN_MOD_LT, key, fattn_record_constant(r, (double)n->left));
    return keep_where(r, op2(r, FATTN_MOD_OR, op2(r, FATTN_MOD_LE, key, row), in_prefix), score);
}

fattn_status fattn_score_mod_prefix_lm(fattn_score_mod **out, int64_t prefix)
{
    if (prefix < 0 || prefix > (int64_t)1 << 24)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "score_mod prefix_lm: %" PRId64 " is not allowed; want 0 to 2^24",
                           prefix);
    numbers n = { .left = prefix };
    return fattn_score_mod_create(out, prefix_lm, NULL, &n);
}

static fattn_value post_scale_bias(fattn_recorder *r, fattn_value score, void *user)
{
    const numbers *n = user;
    return op2(r, FATTN_MOD_ADD, score,
               fattn_record_tensor(r, "bias", n->dtype, n->dim, n->strides));
}

fattn_status fattn_score_mod_post_scale_bias(fattn_score_mod **out, fattn_dtype dtype,
                                             const int64_t dim[4], const int64_t strides[4])
{
    numbers n = { .dtype = dtype, .dim = dim, .strides = strides };
    return fattn_score_mod_create(out, post_scale_bias, NULL, &n);
}

static fattn_value relative_position(fattn_recorder *r, fattn_value score, void *user)
{
    const numbers *n = user;
    const fattn_value row = fattn_record_index(r, FATTN_MOD_ROW),
                      key = fattn_record_index(r, FATTN_MOD_KEY);
    const fattn_value slope = fattn_record_tensor(r, "slope", FATTN_F32, n->dim, NULL);
    return op2(r, FATTN_MOD_ADD, score,
               op2(r, FATTN_MOD_MUL, op2(r, FATTN_MOD_SUB, key, row), slope));
}

fattn_status fattn_score_mod_relative_position(fattn_score_mod **out, int64_t heads_q)
{
    const int64_t dim[4] = { 1, heads_q, 1, 1 };
    numbers n = { .dim = dim };
    return fattn_score_mod_create(out, relative_position, NULL, &n);
}

static fattn_value document(fattn_recorder *r, fattn_value score, void *user)
{
    const numbers *n = user;
    const int64_t rows[4] = { n->dim[0], 1, n->dim[1], 1 },
                  keys[4] = { n->dim[0], 1, 1, n->dim[2] };
    const fattn_value row = fattn_record_tensor(r, "row_document", FATTN_F32, rows, NULL);
    const fattn_value key = fattn_record_tensor(r, "key_document", FATTN_F32, keys, NULL);
    return keep_where(r, op2(r, FATTN_MOD_EQ, row, key), score);
}

fattn_status fattn_score_mod_document(fattn_score_mod **out, int64_t batch, int64_t seq_q,
                                      int64_t seq_kv)
{
    const int64_t dim[4] = { batch, seq_q, seq_kv, 1 };
    numbers n = { .dim = dim };
    return fattn_score_mod_create(out, document, NULL, &n);
}
