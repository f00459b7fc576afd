/* A scene: a problem with its data and expected values, and room for the answers of a kernel. The
 * case language gives dims, masks, lengths, bias and strides. The scene adds what a case cannot
 * say: 8-bit types with their scales, dropout by a given mask, a sink, ragged and paged memory. */
#ifndef FACTS_EMULATION_SCENE_H
#define FACTS_EMULATION_SCENE_H

#include "flash/flash.h"
#include "numbers/expect/expectation.h"
#include "numbers/judge/calibration.h"

typedef enum facts_feature {
    FACTS_WITH_SINK = 1,
    FACTS_WITH_DROPOUT = 2, /* p = 1/10 */
    FACTS_WITH_RAGGED = 4,  /* Q, K, V, O, Stats: sequences one after another, tokens of h x d */
    FACTS_WITH_PAGES = 8,   /* K, V: shuffled pages of 16 tokens */
    FACTS_WITH_HUGE_OFFSET = 16, /* K of batch entry 1 lies 2^32 elements behind that of entry 0 */
    FACTS_WITH_ALIBI = 32,
    FACTS_WITH_HOPPER =
        64, /* 8 bit types: judged as an engine that adds in 14 bits, 32 products at a time */
} facts_feature;

#define FACTS_DROP 0.1

typedef struct facts_scene_plan {
    const char *text;    /* a case, all but dtype */
    fref_type type, out; /* of Q, K, V; of O (forward) or of the gradients */
    unsigned features;
    const facts_kernel *forward; /* backward: whose O and Stats it reads; NULL: the reference's */
} facts_scene_plan;

/* One answer: its memory and its expected values. */
typedef struct facts_expected_answer {
    bool present;
    facts_tensor tensor; /* as it is judged: dense rows of [b,h,s,d] */
    facts_slot slot;     /* as it is written; data NULL */
    facts_image image;   /* of what is written */
    facts_answer answer;
    facts_row_expects *expects;
    double unit;
} facts_expected_answer;

typedef struct facts_scene {
    facts_problem problem;
    fref_problem asked;
    fref_type type, out_type;
    fref_rounding rounding;
    bool backward, dense, has_means; /* offset_v */
    facts_gain gain;
    void *storage[FACTS_TENSOR_COUNT];
    fref_tensor in[FACTS_TENSOR_COUNT];
    facts_expected_answer out[FACTS_SLOT_COUNT];
    double *true_max;
    double amax[FACTS_SLOT_COUNT][3]; /* value, least, most */
    float *sink;
    uint8_t *keep;
    double *alibi;
    int64_t *first[FACTS_TENSOR_COUNT]; /* ragged: where each sequence starts, elements */
    int32_t *pages;
    void *huge; /* mapped, huge_bytes; nearly all of it never touched */
    size_t huge_bytes;
    fref_tensor bias;
    void *owner; /* of the modification */
} facts_scene;

/* Fills the inputs and computes the expected values. Returns 0, ENOMEM, or EINVAL with one line in
 * `error`. Destroy in any case. */
int facts_scene_create(facts_scene *out, const facts_scene_plan *plan, facts_error *error);
/* The same, judged by an engine's constants (NULL: those that engines start from; of 8 bit types
 * not HOPPER always the emulation's). */
int facts_scene_create_by(facts_scene *out, const facts_scene_plan *plan,
                          const facts_constants *constants, facts_error *error);
void facts_scene_destroy(facts_scene *scene);

/* A launch on the scene's inputs. The caller sets the memory of its outputs. */
facts_launch facts_scene_launch(const facts_scene *scene);

#endif
