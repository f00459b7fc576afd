/* The kernels of the math backend, by name: the end of what emulated.cmake compiles. */
#include "math/math_kernel_list.h"

static void call_kernel(void (*kernel)(const fattn__call), void **a)
{
    kernel(*(const fattn__call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__sum_call), void **a)
{
    kernel(*(const fattn__sum_call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__gather_call), void **a)
{
    kernel(*(const fattn__gather_call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__dump_call), void **a)
{
    kernel(*(const fattn__dump_call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__call, const fattn__program,
                                       const fattn__program_tensors),
                        void **a)
{
    kernel(*(const fattn__call *)a[0], *(const fattn__program *)a[1],
           *(const fattn__program_tensors *)a[2]);
}

const emulated_entry emulated_entries[] = {
#define AS_ENTRY(name) { "fattn_" #name, [](void **a) { call_kernel(fattn_##name, a); }, 0 },
    FATTN__KERNEL_LIST(AS_ENTRY)
#undef AS_ENTRY
};
const size_t emulated_entry_count = sizeof emulated_entries / sizeof *emulated_entries;
