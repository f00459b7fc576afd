/* A worker whose real GPU fails as torture_driver.h says. The kernels are PTX: the driver compiles
 * them. */
#include "torture_driver.h"

#include <stdio.h>

const gpu_driver *__real_gpu_driver_of(void *library, char error[256]);
const gpu_driver *__wrap_gpu_driver_of(void *library, char error[256]);
const gpu_driver *__wrap_gpu_driver_of(void *library, char error[256])
{
    return torture_failing(__real_gpu_driver_of(library, error));
}

const gpu_driver *__real_gpu_driver_load(char error[256]);
const gpu_driver *__wrap_gpu_driver_load(char error[256]);
const gpu_driver *__wrap_gpu_driver_load(char error[256])
{
    return torture_failing(__real_gpu_driver_load(error));
}

/* `spin` ends after 60 s, if nobody ends its process before: no GPU stays busy. */
static const char kernels[] = ".version 7.0\n"
                              ".target sm_70\n"
                              ".address_size 64\n"
                              ".visible .entry fault()\n"
                              "{\n"
                              "    .reg .b64 %rd<2>;\n"
                              "    mov.u64 %rd1, 64;\n"
                              "    st.global.u64 [%rd1], %rd1;\n"
                              "    ret;\n"
                              "}\n"
                              ".visible .entry spin()\n"
                              "{\n"
                              "    .reg .b64 %rd<4>;\n"
                              "    .reg .pred %p<2>;\n"
                              "    mov.u64 %rd1, %globaltimer;\n"
                              "again:\n"
                              "    mov.u64 %rd2, %globaltimer;\n"
                              "    sub.u64 %rd3, %rd2, %rd1;\n"
                              "    setp.lt.u64 %p1, %rd3, 60000000000;\n"
                              "    @%p1 bra again;\n"
                              "    ret;\n"
                              "}\n";

int torture_strike(bool faults, struct CUstream_st *stream)
{
    char error[256];
    struct CUmod_st *module;
    struct CUfunc_st *function;
    const gpu_driver *driver = __real_gpu_driver_load(error);
    int result = driver ? driver->module_load(&module, kernels) : 999;
    if (result == 0)
        result = driver->module_function(&function, module, faults ? "fault" : "spin");
    if (result == 0)
        result = driver->launch(function, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    if (result != 0)
        fprintf(stderr, "torture_gpu: the kernel was not launched: %d\n", result);
    return result;
}
