#include "resolution.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "huge.h"
#include "keys/key_values.h"
#include "keys/keys.h"
#include "philox.h"
#include "words/case_text.h"

/* Ragged tensors: which tensors, cu=, lens_shape=, slots=, tail=, total=, offsets=, rmult=. Then
 * paged=, table=. */

static bool word_packs(const facts_resolution *r, facts_key key)
{
    return facts_layout_ragged(facts_span_of(facts_case_get(r->c, key)));
}

void facts_resolve_sides(facts_resolution *r)
{
    facts_layout layout;
    r->packs_q =
        word_packs(r, FACTS_KEY_Q) || word_packs(r, FACTS_KEY_O) || word_packs(r, FACTS_KEY_DO);
    r->packs_kv = word_packs(r, FACTS_KEY_K) || word_packs(r, FACTS_KEY_V);
    if (!facts_layout_read(facts_span_of(facts_case_get(r->c, FACTS_KEY_DQKV)), &layout))
        return;
    r->packs_q = r->packs_q || facts_layout_ragged(layout.q);
    r->packs_kv = r->packs_kv || facts_layout_ragged(layout.k);
}

static facts_resolve_status resolve_cumulative(facts_resolution *r)
{
    facts_problem *out = r->out;
    const char *cu = facts_case_get(r->c, FACTS_KEY_CU);
    out->ask.cumulative =
        (strcmp(cu, "both") == 0 || strcmp(cu, "q") == 0 ? FATTN_CUMULATIVE_Q : 0u) |
        (strcmp(cu, "both") == 0 || strcmp(cu, "kv") == 0 ? FATTN_CUMULATIVE_KV : 0u);
    if (out->ask.cumulative != 0 && !out->has_lengths)
        return facts_resolve_bad(
            r, FACTS_KEY_CU, "there are no lengths: give padding= or lens=, or a ragged layout");
    if (out->ask.cumulative != 0 && out->ask.len_broadcast)
        return facts_resolve_bad(r, FACTS_KEY_CU,
                                 "one length for every batch entry has no prefix sums");
    bool flat = facts_key_is(r->c, FACTS_KEY_LENS_SHAPE, "b");
    if (flat && !out->has_lengths)
        return facts_resolve_bad(r, FACTS_KEY_LENS_SHAPE, "there are no lengths");
    out->ask.len_rank = flat ? 1 : 0;
    return FACTS_RESOLVED;
}

/* The room of each sequence of one side; `text` is +N or as many numbers as there are entries. */
static facts_resolve_status read_slots(facts_resolution *r, facts_span text, const int32_t *len,
                                       int32_t *room)
{
    uint64_t more = 0;
    size_t batch = (size_t)r->out->ask.batch;
    bool given = text.length > 0 && text.at[0] != '+';
    if (!given &&
        !facts_read_integer((facts_span){ text.at + 1, text.length - 1 }, 1u << 20, &more))
        return facts_resolve_bad(r, FACTS_KEY_SLOTS, "at most 1048576 tokens more");
    if (given && facts_lengths_read(text, room, FACTS_MAX_BATCH_LENS) != batch)
        return facts_resolve_bad(r, FACTS_KEY_SLOTS,
                                 "give one number of reserved tokens for each batch entry");
    for (size_t b = 0; b < batch; b++) {
        if (given && (room[b] < len[b] || room[b] < 0))
            return facts_resolve_bad(r, FACTS_KEY_SLOTS,
                                     "a sequence is longer than its reserved tokens (slots)");
        room[b] = given ? room[b] : len[b] + (int32_t)more;
    }
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_starts(facts_resolution *r)
{
    facts_problem *out = r->out;
    int32_t room_q[FACTS_MAX_BATCH_LENS] = { 0 }, room_kv[FACTS_MAX_BATCH_LENS] = { 0 };
    facts_span keys = facts_span_of(facts_case_get(r->c, FACTS_KEY_SLOTS)), both = keys,
               queries = facts_span_cut(&keys, '/');
    if (facts_span_is(both, "tight"))
        queries = keys = facts_span_of("+0");
    else if (queries.length == both.length)
        keys = queries;
    facts_resolve_status status = read_slots(r, queries, out->len_q, room_q);
    if (status == FACTS_RESOLVED)
        status = read_slots(r, keys, out->len_kv, room_kv);
    for (int64_t b = 0; status == FACTS_RESOLVED && b < out->ask.batch; b++) {
        out->start_q[b + 1] = out->start_q[b] + room_q[b];
        out->start_kv[b + 1] = out->start_kv[b] + room_kv[b];
    }
    return status;
}

static facts_resolve_status resolve_tail(facts_resolution *r)
{
    facts_problem *out = r->out;
    uint64_t tail[2];
    const char *text = facts_case_get(r->c, FACTS_KEY_TAIL);
    facts_span keys = facts_span_of(text), queries = keys;
    if (text[0] == 'q') { /* q.N+kv.M */
        queries = facts_span_cut(&keys, '+');
        facts_span_cut(&queries, '.');
        facts_span_cut(&keys, '.');
    }
    if (!facts_read_integer(queries, 1u << 30, &tail[0]) ||
        !facts_read_integer(keys, 1u << 30, &tail[1]))
        return facts_resolve_bad(r, FACTS_KEY_TAIL, "at most 2^30 rows");
    r->tokens_q = out->start_q[out->ask.batch] + (int64_t)tail[0];
    r->tokens_kv = out->start_kv[out->ask.batch] + (int64_t)tail[1];
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_total(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    facts_span slack = facts_span_of(facts_case_get(r->c, FACTS_KEY_TOTAL)),
               word = facts_span_cut(&slack, ':');
    uint64_t more = 0;
    if (facts_span_is(word, "none"))
        return FACTS_RESOLVED;
    if (facts_span_is(word, "slack") && !facts_read_integer(slack, 1u << 30, &more))
        return facts_resolve_bad(r, FACTS_KEY_TOTAL, "at most 2^30 tokens more");
    ask->total_q = r->packs_q ? r->tokens_q + (int64_t)more : 0;
    ask->total_kv = r->packs_kv ? r->tokens_kv + (int64_t)more : 0;
    return FACTS_RESOLVED;
}

facts_resolve_status facts_resolve_packed(facts_resolution *r)
{
    static const facts_key of_packed[] = { FACTS_KEY_SLOTS, FACTS_KEY_TAIL, FACTS_KEY_TOTAL,
                                           FACTS_KEY_OFFSETS, FACTS_KEY_RMULT };
    fattn_problem *ask = &r->out->ask;
    facts_resolve_status status = resolve_cumulative(r);
    if (status != FACTS_RESOLVED)
        return status;
    if (!r->packs_q && !r->packs_kv)
        return facts_resolve_idle(r, of_packed, 5,
                                  "nothing is ragged: give layout=thd or a similar layout");
    ask->ragged_bits = facts_key_is(r->c, FACTS_KEY_OFFSETS, "i64") ? 64 : 32;
    ask->ragged_tokens = facts_key_is(r->c, FACTS_KEY_RMULT, "tokens");
    status = resolve_starts(r);
    if (status == FACTS_RESOLVED)
        status = resolve_tail(r);
    return status == FACTS_RESOLVED ? resolve_total(r) : status;
}

/* ---- paged=, table=: K and V as pools of pages ---- */

/* Pages of the pool: as many as the tables can name; where their order is free, an eighth and one
 * more that nobody names. */
static int64_t pages_of(const facts_problem *p, int64_t table)
{
    int64_t named = p->ask.batch * table;
    bool fixed = p->table == FACTS_TABLE_IDENTITY || p->table == FACTS_TABLE_LINSPACE;
    return fixed ? named : named + named / 8 + 1;
}

facts_resolve_status facts_resolve_paged(facts_resolution *r)
{
    static const facts_key of_pages[] = { FACTS_KEY_TABLE };
    facts_problem *out = r->out;
    fattn_problem *ask = &out->ask;
    facts_span number = facts_span_of(facts_case_get(r->c, FACTS_KEY_PAGED));
    uint64_t page = 0;
    bool one = number.length > 1 && number.at[1] == ':', k = !one || number.at[0] == 'k',
         v = !one || number.at[0] == 'v';
    if (one)
        facts_span_cut(&number, ':');
    if (!facts_read_integer(number, INT32_MAX, &page))
        return facts_resolve_bad(r, FACTS_KEY_PAGED, "a page has at most 2^31 - 1 rows");
    if (page == 0)
        return facts_resolve_idle(r, of_pages, 1, "there are no pages: give paged=N");
    if (ask->pass == FATTN_BACKWARD)
        return facts_resolve_bad(r, FACTS_KEY_PAGED,
                                 "a backward has no paged keys; pages are for forward");
    out->table = (facts_table)facts_key_index(r->c, FACTS_KEY_TABLE);
    const int64_t table = (ask->seq_kv + (int64_t)page - 1) / (int64_t)page,
                  pages = pages_of(out, table);
    if (pages > INT32_MAX)
        return facts_resolve_bad(r, FACTS_KEY_PAGED, "more pages than a table can name");
    ask->page_size_k = k ? (int64_t)page : 0;
    ask->page_size_v = v ? (int64_t)page : 0;
    ask->table_k = k ? table : 0;
    ask->table_v = v ? table : 0;
    ask->pages_k = k ? pages : 0;
    ask->pages_v = v ? pages : 0;
    ask->packed_table = out->table == FACTS_TABLE_PACKED;
    return FACTS_RESOLVED;
}

_Static_assert(FACTS_MAX_LENGTHS == FACTS_MAX_BATCH_LENS, "one bound for lengths");

/* Draws the lengths of an entry: 1..s for each side, from the first two words. Returns all words.
 */
static facts_draw draw(facts_problem *problem, int64_t b)
{
    facts_draw drawn =
        facts_draw_at(problem->seed, FACTS_STREAM_LENGTHS, FACTS_LANE_VALUE, (uint64_t)b);
    problem->len_q[b] = 1 + (int32_t)facts_pick(drawn.r[0], (uint32_t)problem->ask.seq_q);
    problem->len_kv[b] = 1 + (int32_t)facts_pick(drawn.r[1], (uint32_t)problem->ask.seq_kv);
    return drawn;
}

static void by_kind(facts_problem *problem, const char *kind)
{
    int64_t batch = problem->ask.len_broadcast ? 1 : problem->ask.batch, empty = 0;
    for (int64_t b = 0; b < batch; b++) {
        facts_draw drawn = draw(problem, b);
        if (b == 0)
            empty = facts_pick(drawn.r[2], (uint32_t)batch);
        if (strcmp(kind, "full") == 0) {
            problem->len_q[b] = (int32_t)problem->ask.seq_q;
            problem->len_kv[b] = (int32_t)problem->ask.seq_kv;
        } else if (strcmp(kind, "one") == 0) {
            problem->len_q[b] = problem->len_kv[b] = 1;
        }
    }
    if (strcmp(kind, "zero:q") == 0 || strcmp(kind, "zero:both") == 0)
        problem->len_q[empty] = 0;
    if (strcmp(kind, "zero:kv") == 0 || strcmp(kind, "zero:both") == 0)
        problem->len_kv[empty] = 0;
}

static const char *given(facts_problem *problem, facts_span text)
{
    static _Thread_local char message[160];
    facts_span keys = text;
    facts_span queries = facts_span_cut(&keys, '/');
    if (queries.length == text.length)
        keys = queries;
    const struct {
        facts_span text;
        int32_t *out;
        int64_t most;
        const char *side;
    } side[2] = { { queries, problem->len_q, problem->ask.seq_q, "queries" },
                  { keys, problem->len_kv, problem->ask.seq_kv, "keys" } };
    for (int i = 0; i < 2; i++) {
        size_t count = facts_lengths_read(side[i].text, side[i].out, FACTS_MAX_BATCH_LENS);
        int64_t expects = problem->ask.len_broadcast ? 1 : problem->ask.batch;
        if ((int64_t)count != expects) {
            snprintf(message, sizeof message, "%zu lengths of %s for %lld batch entries%s", count,
                     side[i].side, (long long)problem->ask.batch,
                     problem->ask.len_broadcast ? " that share one" : "");
            return message;
        }
        for (size_t b = 0; b < count; b++) {
            problem->unused[b] |= side[i].out[b] < 0;
            if (side[i].out[b] <= side[i].most)
                continue;
            snprintf(message, sizeof message, "length %d of %s is above s=%lld", side[i].out[b],
                     side[i].side, (long long)side[i].most);
            return message;
        }
    }
    return NULL;
}

/* A length of -1 means that the sequence is unused; XLA fills unused segments with it. Only for
 * ragged tensors, for queries and keys.
 */
static const char *take_unused(facts_problem *problem, const facts_case *c)
{
    bool any = false, packed = false;
    for (int64_t b = 0; b < problem->ask.batch; b++) {
        any |= problem->unused[b];
        if (problem->unused[b] && problem->len_q[b] != problem->len_kv[b])
            return "-1 marks an unused sequence: give it for the queries and for the keys";
        if (problem->unused[b])
            problem->len_q[b] = problem->len_kv[b] = 0;
    }
    for (facts_key key = FACTS_KEY_Q; key <= FACTS_KEY_V; key++)
        packed |= facts_layout_ragged(facts_span_of(facts_case_get(c, key)));
    if (any && (!packed || problem->ask.len_broadcast ||
                strcmp(facts_case_get(c, FACTS_KEY_CU), "none") != 0))
        return "-1 marks an unused ragged sequence: it needs a layout with t (thd), a length for "
               "each entry, and cu=none";
    return NULL;
}

/* Sequences of Q, K and V in one storage: as long as the shorter of the two that were drawn. */
static void join_sides(facts_problem *problem)
{
    for (int64_t b = 0; b < problem->ask.batch; b++) {
        int32_t least =
            problem->len_q[b] < problem->len_kv[b] ? problem->len_q[b] : problem->len_kv[b];
        problem->len_q[b] = problem->len_kv[b] = least;
    }
}

/* lens_shape=bcast: the first entry's lengths are everybody's. */
static void share_first(facts_problem *problem)
{
    for (int64_t b = 1; b < problem->ask.batch; b++) {
        problem->len_q[b] = problem->len_q[0];
        problem->len_kv[b] = problem->len_kv[0];
    }
}

const char *facts_lengths_resolve(facts_problem *problem, const facts_case *c)
{
    const char *padding = facts_case_get(c, FACTS_KEY_PADDING),
               *lens = facts_case_get(c, FACTS_KEY_LENS);
    bool explicit = strcmp(lens, "none") != 0;
    problem->has_lengths = explicit || strcmp(padding, "none") != 0;
    problem->ask.padding = problem->has_lengths;
    if (!problem->has_lengths)
        return NULL;
    problem->ask.len_broadcast = strcmp(facts_case_get(c, FACTS_KEY_LENS_SHAPE), "bcast") == 0;
    const char *wrong = NULL;
    if (explicit)
        wrong = given(problem, facts_span_of(lens));
    if (explicit && wrong == NULL)
        wrong = take_unused(problem, c);
    else
        by_kind(problem, padding);
    facts_span q = facts_span_of(facts_case_get(c, FACTS_KEY_Q));
    if (!explicit && facts_layout_ragged(q) && facts_layout_packs(q) == 3)
        join_sides(problem);
    if (wrong == NULL && problem->ask.len_broadcast)
        share_first(problem);
    return wrong;
}

/* Which small arrays a call has, of which type and how many numbers. What they hold is
 * numbers/fill/arrays.c's. */

typedef struct arrays {
    facts_resolution *r;
    const fattn_problem *ask;
    bool backward;
} arrays;

static void has(arrays *a, facts_array_id id, facts_array_type type, int64_t count)
{
#define AS_OUTPUT(symbol, field, output) (output) != 0,
    static const bool output[FACTS_ARRAY_COUNT] = { FACTS_ARRAY_LIST(AS_OUTPUT) };
#undef AS_OUTPUT
    a->r->out->array[id] = (facts_array){ .count = count, .type = type, .output = output[id] };
}

static void has_float(arrays *a, facts_array_id id, bool when)
{
    if (when)
        has(a, id, FACTS_ARRAY_F32, 1);
}

/* A number of the forward that runs before this backward. */
static void has_for_forward(arrays *a, facts_array_id id, bool when)
{
    if (when)
        a->r->out->array[id] =
            (facts_array){ .count = 1, .type = FACTS_ARRAY_F32, .of_forward = true };
}

/* Offsets of each packed tensor; int32 ones must be able to count it. */
static facts_resolve_status add_offsets(arrays *a)
{
    static const facts_tensor_id of[] = { FACTS_TENSOR_Q,  FACTS_TENSOR_K,     FACTS_TENSOR_V,
                                          FACTS_TENSOR_O,  FACTS_TENSOR_STATS, FACTS_TENSOR_DO,
                                          FACTS_TENSOR_DQ, FACTS_TENSOR_DK,    FACTS_TENSOR_DV };
    const facts_problem *p = a->r->out;
    const facts_array_type type = a->ask->ragged_bits == 64 ? FACTS_ARRAY_I64 : FACTS_ARRAY_I32;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const facts_tensor *t = &p->tensor[of[i]];
        if (of[i] == FACTS_TENSOR_STATS && !t->present)
            t = p->tensor[FACTS_TENSOR_MAX].present ? &p->tensor[FACTS_TENSOR_MAX]
                                                    : &p->tensor[FACTS_TENSOR_SUM_EXP];
        if (!t->present || t->packed == FACTS_PACKED_NOT)
            continue;
        const int64_t end = (t->packed == FACTS_PACKED_Q ? p->start_q : p->start_kv)[a->ask->batch],
                      step = a->ask->ragged_tokens ? 1 : t->stride[2];
        if (type == FACTS_ARRAY_I32 && end > INT32_MAX / (step > 0 ? step : 1))
            return facts_resolve_bad(
                a->r, FACTS_KEY_OFFSETS,
                "int32 offsets cannot count these elements; want i64, or rmult=tokens");
        has(a, FACTS_ARRAY_Q_OFFSETS + (facts_array_id)i, type, a->ask->batch + 1);
    }
    return FACTS_RESOLVED;
}

static void add_lengths(arrays *a)
{
    const fattn_problem *ask = a->ask;
    if (!a->r->out->has_lengths || !ask->padding)
        return;
    has(a, FACTS_ARRAY_SEQ_LEN_Q, FACTS_ARRAY_I32,
        ask->len_broadcast ? 1 : ask->batch + ((ask->cumulative & FATTN_CUMULATIVE_Q) != 0));
    has(a, FACTS_ARRAY_SEQ_LEN_KV, FACTS_ARRAY_I32,
        ask->len_broadcast ? 1 : ask->batch + ((ask->cumulative & FATTN_CUMULATIVE_KV) != 0));
}

static void add_tables(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const facts_array_type type = ask->ragged_bits == 64 ? FACTS_ARRAY_I64 : FACTS_ARRAY_I32;
    if (ask->page_size_k != 0)
        has(a, FACTS_ARRAY_PAGE_TABLE_K, FACTS_ARRAY_I32, ask->batch * ask->table_k);
    if (ask->page_size_v != 0)
        has(a, FACTS_ARRAY_PAGE_TABLE_V, FACTS_ARRAY_I32, ask->batch * ask->table_v);
    if (ask->packed_table && ask->page_size_k != 0)
        has(a, FACTS_ARRAY_TABLE_OFFSETS_K, type, ask->batch + 1);
    if (ask->packed_table && ask->page_size_v != 0)
        has(a, FACTS_ARRAY_TABLE_OFFSETS_V, type, ask->batch + 1);
}

static void add_softmax(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const facts_array_type random = ask->rng_bits == 32 ? FACTS_ARRAY_I32 : FACTS_ARRAY_I64;
    has_float(a, FACTS_ARRAY_ATTN_SCALE, ask->scale_in_memory);
    if (ask->alibi)
        has(a, FACTS_ARRAY_ALIBI_SLOPES, FACTS_ARRAY_F32, ask->heads_q);
    if (ask->sink)
        has(a, FACTS_ARRAY_SINK, FACTS_ARRAY_F32, ask->heads_q);
    if (ask->dsink)
        has(a, FACTS_ARRAY_DSINK, FACTS_ARRAY_F32, ask->heads_q);
    if (ask->dropout != 0.0) {
        has(a, FACTS_ARRAY_SEED, random, 1);
        has(a, FACTS_ARRAY_OFFSET, random, 1);
    }
    has_float(a, FACTS_ARRAY_DROPOUT_SCALE, ask->dropout_mask);
    has_float(a, FACTS_ARRAY_DROPOUT_SCALE_INVERSE, ask->dropout_mask && a->backward);
    if (ask->block_mask)
        has(a, FACTS_ARRAY_BLOCK_MASK, FACTS_ARRAY_U8,
            ask->batch * ask->heads_q * ((ask->seq_q + 127) / 128) *
                (((ask->seq_kv + 127) / 128 + 7) / 8));
    if (ask->rope) {
        has(a, FACTS_ARRAY_ROPE_Q, FACTS_ARRAY_F32, ask->seq_q * ask->rope_dim);
        has(a, FACTS_ARRAY_ROPE_K, FACTS_ARRAY_F32, ask->seq_kv * ask->rope_dim);
    }
}

static void add_fp8(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const bool fp8 = facts_is_fp8(ask->dtype), eight = fp8 || facts_is_mx(ask->dtype),
               backward = a->backward;
    for (facts_array_id id = FACTS_ARRAY_DESCALE_Q; id <= FACTS_ARRAY_SCALE_S; id++)
        has_float(a, id, fp8);
    has_float(a, FACTS_ARRAY_SCALE_O, fp8 && !backward && facts_is_fp8(ask->o_dtype));
    for (facts_array_id id = FACTS_ARRAY_DESCALE_O; id <= FACTS_ARRAY_SCALE_DP; id++)
        has_float(a, id, fp8 && backward);
    for (facts_array_id id = FACTS_ARRAY_SCALE_DQ; id <= FACTS_ARRAY_SCALE_DV; id++)
        has_float(a, id, fp8 && backward && facts_is_fp8(ask->grad_dtype));
    has_float(a, FACTS_ARRAY_AMAX_S, fp8 && !backward);
    has_float(a, FACTS_ARRAY_AMAX_O, eight && !backward);
    has_float(a, FACTS_ARRAY_AMAX_DP, fp8 && backward);
    if (fp8 && backward &&
        facts_is_huge(a->r->out)) { /* it runs its own forward: worker/memory/own_forward.h */
        has_for_forward(a, FACTS_ARRAY_SCALE_O, facts_is_fp8(ask->o_dtype));
        has_for_forward(a, FACTS_ARRAY_AMAX_S, true);
        has_for_forward(a, FACTS_ARRAY_AMAX_O, true);
    }
    for (facts_array_id id = FACTS_ARRAY_AMAX_DQ; id <= FACTS_ARRAY_AMAX_DV; id++)
        has_float(a, id, eight && backward);
}

/* Factors of blocks of 32 along the columns, padded to tiles of 128 x 4, for `count` heads in all.
 */
static void add_factors(arrays *a, facts_array_id id, int64_t count, int64_t rows, int64_t columns)
{
    const int64_t blocks = (columns + 31) / 32;
    has(a, id, FACTS_ARRAY_U8, count * ((rows + 127) / 128 * 128) * ((blocks + 3) / 4 * 4));
}

static void add_mx(arrays *a)
{
    const fattn_problem *ask = a->ask;
    const int64_t q = ask->batch * ask->heads_q, k = ask->batch * ask->heads_k,
                  v = ask->batch * ask->heads_v;
    if (!facts_is_mx(ask->dtype))
        return;
    add_factors(a, FACTS_ARRAY_SF_Q, q, ask->seq_q, ask->dim_qk);
    add_factors(a, FACTS_ARRAY_SF_K, k, ask->seq_kv, ask->dim_qk);
    if (!a->backward) {
        add_factors(a, FACTS_ARRAY_SF_V, v, ask->dim_v, ask->seq_kv);
        return;
    }
    add_factors(a, FACTS_ARRAY_SF_V, v, ask->seq_kv, ask->dim_v);
    add_factors(a, FACTS_ARRAY_SF_DO, q, ask->seq_q, ask->dim_v);
    add_factors(a, FACTS_ARRAY_SF_Q_T, q, ask->dim_qk, ask->seq_q);
    add_factors(a, FACTS_ARRAY_SF_K_T, k, ask->dim_qk, ask->seq_kv);
    add_factors(a, FACTS_ARRAY_SF_DO_T, q, ask->dim_v, ask->seq_q);
}

facts_resolve_status facts_resolve_arrays(facts_resolution *r)
{
    arrays a = { .r = r, .ask = &r->out->ask, .backward = r->out->ask.pass == FATTN_BACKWARD };
    add_lengths(&a);
    add_tables(&a);
    add_softmax(&a);
    add_fp8(&a);
    add_mx(&a);
    return add_offsets(&a);
}

const char *const facts_array_words[FACTS_ARRAY_COUNT] = {
#define AS_WORD(symbol, field, output) #field,
    FACTS_ARRAY_LIST(AS_WORD)
#undef AS_WORD
};

size_t facts_array_bytes(const facts_array *array)
{
    static const size_t size[] = {
        [FACTS_ARRAY_I32] = 4, [FACTS_ARRAY_I64] = 8, [FACTS_ARRAY_F32] = 4, [FACTS_ARRAY_U8] = 1
    };
    return (size_t)array->count * size[array->type];
}

size_t facts_array_place(facts_array_id id)
{
#define AS_PLACE(symbol, field, output) offsetof(fattn_tensors, field),
    static const size_t place[FACTS_ARRAY_COUNT] = { FACTS_ARRAY_LIST(AS_PLACE) };
#undef AS_PLACE
    return place[id];
}
