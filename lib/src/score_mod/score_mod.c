/* A recording: made once, then immutable and shared. */
#include <stdlib.h>
#include <string.h>

#include "fattn/fattn.h"
#include "program.h"

struct fattn_score_mod {
    _Atomic int references;
    size_t tensor_count;
    fattn_mod_tensor tensors[FATTN_MOD_MAX_TENSORS];
    fattn__mod_program program, gradient;
    uint64_t hash[2];
};

const fattn__mod_program *fattn__score_mod_program(const fattn_score_mod *mod)
{
    return &mod->program;
}

const fattn__mod_program *fattn__score_mod_gradient(const fattn_score_mod *mod)
{
    return &mod->gradient;
}

const fattn_score_mod *fattn__score_mod_retain(const fattn_score_mod *mod)
{
    if (mod != NULL)
        ((fattn_score_mod *)(uintptr_t)mod)->references++;
    return mod;
}

void fattn__score_mod_release(const fattn_score_mod *mod)
{
    fattn_score_mod *mine = (fattn_score_mod *)(uintptr_t)mod;
    if (mine != NULL && --mine->references == 0)
        free(mine);
}

void fattn_score_mod_destroy(fattn_score_mod *mod)
{
    fattn__score_mod_release(mod);
}

void fattn_score_mod_hash(const fattn_score_mod *mod, uint64_t out[2])
{
    memcpy(out, mod->hash, sizeof mod->hash);
}

bool fattn_score_mod_same(const fattn_score_mod *mod, const fattn_score_mod *other)
{
    return memcmp(mod->hash, other->hash, sizeof mod->hash) == 0;
}

size_t fattn_score_mod_tensor_count(const fattn_score_mod *mod)
{
    return mod->tensor_count;
}

const fattn_mod_tensor *fattn_score_mod_tensor(const fattn_score_mod *mod, size_t i)
{
    return i < mod->tensor_count ? &mod->tensors[i] : NULL;
}
