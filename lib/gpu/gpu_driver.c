#include <gpu/gpu_driver.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static gpu_driver functions;
static const gpu_driver *_Atomic replaced;

#define AS_ONE(member, name, arguments) +1
enum { NEEDED = 0 GPU_FUNCTION_LIST(AS_ONE) };
#undef AS_ONE

/* The name of what is missing, or NULL. */
static const char *look_up(void *library)
{
    static const struct {
        const char *name;
        size_t offset;
    } table[] = {
#define AS_ROW(member, name, arguments) { #name, offsetof(gpu_driver, member) },
        GPU_FUNCTION_LIST(AS_ROW) GPU_GRAPH_LIST(AS_ROW)
#undef AS_ROW
    };
    for (size_t n = 0; n < sizeof table / sizeof table[0]; n++) {
        void *address = dlsym(library, table[n].name);
        if (!address && n < NEEDED)
            return table[n].name;
        memcpy((char *)&functions + table[n].offset, &address, sizeof address);
    }
    return NULL;
}

const gpu_driver *gpu_driver_of(void *library, char error[256])
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool found;
    pthread_mutex_lock(&lock);
    const char *missing = found ? NULL : look_up(library);
    found = !missing;
    pthread_mutex_unlock(&lock);
    if (missing)
        snprintf(error, 256,
                 "the CUDA driver has no %s: it is the null driver or too old to run on a GPU",
                 missing);
    return missing ? NULL : &functions;
}

const gpu_driver *gpu_driver_load(char error[256])
{
    const gpu_driver *other = replaced;
    void *library = other ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!other && !library)
        snprintf(error, 256, "no CUDA driver: %s", dlerror());
    return library ? gpu_driver_of(library, error) : other;
}

void gpu_driver_replace(const gpu_driver *driver)
{
    replaced = driver;
}

const char *gpu_driver_lacks_graphs(const gpu_driver *driver)
{
#define AS_TEST(member, name, arguments)                                                           \
    if (!driver->member)                                                                           \
        return #name;
    GPU_GRAPH_LIST(AS_TEST)
#undef AS_TEST
    return NULL;
}

const char *gpu_driver_text(const gpu_driver *driver, int result)
{
    const char *text = NULL;
    return driver->error_string(result, &text) == 0 && text ? text : "no message";
}

int gpu_driver_say(const gpu_driver *driver, int result, const char *what, char error[256])
{
    const char *name = NULL;
    if (result != 0 && (driver->error_name(result, &name) != 0 || !name))
        name = "unknown error";
    if (result != 0)
        snprintf(error, 256, "%s: %s (%s)", what, name, gpu_driver_text(driver, result));
    return result;
}
