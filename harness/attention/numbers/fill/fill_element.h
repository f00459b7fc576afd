/* One element of a fill. Its value follows from its logical place and from a recipe, a plain value
 * that facts_recipe_make (recipe.h) makes once. Compiled by C and by CUDA C++, to the same bits: it
 * uses integers, conversions, and products without additions that could be contracted, and no libm.
 * A value that a row shares and that is expensive (the key of a needle) is in a table of the
 * recipe. */
#ifndef FACTS_FILL_ELEMENT_H
#define FACTS_FILL_ELEMENT_H

#include "numbers/dtype.h"
#include "problem/philox.h"

/* The kinds of elements. N is a normal number. X(SYMBOL) */
/* clang-format off */
#define FACTS_ELEMENT_LIST(X)                                                                      \
    X(NORMAL)                                                                                      \
    X(UNIFORM)                                                                                     \
    X(SPIKY)                                                                                       \
    X(SCALED)      /* gain N */                                                                    \
    X(OFFSET)      /* N rounded to the type, and twice the direction */                            \
    X(MEAN)                                                                                        \
    /* N rounded to the type, and a mean between 1 and 3 in size, drawn for each channel of each head */\
    X(SPARSE)      /* whole numbers within -2 and 2; four in five are 0 */                         \
    X(NEEDLE) /* gain times the signs of key row[] (without a table: the key with the row's        \
      number) of head h / group, at the                                                            \
                      index that `key` gives */                                                    \
    X(PLANT_ROW)                                                                                   \
    /* gain times the signs of key plant[3] in the planted row, else N; padded rows 64 times larger */\
    X(PLANT)       /* gain at the planted place, else N; padded rows 64 times larger */            \
    X(NEGLSE_Q)    /* -gain times the direction in far rows */                                     \
    X(NEGLSE_K)    /* small integers around twice the direction */                                 \
    X(STAIR)                                                                                       \
      /* 0.3 N. In the first `channels` channels: gain, or if gain is 0, 40 place / steps (`down`: from the end) */\
    X(KEEP)        /* 1, and 0 with chance `steps` */                                              \
    X(CONSTANT)    /* `shown` */                                                                   \
    X(LIST)        /* list[] */                                                                    \
    X(ZERO)                                                                                        \
    X(HIDDEN)     /* `hidden`, or `shown`: random, except for key 0 and the row's own key */       \
    X(HIDDEN_ROW)                                                                                  \
    /* `hidden` in a quarter of the rows; if there are several, always in the first */             \
    X(BAND)       /* `shown` in the band left:right, `hidden` outside */
/* clang-format on */
#define AS_ENUM(symbol) FACTS_ELEMENT_##symbol,
typedef enum facts_element { FACTS_ELEMENT_LIST(AS_ENUM) FACTS_ELEMENT_COUNT } facts_element;
#undef AS_ENUM

/* The keys whose signs needles use: K's extents, with 0 for a dimension in which keys share memory.
 */
typedef struct facts_key_place {
    int64_t dim[4], origin[3];
} facts_key_place;

typedef struct facts_recipe {
    facts_element element;
    facts_stream stream;
    uint64_t seed;
    int32_t dtype;
    int64_t dim[4], stride[4], first;
    int64_t extent[4]; /* dim, with 1 for a dimension in which elements share memory: the elements
                          to write */
    double unit;       /* a code is the value times this (8 bit types); 0: 1 */
    int32_t narrow;    /* fattn_dtype: only values that this type can represent too; 0: no limit */
    int64_t run, runs; /* with `place`: rows s of an entry start at its place[s / run]; each entry
                          has `runs` of them */
    int32_t exact;     /* ragged: rows at and past live[] do not exist */
    float gain;
    double hidden, shown, left, right, steps;
    int64_t channels, down, group;
    int64_t plant[4]; /* b,h,s,d of the planted element */
    facts_key_place key;
    int32_t poisoned; /* padded rows are filled with `poison`, a code */
    uint32_t poison;
    const int32_t *live;  /* the first padded row of each entry: [dim[0]]; NULL: no padded rows */
    const int32_t *row;   /* [dim[0], dim[1], dim[2]]; NULL */
    const double *list;   /* [dim]; NULL */
    const int64_t *place; /* [dim[0], runs]: elements; -1: not present. NULL: entries are stride[0]
                             apart, from `first` */
} facts_recipe;

FACTS_BOTH uint64_t facts_element_number(const int64_t dim[4], int64_t b, int64_t h, int64_t s,
                                         int64_t d)
{
    return (uint64_t)(((b * dim[1] + h) * dim[2] + s) * dim[3] + d);
}

FACTS_BOTH facts_draw facts_element_draw(const facts_recipe *r, facts_lane lane,
                                         const int64_t at[4])
{
    return facts_draw_at(r->seed, r->stream, lane,
                         facts_element_number(r->dim, at[0], at[1], at[2], at[3]));
}

FACTS_BOTH float facts_sign(facts_draw draw)
{
    return draw.r[0] >> 31 ? -1.0f : 1.0f;
}

FACTS_BOTH uint64_t facts_row_number(const int64_t dim[4], const int64_t at[4])
{
    return (uint64_t)((at[0] * dim[1] + at[1]) * dim[2] + at[2]);
}

/* The sign of the key in this channel, at the index that the element of the key head really has. */
FACTS_BOTH float facts_element_needle(const facts_recipe *r, const int64_t at[4])
{
    int64_t key = r->row ? r->row[facts_row_number(r->dim, at)] : at[2];
    uint64_t e =
        facts_element_number(r->key.dim, at[0] * r->key.origin[0],
                             at[1] / r->group * r->key.origin[1], key * r->key.origin[2], at[3]);
    return r->gain * facts_sign(facts_draw_at(r->seed, FACTS_STREAM_K, FACTS_LANE_VALUE, e));
}

FACTS_BOTH float facts_element_direction(const facts_recipe *r, int64_t d)
{
    return facts_sign(
        facts_draw_at(r->seed, FACTS_STREAM_DIRECTION, FACTS_LANE_VALUE, (uint64_t)d));
}

FACTS_BOTH float facts_element_neglse_q(const facts_recipe *r, const int64_t at[4])
{
    bool far =
        at[2] == 0 || at[2] == r->dim[2] - 1 ||
        facts_draw_at(r->seed, FACTS_STREAM_ROW, FACTS_LANE_VALUE, facts_row_number(r->dim, at))
                .r[0] < UINT32_C(1) << 30;
    return far ? -r->gain * facts_element_direction(r, at[3])
               : facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
}

FACTS_BOTH bool facts_recipe_pads(const facts_recipe *r, const int64_t at[4])
{
    return r->live && at[2] >= r->live[at[0]];
}

/* N rounded to the type. */
FACTS_BOTH double facts_element_rounded(const facts_recipe *r, const int64_t at[4])
{
    return facts_decode(
        r->dtype,
        facts_encode(r->dtype, (double)facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at))));
}

FACTS_BOTH double facts_element_offset(const facts_recipe *r, const int64_t at[4])
{
    return facts_element_rounded(r, at) + 2.0 * (double)facts_element_direction(r, at[3]);
}

FACTS_BOTH double facts_element_mean(const facts_recipe *r, const int64_t at[4])
{
    const facts_draw draw = facts_draw_at(r->seed, FACTS_STREAM_DIRECTION, FACTS_LANE_CHOICE,
                                          facts_element_number(r->dim, at[0], at[1], 0, at[3]));
    const double size = 1.0 + (double)(draw.r[0] >> 8) * 0x1p-23;
    return facts_element_rounded(r, at) + size * (double)facts_element_direction(r, at[3]);
}

FACTS_BOTH double facts_element_sparse(const facts_recipe *r, const int64_t at[4])
{
    if (facts_element_draw(r, FACTS_LANE_CHOICE, at).r[0] < UINT32_C(3435973836)) /* chance 0.8 */
        return 0.0;
    return (double)facts_pick(facts_element_draw(r, FACTS_LANE_VALUE, at).r[0], 5) - 2.0;
}

FACTS_BOTH float facts_element_plant(const facts_recipe *r, const int64_t at[4])
{
    bool row = at[0] == r->plant[0] && at[1] == r->plant[1] && at[2] == r->plant[2];
    float n;
    if (row && r->element == FACTS_ELEMENT_PLANT_ROW) {
        uint64_t e = facts_element_number(r->key.dim, at[0] * r->key.origin[0],
                                          at[1] / r->group * r->key.origin[1],
                                          r->plant[3] * r->key.origin[2], at[3]);
        return r->gain * facts_sign(facts_draw_at(r->seed, FACTS_STREAM_K, FACTS_LANE_VALUE, e));
    }
    if (row && r->element == FACTS_ELEMENT_PLANT && at[3] == r->plant[3])
        return r->gain;
    n = facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
    return facts_recipe_pads(r, at) ? n * 64.0f : n;
}

/* Finite and large, so that a kernel that reads a padded row gets a visibly wrong answer. */
FACTS_BOTH float facts_small_integer(float x)
{
    float size = x < 0 ? -x : x, whole = size >= 1.5f ? 2.0f : size > 0.5f ? 1.0f : 0.0f;
    return x < 0 ? -whole : whole;
}

FACTS_BOTH float facts_element_stair(const facts_recipe *r, const int64_t at[4])
{
    if (at[3] >= r->channels)
        return 0.3f * facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
    return r->gain != 0
               ? r->gain
               : (float)(40.0 * (double)(r->down ? r->dim[2] - 1 - at[2] : at[2]) / r->steps);
}

FACTS_BOTH float facts_element_spiky(const facts_recipe *r, const int64_t at[4])
{
    float x = facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
    return facts_element_draw(r, FACTS_LANE_CHOICE, at).r[0] < UINT32_C(42949672)
               ? x * 10.0f
               : x; /* chance 0.01 */
}

/* Key 0 is never hidden, and neither is the key with the row's number. So every row keeps a key,
 * with lengths, causal masks and left bounds alike. */
FACTS_BOTH bool facts_element_is_hidden(const facts_recipe *r, const int64_t at[4])
{
    const int64_t row[4] = { at[0], at[1], at[2], 0 };
    bool several = r->dim[2] > 1;
    switch (r->element) {
    case FACTS_ELEMENT_HIDDEN:
        return at[3] != 0 && !(several && at[3] == at[2]) &&
               facts_element_draw(r, FACTS_LANE_CHOICE, at).r[0] >> 31 != 0;
    case FACTS_ELEMENT_HIDDEN_ROW:
        return (at[2] == 0 && several) ||
               facts_element_draw(r, FACTS_LANE_CHOICE, row).r[0] >> 30 == 0;
    default:
        return (double)at[3] > (double)(several ? at[2] : 0) + r->right ||
               (double)at[3] <= (double)(several ? at[2] : 0) - r->left;
    }
}

FACTS_BOTH double facts_element_value(const facts_recipe *r, const int64_t at[4])
{
    switch (r->element) {
    case FACTS_ELEMENT_UNIFORM:
        return (double)facts_uniform(facts_element_draw(r, FACTS_LANE_VALUE, at));
    case FACTS_ELEMENT_SPIKY:
        return (double)facts_element_spiky(r, at);
    case FACTS_ELEMENT_SCALED:
        return (double)(r->gain * facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at)));
    case FACTS_ELEMENT_OFFSET:
        return facts_element_offset(r, at);
    case FACTS_ELEMENT_MEAN:
        return facts_element_mean(r, at);
    case FACTS_ELEMENT_SPARSE:
        return facts_element_sparse(r, at);
    case FACTS_ELEMENT_NEEDLE:
        return (double)facts_element_needle(r, at);
    case FACTS_ELEMENT_PLANT_ROW:
    case FACTS_ELEMENT_PLANT:
        return (double)facts_element_plant(r, at);
    case FACTS_ELEMENT_NEGLSE_Q:
        return (double)facts_element_neglse_q(r, at);
    case FACTS_ELEMENT_NEGLSE_K:
        return (
            double)(facts_small_integer(facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at))) +
                    2.0f * facts_element_direction(r, at[3]));
    case FACTS_ELEMENT_STAIR:
        return (double)facts_element_stair(r, at);
    case FACTS_ELEMENT_LIST:
        return r->list[facts_element_number(r->dim, at[0], at[1], at[2], at[3])];
    case FACTS_ELEMENT_ZERO:
        return 0.0;
    case FACTS_ELEMENT_HIDDEN:
    case FACTS_ELEMENT_HIDDEN_ROW:
    case FACTS_ELEMENT_BAND:
        return facts_element_is_hidden(r, at) ? r->hidden : r->shown;
    case FACTS_ELEMENT_CONSTANT:
        return r->shown;
    case FACTS_ELEMENT_KEEP:
        return facts_element_draw(r, FACTS_LANE_VALUE, at).r[0] >=
                       (uint32_t)(r->steps * 4294967296.0)
                   ? 1.0
                   : 0.0;
    default:
        return (double)facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
    }
}

/* The number of elements that are written, and the place of the n-th of them. */
FACTS_BOTH int64_t facts_recipe_places(const facts_recipe *r)
{
    return r->extent[0] * r->extent[1] * r->extent[2] * r->extent[3];
}

FACTS_BOTH void facts_recipe_place(const facts_recipe *r, int64_t n, int64_t at[4])
{
    for (int i = 3; i > 0; i--) {
        at[i] = n % r->extent[i];
        n /= r->extent[i];
    }
    at[0] = n;
}

/* The place of channel 0 of head 0 of a row, in elements of the storage; -1: the row does not
 * exist. */
FACTS_BOTH int64_t facts_recipe_row(const facts_recipe *r, int64_t b, int64_t s)
{
    int64_t from;
    if (r->exact && s >= r->live[b])
        return -1;
    if (!r->place)
        return r->first + b * r->stride[0] + s * r->stride[2];
    from = r->place[b * r->runs + s / r->run];
    return from < 0 ? -1 : from + s % r->run * r->stride[2];
}

FACTS_BOTH uint32_t facts_recipe_code(const facts_recipe *r, const int64_t at[4])
{
    double value;
    if (r->poisoned && facts_recipe_pads(r, at))
        return r->poison;
    value = facts_element_value(r, at);
    if (r->narrow)
        value = facts_decode(r->narrow, facts_encode(r->narrow, value));
    return facts_encode(r->dtype, r->unit > 0 ? value * r->unit : value);
}

/* Writes one element. Padded rows get ordinary values, or the case's poison. */
FACTS_BOTH void facts_recipe_store(const facts_recipe *r, const int64_t at[4], void *storage)
{
    const int64_t row = facts_recipe_row(r, at[0], at[2]);
    if (row >= 0)
        facts_store(r->dtype, storage, row + at[1] * r->stride[1] + at[3] * r->stride[3],
                    facts_recipe_code(r, at));
}

/* The contents of the gaps between the elements of inputs: ordinary values, or the case's poison.
 */
typedef struct facts_gaps {
    uint64_t seed;
    int32_t dtype;
    bool poisoned;
    uint32_t poison;
} facts_gaps;

FACTS_BOTH uint32_t facts_gap_code(const facts_gaps *g, int64_t i)
{
    if (g->poisoned)
        return g->poison;
    return facts_encode(g->dtype, (double)facts_normal(facts_draw_at(
                                      g->seed, FACTS_STREAM_PAD, FACTS_LANE_VALUE, (uint64_t)i)));
}

#endif
