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

Test(null, it_has_no_device_a_version_handles_and_words)
{
    int count = 7, number = 0;
    void *handles[3] = { NULL };
    const char *text = NULL;
    cr_expect_eq(FIND(takes_flags, "cuInit")(0), 100);
    cr_expect_eq(FIND(gives_int, "cuDeviceGetCount")(&count), 100);
    cr_expect_eq(count, 0);
    cr_expect_eq(FIND(gives_int, "cuDriverGetVersion")(&number), 0);
    cr_expect_eq(number, 13000);
    cr_expect_eq(FIND(gives_handle, "cuLibraryLoadData")(&handles[0]), 0);
    cr_expect_eq(FIND(gives_handle, "cuLibraryLoadData")(&handles[1]), 0);
    cr_expect_eq(FIND(gives_handle, "cuLibraryGetKernel")(&handles[2]), 0);
    cr_expect(handles[0] != NULL && handles[0] != handles[1] && handles[1] != handles[2]);
    cr_expect_eq(FIND(gives_text, "cuGetErrorName")(100, &text), 0);
    cr_expect_str_eq(text, "CUDA_ERROR_NO_DEVICE");
}

Test(null, get_proc_address_gives_what_dlsym_gives_and_makes_nothing_up)
{
    const get_proc get = FIND(get_proc, "cuGetProcAddress_v2");
    void *address = NULL;
    int found = 9;
    cr_expect_eq(get("cuModuleLoadData", &address, 13000, 0, &found), 0);
    cr_expect_eq(address, find("cuModuleLoadData"));
    cr_expect_eq(found, 0);
    cr_expect_eq(get("cuMemAlloc", &address, 13000, 0, &found), 500);
    cr_expect_null(address);
    cr_expect_eq(found, 1);
}
