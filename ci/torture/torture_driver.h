/* A facts-worker with a GPU that fails: the emulated one (torture_device.c) or a real one (torture_gpu.c). Environment:
 *
 *   TORTURE_AT=N          call N of the driver does TORTURE_DO; without it, the calls are counted
 *   TORTURE_DO=           700, 719 or 999: it fails (700 and 719 stay in that process); hang: it never returns;
 *                         fault, spin: a kernel that reads a bad address, or never ends, is launched before
 *   TORTURE_EVER          every later call too, of all processes
 *   TORTURE_CALLS=        launch: only launches count; engine: only runs of an engine
 *   TORTURE_COUNT=FILE    the calls of all processes are counted there, and how many faults took place
 */
#ifndef TORTURE_DRIVER_H
#define TORTURE_DRIVER_H

#include <gpu/gpu_driver.h>
#include <stdbool.h>

/* The table whose calls fail. */
const gpu_driver *torture_failing(const gpu_driver *driver);
/* As after such a kernel: every later call of this process fails with 700, or its waits never
 * return. */
void torture_break(bool faults);

/* Each program's own: launches a kernel that faults, or one that never ends. Returns CUresult. */
int torture_strike(bool faults, struct CUstream_st *stream);

#endif
