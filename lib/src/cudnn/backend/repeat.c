#include "repeat.h"

#include <stdio.h>

#include "abi.h"
#include "problem/feature_set.h"

enum { ANY_DIM = INT32_MAX, HEURISTICS = -1, OLDEST = 90800 };

#define KNOB(name, number) { .type = DNN_KNOB_TYPE_##name, .value = (number) }
/* Tiles and the number of stages; the rest is the same in every pin. */
#define KNOBS(tile_m, tile_n, stages)                                                              \
    .knob_count = 6, .knobs = { KNOB(TILE_M, tile_m), KNOB(TILE_N, tile_n), KNOB(KERNEL_CFG, 2),   \
                                KNOB(STREAM_K, 0),    KNOB(TILE_CGA_M, 0),  KNOB(STAGES, stages) }
/* Before 9.23 a configuration stood for its tiles. */
#define OLD_KNOBS                                                                                  \
    .knob_count = 2, .knobs = { KNOB(KERNEL_CFG, 31), KNOB(STAGES, 2) }, .no_bias = true
#define FORM                                                                                       \
    .how = FATTN_DETERMINISM_FORM, .keeps_dp = true, .gives_dbias = true, .engine = HEURISTICS,    \
    .cudnn_from = OLDEST, .dim_to = ANY_DIM
#define PIN .how = FATTN_DETERMINISM_PIN
#define PULL "NVIDIA/cudnn-frontend#895"
#define FRONTEND "cudnn-frontend 1.32.0, scaled_dot_product_flash_attention.h"
#define FRONTEND_8_BIT "cudnn-frontend 1.32.0, sdpa_fp8_bwd.h"
#define EIGHT_BIT .eight_bit = true, .keeps_dp = true

/* The order is what determinism auto prefers. */
static const fattn__repeat rows[] = {
    { FORM, .sm_from = 90, .sm_to = 90, .grade = FATTN__REPEAT_RAN,
      .source = "H100, cuDNN 9.14.0 to 9.28.0: 12 of 12 repeats equal at s 2048, with causal, GQA "
                "and dbias; " FRONTEND },
    { FORM, .sm_from = 80, .sm_to = 89, .grade = FATTN__REPEAT_CLAIMED, .source = FRONTEND },
    { FORM, .sm_from = 120, .sm_to = 129, .grade = FATTN__REPEAT_CLAIMED, .source = FRONTEND },
    { PIN, .sm_from = 90, .sm_to = 90, .cudnn_from = 92500, .dim_to = ANY_DIM, .engine = 6,
      KNOBS(2, 1, 4), .grade = FATTN__REPEAT_RAN,
      .source = "H100, cuDNN 9.27.0 and 9.28.0: 11 of 11 repeats equal, plain, causal and "
                "padded; " FRONTEND },
    { PIN, .sm_from = 100, .sm_to = 103, .cudnn_from = 92300, .dim_to = 192, .keeps_dp = true,
      .engine = 5, KNOBS(3, 2, 2), .grade = FATTN__REPEAT_COMPILED, .source = FRONTEND },
    { PIN, .sm_from = 100, .sm_to = 103, .cudnn_from = 92300, .dim_from = 256, .dim_to = 256,
      .keeps_dp = true, .engine = 5, KNOBS(3, 2, 3), .grade = FATTN__REPEAT_COMPILED,
      .source = FRONTEND },
    { PIN, .sm_from = 100, .sm_to = 103, .cudnn_from = 91800, .cudnn_to = 92299, .dim_to = 192,
      .keeps_dp = true, .engine = 5, OLD_KNOBS, .grade = FATTN__REPEAT_COMPILED,
      .source = FRONTEND },
    { PIN, .sm_from = 104, .sm_to = 109, .cudnn_from = 92300, .dim_to = 192, .keeps_dp = true,
      .engine = 17, KNOBS(3, 2, 2), .grade = FATTN__REPEAT_CLAIMED, .source = FRONTEND },
    { PIN, .sm_from = 104, .sm_to = 109, .cudnn_from = 91800, .cudnn_to = 92299, .dim_to = 192,
      .keeps_dp = true, .engine = 17, OLD_KNOBS, .grade = FATTN__REPEAT_CLAIMED,
      .source = FRONTEND },
    { PIN, .sm_from = 104, .sm_to = 109, .cudnn_from = 92300, .dim_from = 256, .dim_to = 256,
      .keeps_dp = true, .engine = 17, KNOBS(3, 2, 3), .grade = FATTN__REPEAT_CLAIMED,
      .source = FRONTEND },
    { PIN, .unified = true, .sm_from = 90, .sm_to = 90, .cudnn_from = 92800, .dim_to = ANY_DIM,
      .gives_dbias = true, .engine = 13, KNOBS(2, 1, 4), .grade = FATTN__REPEAT_RAN,
      .source = "H100, cuDNN 9.28.0: 11 of 11 repeats equal, dsink excepted" },
    { PIN, .unified = true, .sm_from = 100, .sm_to = 106, .cudnn_from = 92800, .dim_to = 128,
      .engine = 14, KNOBS(3, 2, 2), .no_bias = true, .grade = FATTN__REPEAT_COMPILED,
      .source = PULL },
    { PIN, .unified = true, .sm_from = 107, .sm_to = 109, .cudnn_from = 92800, .dim_to = 128,
      .engine = 19, KNOBS(3, 2, 2), .no_bias = true, .grade = FATTN__REPEAT_CLAIMED,
      .source = PULL },
    { PIN, EIGHT_BIT, .sm_from = 100, .sm_to = 103, .cudnn_from = 92300, .dim_to = 192, .engine = 5,
      KNOBS(3, 2, 2), .grade = FATTN__REPEAT_COMPILED, .source = FRONTEND_8_BIT },
    { PIN, EIGHT_BIT, .sm_from = 100, .sm_to = 103, .cudnn_from = 91900, .cudnn_to = 92299,
      .dim_to = 192, .engine = 5, OLD_KNOBS, .grade = FATTN__REPEAT_COMPILED,
      .source = FRONTEND_8_BIT },
    { PIN, EIGHT_BIT, .sm_from = 104, .sm_to = 109, .cudnn_from = 92300, .dim_to = 192,
      .engine = 17, KNOBS(3, 2, 2), .grade = FATTN__REPEAT_CLAIMED, .source = FRONTEND_8_BIT },
    { PIN, EIGHT_BIT, .sm_from = 104, .sm_to = 109, .cudnn_from = 91900, .cudnn_to = 92299,
      .dim_to = 192, .engine = 17, OLD_KNOBS, .grade = FATTN__REPEAT_CLAIMED,
      .source = FRONTEND_8_BIT },
};
enum { ROWS = sizeof rows / sizeof *rows };

const fattn__repeat fattn__repeat_unknown = { FORM, .sm_to = INT32_MAX,
                                              .grade = FATTN__REPEAT_CLAIMED, .source = "nobody" };

/* Compares everything except the version and dbias: such a row may be named in the reason. */
static bool is_of(const fattn__repeat *row, const fattn_problem *p, int sm)
{
    const bool is_way = p->determinism == FATTN_DETERMINISM_AUTO || p->determinism == row->how;
    return is_way && row->unified == fattn__is_unified(p) &&
           row->eight_bit == (p->dtype >= FATTN_E4M3) && sm >= row->sm_from && sm <= row->sm_to &&
           p->dim_qk >= row->dim_from && p->dim_qk <= row->dim_to;
}

static bool is_in(const fattn__repeat *row, int version)
{
    return version >= row->cudnn_from && (row->cudnn_to == 0 || version <= row->cudnn_to);
}

/* Does the row support the parts of the problem beside Q, K and V? */
static bool serves(const fattn__repeat *row, const fattn_problem *p)
{
    const bool wants_dbias = p->dbias != 0 || p->mod_gradients != 0;
    return (row->gives_dbias || !wants_dbias) && (!row->no_bias || !p->has_bias);
}

static const char *hindrance(const fattn__repeat *row, const fattn_problem *p)
{
    return row->no_bias && p->has_bias ? " with a bias" : " and gives the gradient of a bias";
}

const fattn__repeat *fattn__repeat_find(const fattn_problem *p, int version, int sm, char *why,
                                        size_t capacity)
{
    static const char *const ways[] = { [FATTN_DETERMINISM_AUTO] = "nothing",
                                        [FATTN_DETERMINISM_FORM] = "no form of the graph",
                                        [FATTN_DETERMINISM_PIN] = "no pin of an engine" };
    const fattn__repeat *nearest = NULL;
    for (size_t i = 0; i < ROWS; i++) {
        if (!is_of(&rows[i], p, sm))
            continue;
        if (is_in(&rows[i], version) && serves(&rows[i], p))
            return &rows[i];
        if (nearest == NULL || is_in(&rows[i], version) ||
            (!is_in(nearest, version) && rows[i].cudnn_from < nearest->cudnn_from))
            nearest = &rows[i];
    }
    const int used =
        snprintf(why, capacity, "deterministic: %s is known to repeat on sm_%d with cuDNN %d.%d.%d",
                 ways[p->determinism], sm, version / 10000, version / 100 % 100, version % 100);
    if (nearest == NULL || used < 0 || (size_t)used >= capacity)
        return NULL;
    const size_t left = capacity - (size_t)used;
    const long long engine = (long long)nearest->engine;
    const int from = nearest->cudnn_from;
    if (is_in(nearest, version))
        snprintf(why + used, left, "%s; engine %lld with its knobs does not", hindrance(nearest, p),
                 engine);
    else
        snprintf(why + used, left, "; engine %lld with its knobs is, from %d.%d.%d on", engine,
                 from / 10000, from / 100 % 100, from % 100);
    return NULL;
}
