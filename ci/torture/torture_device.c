/* A worker of the cpu device with the emulated GPU of lib/gpu/test, which fails as torture_driver.h
 * says. */
#include <emulated_driver.h>

#include "torture_driver.h"
#include "worker/reply.h"
#include "worker/target/loaded_target.h"

static int error_name(int result, const char **out)
{
    *out = result == 700   ? "CUDA_ERROR_ILLEGAL_ADDRESS"
           : result == 719 ? "CUDA_ERROR_LAUNCH_FAILED"
           : result == 999 ? "CUDA_ERROR_UNKNOWN"
                           : "an error of the emulation";
    return 0;
}

int torture_strike(bool faults, struct CUstream_st *stream)
{
    (void)stream;
    torture_break(faults);
    return 0;
}

bool __real_facts_target_prove(facts_worker *worker, json_t **reply);
bool __wrap_facts_target_prove(facts_worker *worker, json_t **reply);
bool __wrap_facts_target_prove(facts_worker *worker, json_t **reply)
{
    gpu_driver *emulated = emulated_driver();
    emulated->error_name = emulated->error_string = error_name;
    gpu_driver_replace(torture_failing(emulated));
    facts_reply(json_pack("{s:s}", "stage", "probe"));
    if (!facts_gpu_open(&worker->gpu, worker->context, NULL, worker->gpu_error))
        worker->gpu = NULL;
    return __real_facts_target_prove(worker, reply);
}
