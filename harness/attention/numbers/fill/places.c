#include "places.h"

#include "problem/philox.h"

/* A permutation of 0..count-1: a Feistel network over the next power of four, repeated until the
 * result is in range. */
#define ROUNDS 4

typedef struct shuffle {
    uint64_t seed;
    facts_lane lane;
    int64_t count;
    int half; /* bits */
} shuffle;

static shuffle shuffle_of(const facts_problem *p, facts_tensor_id id)
{
    shuffle s = { .seed = p->seed,
                  .lane = id == FACTS_TENSOR_K ? FACTS_LANE_VALUE : FACTS_LANE_CHOICE,
                  .count = p->tensor[id].pages,
                  .half = 1 };
    while (((int64_t)1 << (2 * s.half)) < s.count)
        s.half++;
    return s;
}

static uint64_t stir(const shuffle *s, int round, uint64_t half)
{
    return facts_draw_at(s->seed, FACTS_STREAM_PAGES, s->lane, (uint64_t)round << 32 | half).r[0] &
           ((UINT64_C(1) << s->half) - 1);
}

static int64_t step(const shuffle *s, int64_t x)
{
    uint64_t left = (uint64_t)x >> s->half, right = (uint64_t)x & ((UINT64_C(1) << s->half) - 1);
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t kept = right;
        right = left ^ stir(s, round, right);
        left = kept;
    }
    return (int64_t)(left << s->half | right);
}

static int64_t walk(const shuffle *s, int64_t x)
{
    do
        x = step(s, x);
    while (x >= s->count);
    return x;
}

static int64_t table_of(const facts_problem *p, facts_tensor_id id)
{
    return id == FACTS_TENSOR_K ? p->ask.table_k : p->ask.table_v;
}

/* The first half of the tables names the same pages in every entry. */
static bool is_shared(const facts_problem *p, facts_tensor_id id, int64_t n)
{
    return p->table == FACTS_TABLE_SHARED && n < (table_of(p, id) + 1) / 2;
}

int64_t facts_live_q(const facts_problem *problem, int64_t b)
{
    return problem->has_lengths ? problem->len_q[b] : problem->ask.seq_q;
}

int64_t facts_live_kv(const facts_problem *problem, int64_t b)
{
    return problem->has_lengths ? problem->len_kv[b] : problem->ask.seq_kv;
}

int64_t facts_live(const facts_problem *problem, facts_tensor_id id, int64_t b)
{
    return facts_is_keyed(id) ? facts_live_kv(problem, b) : facts_live_q(problem, b);
}

int64_t facts_pages_of_entry(const facts_problem *p, facts_tensor_id id, int64_t b)
{
    const int64_t page = p->tensor[id].page;
    return (facts_live_kv(p, b) + page - 1) / page;
}

int64_t facts_page_owner(const facts_problem *p, facts_tensor_id id, int64_t b, int64_t n)
{
    return is_shared(p, id, n) ? 0 : b;
}

int64_t facts_page_of(const facts_problem *p, facts_tensor_id id, int64_t b, int64_t n)
{
    const int64_t table = table_of(p, id);
    if (p->table == FACTS_TABLE_IDENTITY)
        return b * table + n;
    if (p->table == FACTS_TABLE_LINSPACE)
        return n * p->ask.batch + b;
    const shuffle s = shuffle_of(p, id);
    return walk(&s, facts_page_owner(p, id, b, n) * table + n);
}

int64_t facts_row_at(const facts_problem *p, facts_tensor_id id, int64_t b, int64_t t)
{
    const facts_tensor *x = &p->tensor[id];
    if (x->packed != FACTS_PACKED_NOT)
        return x->first +
               ((x->packed == FACTS_PACKED_KV ? p->start_kv : p->start_q)[b] + t) * x->stride[2];
    if (x->page != 0)
        return x->first + facts_page_of(p, id, b, t / x->page) * x->stride[0] +
               t % x->page * x->stride[2];
    return x->first + b * x->stride[0] + t * x->stride[2];
}

static bool is_tile_drawn(const facts_problem *p, int64_t b, int64_t h, int64_t row, int64_t key)
{
    int64_t rows = (p->ask.seq_q + 127) / 128, keys = (p->ask.seq_kv + 127) / 128;
    facts_draw draw =
        facts_draw_at(p->seed, FACTS_STREAM_TILES, FACTS_LANE_CHOICE,
                      (uint64_t)(((b * p->ask.heads_q + h) * rows + row) * keys + key));
    return key == row % keys || facts_pick(draw.r[0], 4) != 0; /* a row keeps its own tile */
}

bool facts_tile_kept(const facts_problem *p, int64_t b, int64_t h, int64_t row, int64_t key)
{
    switch (p->block_pattern) {
    case FACTS_BLOCKS_RANDOM:
        return is_tile_drawn(p, b, h, row, key);
    case FACTS_BLOCKS_FIRST:
        return key != 0;
    case FACTS_BLOCKS_EMPTY_ROW:
        return row != (b + h) % ((p->ask.seq_q + 127) / 128) && is_tile_drawn(p, b, h, row, key);
    default:
        return true;
    }
}
