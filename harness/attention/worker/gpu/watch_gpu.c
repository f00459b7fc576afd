#include "watch_gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t. These are our own declarations: no header of
 * NVML is read. */
enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, SENSOR_GPU = 0 };

struct facts_watch {
    void *library, *device;
    int (*clock)(void *device, int type, unsigned *mhz);
    int (*temperature)(void *device, int sensor, unsigned *celsius);
    int (*power)(void *device, unsigned *milliwatts);
    int (*throttled)(void *device, unsigned long long *reasons);
};

static void find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);
    memcpy(out, &address, sizeof address);
}

static int find_device(facts_watch *w, const char *uuid)
{
    int (*start)(void) = NULL, (*by_uuid)(const char *uuid, void **out) = NULL;
    find(w->library, "nvmlInit_v2", &start);
    find(w->library, "nvmlDeviceGetHandleByUUID", &by_uuid);
    find(w->library, "nvmlDeviceGetClockInfo", &w->clock);
    find(w->library, "nvmlDeviceGetTemperature", &w->temperature);
    find(w->library, "nvmlDeviceGetPowerUsage", &w->power);
    find(w->library, "nvmlDeviceGetCurrentClocksThrottleReasons", &w->throttled);
    return !start || !by_uuid || start() != 0 || by_uuid(uuid, &w->device) != 0;
}

facts_watch *facts_watch_open(const char *uuid)
{
    facts_watch *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (w->library && find_device(w, uuid) == 0)
        return w;
    facts_watch_close(w);
    return NULL;
}

json_t *facts_watch_read(const facts_watch *w)
{
    json_t *out = json_object();
    unsigned value;
    unsigned long long reasons;
    if (w->clock && w->clock(w->device, CLOCK_SM, &value) == 0)
        json_object_set_new(out, "sm_mhz", json_integer((json_int_t)value));
    if (w->clock && w->clock(w->device, CLOCK_MEMORY, &value) == 0)
        json_object_set_new(out, "memory_mhz", json_integer((json_int_t)value));
    if (w->temperature && w->temperature(w->device, SENSOR_GPU, &value) == 0)
        json_object_set_new(out, "temperature_c", json_integer((json_int_t)value));
    if (w->power && w->power(w->device, &value) == 0)
        json_object_set_new(out, "power_w", json_real(value / 1e3));
    if (w->throttled && w->throttled(w->device, &reasons) == 0)
        json_object_set_new(out, "throttled", json_integer((json_int_t)reasons));
    return out;
}

void facts_watch_close(facts_watch *w)
{
    if (w && w->library)
        dlclose(w->library);
    free(w);
}
