#include "scenes.h"

#include <stdio.h>
#include <string.h>

#define AS_TEXT(symbol, text, lens, rows, features) text,
static const char *const texts[FACTS_SCENE_COUNT] = { FACTS_SCENE_LIST(AS_TEXT) };
#undef AS_TEXT
#define AS_LENS(symbol, text, lens, rows, features) FACTS_LENS_##lens,
static const facts_lens lens_of[FACTS_SCENE_COUNT] = { FACTS_SCENE_LIST(AS_LENS) };
#undef AS_LENS
#define AS_FEATURES(symbol, text, lens, rows, features) features,
static const unsigned features_of[FACTS_SCENE_COUNT] = { FACTS_SCENE_LIST(AS_FEATURES) };
#undef AS_FEATURES
#define ROWS_ALL false
#define ROWS_FEWER true
#define AS_ROWS(symbol, text, lens, rows, features) ROWS_##rows,
static const bool has_fewer_rows[FACTS_SCENE_COUNT] = { FACTS_SCENE_LIST(AS_ROWS) };
#undef AS_ROWS
#define AS_SCENE(symbol, id, scene, types, fills, what) [FACTS_LIAR_##symbol] = FACTS_SCENE_##scene,
static const facts_scene_id scene_of[FACTS_LIAR_COUNT] = { FACTS_LIAR_LIST(AS_SCENE) };
#undef AS_SCENE

typedef enum types { TYPES_ANY, TYPES_CAST, TYPES_F8, TYPES_F16, TYPES_FINER, TYPES_HOPPER } types;
#define AS_TYPES(symbol, id, scene, types, fills, what) [FACTS_LIAR_##symbol] = TYPES_##types,
static const types types_of[FACTS_LIAR_COUNT] = { FACTS_LIAR_LIST(AS_TYPES) };
#undef AS_TYPES
typedef enum fills { FILLS_FOUR, FILLS_PLANT, FILLS_SPIKY, FILLS_MEAN } fills;
#define AS_FILLS(symbol, id, scene, types, fills, what) [FACTS_LIAR_##symbol] = FILLS_##fills,
static const fills fills_of[FACTS_LIAR_COUNT] = { FACTS_LIAR_LIST(AS_FILLS) };
#undef AS_FILLS

static const int shapes[FACTS_SIZE_COUNT][4] = {
#define AS_SHAPE(symbol, word, rows, keys, backward_rows, backward_keys)                           \
    { rows, keys, backward_rows, backward_keys },
    FACTS_SIZE_LIST(AS_SHAPE)
#undef AS_SHAPE
};

static bool is_backward(facts_scene_id id)
{
    return strncmp(texts[id], "pass=bwd", 8) == 0;
}

facts_scene_id facts_scene_of_liar(facts_liar liar)
{
    return scene_of[liar];
}

unsigned facts_scene_features(facts_scene_id id)
{
    return features_of[id];
}

bool facts_liar_asks(facts_liar liar, const char *fill)
{
    static const struct {
        const char *word;
        fills fills;
    } named[] = { { "amax_plant", FILLS_PLANT },
                  { "spiky", FILLS_SPIKY },
                  { "offset_v", FILLS_MEAN } };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(fill, named[i].word) == 0)
            return fills_of[liar] == named[i].fills;
    return true;
}

bool facts_scene_text(char out[FACTS_CASE_TEXT], facts_scene_id id, facts_size size,
                      const char *fill, uint64_t seed)
{
    const int *shape = shapes[size] + (is_backward(id) ? 2 : 0);
    int rows = shape[0], keys = shape[1];
    if (id == FACTS_SCENE_NOWHERE || rows == 0)
        return false;
    if (rows == keys && has_fewer_rows[id])
        rows = rows * 3 / 4;
    /* The smallest has the most rows that T3 needs; where the others have as many heads, one batch
     * entry will do. */
    bool lean = size != FACTS_SIZE_S200 && size != FACTS_SIZE_DECODE &&
                (id == FACTS_SCENE_PLAIN || id == FACTS_SCENE_B_PLAIN);
    int n = snprintf(out, FACTS_CASE_TEXT, "%s%s s=%d/%d fill=%s seed=%llu", texts[id],
                     id != FACTS_SCENE_PLAIN && id != FACTS_SCENE_B_PLAIN ? ""
                     : lean                                               ? " b=1"
                     : size == FACTS_SIZE_DECODE ? " b=8" /* TG and TS ask for 32 rows */
                                                 : " b=2",
                     rows, keys, fill, (unsigned long long)seed);
    int some = rows * 2 / 3 > 0 ? rows * 2 / 3 : 1;
    if (lens_of[id] != FACTS_LENS_NONE)
        snprintf(out + n, (size_t)(FACTS_CASE_TEXT - n), " lens=%d+%d+%d/%d+%d+%d", rows, some,
                 rows / 4 + 1, keys - 7, lens_of[id] == FACTS_LENS_EMPTY ? 0 : keys * 3 / 4 + 1,
                 keys / 2 + 1);
    return true;
}

/* ---- what cannot be asked ---- */

const char *facts_not_applicable(facts_liar liar, facts_survey_type type, facts_size size)
{
    char text[FACTS_CASE_TEXT];
    switch (liar) {
    case FACTS_LIAR_MX_SWIZZLE:
        return "the emulation has no block scales; facts-worker-liars has this liar "
               "(input-factor-next)";
    case FACTS_LIAR_GRAPH_SEED:
        return "the emulation captures no graph; facts-worker-liars has this liar "
               "(replay-seed-captured)";
    default:
        break;
    }
    if (types_of[liar] == TYPES_CAST && type == FACTS_SURVEY_F32)
        return "f32 has no cast there";
    if (types_of[liar] == TYPES_F8 && !facts_survey_type_is_narrow(type))
        return "8 bit types alone have it";
    if (types_of[liar] == TYPES_HOPPER && type != FACTS_SURVEY_E4M3_HOPPER &&
        type != FACTS_SURVEY_E5M2_HOPPER)
        return "the sum has the bits of fp32";
    if (types_of[liar] == TYPES_F16 && type != FACTS_SURVEY_F16)
        return "the answers are never subnormal in this type";
    if (types_of[liar] == TYPES_FINER && type != FACTS_SURVEY_F16 && type != FACTS_SURVEY_E4M3 &&
        type != FACTS_SURVEY_E4M3_HOPPER)
        return "no type of this size has fewer bits";
    if (!facts_scene_text(text, scene_of[liar], size, "gauss", 1))
        return "the backward is asked in other sizes";
    if (size != FACTS_SIZE_DECODE)
        return NULL;
    switch (liar) {
    case FACTS_LIAR_CAUSAL_LOOSE:
    case FACTS_LIAR_BR_MAX_LEN:
        return "the last row reads every key below the length";
    case FACTS_LIAR_BIAS_T:
        return "one row has nothing to transpose";
    case FACTS_LIAR_AMAX_PADDING:
        return "no batch entry has a padded row";
    case FACTS_LIAR_STATS_STRIDE:
        return "sequences of one row have one order";
    case FACTS_LIAR_GAP_IGNORED:
        return "one token has no gap behind it";
    default:
        return NULL;
    }
}

/* ---- what cannot be found ---- */

#define BIT(symbol) (1U << FACTS_SURVEY_##symbol)
#define AT(symbol) (1U << FACTS_SIZE_##symbol)
#define HOPPER (BIT(E4M3_HOPPER) | BIT(E5M2_HOPPER))
#define NARROW (BIT(E4M3) | BIT(E5M2) | HOPPER)
#define ALL_SIZES ((1U << FACTS_SIZE_COUNT) - 1)

typedef struct blind_spot {
    facts_liar liar;
    unsigned types, sizes;
    bool sometimes; /* other data show it */
    const char *why;
} blind_spot;

static const blind_spot blind_spots[] = {
    { FACTS_LIAR_O_TRUNC_TILE, NARROW, AT(S200), false,
      "within a step of the type, and the last tile has too few rows for TG" },
    { FACTS_LIAR_O_GAIN_5E4, BIT(BF16), AT(DECODE), true,
      "64 rows cannot distinguish this from the roundings of P" },
    { FACTS_LIAR_O_GAIN_5E4, NARROW, ALL_SIZES, false, "rounding P to 8 bits moves a sum by more" },
    { FACTS_LIAR_O_GAIN_1E3, NARROW, ALL_SIZES, false, "rounding P to 8 bits moves a sum by more" },
    { FACTS_LIAR_O_GAIN_1PCT, BIT(E5M2) | BIT(E5M2_HOPPER), ALL_SIZES, false,
      "rounding P to e5m2 moves a sum by more" },
    { FACTS_LIAR_O_GAIN_1PCT, BIT(E4M3) | BIT(E4M3_HOPPER), AT(LONG) | AT(DECODE), true,
      "64 rows: rounding P moves a sum by about as much" },
    { FACTS_LIAR_O_GAIN_3PCT, BIT(E5M2) | BIT(E5M2_HOPPER), AT(DECODE), true,
      "64 rows: rounding P moves a sum by about as much" },
    { FACTS_LIAR_O_GAIN_ROWS, BIT(BF16), AT(S200) | AT(DECODE), false,
      "eight rows of one head, or one: too few for TG" },
    { FACTS_LIAR_O_GAIN_ROWS, NARROW, ALL_SIZES, false,
      "rounding P to 8 bits moves a sum by more" },
    { FACTS_LIAR_O_FLUSHED, BIT(F16), AT(S200) | AT(S500) | AT(DECODE), true,
      "not all data have a subnormal O" },
    { FACTS_LIAR_EXP_CUT, HOPPER, ALL_SIZES, true,
      "P V in a sum of 14 bits may lose more than exp(-10)" },
    { FACTS_LIAR_KEEP_FACTOR, BIT(BF16), AT(DECODE), true, "too few rows" },
    { FACTS_LIAR_KEEP_FACTOR, HOPPER, ALL_SIZES, false,
      "rounding P to 8 bits moves a sum by more" },
    { FACTS_LIAR_V_ROW, NARROW, AT(LONG) | AT(DECODE), true,
      "one key of thousands, below the last cast" },
    { FACTS_LIAR_ONE_ELEMENT, BIT(E5M2) | BIT(E5M2_HOPPER), AT(S500) | AT(LONG) | AT(DECODE), true,
      "a quarter is one step of the type" },
    { FACTS_LIAR_ACC_RUN, HOPPER, AT(S200) | AT(S500), true,
      "hundreds of keys lose less than TG allows" },
    { FACTS_LIAR_B_ACC_RUN, HOPPER, ALL_SIZES, true,
      "hundreds of queries lose about what TG allows" },
    { FACTS_LIAR_B_DK_GAIN_5E4, BIT(BF16), AT(S200), true, "about what TG allows" },
    { FACTS_LIAR_B_DK_GAIN_5E4, NARROW, ALL_SIZES, false,
      "rounding dS to 8 bits moves a sum by more" },
    { FACTS_LIAR_B_DS_OTHER_TYPE, BIT(E4M3) | BIT(E4M3_HOPPER), AT(S500) | AT(LONG), false,
      "dS is subnormal in e4m3, and e5m2 has as many bits there" },
    { FACTS_LIAR_B_LAST_ROW_DK, BIT(E5M2) | BIT(E5M2_HOPPER), AT(S200), true,
      "one row of 200, below the last cast" },
    { FACTS_LIAR_B_GROUP_NARROW, BIT(BF16) | BIT(F16), ALL_SIZES, true,
      "one more rounding for each head; a correct kernel may come close" },
    { FACTS_LIAR_B_DQ_NARROW, BIT(F16), AT(S200), true, "two tiles: one more rounding" },
    { FACTS_LIAR_DROPOUT_8BIT, NARROW, AT(DECODE), true,
      "few keys of 2000, below the step of P; probe P3 counts bits" },
    { FACTS_LIAR_SCALE_1E5, HOPPER, ALL_SIZES, false,
      "logits that are added in 14 bits are off by more" },
    { FACTS_LIAR_LOG2E_SHORT, HOPPER, ALL_SIZES, false,
      "logits that are added in 14 bits are off by more" },
    { FACTS_LIAR_SCALE_1E3, HOPPER, AT(S200) | AT(S500) | AT(DECODE), true,
      "logits that are added in 14 bits are off by about as much" },
    { FACTS_LIAR_AMAX_PADDING, HOPPER, AT(S500) | AT(LONG), true,
      "14 bits cannot distinguish the largest padded row" },
};

const char *facts_blind_spot(facts_liar liar, facts_survey_type type, facts_size size,
                             bool *sometimes)
{
    for (size_t i = 0; i < sizeof blind_spots / sizeof *blind_spots; i++) {
        const blind_spot *b = &blind_spots[i];
        *sometimes = b->sometimes;
        if (b->liar == liar && b->types & 1U << type && b->sizes & 1U << size)
            return b->why;
    }
    *sometimes = false;
    return NULL;
}
