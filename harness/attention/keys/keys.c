#include "keys.h"

#include "key_values.h"

#define FORM_WORD .form = FACTS_FORM_WORD
#define FORM_ALONE .form = FACTS_FORM_WORD, .alone = true
#define FORM_RATIO .form = FACTS_FORM_RATIO
#define FORM_SET .form = FACTS_FORM_SET
#define FORM_LENS .read = facts_lengths_canonical, .also = ", lengths (256+0x3/256+1x3)"
#define FORM_LAYOUT                                                                                \
    .read = facts_layout_canonical, .also = ", Q_KV (sbhd_bshd, bshd_bs2hd, thd_th2d)"
#define FORM_STRIDE                                                                                \
    .read = facts_stride_canonical,                                                                \
    .also = " gap: broadcast: sum: perm: offset: misaligned: size1:wild"
#define FORM_KNOBS .read = facts_knobs_canonical, .also = ", name:N (joined by +)"
#define PARTS(key)                                                                                 \
    ((key) == FACTS_KEY_H   ? "1 or more, or Q/KV: h=8/2"                                          \
     : (key) == FACTS_KEY_S ? "1 or more, or queries/keys: s=1/512"                                \
     : (key) == FACTS_KEY_D ? "1 or more, or Q/V: d=192/128"                                       \
                            : NULL)

/* Defaults that other keys decide. The mx types are formats of inputs: what comes out of them is bf16, and dO is quantised as Q. */
#define END { .other = FACTS_NO_KEY }
static const facts_key_default of_type[] = { { FACTS_KEY_DTYPE, "mx*", "bf16" },
                                             { .other = FACTS_KEY_DTYPE },
                                             END };
static const facts_key_default of_bias_type[] = { { FACTS_KEY_DTYPE, "e*", "bf16" },
                                                  { FACTS_KEY_DTYPE, "mx*", "bf16" },
                                                  { .other = FACTS_KEY_DTYPE },
                                                  END };
static const facts_key_default of_do_type[] = { { FACTS_KEY_DTYPE, "mxe4m3", "mxe4m3" },
                                                { FACTS_KEY_DTYPE, "mxe5m2", "mxe5m2" },
                                                { .other = FACTS_KEY_OUT },
                                                END };
static const facts_key_default of_layout[] = { { .other = FACTS_KEY_LAYOUT }, END };
static const facts_key_default of_stats[] = { { FACTS_KEY_Q, "t*", "th1" }, END };
static const facts_key_default of_bias_fill[] = { { FACTS_KEY_BIAS, "bool:*", "random" }, END };
static const facts_key_default of_window[] = { { FACTS_KEY_MASK, "causal*", "inf:0" }, END };
static const facts_key_default of_align[] = { { FACTS_KEY_MASK, "causal_br", "br" }, END };
static const facts_key_default of_want[] = { { FACTS_KEY_PASS, "bwd", "stats" }, END };
#define DEFAULTS(key)                                                                              \
    ((key) == FACTS_KEY_OUT || (key) == FACTS_KEY_GRAD                      ? of_type              \
     : (key) == FACTS_KEY_BIAS_DTYPE                                        ? of_bias_type         \
     : (key) == FACTS_KEY_DO_DTYPE                                          ? of_do_type           \
     : (key) == FACTS_KEY_Q || (key) == FACTS_KEY_K || (key) == FACTS_KEY_V ? of_layout            \
     : (key) == FACTS_KEY_STATS                                             ? of_stats             \
     : (key) == FACTS_KEY_BIAS_FILL                                         ? of_bias_fill         \
     : (key) == FACTS_KEY_WINDOW                                            ? of_window            \
     : (key) == FACTS_KEY_ALIGN                                             ? of_align             \
     : (key) == FACTS_KEY_WANT                                              ? of_want              \
                                                                            : NULL)

#define AS_ROW(symbol, word_, kind, allowed_, otherwise_, help_)                                   \
    [FACTS_KEY_##symbol] = { .word = word_,                                                        \
                             .allowed = allowed_,                                                  \
                             .otherwise = otherwise_,                                              \
                             .defaults = DEFAULTS(FACTS_KEY_##symbol),                             \
                             .help = help_,                                                        \
                             .parts = PARTS(FACTS_KEY_##symbol),                                   \
                             FORM_##kind },
const facts_key_row facts_keys[FACTS_KEY_COUNT] = { FACTS_KEY_LIST(AS_ROW) };
#undef AS_ROW
_Static_assert(FACTS_KEY_COUNT <= FACTS_KEYS_MOST, "a case has room for every key");

#define AS_PART(word, key, index) { word, FACTS_KEY_##key, index },
const facts_key_part facts_key_parts[FACTS_KEY_PARTS] = { FACTS_PART_LIST(AS_PART) };
#undef AS_PART
