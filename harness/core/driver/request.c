#include "request.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AS_WORD(symbol, word) word,
static const char *const device_words[] = { FACTS_DEVICE_LIST(AS_WORD) };
static const char *const do_words[] = { FACTS_DO_LIST(AS_WORD) };
static const char *const oracle_words[] = { FACTS_ORACLE_LIST(AS_WORD) };
#undef AS_WORD

/* Reads members of one object and keeps the first error. */
typedef struct reader {
    json_t *object;
    facts_error *error;
    bool ok;
} reader;

static void complain(reader *r, const char *key, const char *what)
{
    if (r->ok)
        facts_fail(r->error, "request: %s: %s", key, what);
    r->ok = false;
}

static void read_text(reader *r, const char *key, char *out, size_t capacity, bool needed)
{
    json_t *value = json_object_get(r->object, key);
    out[0] = '\0';
    if (!value && !needed)
        return;
    if (!json_is_string(value))
        complain(r, key, "must be a string");
    else if (json_string_length(value) >= capacity) /* the parser itself refuses a NUL inside */
        complain(r, key, "is too long");
    else
        memcpy(out, json_string_value(value), json_string_length(value) + 1);
}

static int64_t read_integer(reader *r, const char *key, int64_t least, int64_t most,
                            int64_t otherwise)
{
    json_t *value = json_object_get(r->object, key);
    if (!value)
        return otherwise;
    if (!json_is_integer(value) || json_integer_value(value) < least ||
        json_integer_value(value) > most) {
        complain(r, key, "must be a whole number in range");
        return otherwise;
    }
    return json_integer_value(value);
}

static bool read_flag(reader *r, const char *key)
{
    json_t *value = json_object_get(r->object, key);
    if (value && !json_is_boolean(value))
        complain(r, key, "must be true or false");
    return json_is_true(value);
}

static int read_word(reader *r, const char *key, const char *const *words, int count)
{
    const char *value = json_string_value(json_object_get(r->object, key));
    for (int i = 0; value && i < count; i++)
        if (strcmp(value, words[i]) == 0)
            return i;
    complain(r, key, "is none of the words allowed there");
    return 0;
}

static json_t *load(const char *line, size_t length, facts_error *error)
{
    json_error_t at;
    json_t *root =
        length <= FACTS_REQUEST_MAX ? json_loadb(line, length, JSON_REJECT_DUPLICATES, &at) : NULL;
    if (length > FACTS_REQUEST_MAX)
        facts_fail(error, "request: longer than %zu bytes", FACTS_REQUEST_MAX);
    else if (!root)
        facts_fail(error, "request: not JSON: %.120s", at.text);
    else if (!json_is_object(root))
        facts_fail(error, "request: not an object");
    else
        return root;
    json_decref(root);
    return NULL;
}

static void read_device(reader *r, facts_target_request *out)
{
    reader device = { json_object_get(r->object, "device"), r->error, r->ok };
    if (!json_is_object(device.object)) {
        complain(r, "device", "must be an object");
        return;
    }
    out->device = (facts_device)read_word(&device, "kind", device_words, FACTS_DEVICE_COUNT);
    out->ordinal = (int32_t)read_integer(&device, "ordinal", 0, 1023, 0);
    json_t *json = json_object_get(device.object, "json");
    if (out->device == FACTS_DEVICE_DESCRIBED && !json_is_string(json))
        complain(&device, "json", "the description of the described device is missing");
    r->ok = device.ok;
    if (r->ok && out->device == FACTS_DEVICE_DESCRIBED) {
        out->device_json = strdup(json_string_value(json));
        if (!out->device_json)
            complain(r, "json", "no memory");
    }
}

bool facts_target_request_read(facts_target_request *out, const char *line, size_t length,
                               facts_error *error)
{
    *out = (facts_target_request){ 0 };
    json_t *root = load(line, length, error);
    if (!root)
        return false;
    reader r = { json_object_get(root, "target"), error, true };
    if (!json_is_object(r.object)) {
        complain(&r, "target", "the first line must be an object with a target");
    } else {
        read_text(&r, "cudnn_dir", out->cudnn_dir, sizeof out->cudnn_dir, false);
        read_text(&r, "nvrtc", out->nvrtc, sizeof out->nvrtc, false);
        read_text(&r, "driver", out->driver, sizeof out->driver, false);
        out->threads = (int32_t)read_integer(&r, "threads", 0, 4096, 0);
        if (json_object_get(r.object, "oracle"))
            out->oracle =
                (facts_oracle_choice)read_word(&r, "oracle", oracle_words, FACTS_ORACLE_COUNT);
        out->plans = read_flag(&r, "plans");
        out->supervisor = read_integer(&r, "supervisor", 0, INT32_MAX, 0);
        if (r.ok)
            read_device(&r, out);
    }
    json_decref(root);
    if (!r.ok)
        facts_target_request_free(out);
    return r.ok;
}

void facts_target_request_free(facts_target_request *request)
{
    free(request->device_json);
    request->device_json = NULL;
}

bool facts_request_read(facts_request *out, const char *line, size_t length, facts_error *error)
{
    *out = (facts_request){ 0 };
    json_t *root = load(line, length, error);
    if (!root)
        return false;
    reader r = { root, error, true };
    if (!json_object_get(root, "id"))
        complain(&r, "id", "is missing");
    out->id = read_integer(&r, "id", 0, INT64_MAX, 0);
    read_text(&r, "case", out->text, sizeof out->text, true);
    out->what = (facts_do)read_word(&r, "do", do_words, FACTS_DO_COUNT);
    out->explain = read_flag(&r, "explain");
    out->trace = read_flag(&r, "trace");
    out->first_bad_only = read_flag(&r, "first_bad_only");
    out->keep = read_flag(&r, "keep");
    out->fresh = read_flag(&r, "fresh");
    out->expected = read_flag(&r, "expected");
    out->unguarded = read_flag(&r, "unguarded");
    out->from_config = (int32_t)read_integer(&r, "from_config", 0, 1 << 20, 0);
    read_text(&r, "plan_dir", out->plan_dir, sizeof out->plan_dir, false);
    read_text(&r, "dump", out->dump, sizeof out->dump, false);
    read_text(&r, "standalone", out->standalone, sizeof out->standalone, false);
    json_decref(root);
    return r.ok;
}
