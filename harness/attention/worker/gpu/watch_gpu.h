/* Clocks, temperature and power of the worker's GPU, from NVML (the driver's libnvidia-ml.so.1,
 * which is opened at the first use). */
#ifndef FACTS_WATCH_GPU_H
#define FACTS_WATCH_GPU_H

#include <jansson.h>

typedef struct facts_watch facts_watch;

/* NULL: no NVML here, or it does not know this GPU. `uuid`: "GPU-…". */
facts_watch *facts_watch_open(const char *uuid);
/* Returns {sm_mhz, memory_mhz, temperature_c, power_w, throttled}, without the members that NVML
 * does not give. throttled: NVML's bits of the reasons that slow the clocks down. */
json_t *facts_watch_read(const facts_watch *watch);
void facts_watch_close(facts_watch *watch); /* `watch` may be NULL */

#endif
