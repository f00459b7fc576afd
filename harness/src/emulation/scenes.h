/* The problems that show liars, and the liars that no problem can show, with the reason. Data. */
#ifndef FACTS_EMULATION_SCENES_H
#define FACTS_EMULATION_SCENES_H

#include "scene.h"
#include "survey.h"

/* What the lengths of the three batch entries are. */
typedef enum facts_lens { FACTS_LENS_NONE, FACTS_LENS_SOME, FACTS_LENS_EMPTY } facts_lens;

/* X(SYMBOL, "case", LENS, ROWS, features). Rows, keys, lengths, type, fill and seed are added;
 * there are as many rows as keys, or FEWER. The shapes have what liars need: GQA, fewer rows than
 * keys, a last tile that is not full, left != right. */
/* clang-format off */
#define FACTS_SCENE_LIST(X)                                                                      \
    X(PLAIN, "pass=fwd h=8/2 d=64 want=stats+max+sum_exp", NONE, ALL, 0)                         \
    X(CAUSAL, "pass=fwd b=2 h=2 d=64 mask=causal_br want=stats+max+sum_exp", NONE, FEWER, 0)     \
    X(WINDOW, "pass=fwd b=2 h=2 d=64 window=33:17 align=br want=stats+max+sum_exp", NONE, FEWER, \
      0)                                                                                         \
    X(PADDED, "pass=fwd b=3 h=2 d=64 want=stats+max+sum_exp", SOME, FEWER, 0)                    \
    X(PADDED_CAUSAL, "pass=fwd b=3 h=2 d=64 mask=causal_br want=stats+max+sum_exp", SOME, FEWER, \
      0)                                                                                         \
    X(BIAS, "pass=fwd b=2 h=3 d=64 bias=1hss want=stats+max+sum_exp", NONE, FEWER, 0)            \
    X(DROPOUT, "pass=fwd b=2 h=2 d=64 want=stats+max+sum_exp", NONE, ALL, FACTS_WITH_DROPOUT)    \
    X(SINK, "pass=fwd b=2 h=4/2 d=64 want=stats+max+sum_exp", NONE, ALL, FACTS_WITH_SINK)        \
    X(SPLIT, "pass=fwd b=2 h=4/2 d=64 want=stats+max+sum_exp", NONE, ALL, 0)                     \
    X(RAGGED, "pass=fwd b=3 h=2 d=64 want=stats", SOME, ALL, FACTS_WITH_RAGGED)                  \
    X(PAGED, "pass=fwd b=3 h=2 d=64 want=stats+max+sum_exp", SOME, ALL, FACTS_WITH_PAGES)        \
    X(GAPS, "pass=fwd b=2 h=2 d=64 stride=gap:8 want=stats+max+sum_exp", NONE, ALL, 0)           \
    X(EMPTY, "pass=fwd b=3 h=2 d=64 want=stats+max+sum_exp", EMPTY, ALL, 0)                      \
    X(HUGE_OFFSET, "pass=fwd b=2 h=2 d=64 want=stats+max+sum_exp", NONE, ALL,                    \
      FACTS_WITH_HUGE_OFFSET)                                                                    \
    X(B_PLAIN, "pass=bwd h=8/2 d=64", NONE, ALL, 0)                                              \
    X(B_CAUSAL, "pass=bwd b=2 h=2 d=64 mask=causal_br", NONE, FEWER, 0)                          \
    X(B_WINDOW, "pass=bwd b=2 h=2 d=64 window=33:17 align=br", NONE, FEWER, 0)                   \
    X(B_PADDED, "pass=bwd b=3 h=2 d=64", SOME, FEWER, 0)                                         \
    X(B_DROPOUT, "pass=bwd b=2 h=2 d=64", NONE, ALL, FACTS_WITH_DROPOUT)                         \
    X(B_BIAS, "pass=bwd b=2 h=2 d=64 bias=1hss dbias=1", NONE, FEWER, 0)                         \
    X(B_BIAS_CAUSAL, "pass=bwd b=2 h=2 d=64 mask=causal bias=1hss dbias=1", NONE, ALL, 0)        \
    X(B_SOFTCAP, "pass=bwd b=2 h=2 d=64 mod=softcap:5", NONE, ALL, 0)                            \
    X(NOWHERE, "", NONE, ALL, 0)
/* clang-format on */
#define FACTS_AS_ENUM(symbol, text, lens, rows, features) FACTS_SCENE_##symbol,
typedef enum facts_scene_id { FACTS_SCENE_LIST(FACTS_AS_ENUM) FACTS_SCENE_COUNT } facts_scene_id;
#undef FACTS_AS_ENUM

/* The case of a scene. Returns false for NOWHERE, and for a size that the scene's pass is not asked
 * in. */
bool facts_scene_text(char out[FACTS_CASE_TEXT], facts_scene_id id, facts_size size,
                      const char *fill, uint64_t seed);
unsigned facts_scene_features(facts_scene_id id);
facts_scene_id facts_scene_of_liar(facts_liar liar);

/* Why a liar has nothing to lie about here; NULL when it has. */
const char *facts_not_applicable(facts_liar liar, facts_survey_type type, facts_size size);
/* Why this liar cannot be found here; NULL: it must be found. `sometimes`: other data show it. */
const char *facts_blind_spot(facts_liar liar, facts_survey_type type, facts_size size,
                             bool *sometimes);
/* Is it to be found with this fill? */
bool facts_liar_asks(facts_liar liar, const char *fill);

#endif
