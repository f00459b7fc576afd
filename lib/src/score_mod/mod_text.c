/* The recording as text: the tensors in the order of recording, then one node a line, with the
 * lines of its inputs. The text contains exactly what distinguishes two recordings, so the text is
 * hashed and compared. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.h"
#include "recording.h"

/* Counts when `data` is NULL. */
typedef struct writer {
    char *data;
    size_t length;
} writer;

__attribute__((format(printf, 2, 3))) static void say(writer *w, const char *format, ...)
{
    char line[256];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (w->data != NULL)
        memcpy(w->data + w->length, line, (size_t)length + 1);
    w->length += (size_t)length;
}

static const char *dtype_word(int32_t dtype)
{
#define AS_WORD(symbol, value, word) [value] = (word),
    static const char *const table[] = { FATTN_DTYPE_LIST(AS_WORD) };
#undef AS_WORD
    return table[dtype];
}

static void say_tensor(writer *w, int i, const fattn_mod_tensor *t)
{
    say(w,
        "tensor %d %s %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 " strides %" PRId64 ",%" PRId64
        ",%" PRId64 ",%" PRId64 "\n",
        i, dtype_word(t->dtype), t->dim[0], t->dim[1], t->dim[2], t->dim[3], t->strides[0],
        t->strides[1], t->strides[2], t->strides[3]);
}

static void say_node(writer *w, int i, const fattn__mod_node *n)
{
    static const char *const axes[4] = { "batch", "head", "row", "key" };
    const int inputs = fattn__mod_inputs(n->op), at[3] = { n->a, n->b, n->c };
    say(w, "%d %s", i, fattn__mod_word(n->op));
    if (n->op == FATTN__MOD_CONSTANT)
        say(w, " %.9g", (double)n->constant); /* 9 digits distinguish any two fp32 numbers */
    else if (n->op == FATTN__MOD_INDEX)
        say(w, " %s", axes[n->a]);
    else if (n->op == FATTN__MOD_TENSOR)
        say(w, " %d", n->a);
    for (int k = 0; k < inputs; k++)
        say(w, " %d", at[k]);
    say(w, "\n");
}

static void say_program(writer *w, const char *title, const fattn__mod_program *p)
{
    say(w, "%s\n", title);
    for (int i = 0; i < p->count; i++)
        say_node(w, i, &p->at[i]);
    say(w, "result %d\n", p->result);
}

static void say_everything(writer *w, const fattn_score_mod *mod)
{
    for (int i = 0; i < mod->tensor_count; i++)
        say_tensor(w, i, &mod->tensors[i]);
    say_program(w, "modified score", &mod->program);
    if (mod->user_gradient)
        say_program(w, "gradient", &mod->gradient);
}

fattn_status fattn__mod_describe(fattn_score_mod *mod)
{
    writer w = { NULL, 0 };
    say_everything(&w, mod);
    mod->text_length = w.length;
    mod->text = malloc(w.length + 1);
    if (mod->text == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory");
    w = (writer){ mod->text, 0 };
    say_everything(&w, mod);
    const XXH128_hash_t hash = XXH3_128bits(mod->text, mod->text_length);
    mod->hash[0] = hash.low64;
    mod->hash[1] = hash.high64;
    return FATTN_OK;
}

size_t fattn_score_mod_text(const fattn_score_mod *mod, char *out, size_t capacity)
{
    if (mod == NULL)
        return 0;
    if (out != NULL && capacity > 0) {
        const size_t count = mod->text_length < capacity - 1 ? mod->text_length : capacity - 1;
        memcpy(out, mod->text, count);
        out[count] = '\0';
    }
    return mod->text_length;
}

void fattn_score_mod_hash(const fattn_score_mod *mod, uint64_t out[2])
{
    out[0] = mod != NULL ? mod->hash[0] : 0;
    out[1] = mod != NULL ? mod->hash[1] : 0;
}

bool fattn_score_mod_same(const fattn_score_mod *mod, const fattn_score_mod *other)
{
    if (mod == NULL || other == NULL)
        return mod == other;
    return mod->text_length == other->text_length &&
           memcmp(mod->text, other->text, mod->text_length) == 0;
}
