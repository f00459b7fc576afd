#include "torture_driver.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "worker/answer_requests.h"
#include "worker/attention_job.h"
#include "worker/exec/seams.h"

static struct {
    uint64_t at;
    int result; /* 0: it hangs */
    bool kernel, ever, launches_only, engines_only;
    int sticks;      /* what every call of this process answers from now on */
    bool never_ends; /* no wait of this process returns from now on */
    _Atomic uint64_t *calls, *fired;
} plan;

static bool due(void)
{
    const uint64_t n = atomic_fetch_add(plan.calls, 1) + 1;
    return plan.at && (plan.ever ? n >= plan.at : n == plan.at);
}

static int strike(struct CUstream_st *stream)
{
    const int result = torture_strike(plan.result != 0, stream);
    if (result == 0)
        atomic_fetch_add(plan.fired, 1);
    return result;
}

/* 0: the call goes through. */
static int step(const char *name, struct CUstream_st *stream)
{
    while (plan.never_ends && strcmp(name, "stream_synchronize") == 0)
        pause();
    if (plan.engines_only || (plan.launches_only && strcmp(name, "launch") != 0))
        return plan.sticks;
    const bool now = due();
    if (plan.sticks || !now)
        return plan.sticks;
    if (plan.kernel)
        return strike(stream);
    atomic_fetch_add(plan.fired, 1);
    while (!plan.result)
        pause();
    plan.sticks = plan.result == 999 ? 0 : plan.result;
    return plan.result;
}

/* Every call has at most eleven arguments, and none is a floating-point number: they are passed on
 * as they came. */
#define ANY                                                                                        \
    uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g,     \
        uintptr_t h, uintptr_t i, uintptr_t j, uintptr_t k
typedef int any_call(ANY);
static gpu_driver real, failing;

#define AS_CALL(member, name, arguments)                                                           \
    static int call_##member(ANY)                                                                  \
    {                                                                                              \
        any_call *next;                                                                            \
        const int result =                                                                         \
            step(#member, (struct CUstream_st *)i); /* of a launch, the ninth is the stream */     \
        memcpy(&next, &real.member, sizeof next);                                                  \
        return result ? result : next(a, b, c, d, e, f, g, h, i, j, k);                            \
    }
GPU_FUNCTION_LIST(AS_CALL)

const gpu_driver *torture_failing(const gpu_driver *driver)
{
    static const gpu_driver *of;
    if (!driver || driver == of)
        return driver ? &failing : NULL;
    of = driver;
    real = failing = *driver;
#define AS_REPLACED(member, name, arguments)                                                       \
    if (real.member) {                                                                             \
        any_call *const now = call_##member;                                                       \
        memcpy(&failing.member, &now, sizeof now);                                                 \
    }
    GPU_FUNCTION_LIST(AS_REPLACED)
    failing.error_name = real.error_name; /* words are no work of the device */
    failing.error_string = real.error_string;
    return &failing;
}

void torture_break(bool faults)
{
    if (faults)
        plan.sticks = 700;
    else
        plan.never_ends = true;
}

fattn_status __real_facts_seam_run(facts_memory *memory, facts_call *call);
fattn_status __wrap_facts_seam_run(facts_memory *memory, facts_call *call);
fattn_status __wrap_facts_seam_run(facts_memory *memory, facts_call *call)
{
    if (plan.engines_only && due())
        (void)strike(memory->worker->stream);
    return __real_facts_seam_run(memory, call);
}

static void read_plan(void)
{
    static _Atomic uint64_t own[2];
    const char *at = getenv("TORTURE_AT"), *what = getenv("TORTURE_DO"),
               *count = getenv("TORTURE_COUNT"), *which = getenv("TORTURE_CALLS");
    const int file = count ? open(count, O_RDWR | O_CLOEXEC) : -1;
    void *shared =
        file < 0 ? MAP_FAILED : mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    plan.calls = shared == MAP_FAILED ? own : shared;
    plan.fired = plan.calls + 1;
    plan.at = at ? strtoull(at, NULL, 10) : 0;
    plan.kernel = what && (strcmp(what, "fault") == 0 || strcmp(what, "spin") == 0);
    plan.result = plan.kernel                         ? strcmp(what, "fault") == 0
                  : what && strcmp(what, "hang") != 0 ? atoi(what)
                                                      : 0;
    plan.launches_only = which && strcmp(which, "launch") == 0;
    plan.engines_only = which && strcmp(which, "engine") == 0;
    plan.ever = getenv("TORTURE_EVER") != NULL;
}

int main(void)
{
    read_plan();
    return facts_worker_run(&facts_attention_worker);
}
