/* Clocks, temperature and power of the worker's GPU, out of NVML (libnvidia-ml.so.1 of the driver, opened when first asked). */
#ifndef FACTS_WATCH_GPU_H
#define FACTS_WATCH_GPU_H

#include <jansson.h>

typedef struct facts_watch facts_watch;

/* NULL: no NVML here, or it does not know this GPU. `uuid`: "GPU-…". */
facts_watch *facts_watch_open(const char *uuid);
/* {sm_mhz, memory_mhz, temperature_c, power_w, throttled}: what NVML answers of these now. throttled: NVML's bits of the reasons
 * that slow the clocks down. */
json_t *facts_watch_read(const facts_watch *watch);
void facts_watch_close(facts_watch *watch); /* NULL is fine */

#endif
