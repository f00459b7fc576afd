#include "cudnn_device.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/error.h"
#include "cudnn/backend/json_text.h"
#include "log.h"
#include "steps.h"

/* DEVICEPROP came with 9.8. */
enum { FIRST_DESCRIBED = 90800, BUS_WIDTH_NEEDED = 92700 };

/* `log` was open during the step that failed. */
static fattn_status refuse(const fattn__cudnn *api, int status, const fattn__log_buffer *log)
{
    char sentence[512];
    fattn__log_sentence(log, fattn__cudnn_status_name(api, status), sentence, sizeof sentence);
    return fattn__fail(FATTN_ENVIRONMENT, "cuDNN %d refuses the device description: %s",
                       api->version, sentence);
}

/* The properties that this library needs, read from cuDNN's own object. */
static fattn_status read_fields(fattn_context_info *info, const json_t *device)
{
    const json_t *capability = json_object_get(device, "deviceVer");
    json_int_t version = json_integer_value(capability);
    if (!json_is_integer(capability) || version < 100 || version > 9999)
        return fattn__fail(FATTN_ENVIRONMENT,
                           "device description: deviceVer must be a number such as 900 for sm_90");
    const char *name = json_string_value(json_object_get(device, "deviceName"));
    info->sm = (int32_t)(version / 10);
    info->multiprocessors =
        (int32_t)json_integer_value(json_object_get(device, "multiProcessorCount"));
    snprintf(info->device_name, sizeof info->device_name, "%s", name != NULL ? name : "");
    return FATTN_OK;
}

/* jansson reports a lack of memory as a mistake in the text. So a refused text is read again when
 * there is memory. */
static json_t *parse(const char *json, json_error_t *error, bool *no_memory)
{
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, error);
    if (root != NULL)
        return root;
    void *room = malloc(strlen(json) + 1);
    *no_memory = room == NULL;
    free(room);
    return *no_memory ? NULL : json_loads(json, JSON_REJECT_DUPLICATES, error);
}

/* *out is cuDNN's object as text, malloc'ed. */
static fattn_status read_text(char **out, fattn_context_info *info, const char *json)
{
    json_error_t error;
    bool no_memory = false;
    *out = NULL;
    json_t *root = parse(json, &error, &no_memory);
    if (no_memory)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a device description");
    if (root == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "device description, line %d column %d: %s",
                           error.line, error.column, error.text);
    const json_t *inner = json_object_get(root, "device");
    const json_t *device = inner != NULL ? inner : root;
    fattn_status st = read_fields(info, device);
    if (st == FATTN_OK) {
        *out = fattn__json_text(device);
        if (*out == NULL)
            st = fattn__fail(FATTN_NO_MEMORY, "no memory for a device description");
    }
    json_decref(root);
    return st;
}

static fattn_status describe(fattn__desc *out, const fattn__cudnn *api, const char *text)
{
    fattn__desc desc = NULL;
    fattn__log_buffer log;
    fattn__steps s = { .api = api };
    fattn__log_open(&log);
    fattn__step_create(&s, fattn__deviceprop_type(api->version), &desc);
    fattn__step_set(&s, desc, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, DNN_TYPE_CHAR,
                    (int64_t)strlen(text), text);
    fattn__step_finalize(&s, desc);
    fattn__log_close(&log);
    fattn_status st = s.status == DNN_STATUS_SUCCESS ? FATTN_OK : refuse(api, s.status, &log);
    if (st != FATTN_OK && api->version >= BUS_WIDTH_NEEDED &&
        strstr(text, "\"memoryBusWidth\"") == NULL)
        st = fattn__fail(st, "%s; from 9.27 on a description needs memoryBusWidth",
                         fattn_last_error());
    if (st == FATTN_OK)
        *out = desc;
    else
        fattn__desc_destroy(api, desc);
    fattn__log_free(&log);
    return st;
}

fattn_status fattn__device_describe(fattn__desc *out, fattn_context_info *info,
                                    const fattn__cudnn *api, const char *json)
{
    char *text;
    *out = NULL;
    if (json == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "the description of the described device is missing");
    if (api->version < FIRST_DESCRIBED)
        return fattn__fail(
            FATTN_ENVIRONMENT,
            "cuDNN %d.%d.%d cannot read a described device; use 9.8 or newer, or a GPU",
            api->version / 10000, api->version / 100 % 100, api->version % 100);
    TRY(read_text(&text, info, json));
    fattn_status st = describe(out, api, text);
    free(text);
    return st;
}

/* ---- back to text
 * ----------------------------------------------------------------------------------------------------------
 */

/* *text is malloc'ed. */
static int read_json(char **text, const fattn__cudnn *api, fattn__desc desc)
{
    int64_t count = 0;
    *text = NULL;
    int status = api->cudnnBackendGetAttribute(desc, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                               DNN_TYPE_CHAR, 0, &count, NULL);
    if (status == DNN_STATUS_SUCCESS && count > 0)
        *text = calloc((size_t)count + 1, 1);
    if (*text != NULL)
        status = api->cudnnBackendGetAttribute(desc, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                               DNN_TYPE_CHAR, count, &count, *text);
    return status;
}

static int describe_gpu(char **text, const fattn_context *context)
{
    const int32_t ordinal = context->device;
    fattn__steps s = { .api = context->api };
    fattn__desc desc = NULL;
    *text = NULL;
    fattn__step_create(&s, fattn__deviceprop_type(s.api->version), &desc);
    fattn__step_set(&s, desc, DNN_ATTR_DEVICEPROP_DEVICE_ID, DNN_TYPE_INT32, 1, &ordinal);
    fattn__step_finalize(&s, desc);
    if (s.status == DNN_STATUS_SUCCESS)
        s.status = read_json(text, s.api, desc);
    fattn__desc_destroy(s.api, desc);
    return s.status;
}

fattn_status fattn_context_describe(fattn_context *context, char *out, size_t capacity)
{
    NEED(context, out);
    if (out == NULL || capacity == 0)
        return fattn__fail(FATTN_BAD_PROBLEM, "no room for the description");
    out[0] = '\0';
    if (context->api == NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "the cpu has no description");
    if (context->api->version < FIRST_DESCRIBED)
        return fattn__fail(FATTN_UNSUPPORTED,
                           "cuDNN %d.%d.%d cannot describe a device; use 9.8 or newer",
                           context->api->version / 10000, context->api->version / 100 % 100,
                           context->api->version % 100);
    char *text;
    fattn__log_buffer log;
    struct CUctx_st *previous;
    fattn_status st = fattn__enter(context, &previous);
    if (st != FATTN_OK)
        return st;
    fattn__log_open(&log);
    int status = context->description != NULL ? read_json(&text, context->api, context->description)
                                              : describe_gpu(&text, context);
    fattn__log_close(&log);
    if (status == DNN_STATUS_SUCCESS && text == NULL)
        st = fattn__fail(FATTN_NO_MEMORY, "no memory for a device description");
    else if (status != DNN_STATUS_SUCCESS)
        st = refuse(context->api, status, &log);
    else if (strlen(text) >= capacity)
        st = fattn__fail(FATTN_BAD_PROBLEM, "the description has %zu bytes, there is room for %zu",
                         strlen(text) + 1, capacity);
    else
        memcpy(out, text, strlen(text) + 1);
    free(text);
    fattn__log_free(&log);
    fattn__leave(context, previous);
    return st;
}

/* ---- identity
 * --------------------------------------------------------------------------------------------------------------
 */

/* The object's text without some members. 0: no memory. */
static uint64_t hash_without(json_t *device, const char *const names[])
{
    for (size_t i = 0; names[i] != NULL; i++)
        json_object_del(device, names[i]);
    char *text = fattn__json_text(device);
    const uint64_t hash = text != NULL ? XXH3_64bits(text, strlen(text)) : 0;
    free(text);
    return hash;
}

/* A version writes only the members that it has, and keeps the others of a text that it was given.
 * So a description that was read with a newer version would be another device than the same GPU. */
static void forget_later_members(json_t *device, int version)
{
    static const struct {
        const char *name;
        int since;
    } later[] = { { "smCountOrigin", 92300 },
                  { "oversizedSharedMemoryPerBlock", 92600 },
                  { "memoryBusWidth", BUS_WIDTH_NEEDED } };
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (version < later[i].since)
            json_object_del(device, later[i].name);
}

static fattn_status identify_text(fattn_context *context, const char *text)
{
    /* Cards of one kind differ in these, because of their place, drivers and settings. */
    static const char *const own[] = {
        "cudaDeviceId",   "pciDeviceId",    "driverVer", "isTccDriver",
        "totalGlobalMem", "smClockRateKHz", NULL
    };
    json_error_t error;
    bool no_memory = false;
    json_t *device = parse(text, &error, &no_memory);
    if (device != NULL) {
        forget_later_members(device, context->api->version);
        context->info.device_id = hash_without(device, own);
        json_decref(device);
    }
    if (context->info.device_id == 0)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a device description");
    return FATTN_OK;
}

fattn_status fattn__device_identify(fattn_context *context)
{
    char text[8192];
    fattn_context_info *info = &context->info;
    const fattn_status st = context->api->version < FIRST_DESCRIBED
                                ? FATTN_UNSUPPORTED
                                : fattn_context_describe(context, text, sizeof text);
    if (st == FATTN_OK)
        return identify_text(context, text);
    if (st == FATTN_NO_MEMORY || context->description != NULL)
        return st;
    const int n = snprintf(text, sizeof text, "sm_%d, %d, %s", info->sm, info->multiprocessors,
                           info->device_name);
    info->device_id = XXH3_64bits(text, (size_t)n);
    return FATTN_OK;
}
