#include "device.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../error.h"

/* DEVICEPROP came with 9.8. */
enum { FIRST_DESCRIBED = 90800 };

static fattn_status refuse(const fattn__cudnn *api, int status)
{
    char last[512] = "";
    api->cudnnGetLastErrorString(last, sizeof last);
    const char *hint = status == DNN_STATUS_BAD_PARAM ? "; a field is missing (from 9.27 on memoryBusWidth must be there)" : "";
    return fattn__fail(FATTN_ENVIRONMENT, "cuDNN %d refuses the device description: %s%s", api->version,
                       last[0] != '\0' ? last : fattn__cudnn_status_name(api, status), hint);
}

/* What this library needs to know of the device, out of cuDNN's own object. */
static fattn_status read_fields(fattn_context_info *info, const json_t *device)
{
    const json_t *capability = json_object_get(device, "deviceVer");
    json_int_t version = json_integer_value(capability);
    if (!json_is_integer(capability) || version < 100 || version > 9999)
        return fattn__fail(FATTN_ENVIRONMENT, "device description: deviceVer must be a number such as 900 for sm_90");
    const char *name = json_string_value(json_object_get(device, "deviceName"));
    info->sm = (int32_t)(version / 10);
    info->multiprocessors = (int32_t)json_integer_value(json_object_get(device, "multiProcessorCount"));
    snprintf(info->device_name, sizeof info->device_name, "%s", name != NULL ? name : "");
    return FATTN_OK;
}

/* *out is cuDNN's object as text, malloc'ed. */
static fattn_status read_text(char **out, fattn_context_info *info, const char *json)
{
    json_error_t error;
    *out = NULL;
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "device description, line %d column %d: %s", error.line, error.column, error.text);
    const json_t *inner = json_object_get(root, "device");
    const json_t *device = inner != NULL ? inner : root;
    fattn_status st = read_fields(info, device);
    if (st == FATTN_OK) {
        *out = json_dumps(device, JSON_COMPACT);
        if (*out == NULL)
            st = fattn__fail(FATTN_NO_MEMORY, "no memory for a device description");
    }
    json_decref(root);
    return st;
}

fattn_status fattn__device_describe(fattn__desc *out, fattn_context_info *info, const fattn__cudnn *api, const char *json)
{
    char *text;
    *out = NULL;
    if (json == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "a described device needs its description");
    if (api->version < FIRST_DESCRIBED)
        return fattn__fail(FATTN_ENVIRONMENT, "cuDNN %d cannot be asked about a described device: that came with 9.8",
                           api->version);
    fattn_status st = read_text(&text, info, json);
    if (st != FATTN_OK)
        return st;
    fattn__desc desc = NULL;
    int status = api->cudnnBackendCreateDescriptor(fattn__deviceprop_type(api->version), &desc);
    if (status == DNN_STATUS_SUCCESS)
        status = api->cudnnBackendSetAttribute(desc, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, DNN_TYPE_CHAR, (int64_t)strlen(text),
                                               text);
    if (status == DNN_STATUS_SUCCESS)
        status = api->cudnnBackendFinalize(desc);
    free(text);
    if (status == DNN_STATUS_SUCCESS) {
        *out = desc;
        return FATTN_OK;
    }
    st = refuse(api, status);
    if (desc != NULL)
        api->cudnnBackendDestroyDescriptor(desc);
    return st;
}

/* ---- back to text -------------------------------------------------------------------------------------------------------------
 */

static fattn_status read_json(const fattn__cudnn *api, fattn__desc desc, char *out, size_t capacity)
{
    int64_t count = 0;
    int status = api->cudnnBackendGetAttribute(desc, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, DNN_TYPE_CHAR, 0, &count, NULL);
    if (status != DNN_STATUS_SUCCESS || count <= 0)
        return refuse(api, status);
    char *text = calloc((size_t)count + 1, 1);
    if (text == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a description of %lld bytes", (long long)count);
    status = api->cudnnBackendGetAttribute(desc, DNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, DNN_TYPE_CHAR, count, &count, text);
    if (status == DNN_STATUS_SUCCESS)
        snprintf(out, capacity, "%s", text);
    free(text);
    return status == DNN_STATUS_SUCCESS ? FATTN_OK : refuse(api, status);
}

static fattn_status describe_gpu(const fattn_context *context, char *out, size_t capacity)
{
    const fattn__cudnn *api = context->api;
    const int32_t ordinal = context->device;
    fattn__desc desc = NULL;
    int status = api->cudnnBackendCreateDescriptor(fattn__deviceprop_type(api->version), &desc);
    if (status == DNN_STATUS_SUCCESS)
        status = api->cudnnBackendSetAttribute(desc, DNN_ATTR_DEVICEPROP_DEVICE_ID, DNN_TYPE_INT32, 1, &ordinal);
    if (status == DNN_STATUS_SUCCESS)
        status = api->cudnnBackendFinalize(desc);
    fattn_status st = status == DNN_STATUS_SUCCESS ? read_json(api, desc, out, capacity) : refuse(api, status);
    if (desc != NULL)
        api->cudnnBackendDestroyDescriptor(desc);
    return st;
}

fattn_status fattn_context_describe(fattn_context *context, char *out, size_t capacity)
{
    if (out == NULL || capacity == 0)
        return fattn__fail(FATTN_BAD_PROBLEM, "no room for the description");
    out[0] = '\0';
    if (context->api == NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "the cpu has no description");
    if (context->api->version < FIRST_DESCRIBED)
        return fattn__fail(FATTN_UNSUPPORTED, "cuDNN %d cannot describe a device: that came with 9.8", context->api->version);
    if (context->description != NULL)
        return read_json(context->api, context->description, out, capacity);
    fattn__cuda_context previous;
    fattn_status st = fattn__enter(context, &previous);
    if (st != FATTN_OK)
        return st;
    st = describe_gpu(context, out, capacity);
    fattn__leave(context, previous);
    return st;
}
