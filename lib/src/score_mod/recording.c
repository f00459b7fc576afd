/* A recording is made once. Then it is immutable and shared. */
#include <stdlib.h>

#include "core/error.h"
#include "recording.h"

#define OR_DONE(expr)                                                                              \
    do {                                                                                           \
        if ((st = (expr)) != FATTN_OK)                                                             \
            goto done;                                                                             \
    } while (0)

static fattn_status too_long(const char *what)
{
    return fattn__fail(FATTN_BAD_PROBLEM,
                       "%s: more than %d nodes are needed; record fewer operations", what,
                       FATTN__MOD_MAX_NODES);
}

static fattn_status record_score(fattn_score_mod *mod, fattn__mod_builder *b,
                                 fattn_score_mod_callback callback, void *user)
{
    fattn_recorder recorder;
    int place;
    fattn__recorder_open(&recorder, mod, b);
    const int score = fattn__mod_leaf(b, FATTN__MOD_SCORE, 0);
    const fattn_value returned = callback(&recorder, fattn__recorder_value(&recorder, score), user);
    TRY(fattn__recorder_close(&recorder, returned, "score_mod", &place));
    for (int i = 0; i < FATTN_MOD_MAX_TENSORS; i++)
        mod->program.tensor_results[i] = -1;
    if (b->full || !fattn__mod_compact(b, &place, 1, &mod->program, &mod->program.result))
        return too_long("score_mod");
    return FATTN_OK;
}

static fattn_status record_gradient(fattn_score_mod *mod, fattn__mod_builder *b,
                                    fattn_score_mod_gradient_callback callback, void *user,
                                    int *place)
{
    fattn_recorder recorder;
    fattn__recorder_open(&recorder, mod, b);
    const int score = fattn__mod_leaf(b, FATTN__MOD_SCORE, 0),
              gradient = fattn__mod_leaf(b, FATTN__MOD_GRADIENT, 0);
    const fattn_value returned = callback(&recorder, fattn__recorder_value(&recorder, score),
                                          fattn__recorder_value(&recorder, gradient), user);
    return fattn__recorder_close(&recorder, returned, "score_mod gradient", place);
}

/* The gradient is built from the normalised program, so equal recordings get equal gradients. */
static fattn_status make_gradient(fattn_score_mod *mod, fattn__mod_builder *b,
                                  fattn_score_mod_gradient_callback callback, void *user)
{
    int roots[1 + FATTN_MOD_MAX_TENSORS];
    int32_t places[1 + FATTN_MOD_MAX_TENSORS];
    fattn__mod_load(b, &mod->program);
    fattn__mod_derive(b, &mod->program, roots);
    const int derived = roots[0];
    if (callback != NULL) {
        TRY(record_gradient(mod, b, callback, user, &roots[0]));
        mod->user_gradient = roots[0] != derived;
    }
    if (b->full || !fattn__mod_compact(b, roots, 1 + FATTN_MOD_MAX_TENSORS, &mod->gradient, places))
        return too_long("score_mod gradient");
    mod->gradient.result = places[0];
    for (int i = 0; i < FATTN_MOD_MAX_TENSORS; i++)
        mod->gradient.tensor_results[i] = places[1 + i];
    return FATTN_OK;
}

static void dispose(fattn_score_mod *mod)
{
    for (int i = 0; mod != NULL && i < mod->tensor_count; i++)
        free((char *)(uintptr_t)mod->tensors[i].name);
    if (mod != NULL)
        free(mod->text);
    free(mod);
}

fattn_status fattn_score_mod_create(fattn_score_mod **out, fattn_score_mod_callback callback,
                                    fattn_score_mod_gradient_callback gradient, void *user)
{
    NEED(out);
    fattn_status st = FATTN_OK;
    if (out != NULL)
        *out = NULL;
    if (out == NULL || callback == NULL)
        return fattn__fail(FATTN_BAD_PROBLEM, "score_mod: %s: NULL is not allowed",
                           out == NULL ? "out" : "callback");
    fattn_score_mod *mod = calloc(1, sizeof *mod);
    fattn__mod_builder *b = calloc(1, sizeof *b);
    if (mod == NULL || b == NULL) {
        st = fattn__fail(FATTN_NO_MEMORY, "no memory");
        goto done;
    }
    atomic_init(&mod->references, 1);
    OR_DONE(record_score(mod, b, callback, user));
    OR_DONE(make_gradient(mod, b, gradient, user));
    OR_DONE(fattn__mod_describe(mod));
    *out = mod;
done:
    free(b);
    if (st != FATTN_OK)
        dispose(mod);
    return st;
}

const fattn_score_mod *fattn__score_mod_retain(const fattn_score_mod *mod)
{
    if (mod != NULL)
        atomic_fetch_add(&((fattn_score_mod *)(uintptr_t)mod)->references, 1);
    return mod;
}

void fattn__score_mod_release(const fattn_score_mod *mod)
{
    fattn_score_mod *mine = (fattn_score_mod *)(uintptr_t)mod;
    if (mine != NULL && atomic_fetch_sub(&mine->references, 1) == 1)
        dispose(mine);
}

void fattn_score_mod_destroy(fattn_score_mod *mod)
{
    fattn__score_mod_release(mod);
}

const fattn__mod_program *fattn__score_mod_program(const fattn_score_mod *mod)
{
    return &mod->program;
}

const fattn__mod_program *fattn__score_mod_gradient(const fattn_score_mod *mod)
{
    return &mod->gradient;
}

size_t fattn_score_mod_tensor_count(const fattn_score_mod *mod)
{
    return mod != NULL ? (size_t)mod->tensor_count : 0;
}

const fattn_mod_tensor *fattn_score_mod_tensor(const fattn_score_mod *mod, size_t i)
{
    return i < fattn_score_mod_tensor_count(mod) ? &mod->tensors[i] : NULL;
}
