/* A recording, and the functions that make one. */
#ifndef FATTN_SCORE_MOD_PRIVATE_H
#define FATTN_SCORE_MOD_PRIVATE_H

#include <stdatomic.h>

#include "builder.h"
#include "mod_program.h"

struct fattn_score_mod {
    atomic_int references;
    bool user_gradient; /* `gradient` is the user's own recording; false: it is derived */
    int32_t tensor_count;
    fattn_mod_tensor tensors[FATTN_MOD_MAX_TENSORS]; /* the recording owns the names */
    fattn__mod_program program, gradient;
    char *text;
    size_t text_length;
    uint64_t hash[2];
};

/* One call of one callback. */
struct fattn_recorder {
    fattn_score_mod *mod; /* tensors are added to it */
    fattn__mod_builder *builder;
    int32_t tag; /* marks the values of this recorder; values of another recorder are refused */
    int operations;
    bool failed, no_memory; /* no_memory: the reason for `failed` */
    char message[320];
};

void fattn__recorder_open(fattn_recorder *recorder, fattn_score_mod *mod,
                          fattn__mod_builder *builder);
fattn_value fattn__recorder_value(const fattn_recorder *recorder, int place);
/* The index of the value that a callback returned. Fails if the value is not of this recorder, or
 * if the recording has failed before. */
fattn_status fattn__recorder_close(fattn_recorder *recorder, fattn_value returned,
                                   const char *callback, int *place);

/* Derives d(loss)/d(score) and d(loss)/d(tensor i) of `program`, whose nodes have the same indices
 * in the builder. roots[0] is the index of the score's gradient; those of the tensors follow, -1
 * for no gradient. */
void fattn__mod_derive(fattn__mod_builder *b, const fattn__mod_program *program,
                       int roots[1 + FATTN_MOD_MAX_TENSORS]);

/* Fills text, text_length and hash. */
fattn_status fattn__mod_describe(fattn_score_mod *mod);

/* The offset of a tensor's element for an index b,h,row,key, in elements. */
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
