/* A facts-worker with a GPU that fails: the emulated one of lib/gpu/test, under the cpu device. Environment: TORTURE_AT=N,
 * TORTURE_DO= 700, 719 or 999 (the call fails; 700 and 719 stay in that process) or hang, TORTURE_EVER (every later call too, of
 * all processes), TORTURE_CALLS=launch (only launches count), TORTURE_COUNT=FILE, in which the calls of all processes are counted.
 */
#include <emulated_driver.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/answer_requests.h"
#include "worker/reply.h"
#include "worker/target/loaded_target.h"

static struct {
    uint64_t at;
    int result; /* 0: it hangs */
    bool ever, launches_only;
    int sticks; /* what every call of this process answers from now on */
    _Atomic uint64_t *calls, *fired;
} plan;

/* 0: the call goes through. */
static int step(const char *name)
{
    if (plan.launches_only && strcmp(name, "launch") != 0)
        return plan.sticks;
    const uint64_t n = atomic_fetch_add(plan.calls, 1) + 1;
    if (plan.sticks)
        return plan.sticks;
    if (!plan.at || (plan.ever ? n < plan.at : n != plan.at))
        return 0;
    atomic_fetch_add(plan.fired, 1);
    while (!plan.result)
        pause();
    plan.sticks = plan.result == 999 ? 0 : plan.result;
    return plan.result;
}

/* Every call has at most eleven arguments, and none is a floating-point number: they are passed on as they came. */
#define ANY                                                                                                                        \
    uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i,           \
        uintptr_t j, uintptr_t k
typedef int any_call(ANY);
static gpu_driver real, failing;

#define AS_CALL(member, name, arguments)                                                                                           \
    static int call_##member(ANY)                                                                                                  \
    {                                                                                                                              \
        any_call *next;                                                                                                            \
        const int result = step(#member);                                                                                          \
        memcpy(&next, &real.member, sizeof next);                                                                                  \
        return result ? result : next(a, b, c, d, e, f, g, h, i, j, k);                                                            \
    }
GPU_FUNCTION_LIST(AS_CALL)

static int error_name(int result, const char **out)
{
    *out = result == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
           : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
           : result == 999 ? "CUDA_ERROR_UNKNOWN"
                           : "an error of the emulation";
    return 0;
}

static void replace(void)
{
    real = failing = *emulated_driver();
#define AS_REPLACED(member, name, arguments)                                                                                       \
    if (real.member) {                                                                                                             \
        any_call *const now = call_##member;                                                                                       \
        memcpy(&failing.member, &now, sizeof now);                                                                                 \
    }
    GPU_FUNCTION_LIST(AS_REPLACED)
    failing.error_name = failing.error_string = error_name; /* words are no work of the device */
    gpu_driver_replace(&failing);
}

static void read_plan(void)
{
    static _Atomic uint64_t own[2];
    const char *at = getenv("TORTURE_AT"), *what = getenv("TORTURE_DO"), *count = getenv("TORTURE_COUNT"),
               *which = getenv("TORTURE_CALLS");
    const int file = count ? open(count, O_RDWR | O_CLOEXEC) : -1;
    void *shared = file < 0 ? MAP_FAILED : mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    plan.calls = shared == MAP_FAILED ? own : shared;
    plan.fired = plan.calls + 1;
    plan.at = at ? strtoull(at, NULL, 10) : 0;
    plan.result = what && strcmp(what, "hang") != 0 ? atoi(what) : 0;
    plan.launches_only = which && strcmp(which, "launch") == 0;
    plan.ever = getenv("TORTURE_EVER") != NULL;
}

bool __real_facts_target_prove(facts_worker *worker, json_t **reply);
bool __wrap_facts_target_prove(facts_worker *worker, json_t **reply);
bool __wrap_facts_target_prove(facts_worker *worker, json_t **reply)
{
    replace();
    facts_reply(json_pack("{s:s}", "stage", "probe"));
    if (!facts_gpu_open(&worker->gpu, worker->context, NULL, worker->gpu_error))
        worker->gpu = NULL;
    return __real_facts_target_prove(worker, reply);
}

int main(void)
{
    read_plan();
    return facts_worker_run();
}
