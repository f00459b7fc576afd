#include "gpu/gpu_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fref__driver functions;
static const fref__driver *loaded;

/* The name of what is missing, or NULL. */
static const char *look_up(void *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } table[] = {
#define AS_ROW(member, name, arguments) { #name, offsetof(fref__driver, member) },
        FREF__DRIVER_LIST(AS_ROW)
#undef AS_ROW
    };
    for (size_t n = 0; n < sizeof table / sizeof table[0]; n++) {
        void *address = dlsym(library, table[n].name);
        if (!address)
            return table[n].name;
        memcpy((char *)&functions + table[n].offset, &address, sizeof address);
    }
    return NULL;
}

const fref__driver *fref__driver_load(char error[256])
{
    pthread_mutex_lock(&lock);
    if (!loaded) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
        const char *missing = library ? look_up(library) : NULL;
        if (!library)
            snprintf(error, 256, "no CUDA driver: %s", dlerror());
        else if (missing)
            snprintf(error, 256, "the CUDA driver has no %s: it is the null driver or too old", missing);
        else
            loaded = &functions;
    }
    pthread_mutex_unlock(&lock);
    return loaded;
}

void fref__driver_replace(const fref__driver *driver)
{
    pthread_mutex_lock(&lock);
    loaded = driver;
    pthread_mutex_unlock(&lock);
}

void fref__driver_say(const fref__driver *driver, char error[256], const char *what, int result)
{
    const char *name = NULL, *text = NULL;
    if (driver->error_name(result, &name) != 0 || !name)
        name = "unknown error";
    if (driver->error_string(result, &text) != 0 || !text)
        text = "no message";
    snprintf(error, 256, "%s: %s (%s)", what, name, text);
}
