/* What a recording keeps, and the parts that make it. */
#ifndef FATTN_SCORE_MOD_PRIVATE_H
#define FATTN_SCORE_MOD_PRIVATE_H

#include <stdatomic.h>

#include "builder.h"
#include "mod_program.h"

struct fattn_score_mod {
    atomic_int references;
    bool user_gradient; /* `gradient` ends in what the user recorded, not in what is derived */
    int32_t tensor_count;
    fattn_mod_tensor tensors[FATTN_MOD_MAX_TENSORS]; /* names are ours */
    fattn__mod_program program, gradient;
    fattn__mod_program derived; /* of the score only; what the user's gradient is checked against */
    char *text;
    size_t text_length;
    uint64_t hash[2];
};

/* One call of one callback. */
struct fattn_recorder {
    fattn_score_mod *mod; /* tensors are added to it */
    fattn__mod_builder *builder;
    int32_t tag; /* of this recorder's values: those of another one are not taken */
    int operations;
    bool failed, no_memory; /* no_memory: that is why */
    char message[320];
};

void fattn__recorder_open(fattn_recorder *recorder, fattn_score_mod *mod, fattn__mod_builder *builder);
fattn_value fattn__recorder_value(const fattn_recorder *recorder, int place);
/* The place of what a callback returned. Fails when it is no value of this recorder, or when the recording has failed before. */
fattn_status fattn__recorder_close(fattn_recorder *recorder, fattn_value returned, const char *callback, int *place);

/* d(loss)/d(score) and d(loss)/d(tensor i) of `program`, whose nodes the builder holds at their own places; roots[0] is the
 * score's, then the tensors', -1 where there is none. */
void fattn__mod_derive(fattn__mod_builder *b, const fattn__mod_program *program, int roots[1 + FATTN_MOD_MAX_TENSORS]);

/* Fills text, text_length and hash. */
fattn_status fattn__mod_describe(fattn_score_mod *mod);

/* Where a tensor's element lies for a place, in elements. */
static inline int64_t fattn__mod_offset(const fattn_mod_tensor *tensor, const int64_t at[4])
{
    int64_t offset = 0;
    for (int i = 0; i < 4; i++)
        offset += tensor->dim[i] == 1 ? 0 : at[i] * tensor->strides[i];
    return offset;
}

/* One element as a number; dtype bf16, f16 or f32. */
float fattn__mod_element(const void *data, int32_t dtype, int64_t offset);

#endif
