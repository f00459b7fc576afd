#include "graph_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "core/error.h"
#include "liars/lies.h"

static fattn__graph_driver functions;
static const char *missing; /* NULL: all are there */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *driver; /* read by `load`; a process has one */

static void load(void)
{
    static const struct {
        const char *name;
        size_t offset;
    } table[] = {
#define AS_ROW(member, name, arguments) { #name, offsetof(fattn__graph_driver, member) },
        FATTN__GRAPH_FUNCTION_LIST(AS_ROW)
#undef AS_ROW
    };
    for (size_t i = 0; missing == NULL && i < sizeof table / sizeof *table; i++) {
        void *address = dlsym(driver, table[i].name);
        if (address == NULL)
            missing = table[i].name;
        else
            memcpy((char *)&functions + table[i].offset, &address, sizeof address);
    }
}

fattn_status fattn__graph_driver_of(const fattn__graph_driver **out, const fattn_context *context)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    *out = NULL;
    if (context->kind == FATTN_DEVICE_DESCRIBED)
        return fattn__fail(FATTN_UNSUPPORTED, "a described device runs nothing, and has no CUDA graphs");
#ifdef FATTN_LIARS
    if (context->cuda == NULL) {
        *out = fattn__emulator_functions();
        return FATTN_OK;
    }
#endif
    if (context->cuda == NULL)
        return fattn__fail(FATTN_UNSUPPORTED, "the cpu has no CUDA graphs");
    pthread_mutex_lock(&lock);
    driver = context->api->driver;
    pthread_once(&once, load);
    pthread_mutex_unlock(&lock);
    if (missing != NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "the CUDA driver has no %s: it is too old for CUDA graphs", missing);
    *out = &functions;
    return FATTN_OK;
}

fattn_status fattn__graph_failure(const fattn_context *context, int result, const char *what)
{
    enum { INVALID_VALUE = 1, ILLEGAL_STATE = 401, CAPTURE_FIRST = 900, CAPTURE_LAST = 908, UPDATE_FAILURE = 910 };
    const char *text = context->cuda != NULL ? fattn__cuda_text(context->cuda, result) : "no driver";
    if (result == ILLEGAL_STATE || result == INVALID_VALUE || (result >= CAPTURE_FIRST && result <= CAPTURE_LAST))
        return fattn__fail(FATTN_BAD_PROBLEM, "%s: %s", what, text);
    if (result == UPDATE_FAILURE)
        return fattn__fail(FATTN_UNSUPPORTED, "%s: %s", what, text);
    return fattn__fail(FATTN_DEVICE_FAULT, "%s: %s", what, text);
}
