/* One element of a fill: what lies at a logical place follows from a recipe, a plain value that facts_recipe_make (fill.h) works out once.
 *
 * Compiled by C and by CUDA C++, to the same bits: integers, conversions, and products that nothing unrounded is added to, so that nothing can be
 * contracted; no libm. What a row shares and cannot be had so cheaply (the key that a needle points at) is in a table that travels with the recipe.
 */
#ifndef FACTS_FILL_ELEMENT_H
#define FACTS_FILL_ELEMENT_H

#include "dtype.h"
#include "philox.h"

/* What an element is made of. X(SYMBOL) */
#define FACTS_ELEMENT_LIST(X)                                                                                                      \
    X(NORMAL) X(UNIFORM) X(SPIKY)                                                                                                  \
    X(NEEDLE)     /* gain times the signs of key row[] (its own number without a table) of head h / group, as `key` has them */    \
    X(NEGLSE_Q)   /* -gain times the direction in far rows */                                                                      \
    X(NEGLSE_K)   /* small integers around twice the direction */                                                                  \
    X(STAIR)      /* 0.3 N; in the first `channels` ones: gain, or where that is 0 40 place / steps (`down`: from the end) */ \
    X(LIST)       /* list[] */                                                                                                     \
    X(ZERO)                                                                                                                        \
    X(HIDDEN)     /* `hidden`, or 0: at random but for key 0 and the row's own key */                                              \
    X(HIDDEN_ROW) /* `hidden` in a quarter of the rows, the first of several always */                                             \
    X(BAND)       /* 0 in the band left:right, `hidden` outside */
#define AS_ENUM(symbol) FACTS_ELEMENT_##symbol,
typedef enum facts_element { FACTS_ELEMENT_LIST(AS_ENUM) FACTS_ELEMENT_COUNT } facts_element;
#undef AS_ENUM

/* The keys that needles take their signs from: K's extents, and 0 where its places are shared. */
typedef struct facts_key_place {
    int64_t dim[4], origin[3];
} facts_key_place;

typedef struct facts_recipe {
    facts_element element;
    facts_stream stream;
    uint64_t seed;
    int32_t dtype;
    int64_t dim[4], stride[4], first;
    int64_t extent[4]; /* dim, and 1 where several elements share a place: what is written */
    float gain;
    double hidden, left, right, steps;
    int64_t channels, down, group;
    facts_key_place key;
    uint32_t poison;       /* the code of padded rows, */
    const int32_t *live;   /* which start here: [dim[0]]; NULL: no row gets poison */
    const int32_t *row;    /* [dim[0], dim[1], dim[2]]; NULL */
    const double *list;    /* [dim]; NULL */
} facts_recipe;

FACTS_BOTH uint64_t facts_element_number(const int64_t dim[4], int64_t b, int64_t h, int64_t s, int64_t d)
{
    return (uint64_t)(((b * dim[1] + h) * dim[2] + s) * dim[3] + d);
}

FACTS_BOTH facts_draw facts_element_draw(const facts_recipe *r, facts_lane lane, const int64_t at[4])
{
    return facts_draw_at(r->seed, r->stream, lane, facts_element_number(r->dim, at[0], at[1], at[2], at[3]));
}

FACTS_BOTH float facts_sign(facts_draw draw)
{
    return draw.r[0] >> 31 ? -1.0f : 1.0f;
}

FACTS_BOTH uint64_t facts_row_number(const int64_t dim[4], const int64_t at[4])
{
    return (uint64_t)((at[0] * dim[1] + at[1]) * dim[2] + at[2]);
}

/* The key's sign pattern in this channel, at the place that the key head's element really has. */
FACTS_BOTH float facts_element_needle(const facts_recipe *r, const int64_t at[4])
{
    int64_t key = r->row ? r->row[facts_row_number(r->dim, at)] : at[2];
    uint64_t e = facts_element_number(r->key.dim, at[0] * r->key.origin[0], at[1] / r->group * r->key.origin[1], key * r->key.origin[2], at[3]);
    return r->gain * facts_sign(facts_draw_at(r->seed, FACTS_STREAM_K, FACTS_LANE_VALUE, e));
}

FACTS_BOTH float facts_element_direction(const facts_recipe *r, int64_t d)
{
    return facts_sign(facts_draw_at(r->seed, FACTS_STREAM_DIRECTION, FACTS_LANE_VALUE, (uint64_t)d));
}

FACTS_BOTH float facts_element_neglse_q(const facts_recipe *r, const int64_t at[4])
{
    bool far = at[2] == 0 || at[2] == r->dim[2] - 1 ||
               facts_draw_at(r->seed, FACTS_STREAM_ROW, FACTS_LANE_VALUE, facts_row_number(r->dim, at)).r[0] < UINT32_C(1) << 30;
    return far ? -r->gain * facts_element_direction(r, at[3]) : facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
}

/* x to the nearest whole number, halves to the even one, within -2 and 2. */
FACTS_BOTH float facts_small_integer(float x)
{
    float size = x < 0 ? -x : x, whole = size >= 1.5f ? 2.0f : size > 0.5f ? 1.0f : 0.0f;
    return x < 0 ? -whole : whole;
}

FACTS_BOTH float facts_element_stair(const facts_recipe *r, const int64_t at[4])
{
    if (at[3] >= r->channels)
        return 0.3f * facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
    return r->gain != 0 ? r->gain : (float)(40.0 * (double)(r->down ? r->dim[2] - 1 - at[2] : at[2]) / r->steps);
}

FACTS_BOTH float facts_element_spiky(const facts_recipe *r, const int64_t at[4])
{
    float x = facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at));
    return facts_element_draw(r, FACTS_LANE_CHOICE, at).r[0] < UINT32_C(42949672) ? x * 10.0f : x; /* chance 0.01 */
}

/* Key 0 stays, and the key of the row's own number: with lengths, causal masks and left bounds alike every row keeps a key. */
FACTS_BOTH bool facts_element_is_hidden(const facts_recipe *r, const int64_t at[4])
{
    const int64_t row[4] = { at[0], at[1], at[2], 0 };
    bool several = r->dim[2] > 1;
    switch (r->element) {
    case FACTS_ELEMENT_HIDDEN:
        return at[3] != 0 && !(several && at[3] == at[2]) && facts_element_draw(r, FACTS_LANE_CHOICE, at).r[0] >> 31 != 0;
    case FACTS_ELEMENT_HIDDEN_ROW:
        return (at[2] == 0 && several) || facts_element_draw(r, FACTS_LANE_CHOICE, row).r[0] >> 30 == 0;
    default:
        return (double)at[3] > (double)(several ? at[2] : 0) + r->right || (double)at[3] <= (double)(several ? at[2] : 0) - r->left;
    }
}

FACTS_BOTH double facts_element_value(const facts_recipe *r, const int64_t at[4])
{
    switch (r->element) {
    case FACTS_ELEMENT_UNIFORM:
        return (double)facts_uniform(facts_element_draw(r, FACTS_LANE_VALUE, at));
    case FACTS_ELEMENT_SPIKY:
        return (double)facts_element_spiky(r, at);
    case FACTS_ELEMENT_NEEDLE:
        return (double)facts_element_needle(r, at);
    case FACTS_ELEMENT_NEGLSE_Q:
        return (double)facts_element_neglse_q(r, at);
    case FACTS_ELEMENT_NEGLSE_K:
        return (double)(facts_small_integer(facts_normal(facts_element_draw(r, FACTS_LANE_VALUE, at))) + 2.0f * facts_element_direction(r, at[3]));
    case FACTS_ELEMENT_STAIR:
        return (double)facts_element_stair(r, at);
    case FACTS_ELEMENT_LIST:
        return r->list[facts_element_number(r->dim, at[0], at[1], at[2], at[3])];
    case FACTS_ELEMENT_ZERO:
        return 0.0;
    case FACTS_ELEMENT_HIDDEN:
    case FACTS_ELEMENT_HIDDEN_ROW:
    case FACTS_ELEMENT_BAND:
        return facts_element_is_hidden(r, at) ? r->hidden : 0.0;
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

/* Writes one element where it belongs: padded rows hold ordinary values, or the case's poison. */
FACTS_BOTH void facts_recipe_store(const facts_recipe *r, const int64_t at[4], void *storage)
{
    bool poisoned = r->live && at[2] >= r->live[at[0]];
    uint32_t code = poisoned ? r->poison : facts_encode(r->dtype, facts_element_value(r, at));
    facts_store(r->dtype, storage, r->first + at[0] * r->stride[0] + at[1] * r->stride[1] + at[2] * r->stride[2] + at[3] * r->stride[3], code);
}

/* What lies between the elements of inputs: ordinary values, or the case's poison. */
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
    return facts_encode(g->dtype, (double)facts_normal(facts_draw_at(g->seed, FACTS_STREAM_PAD, FACTS_LANE_VALUE, (uint64_t)i)));
}

#endif
