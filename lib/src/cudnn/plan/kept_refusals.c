#include "kept_refusals.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "cudnn/backend/abi.h"
#include "cudnn/backend/build_id.h"

/* The header of the two strings, each with its NUL. It has no padding. */
typedef struct head {
    char magic[8];
    uint32_t format;
    int32_t step;
    int32_t status;
    uint32_t text_bytes; /* with the NUL */
    uint64_t key[2];
    uint64_t hash; /* XXH3 of what comes before it, and of the strings */
} head;

_Static_assert(sizeof(head) == 8 + 4 * 4 + 3 * 8, "a header without padding");

static const char magic[8] = { 'F', 'A', 'T', 'T', 'N', 'N', 'O', 0 };
enum { FORMAT = 1, MOST_BYTES = 512 * 1024 };

static uint64_t hash_of(const head *h, const char *strings, size_t count)
{
    return XXH3_64bits_withSeed(strings, count, XXH3_64bits(h, offsetof(head, hash)));
}

/* False: the build of cuDNN is not known, so nothing is kept and nothing is found. */
static bool key_of(uint64_t out[2], const fattn_context *context, const fattn__refusal_question *q)
{
    const struct {
        uint64_t build, driver, code, device, graph;
        int64_t engine;
        XXH128_hash_t knobs;
        uint64_t has_knobs, overrides, plan;
    } whole = { fattn__cudnn_build(context->api),
                fattn__cudnn_driver(context->api),
                fattn__code_id(),
                context->description_id,
                q->graph,
                q->engine,
                XXH3_128bits(q->knobs, (size_t)q->knob_count * sizeof *q->knobs),
                q->knobs != NULL,
                q->overrides,
                q->plan };
    const XXH128_hash_t key = XXH3_128bits(&whole, sizeof whole);
    out[0] = key.low64;
    out[1] = key.high64;
    return whole.build != 0 && whole.driver != 0;
}

static void key_text(char out[33], const uint64_t key[2])
{
    snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, key[1], key[0]);
}

/* ---- as bytes
 * -----------------------------------------------------------------------------------------------------------------
 */

static bool unpack(fattn__refusal_answer *out, const uint64_t key[2], char *bytes, size_t count)
{
    head h;
    if (count < sizeof h + 2 || count > MOST_BYTES)
        return false;
    memcpy(&h, bytes, sizeof h);
    const char *strings = bytes + sizeof h;
    const size_t left = count - sizeof h;
    if (memcmp(h.magic, magic, sizeof magic) != 0 || h.format != FORMAT || h.key[0] != key[0] ||
        h.key[1] != key[1] || h.hash != hash_of(&h, strings, left) ||
        h.step == FATTN__REFUSED_NOWHERE || h.text_bytes == 0 || h.text_bytes >= left ||
        strings[h.text_bytes - 1] != '\0' || strings[left - 1] != '\0')
        return false;
    *out = (fattn__refusal_answer){ h.step, h.status, strings, strings + h.text_bytes, bytes };
    return true;
}

/* NULL: no memory, or more words than are kept. */
static char *pack(const uint64_t key[2], const fattn__refusal_answer *refusal, size_t *count)
{
    const size_t text = strlen(refusal->text) + 1, log = strlen(refusal->log) + 1;
    head h = { .format = FORMAT,
               .step = refusal->step,
               .status = refusal->status,
               .key = { key[0], key[1] } };
    *count = sizeof h + text + log;
    char *bytes = *count <= MOST_BYTES ? malloc(*count) : NULL;
    if (bytes == NULL)
        return NULL;
    memcpy(bytes + sizeof h, refusal->text, text);
    memcpy(bytes + sizeof h + text, refusal->log, log);
    memcpy(h.magic, magic, sizeof magic);
    h.text_bytes = (uint32_t)text;
    h.hash = hash_of(&h, bytes + sizeof h, text + log);
    memcpy(bytes, &h, sizeof h);
    return bytes;
}

/* ---- asked
 * --------------------------------------------------------------------------------------------------------------------
 */

bool fattn__refusal_recall(fattn__refusal_answer *out, const fattn_context *context,
                           const fattn__refusal_question *question)
{
    const fattn_refusal_store *store = &context->refusals;
    uint64_t key[2];
    char name[33], *bytes = NULL;
    size_t count = 0;
    *out = (fattn__refusal_answer){ .step = FATTN__REFUSED_NOWHERE };
    if (store->find == NULL || !key_of(key, context, question))
        return false;
    key_text(name, key);
    if (!store->find(store->user, name, &bytes, &count))
        return false;
    if (bytes != NULL && unpack(out, key, bytes, count))
        return true;
    free(bytes);
    store->keep(store->user, name, NULL, 0);
    return false;
}

void fattn__refusal_free(fattn__refusal_answer *refusal)
{
    free(refusal->memory);
    refusal->memory = NULL;
}

void fattn__refusal_keep(const fattn_context *context, const fattn__refusal_question *question,
                         const fattn__refusal_answer *refusal)
{
    const fattn_refusal_store *store = &context->refusals;
    uint64_t key[2];
    char name[33];
    size_t count;
    if (store->keep == NULL || !key_of(key, context, question))
        return;
    key_text(name, key);
    char *bytes = pack(key, refusal, &count);
    if (bytes != NULL)
        store->keep(store->user, name, bytes, count);
    free(bytes);
}

static bool is_about_the_graph(const char *status)
{
    return *status == '\0' || strstr(status, "NOT_SUPPORTED") != NULL ||
           strstr(status, "BAD_PARAM") != NULL;
}

bool fattn__refusal_lasts(int status, const fattn_decision *of)
{
    const int kind = status / 1000;
    bool lasts = status == DNN_STATUS_SUCCESS || kind == DNN_STATUS_BAD_PARAM / 1000 ||
                 kind == DNN_STATUS_NOT_SUPPORTED / 1000;
    if (of != NULL)
        lasts = lasts && of->reason == FATTN_REASON_UNSUPPORTED;
    for (size_t i = 0; of != NULL && i < of->refusal_count; i++)
        lasts = lasts && is_about_the_graph(of->refusals[i].status);
    return lasts;
}
