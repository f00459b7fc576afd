#include "resolution.h"

#include <stdio.h>
#include <string.h>

#include "words/case_text.h"

static const char dimension_letters[] = "bhsd";
#define MOST_ELEMENTS                                                                              \
    (INT64_C(1) << 46) /* 128 TiB of bf16: beyond any memory, far from overflow                    \
                        */

/* Strides of extent-1 dimensions may be anything; these are multiples of 16 bytes, larger than any
 * tensor here, and all different.
 */
static const int64_t wild_stride[4] = { 800000024, 800000088, 800000152, 1 };

/* The memory order of a tensor's dimensions, outermost first, for an output that follows this
 * tensor. Dimensions are sorted by stride. Those of stride 0 or extent 1 are outermost, in the
 * order b,h,s. d is last. */
static void facts_order_of(const facts_tensor *tensor, char out[6])
{
    if (tensor->packed != FACTS_PACKED_NOT) {
        memcpy(out, "thd", 4);
        return;
    }
    int sorted[3] = { 0, 1, 2 };
    for (int i = 1; i < 3; i++) { /* insertion keeps b,h,s among equals */
        int own = sorted[i], place = i;
        bool own_free = tensor->stride[own] == 0 || tensor->dim[own] == 1;
        for (; place > 0; place--) {
            int other = sorted[place - 1];
            bool other_free = tensor->stride[other] == 0 || tensor->dim[other] == 1;
            bool before = own_free != other_free
                              ? own_free
                              : !own_free && tensor->stride[own] > tensor->stride[other];
            if (!before)
                break;
            sorted[place] = other;
        }
        sorted[place] = own;
    }
    for (int i = 0; i < 3; i++)
        out[i] = dimension_letters[sorted[i]];
    out[3] = 'd';
    out[4] = '\0';
}

/* Elements after each index of a dimension. */
static int64_t gap_of(const facts_place_request *request, int d)
{
    if (request->form->gap[d] != 0)
        return request->form->gap[d];
    return d == 2 && request->plain != NULL ? request->plain->gap[2] : 0;
}

static bool named(const facts_stride_form *form)
{
    bool any = form->perm[0] != '\0' || form->offset != 0 || form->misaligned != 0;
    for (int d = 0; d < 4; d++)
        any = any || form->gap[d] != 0 || form->broadcast[d] || form->sum[d];
    return any;
}

static const char *order_of_request(const facts_place_request *request, char order[6])
{
    bool packed = strpbrk(request->order, "23") != NULL;
    const char *perm = request->form->perm[0] != '\0'                   ? request->form->perm
                       : request->plain != NULL && request->takes_order ? request->plain->perm
                                                                        : "";
    const facts_stride_form *form = request->form;
    if (packed && (named(form) || perm[0] != '\0'))
        return "a packed tensor shares its storage: only plain gap, offset and misaligned apply";
    bool moved = perm[0] != '\0' || form->gap[0] != 0 || form->broadcast[0] || form->broadcast[2] ||
                 form->sum[0] || form->sum[1] || form->sum[2];
    if (strchr(request->order, 't') != NULL && moved)
        return "ragged sequences follow each other: no order, no stride of b, no broadcast of rows";
    memcpy(order, request->order, 6);
    if (perm[0] != '\0')
        memcpy(order, perm, 5);
    return NULL;
}

const char *facts_place_tensor(const facts_place_request *request, facts_tensor *out)
{
    char order[6];
    const char *wrong = order_of_request(request, order);
    if (wrong != NULL)
        return wrong;
    int64_t run = 1, slice_stride = 0;
    memcpy(out->dim, request->dim, sizeof out->dim);
    for (size_t i = strlen(order); i-- > 0;) {
        bool tokens = order[i] == 't';
        const char *place = strchr(dimension_letters, tokens ? 's' : order[i]);
        int d = place == NULL ? -1 : (int)(place - dimension_letters);
        int64_t extent = tokens  ? (request->tokens > 0 ? request->tokens : 1)
                         : d < 0 ? order[i] - '0'
                                 : request->dim[d];
        if (d >= 0 && (request->form->broadcast[d] || request->form->sum[d])) {
            out->stride[d] = 0;
            out->dim[d] = request->form->sum[d] ? 1 : extent;
            continue;
        }
        int64_t stride = run + (d < 0 ? 0 : gap_of(request, d));
        if (stride > MOST_ELEMENTS / extent)
            return "larger than any memory";
        if (d < 0)
            slice_stride = stride;
        else
            out->stride[d] = request->wild && extent == 1 && d != 3 ? wild_stride[d] : stride;
        run = stride * extent;
    }
    if (strchr(order, 't') != NULL)
        out->stride[0] =
            request->dim[2] *
            out->stride[2]; /* nobody steps by it: start_q and start_kv say where an entry begins */
    const facts_stride_form *plain = request->takes_offsets ? request->plain : NULL;
    int64_t offset = request->form->offset != 0 ? request->form->offset
                     : plain != NULL            ? plain->offset
                                                : 0;
    out->skew_bytes = request->form->misaligned != 0 ? request->form->misaligned
                      : plain != NULL                ? plain->misaligned
                                                     : 0;
    out->first = offset + request->slice * slice_stride;
    out->elements = offset + run;
    return out->stride[3] == 1 ? NULL : "the last stride must be 1: channels lie side by side";
}

typedef enum kind {
    KIND_QUERY,
    KIND_KEY,
    KIND_VALUE,
    KIND_ANSWER,
    KIND_ROW,
    KIND_BIAS,
    KIND_SCORES,
    KIND_MOD_A,
    KIND_MOD_B
} kind;

/* What each tensor is: its extents, its type, its place in stride=. X-like rows in the order of
 * FACTS_TENSOR_LIST. */
static const struct {
    kind is;
    facts_stride_tensor form;
    bool written, gradient;
    facts_tensor_id input; /* of a gradient */
} about[FACTS_TENSOR_COUNT] = {
    [FACTS_TENSOR_Q] = { KIND_QUERY, FACTS_STRIDE_Q, false, false, 0 },
    [FACTS_TENSOR_K] = { KIND_KEY, FACTS_STRIDE_K, false, false, 0 },
    [FACTS_TENSOR_V] = { KIND_VALUE, FACTS_STRIDE_V, false, false, 0 },
    [FACTS_TENSOR_O] = { KIND_ANSWER, FACTS_STRIDE_O, true, false, 0 },
    [FACTS_TENSOR_STATS] = { KIND_ROW, FACTS_STRIDE_STATS, true, false, 0 },
    [FACTS_TENSOR_MAX] = { KIND_ROW, FACTS_STRIDE_STATS, true, false, 0 },
    [FACTS_TENSOR_SUM_EXP] = { KIND_ROW, FACTS_STRIDE_STATS, true, false, 0 },
    [FACTS_TENSOR_DO] = { KIND_ANSWER, FACTS_STRIDE_DO, false, false, 0 },
    [FACTS_TENSOR_DQ] = { KIND_QUERY, FACTS_STRIDE_DQ, true, true, FACTS_TENSOR_Q },
    [FACTS_TENSOR_DK] = { KIND_KEY, FACTS_STRIDE_DK, true, true, FACTS_TENSOR_K },
    [FACTS_TENSOR_DV] = { KIND_VALUE, FACTS_STRIDE_DV, true, true, FACTS_TENSOR_V },
    [FACTS_TENSOR_BIAS] = { KIND_BIAS, FACTS_STRIDE_BIAS, false, false, 0 },
    [FACTS_TENSOR_DBIAS] = { KIND_BIAS, FACTS_STRIDE_DBIAS, true, true, FACTS_TENSOR_BIAS },
    [FACTS_TENSOR_MOD_A] = { KIND_MOD_A, FACTS_STRIDE_COUNT, false, false, 0 },
    [FACTS_TENSOR_MOD_B] = { KIND_MOD_B, FACTS_STRIDE_COUNT, false, false, 0 },
    [FACTS_TENSOR_RNG_DUMP] = { KIND_SCORES, FACTS_STRIDE_COUNT, true, false, 0 },
    [FACTS_TENSOR_DROPOUT_MASK] = { KIND_SCORES, FACTS_STRIDE_COUNT, false, false, 0 },
    [FACTS_TENSOR_Q_T] = { KIND_QUERY, FACTS_STRIDE_COUNT, false, false, 0 },
    [FACTS_TENSOR_K_T] = { KIND_KEY, FACTS_STRIDE_COUNT, false, false, 0 },
    [FACTS_TENSOR_DO_T] = { KIND_ANSWER, FACTS_STRIDE_COUNT, false, false, 0 },
    [FACTS_TENSOR_DO_16] = { KIND_ANSWER, FACTS_STRIDE_COUNT, false, false, 0 },
};

/* A score modification's own tensors; [0] is MOD_A. */
static void mod_dims(const facts_problem *out, kind is, int64_t dim[4])
{
    const fattn_problem *ask = &out->ask;
    for (int d = 0; d < 4; d++)
        dim[d] = 1;
    if (out->mod == FACTS_MOD_POST_SCALE_BIAS || out->mod == FACTS_MOD_RELPOS)
        dim[1] = ask->heads_q;
    if (out->mod == FACTS_MOD_POST_SCALE_BIAS) {
        dim[2] = ask->seq_q;
        dim[3] = ask->seq_kv;
    }
    if (out->mod == FACTS_MOD_DOCUMENT) {
        dim[0] = ask->batch;
        dim[2] = is == KIND_MOD_A ? ask->seq_q : 1;
        dim[3] = is == KIND_MOD_A ? 1 : ask->seq_kv;
    }
}

static void dims_of(const facts_problem *out, facts_tensor_id id, int64_t dim[4])
{
    const fattn_problem *ask = &out->ask;
    kind is = about[id].is;
    bool queries = is == KIND_QUERY || is == KIND_ANSWER || is == KIND_ROW;
    if (is == KIND_BIAS) {
        memcpy(dim, ask->bias_dim, sizeof ask->bias_dim);
        return;
    }
    if (is == KIND_SCORES) {
        const int64_t scores[4] = { ask->batch, ask->heads_q, ask->seq_q, ask->seq_kv };
        memcpy(dim, scores, sizeof scores);
        return;
    }
    if (is > KIND_BIAS) {
        mod_dims(out, is, dim);
        return;
    }
    dim[0] = ask->batch;
    dim[1] = queries ? ask->heads_q : is == KIND_VALUE ? ask->heads_v : ask->heads_k;
    dim[2] = queries ? ask->seq_q : ask->seq_kv;
    dim[3] = is == KIND_ROW ? 1 : is == KIND_VALUE || is == KIND_ANSWER ? ask->dim_v : ask->dim_qk;
}

static int32_t dtype_of(const facts_problem *out, facts_tensor_id id)
{
    if (id == FACTS_TENSOR_DO || id == FACTS_TENSOR_DO_T)
        return out->ask.do_dtype; /* DO_16 has O's type */
    switch (about[id].is) {
    case KIND_ROW:
        return id == FACTS_TENSOR_STATS ? out->ask.stats_dtype : FATTN_F32;
    case KIND_ANSWER:
        return out->ask.o_dtype;
    case KIND_SCORES:
        return id == FACTS_TENSOR_RNG_DUMP    ? FATTN_F32
               : out->ask.dtype >= FATTN_E4M3 ? FATTN_BF16
                                              : out->ask.dtype;
    case KIND_BIAS:
        return out->ask.bias_dtype;
    case KIND_MOD_A:
    case KIND_MOD_B:
        return out->mod == FACTS_MOD_POST_SCALE_BIAS ? out->mod_dtype : FATTN_F32;
    default:
        return about[id].gradient ? out->ask.grad_dtype : out->ask.dtype;
    }
}

#define AS_WORD3(symbol, word, fwd, bwd) word,
static const char *const tensor_words[FACTS_TENSOR_COUNT] = { FACTS_TENSOR_LIST(AS_WORD3) };

/* What is written may not be broadcast; a gradient may be summed where its input is. NULL, or what
 * is wrong. */
static const char *wrong_zero(const facts_resolution *r, facts_tensor_id id,
                              const facts_stride_form *form)
{
    static const facts_stride_form nothing = { 0 };
    const facts_stride_form *input =
        about[id].gradient ? &r->stride.of[about[about[id].input].form] : &nothing;
    for (int d = 0; d < 4; d++) {
        if (about[id].written && form->broadcast[d])
            return "is an output: two of its elements may not share an address (sum: for gradients "
                   "of broadcast inputs)";
        if (form->sum[d] && !input->broadcast[d])
            return "is summed over a dimension in which its input is not broadcast";
    }
    return NULL;
}

/* The page size of a pool; 0: it is not one. */
static int64_t page_of(const facts_problem *out, facts_tensor_id id)
{
    return id == FACTS_TENSOR_K   ? out->ask.page_size_k
           : id == FACTS_TENSOR_V ? out->ask.page_size_v
                                  : 0;
}

/* Extents in memory: of a pool [pages, heads, page, d]. */
static void placed_dims(const facts_problem *out, facts_tensor_id id, int64_t dim[4])
{
    dims_of(out, id, dim);
    if (page_of(out, id) != 0) {
        dim[0] = id == FACTS_TENSOR_K ? out->ask.pages_k : out->ask.pages_v;
        dim[2] = page_of(out, id);
    }
}

static bool is_keyed(facts_tensor_id id)
{
    return about[id].is == KIND_KEY || about[id].is == KIND_VALUE;
}

/* What a packed or paged tensor is beside its strides. */
static const char *settle(const facts_resolution *r, facts_tensor_id id, bool packed)
{
    facts_tensor *tensor = &r->out->tensor[id];
    tensor->page = page_of(r->out, id);
    tensor->pages = tensor->page != 0 ? tensor->dim[0] : 0;
    if (tensor->page != 0 && packed)
        return "is a pool of pages: its layout must not be ragged";
    if (tensor->page != 0 && (tensor->stride[0] == 0 || tensor->stride[2] == 0))
        return "is a pool of pages: its rows must not share memory";
    if (packed) {
        tensor->packed = is_keyed(id) ? FACTS_PACKED_KV : FACTS_PACKED_Q;
        tensor->tokens = is_keyed(id) ? r->tokens_kv : r->tokens_q;
    }
    if (tensor->page != 0)
        dims_of(r->out, id, tensor->dim);
    return NULL;
}

static facts_resolve_status place(facts_resolution *r, facts_tensor_id id, facts_span order,
                                  int slice)
{
    static const facts_stride_form nothing = { 0 };
    facts_tensor *tensor = &r->out->tensor[id];
    bool input = id <= FACTS_TENSOR_V, follows_plain = about[id].is < KIND_ROW,
         packed = memchr(order.at, 't', order.length) != NULL;
    const facts_stride_form *form =
        about[id].form == FACTS_STRIDE_COUNT ? &nothing : &r->stride.of[about[id].form];
    facts_place_request request = { .slice = slice,
                                    .form = form,
                                    .plain = follows_plain ? &r->stride.of[FACTS_STRIDE_ALL] : NULL,
                                    .takes_offsets = input,
                                    .takes_order = input,
                                    .wild = r->stride.wild,
                                    .tokens = is_keyed(id) ? r->tokens_kv : r->tokens_q };
    placed_dims(r->out, id, request.dim);
    memcpy(request.order, order.at, order.length);
    char what[200];
    const char *wrong = wrong_zero(r, id, form), *colon = wrong == NULL ? ":" : "";
    if (wrong == NULL)
        wrong = facts_place_tensor(&request, tensor);
    if (wrong == NULL && (wrong = settle(r, id, packed)) != NULL)
        colon = "";
    if (wrong != NULL) {
        snprintf(what, sizeof what, "%s%s %s", tensor_words[id], colon, wrong);
        return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_STRIDE, what);
    }
    tensor->present = true;
    tensor->dtype = dtype_of(r->out, id);
    return FACTS_RESOLVED;
}

static facts_resolve_status check_packs(facts_resolution *r, facts_key key, int64_t dim[3][4],
                                        int from, bool sequences)
{
    const facts_problem *out = r->out;
    size_t starts = (size_t)(out->ask.batch + 1) * sizeof *out->start_q,
           lengths = (size_t)out->ask.batch * sizeof *out->len_q;
    if (sequences && from == 0 &&
        (r->tokens_q != r->tokens_kv || memcmp(out->start_q, out->start_kv, starts) != 0 ||
         memcmp(out->len_q, out->len_kv, lengths) != 0))
        return facts_resolve_bad(
            r, key, "sequences packed in one storage need equal lengths of queries and keys");
    for (int i = from + 1; i < 3; i++) {
        if (memcmp(dim[i], dim[from], sizeof dim[i]) != 0)
            return facts_resolve_say(
                r->error, FACTS_BAD_PROBLEM, key,
                "tensors packed in one storage need equal heads, lengths and head dims");
    }
    return FACTS_RESOLVED;
}

/* Places three tensors by their words; those with the same packed word share a storage, owned by
 * the first of them. */
static facts_resolve_status place_three(facts_resolution *r, const facts_tensor_id id[3],
                                        const facts_span word[3], facts_key key)
{
    int64_t dim[3][4];
    for (int i = 0; i < 3; i++)
        placed_dims(r->out, id[i], dim[i]);
    for (int i = 0; i < 3; i++) {
        int packs = facts_layout_packs(word[i]);
        int slice = packs == 1 ? 0 : i - (3 - packs);
        if (slice < 0)
            return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_Q,
                                     "Q is not part of a storage that packs K and V");
        facts_resolve_status status =
            packs == 1 ? FACTS_RESOLVED
                       : check_packs(r, key, dim, 3 - packs, facts_layout_ragged(word[i]));
        if (status == FACTS_RESOLVED)
            status = place(r, id[i], word[i], slice);
        if (status != FACTS_RESOLVED)
            return status;
        for (int owner = 0; packs > 1 && owner < i; owner++) {
            bool same = word[owner].length == word[i].length &&
                        memcmp(word[owner].at, word[i].at, word[i].length) == 0;
            if (!same)
                continue;
            r->out->tensor[id[i]].shares = 1 + (int32_t)id[owner];
            break;
        }
    }
    return FACTS_RESOLVED;
}

static facts_resolve_status place_inputs(facts_resolution *r)
{
    static const facts_tensor_id id[3] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V };
    facts_span word[3] = { facts_span_of(facts_case_get(r->c, FACTS_KEY_Q)),
                           facts_span_of(facts_case_get(r->c, FACTS_KEY_K)),
                           facts_span_of(facts_case_get(r->c, FACTS_KEY_V)) };
    return place_three(r, id, word, FACTS_KEY_LAYOUT);
}

/* An output with a word of its own, or one that follows the memory order of another tensor. */
static facts_resolve_status place_following(facts_resolution *r, facts_tensor_id id, facts_key key,
                                            facts_tensor_id like)
{
    char order[6];
    const char *word = facts_case_get(r->c, key);
    if (strcmp(word, "auto") == 0) {
        facts_order_of(&r->out->tensor[like], order);
        word = order;
    }
    return place(r, id, facts_span_of(word), 0);
}

static facts_resolve_status place_gradients(facts_resolution *r)
{
    static const facts_tensor_id id[3] = { FACTS_TENSOR_DQ, FACTS_TENSOR_DK, FACTS_TENSOR_DV };
    static const facts_tensor_id like[3] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V };
    static const facts_key key[3] = { FACTS_KEY_Q, FACTS_KEY_K, FACTS_KEY_V };
    char order[3][6];
    facts_span word[3];
    const char *dqkv = facts_case_get(r->c, FACTS_KEY_DQKV);
    facts_layout layout;
    if (strcmp(dqkv, "auto") != 0 && facts_layout_read(facts_span_of(dqkv), &layout)) {
        word[0] = layout.q;
        word[1] = layout.k;
        word[2] = layout.v;
    } else {
        for (int i = 0; i < 3; i++) {
            word[i] = facts_span_of(facts_case_get(r->c, key[i]));
            if (facts_layout_packs(word[i]) > 1)
                continue;
            facts_order_of(&r->out->tensor[like[i]], order[i]);
            word[i] = facts_span_of(order[i]);
        }
    }
    return place_three(r, id, word, FACTS_KEY_DQKV);
}

static facts_resolve_status check_wanted(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    if ((ask->outputs & FATTN_WANT_RNG_DUMP) != 0 && ask->dropout == 0.0)
        return facts_resolve_bad(r, FACTS_KEY_WANT, "rng_dump needs dropout: give dropout=P");
    if (ask->pass != FATTN_BACKWARD)
        return FACTS_RESOLVED;
    if (!r->out->tensor[FACTS_TENSOR_STATS].present ||
        (ask->outputs & ~(uint32_t)(FATTN_WANT_STATS | FATTN_WANT_RNG_DUMP)) != 0)
        return facts_resolve_bad(r, FACTS_KEY_WANT,
                                 "a backward takes only want=stats and want=stats+rng_dump");
    ask->outputs &= FATTN_WANT_RNG_DUMP;
    return FACTS_RESOLVED;
}

static facts_resolve_status place_rows(facts_resolution *r)
{
    static const struct {
        const char *word;
        facts_tensor_id id;
        uint32_t bit;
    } rows[] = { { "stats", FACTS_TENSOR_STATS, FATTN_WANT_STATS },
                 { "max", FACTS_TENSOR_MAX, FATTN_WANT_MAX },
                 { "sum_exp", FACTS_TENSOR_SUM_EXP, FATTN_WANT_SUM_EXP },
                 { "stats2", FACTS_TENSOR_STATS, FATTN_WANT_STATS_LOG2 },
                 { "rng_dump", FACTS_TENSOR_RNG_DUMP, FATTN_WANT_RNG_DUMP } };
    bool head_major = facts_key_is(r->c, FACTS_KEY_STATS, "ht1"),
         row_major = facts_key_is(r->c, FACTS_KEY_STATS, "bhs1");
    bool tokens = !row_major && !facts_key_is(r->c, FACTS_KEY_STATS, "bsh1") &&
                  r->out->tensor[FACTS_TENSOR_Q].packed != FACTS_PACKED_NOT;
    const char *word = tokens       ? (head_major ? "htd" : "thd")
                       : head_major ? "hbsd"
                       : row_major  ? "bhsd"
                                    : "bshd"; /* bsh1 and th1 are one where rows are not packed */
    facts_span rest = facts_span_of(facts_case_get(r->c, FACTS_KEY_WANT));
    while (rest.length > 0) {
        facts_span part = facts_span_cut(&rest, '+');
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (!facts_span_is(part, rows[i].word))
                continue;
            facts_tensor_id id = rows[i].id;
            if (r->out->tensor[id].present)
                return facts_resolve_bad(r, FACTS_KEY_WANT,
                                         "stats are natural logarithms or of base 2, not both");
            facts_resolve_status status =
                place(r, id, facts_span_of(id == FACTS_TENSOR_RNG_DUMP ? "bhsd" : word), 0);
            if (status != FACTS_RESOLVED)
                return status;
            r->out->ask.outputs |= rows[i].bit;
        }
    }
    return check_wanted(r);
}

/* Bias, its gradient, and the tensors of the score modification. */
static facts_resolve_status place_scores(facts_resolution *r)
{
    const fattn_problem *ask = &r->out->ask;
    const struct {
        facts_tensor_id id;
        bool wanted;
    } tensors[] = { { FACTS_TENSOR_BIAS, ask->has_bias != 0 },
                    { FACTS_TENSOR_DBIAS, ask->dbias != 0 },
                    { FACTS_TENSOR_MOD_A, r->out->mod >= FACTS_MOD_POST_SCALE_BIAS },
                    { FACTS_TENSOR_MOD_B, r->out->mod == FACTS_MOD_DOCUMENT },
                    { FACTS_TENSOR_DROPOUT_MASK, ask->dropout_mask != 0 } };
    facts_resolve_status status = FACTS_RESOLVED;
    for (size_t i = 0; status == FACTS_RESOLVED && i < sizeof tensors / sizeof *tensors; i++) {
        if (tensors[i].wanted)
            status = place(r, tensors[i].id, facts_span_of("bhsd"), 0);
    }
    return status;
}

/* Block-scaled types: a backward reads Q, K and dO quantised along the rows too, and dO in O's
 * type. Each lies as its partner does.
 */
static void place_copies(facts_problem *out)
{
    static const facts_tensor_id pair[][2] = { { FACTS_TENSOR_Q_T, FACTS_TENSOR_Q },
                                               { FACTS_TENSOR_K_T, FACTS_TENSOR_K },
                                               { FACTS_TENSOR_DO_T, FACTS_TENSOR_DO },
                                               { FACTS_TENSOR_DO_16, FACTS_TENSOR_DO } };
    if (!facts_is_mx(out->ask.dtype) || out->ask.pass != FATTN_BACKWARD)
        return;
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        facts_tensor *copy = &out->tensor[pair[i][0]];
        *copy = out->tensor[pair[i][1]];
        copy->shares = 0;
        copy->dtype = dtype_of(out, pair[i][0]);
    }
}

/* Which tensors start each entry at an offset. */
static void ask_ragged(facts_problem *out)
{
#define AS_ROW(symbol, name, bit) { FACTS_TENSOR_##symbol, FATTN_RAGGED_##symbol },
    static const struct {
        facts_tensor_id id;
        uint32_t bit;
    } rows[] = { FATTN_RAGGED_LIST(AS_ROW) };
#undef AS_ROW
    const facts_tensor *t = out->tensor;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (t[rows[i].id].packed != FACTS_PACKED_NOT)
            out->ask.ragged |= rows[i].bit;
    for (facts_tensor_id id = FACTS_TENSOR_MAX; id <= FACTS_TENSOR_SUM_EXP; id++)
        if (t[id].packed != FACTS_PACKED_NOT)
            out->ask.ragged |= FATTN_RAGGED_STATS;
}

/* Copies the strides of the tensors that are present into problem->ask. */
static void facts_ask_strides(facts_problem *out)
{
    fattn_problem *ask = &out->ask;
    const struct {
        facts_tensor_id id;
        int64_t *to;
    } pair[] = {
        { FACTS_TENSOR_Q, ask->q_strides },           { FACTS_TENSOR_K, ask->k_strides },
        { FACTS_TENSOR_V, ask->v_strides },           { FACTS_TENSOR_O, ask->o_strides },
        { FACTS_TENSOR_DO, ask->do_strides },         { FACTS_TENSOR_DQ, ask->dq_strides },
        { FACTS_TENSOR_DK, ask->dk_strides },         { FACTS_TENSOR_DV, ask->dv_strides },
        { FACTS_TENSOR_SUM_EXP, ask->stats_strides }, { FACTS_TENSOR_MAX, ask->stats_strides },
        { FACTS_TENSOR_STATS, ask->stats_strides },   { FACTS_TENSOR_BIAS, ask->bias_strides },
        { FACTS_TENSOR_DBIAS, ask->dbias_strides }
    };
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        if (out->tensor[pair[i].id].present)
            memcpy(pair[i].to, out->tensor[pair[i].id].stride, sizeof out->tensor[0].stride);
    }
}

facts_resolve_status facts_resolve_tensors(facts_resolution *r)
{
    facts_value_fault fault = { 0 };
    if (!facts_stride_read(facts_span_of(facts_case_get(r->c, FACTS_KEY_STRIDE)), &r->stride,
                           &fault))
        return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_STRIDE, fault.text);
    facts_resolve_status status = place_inputs(r);
    if (status == FACTS_RESOLVED)
        status = place_following(r, FACTS_TENSOR_O, FACTS_KEY_O, FACTS_TENSOR_Q);
    if (status == FACTS_RESOLVED)
        status = place_rows(r);
    if (status == FACTS_RESOLVED && r->out->ask.pass == FATTN_BACKWARD) {
        status = place_following(r, FACTS_TENSOR_DO, FACTS_KEY_DO, FACTS_TENSOR_O);
        if (status == FACTS_RESOLVED)
            status = place_gradients(r);
    }
    if (status == FACTS_RESOLVED)
        status = place_scores(r);
    if (status != FACTS_RESOLVED)
        return status;
    place_copies(r->out);
    facts_ask_strides(r->out);
    ask_ragged(r->out);
    return FACTS_RESOLVED;
}
