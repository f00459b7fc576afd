#include "resolved_problem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "core/error.h"
#include "core/sized.h"
#include "fattn/score_mod.h"
#include "layout.h"

/* The key and the check of unknown bytes would not see a byte in padding. */
_Static_assert(sizeof(fattn_problem) == sizeof(size_t) + 41 * 4 + 4 + 8 * 8 + 9 * 4 * 8 + 3 * 8 +
                                            2 * 8 + 6 * 8 + 3 * 4 * 8 + sizeof(void *) + 2 * 8,
               "fattn_problem has padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the key is the image of a little-endian machine");

static const int64_t window_limit = (int64_t)1 << 30;

/* X(field, least, most, what is allowed) */
/* clang-format off */
#define WORD_FIELDS(X)                                                                   \
    X(pass, FATTN_FORWARD, FATTN_BACKWARD, "0 (fwd) or 1 (bwd)")                         \
    X(dtype, FATTN_BF16, FATTN_MXE5M2, "1 (bf16) to 7 (mxe5m2)")                         \
    X(o_dtype, FATTN_BF16, FATTN_MXE5M2, "1 (bf16) to 7 (mxe5m2)")                       \
    X(grad_dtype, FATTN_BF16, FATTN_MXE5M2, "1 (bf16) to 7 (mxe5m2)")                    \
    X(align, FATTN_TOP_LEFT, FATTN_BOTTOM_RIGHT, "0 (tl) or 1 (br)")                     \
    X(impl, FATTN_IMPL_AUTO, FATTN_IMPL_UNIFIED, "0 (auto) to 2 (unified)")              \
    X(spelling, FATTN_SPELLING_AUTO, FATTN_SPELLING_SINGLE, "0 (auto) to 2 (single)")    \
    X(reserved, 0, 0, "0")                                                               \
    X(determinism, FATTN_DETERMINISM_AUTO, FATTN_DETERMINISM_PIN, "0 (auto) to 2 (pin)") \
    X(scaling, FATTN_SCALING_NONE, FATTN_SCALING_CURRENT, "0 (none) to 2 (current)")     \
    X(scale_format, FATTN_FORMAT_UNSET, FATTN_FORMAT_BHSD, "0 (unset) to 3 (bhsd)")      \
    X(bias_dtype, FATTN_DTYPE_DEFAULT, FATTN_BOOL, "1 (bf16) to 8 (bool)")               \
    X(stats_dtype, FATTN_DTYPE_DEFAULT, FATTN_F32, "0, 1 (bf16), 2 (f16) or 3 (f32)")    \
    X(do_dtype, FATTN_DTYPE_DEFAULT, FATTN_MXE5M2, "1 (bf16) to 7 (mxe5m2)")
/* clang-format on */

/* 0 or 1. X(field) */
/* clang-format off */
#define FLAG_FIELDS(X)                                                                         \
    X(has_attn_scale) X(has_left) X(has_right) X(padding) X(deterministic) X(capture)          \
    X(guards_off) X(training) X(len_broadcast) X(has_bias) X(dbias) X(ragged_tokens)           \
    X(packed_table) X(alibi) X(sink) X(dsink) X(dropout_mask) X(scale_in_memory) X(block_mask) \
    X(unfuse_fma) X(rope)
/* clang-format on */

#define EXTENT_FIELDS(X)                                                                           \
    X(batch) X(heads_q) X(heads_k) X(heads_v) X(seq_q) X(seq_kv) X(dim_qk) X(dim_v)

/* Copies what the caller's version of the struct has; the rest is 0. */
static fattn_status take(const fattn_problem *given, fattn_problem *out)
{
    size_t size;
    memcpy(&size, &given->struct_size, sizeof size);
    if (size < sizeof size || size % _Alignof(fattn_problem) != 0 ||
        size > FATTN__STRUCT_SIZE_LIMIT)
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "struct_size: %zu is not the size of a fattn_problem; start from FATTN_PROBLEM_INIT",
            size);
    const unsigned char *bytes = (const unsigned char *)given;
    for (size_t i = sizeof *out; i < size; i++)
        if (bytes[i] != 0)
            return fattn__fail(FATTN_BAD_PROBLEM,
                               "struct_size: the field at byte %zu is not known to this library "
                               "(%zu bytes) and is not zero",
                               i, sizeof *out);
    fattn_problem taken = { 0 };
    memcpy(&taken, bytes, size < sizeof taken ? size : sizeof taken);
    taken.struct_size = sizeof taken;
    *out = taken;
    return FATTN_OK;
}

static void fill_defaults(fattn_problem *p)
{
    p->dtype = p->dtype == FATTN_DTYPE_DEFAULT ? FATTN_BF16 : p->dtype;
    p->o_dtype = p->o_dtype == FATTN_DTYPE_DEFAULT ? p->dtype : p->o_dtype;
    p->grad_dtype = p->grad_dtype == FATTN_DTYPE_DEFAULT ? p->dtype : p->grad_dtype;
    p->heads_k = p->heads_k == 0 ? p->heads_q : p->heads_k;
    p->heads_v = p->heads_v == 0 ? p->heads_k : p->heads_v;
    p->dim_v = p->dim_v == 0 ? p->dim_qk : p->dim_v;
}

static fattn_status check_words(const fattn_problem *p)
{
#define CHECK_WORD(field, least, most, allowed)                                                    \
    if (p->field < (least) || p->field > (most))                                                   \
        return fattn__fail(FATTN_BAD_PROBLEM,                                                      \
                           #field ": %" PRId32 " is not allowed; want " allowed, p->field);
    WORD_FIELDS(CHECK_WORD)
#define CHECK_FLAG(field) CHECK_WORD(field, 0, 1, "0 or 1")
    FLAG_FIELDS(CHECK_FLAG)
#undef CHECK_FLAG
#undef CHECK_WORD
    const uint32_t known = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP |
                           FATTN_WANT_STATS_LOG2 | FATTN_WANT_RNG_DUMP;
    if ((p->outputs & ~known) != 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "outputs: 0x%" PRIx32
                           " has unknown bits; want FATTN_WANT_ bits (0x%" PRIx32 ")",
                           p->outputs, known);
    if (p->ragged_bits != 0 && p->ragged_bits != 32 && p->ragged_bits != 64)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "ragged_bits: %" PRId32 " is not allowed; want 0, 32 or 64",
                           p->ragged_bits);
    return FATTN_OK;
}

static fattn_status check_extents(const fattn_problem *p)
{
#define CHECK_EXTENT(field)                                                                        \
    if (p->field < 1)                                                                              \
        return fattn__fail(FATTN_BAD_PROBLEM,                                                      \
                           #field ": %" PRId64 " is not allowed; want 1 or more", p->field);
    EXTENT_FIELDS(CHECK_EXTENT)
#undef CHECK_EXTENT
    if (p->heads_q % p->heads_k != 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "heads_q: %" PRId64 " is not a multiple of heads_k, %" PRId64,
                           p->heads_q, p->heads_k);
    if (p->heads_q % p->heads_v != 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "heads_q: %" PRId64 " is not a multiple of heads_v, %" PRId64,
                           p->heads_q, p->heads_v);
    const int64_t scores[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    if (!fattn__fits(scores, 4))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "batch, heads_q, seq_q, seq_kv: their product must stay below 2^62");
    const int64_t dim = p->dim_qk > p->dim_v ? p->dim_qk : p->dim_v;
    const int64_t rows[4] = { p->batch, p->heads_q, p->seq_q, dim },
                  keys[4] = { p->batch, p->heads_q, p->seq_kv, dim };
    if (!fattn__fits(rows, 4) || !fattn__fits(keys, 4))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "batch, heads_q, seq, dim: their product must stay below 2^62");
    return FATTN_OK;
}

/* Fields that are not read become 0, so that they make no difference between equal problems. */
static fattn_status settle_band(fattn_problem *p)
{
    p->window_left = p->has_left ? p->window_left : 0;
    p->window_right = p->has_right ? p->window_right : 0;
    if (!p->has_left && !p->has_right)
        p->align = FATTN_TOP_LEFT;
    if (p->window_left < -window_limit || p->window_left > window_limit)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "window_left: %" PRId64
                           " is not allowed; want -2^30 to 2^30 (has_left = 0: no bound)",
                           p->window_left);
    if (p->window_right < -window_limit || p->window_right > window_limit)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "window_right: %" PRId64
                           " is not allowed; want -2^30 to 2^30 (has_right = 0: no bound)",
                           p->window_right);
    return FATTN_OK;
}

static fattn_status settle_scale(fattn_problem *p)
{
    if (!p->has_attn_scale)
        p->attn_scale = 1.0 / sqrt((double)p->dim_qk);
    p->has_attn_scale = 1;
    if (!p->scale_in_memory && (!isfinite(p->attn_scale) || fabs(p->attn_scale) > 3.0e38))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "attn_scale: %g is not allowed; want a number that fp32 can hold",
                           p->attn_scale);
    return FATTN_OK;
}

static bool is_8_bit(int32_t dtype)
{
    return fattn__dtype_is_fp8(dtype) || fattn__dtype_is_mx(dtype);
}

static fattn_status check_scaling(const fattn_problem *p)
{
    if (!is_8_bit(p->dtype) &&
        (p->scaling != FATTN_SCALING_NONE || p->scale_format != FATTN_FORMAT_UNSET))
        return fattn__fail(FATTN_BAD_PROBLEM, "%s: only 8-bit types have scale factors",
                           p->scaling != FATTN_SCALING_NONE ? "scaling" : "scale_format");
    return FATTN_OK;
}

/* Determinism and the length tensors, by the same rule. */
static void settle_rest(fattn_problem *p)
{
    const bool backward = p->pass == FATTN_BACKWARD;
    p->training = backward ? 1 : p->training;
    p->outputs = backward      ? p->outputs & FATTN_WANT_RNG_DUMP
                 : p->training ? p->outputs | FATTN_WANT_STATS
                               : p->outputs;
    p->determinism = p->deterministic ? p->determinism : FATTN_DETERMINISM_AUTO;
    p->len_broadcast = p->padding ? p->len_broadcast : 0;
}

static fattn_status settle_bias(fattn_problem *p)
{
    const int64_t full[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    if (!p->has_bias && p->dbias)
        return fattn__fail(FATTN_BAD_PROBLEM, "dbias: there is no bias");
    if (!p->has_bias) {
        p->bias_dtype = FATTN_DTYPE_DEFAULT;
        memset(p->bias_dim, 0, sizeof p->bias_dim);
        memset(p->bias_strides, 0, sizeof p->bias_strides);
        memset(p->dbias_strides, 0, sizeof p->dbias_strides);
        return FATTN_OK;
    }
    p->dbias = p->pass == FATTN_BACKWARD ? p->dbias : 0;
    if (p->bias_dtype == FATTN_DTYPE_DEFAULT)
        p->bias_dtype = is_8_bit(p->dtype) ? FATTN_BF16 : p->dtype;
    if ((p->bias_dim[0] | p->bias_dim[1] | p->bias_dim[2] | p->bias_dim[3]) == 0)
        memcpy(p->bias_dim, (const int64_t[4]){ 1, full[1], full[2], full[3] }, sizeof p->bias_dim);
    for (int axis = 0; axis < 4; axis++)
        if (p->bias_dim[axis] != 1 && p->bias_dim[axis] != full[axis])
            return fattn__fail(FATTN_BAD_PROBLEM,
                               "bias_dim[%d]: %" PRId64 " is not allowed; want 1 or %" PRId64, axis,
                               p->bias_dim[axis], full[axis]);
    return FATTN_OK;
}

/* Ragged tensors, cumulative lengths, pages. */
static fattn_status settle_ragged(fattn_problem *p)
{
    if (p->ragged_bits != 0 && !p->padding)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "ragged_bits: ragged tensors need lengths; set padding");
    if ((p->ragged & ~(uint32_t)FATTN_RAGGED_ALL) != 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "ragged: 0x%" PRIx32 " has unknown bits; want FATTN_RAGGED_ bits",
                           p->ragged);
    if (p->ragged_bits == 0 &&
        (p->ragged != 0 || p->ragged_tokens || p->total_q != 0 || p->total_kv != 0))
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "ragged, ragged_tokens, total_q, total_kv: nothing is ragged; set ragged_bits");
    if (p->ragged_bits != 0 && p->ragged == 0)
        p->ragged = FATTN_RAGGED_ALL;
    if (p->total_q < 0 || p->total_kv < 0)
        return fattn__fail(FATTN_BAD_PROBLEM, "total_q, total_kv: want 0 (not declared) or more");
    if (p->cumulative > (FATTN_CUMULATIVE_Q | FATTN_CUMULATIVE_KV) ||
        (p->cumulative != 0 && !p->padding))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "cumulative: 0x%" PRIx32
                           " is not allowed; want FATTN_CUMULATIVE_ bits, with padding",
                           p->cumulative);
    if (p->cumulative != 0 && p->len_broadcast)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "cumulative: one length for every entry has no prefix sums");
    if (p->len_rank != 0 && p->len_rank != 1 && p->len_rank != 4)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "len_rank: %" PRId32 " is not allowed; want 0, 1 or 4", p->len_rank);
    p->len_rank = p->padding && p->len_rank == 1 ? 1 : 0;
    return FATTN_OK;
}

static fattn_status settle_pages(fattn_problem *p, const char *name, int64_t page, int64_t pages,
                                 int64_t *table)
{
    if (page == 0 && pages == 0 && *table == 0)
        return FATTN_OK;
    if (page < 1 || pages < 1 || page > INT32_MAX || pages > INT32_MAX)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "page_size_%s, pages_%s: %" PRId64 ", %" PRId64
                           " are not allowed; want 1 to 2^31 - 1 of both",
                           name, name, page, pages);
    const bool is_k = name[0] == 'k';
    const int64_t pool[4] = { pages, is_k ? p->heads_k : p->heads_v, page,
                              is_k ? p->dim_qk : p->dim_v };
    if (!fattn__fits(pool, 4))
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "pages_%s, heads_%s, page_size_%s, dim: their product must stay below 2^62", name, name,
            name);
    const int64_t needed = (p->seq_kv + page - 1) / page;
    if (*table == 0)
        *table = needed;
    if (*table != needed)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "table_%s: %" PRId64 " pages do not fit seq_kv; want %" PRId64, name,
                           *table, needed);
    return FATTN_OK;
}

static fattn_status settle_paged(fattn_problem *p)
{
    const bool paged = p->page_size_k != 0 || p->page_size_v != 0;
    TRY(settle_pages(p, "k", p->page_size_k, p->pages_k, &p->table_k));
    TRY(settle_pages(p, "v", p->page_size_v, p->pages_v, &p->table_v));
    if (paged && !p->padding)
        return fattn__fail(FATTN_BAD_PROBLEM, "page_size: pages need lengths; set padding");
    if (paged && p->pass == FATTN_BACKWARD)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "page_size: a backward has no paged keys; pages are for forward");
    if (p->packed_table && !paged)
        return fattn__fail(FATTN_BAD_PROBLEM, "packed_table: there are no pages");
    p->ragged &= ~((p->page_size_k != 0 ? FATTN_RAGGED_K : 0u) |
                   (p->page_size_v != 0 ? FATTN_RAGGED_V : 0u));
    if (p->ragged_bits != 0 && p->ragged == 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "ragged: paged K and V have no offsets, and no other tensor is ragged");
    return FATTN_OK;
}

/* Dropout, sinks and the other parts of the softmax. */
static fattn_status settle_softmax(fattn_problem *p)
{
    if (!(p->dropout >= 0.0 && p->dropout < 1.0))
        return fattn__fail(FATTN_BAD_PROBLEM, "dropout: %g is not allowed; want 0 to below 1",
                           p->dropout);
    if (p->dropout != 0.0 && p->dropout_mask)
        return fattn__fail(FATTN_BAD_PROBLEM, "dropout: dropout_mask says what is dropped; want 0");
    if (p->rng_bits != 0 && p->rng_bits != 32 && p->rng_bits != 64)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "rng_bits: %" PRId32 " is not allowed; want 0, 32 or 64", p->rng_bits);
    p->rng_bits = p->dropout == 0.0 ? 0 : p->rng_bits == 0 ? 64 : p->rng_bits;
    if ((p->outputs & FATTN_WANT_RNG_DUMP) != 0 && p->dropout == 0.0)
        return fattn__fail(FATTN_BAD_PROBLEM, "outputs: rng_dump needs dropout");
    if ((p->outputs & FATTN_WANT_STATS) != 0 && (p->outputs & FATTN_WANT_STATS_LOG2) != 0)
        return fattn__fail(FATTN_BAD_PROBLEM, "outputs: stats are natural or in base 2, not both");
    if (p->dsink && !p->sink)
        return fattn__fail(FATTN_BAD_PROBLEM, "dsink: there is no sink");
    p->dsink = p->pass == FATTN_BACKWARD ? p->dsink : 0;
    p->stats_dtype = p->stats_dtype == FATTN_DTYPE_DEFAULT ? FATTN_F32 : p->stats_dtype;
    p->attn_scale = p->scale_in_memory ? 0.0 : p->attn_scale;
    if (p->rope_dim < 0 || p->rope_dim > p->dim_qk || p->rope_dim % 2 != 0 ||
        (p->rope_dim != 0 && !p->rope))
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "rope_dim: %" PRId64
                           " is not allowed; want an even number up to dim_qk, with rope",
                           p->rope_dim);
    p->rope_dim = p->rope && p->rope_dim == 0 ? p->dim_qk : p->rope_dim;
    if (p->rope && p->rope_dim % 2 != 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "rope: dim_qk %" PRId64 " is odd; lanes rotate in pairs", p->dim_qk);
    return FATTN_OK;
}

/* Of a block-scaled type dO is quantised as Q is. A forward has none. */
static bool settle_do_dtype(fattn_problem *p, bool mx)
{
    const int32_t usual = mx ? p->dtype : p->o_dtype;
    if (p->do_dtype == FATTN_DTYPE_DEFAULT || p->pass == FATTN_FORWARD)
        p->do_dtype = usual;
    return p->do_dtype == usual || (is_8_bit(p->dtype) && fattn__dtype_is_mx(p->do_dtype) == mx);
}

/* Only inputs have a block-scaled type; outputs have a type of their own. */
static fattn_status settle_types(fattn_problem *p)
{
    const bool mx = fattn__dtype_is_mx(p->dtype);
    if (mx && p->o_dtype == p->dtype)
        p->o_dtype = FATTN_BF16;
    if (mx && p->grad_dtype == p->dtype)
        p->grad_dtype = FATTN_BF16;
    if (p->o_dtype >= FATTN_MXE4M3 || p->grad_dtype >= FATTN_MXE4M3)
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "%s: no output has a block-scaled type; want bf16, f16, f32, e4m3 or e5m2",
            p->o_dtype >= FATTN_MXE4M3 ? "o_dtype" : "grad_dtype");
    if (!settle_do_dtype(p, mx))
        return fattn__fail(
            FATTN_BAD_PROBLEM,
            "do_dtype: %" PRId32
            " is not allowed: without 8-bit types dO has o_dtype, and it is block-scaled if "
            "Q, K and V are",
            p->do_dtype);
    if (p->has_bias && fattn__dtype_is_mx(p->bias_dtype))
        return fattn__fail(FATTN_BAD_PROBLEM, "bias_dtype: a bias is not block-scaled");
    if (p->dbias && p->bias_dtype == FATTN_BOOL)
        return fattn__fail(FATTN_BAD_PROBLEM, "dbias: a boolean mask has no gradient");
    return FATTN_OK;
}

static fattn_status settle_mod(fattn_problem *p)
{
    const int64_t full[4] = { p->batch, p->heads_q, p->seq_q, p->seq_kv };
    const size_t count = p->score_mod != NULL ? fattn_score_mod_tensor_count(p->score_mod) : 0;
    p->mod_gradients = p->pass == FATTN_BACKWARD ? p->mod_gradients : 0;
    if ((uint64_t)p->mod_gradients >> count != 0)
        return fattn__fail(FATTN_BAD_PROBLEM,
                           "mod_gradients: 0x%" PRIx32
                           " has bits of tensors that score_mod does not have (%zu)",
                           p->mod_gradients, count);
    for (size_t i = 0; i < count; i++) {
        const fattn_mod_tensor *tensor = fattn_score_mod_tensor(p->score_mod, i);
        for (int axis = 0; axis < 4; axis++)
            if (tensor->dim[axis] != 1 && tensor->dim[axis] != full[axis])
                return fattn__fail(FATTN_BAD_PROBLEM,
                                   "score_mod: extent %d of tensor \"%s\" is %" PRId64
                                   "; want 1 or %" PRId64,
                                   axis, tensor->name, tensor->dim[axis], full[axis]);
    }
    return FATTN_OK;
}

fattn_status fattn_problem_resolve(const fattn_problem *problem, fattn_problem *out)
{
    NEED(out);
    fattn_problem p;
    if (problem == NULL || out == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "%s: NULL is not allowed",
                           problem == NULL ? "problem" : "out");
    TRY(take(problem, &p));
    fill_defaults(&p);
    TRY(check_words(&p));
    TRY(check_extents(&p));
    TRY(settle_band(&p));
    TRY(settle_scale(&p));
    TRY(check_scaling(&p));
    settle_rest(&p);
    TRY(settle_ragged(&p));
    TRY(settle_paged(&p));
    TRY(settle_softmax(&p));
    TRY(settle_bias(&p));
    TRY(settle_types(&p));
    TRY(settle_mod(&p));
    TRY(fattn__problem_lay_out(&p));
    *out = p;
    return FATTN_OK;
}

/* The image without the address. */
static fattn_problem image_of(const fattn_problem *resolved)
{
    fattn_problem image;
    memcpy(&image, resolved, sizeof image);
    image.score_mod = NULL;
    return image;
}

fattn__problem_key fattn__problem_key_of(const fattn_problem *resolved)
{
    struct {
        fattn_problem image;
        uint64_t mod[2];
    } whole = { .image = image_of(resolved) };
    if (resolved->score_mod != NULL)
        fattn_score_mod_hash(resolved->score_mod, whole.mod);
    const XXH128_hash_t hash = XXH3_128bits(&whole, sizeof whole);
    return (fattn__problem_key){ .low = hash.low64, .high = hash.high64 };
}

bool fattn__problem_same(const fattn_problem *resolved, const fattn_problem *other)
{
    const fattn_problem a = image_of(resolved), b = image_of(other);
    if (memcmp((const void *)&a, (const void *)&b, sizeof a) !=
        0) /* bytes, as the key: -0.0 is not 0.0 */
        return false;
    if (resolved->score_mod == NULL || other->score_mod == NULL)
        return resolved->score_mod == other->score_mod;
    return fattn_score_mod_same(resolved->score_mod, other->score_mod);
}
