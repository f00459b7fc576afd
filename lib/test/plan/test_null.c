#include <dlfcn.h>
#include <stdint.h>

#include "support/described_h100.h"

static void *driver(void)
{
    void *library = dlopen(null_driver(), RTLD_NOW | RTLD_LOCAL);
    cr_assert_not_null(library, "%s", dlerror());
    return library;
}

/* A function of the driver with the arguments of one test. */
#define FIND(type, name) ((type)(uintptr_t)find(name))

static void *find(const char *name)
{
    void *address = dlsym(driver(), name);
    cr_assert_not_null(address, "%s", name);
    return address;
}

typedef int (*takes_flags)(unsigned);
typedef int (*gives_int)(int *);
typedef int (*gives_handle)(void **);
typedef int (*gives_text)(int, const char **);
typedef int (*get_proc)(const char *, void **, int, uint64_t, int *);

Test(null, it_says_that_there_is_no_device)
{
    int count = 7;
    cr_expect_eq(FIND(takes_flags, "cuInit")(0), 100);
    cr_expect_eq(FIND(gives_int, "cuDeviceGetCount")(&count), 100);
    cr_expect_eq(count, 0);
}

Test(null, it_calls_itself_13_0)
{
    int version = 0;
    cr_expect_eq(FIND(gives_int, "cuDriverGetVersion")(&version), 0);
    cr_expect_eq(version, 13000);
}

Test(null, no_two_handles_are_the_same)
{
    void *handles[3] = { NULL };
    cr_expect_eq(FIND(gives_handle, "cuLibraryLoadData")(&handles[0]), 0);
    cr_expect_eq(FIND(gives_handle, "cuLibraryLoadData")(&handles[1]), 0);
    cr_expect_eq(FIND(gives_handle, "cuLibraryGetKernel")(&handles[2]), 0);
    cr_expect_not_null(handles[0]);
    cr_expect_neq(handles[0], handles[1]);
    cr_expect_neq(handles[1], handles[2]);
}

Test(null, get_proc_address_gives_the_function_that_dlsym_gives)
{
    void *address = NULL;
    int found = 9;
    cr_expect_eq(
        FIND(get_proc, "cuGetProcAddress_v2")("cuModuleLoadData", &address, 13000, 0, &found), 0);
    cr_expect_eq(address, find("cuModuleLoadData"));
    cr_expect_eq(found, 0);
}

Test(null, get_proc_address_does_not_make_up_what_it_does_not_have)
{
    void *address = &address;
    int found = 9;
    cr_expect_eq(FIND(get_proc, "cuGetProcAddress_v2")("cuMemAlloc", &address, 13000, 0, &found),
                 500);
    cr_expect_null(address);
    cr_expect_eq(found, 1);
}

Test(null, an_error_has_words)
{
    const char *text = NULL;
    cr_expect_eq(FIND(gives_text, "cuGetErrorName")(100, &text), 0);
    cr_expect_str_eq(text, "CUDA_ERROR_NO_DEVICE");
}
