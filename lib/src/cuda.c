#include "cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "core/error.h"

fattn_status fattn__driver_map(void **out, const char *path)
{
    *out = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (*out == NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "no CUDA driver: %s", dlerror());
    return FATTN_OK;
}

fattn_status fattn__cuda_load(const fattn__cuda **out, void *driver)
{
    static fattn__cuda functions;
    static bool loaded;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const struct {
        const char *name;
        size_t offset;
    } table[] = {
#define AS_ROW(member, name, arguments) { #name, offsetof(fattn__cuda, member) },
        FATTN__CUDA_FUNCTION_LIST(AS_ROW)
#undef AS_ROW
    };
    const char *missing = NULL;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; !loaded && missing == NULL && i < sizeof table / sizeof *table; i++) {
        void *address = dlsym(driver, table[i].name);
        if (address == NULL)
            missing = table[i].name;
        else
            memcpy((char *)&functions + table[i].offset, &address, sizeof address);
    }
    loaded = missing == NULL;
    pthread_mutex_unlock(&lock);
    *out = missing == NULL ? &functions : NULL;
    if (missing != NULL)
        return fattn__fail(FATTN_ENVIRONMENT, "the CUDA driver has no %s: it is the null driver or too old to run on a GPU",
                           missing);
    return FATTN_OK;
}

const char *fattn__cuda_text(const fattn__cuda *cuda, int result)
{
    const char *text = NULL;
    if (cuda->error_string(result, &text) != 0 || text == NULL)
        return "no message";
    return text;
}
