/* The kernels of the oracle on a GPU, by name: the end of what emulated.cmake compiles. */
#include "../oracle_kernels.h"

static void call_kernel(void (*kernel)(const fref__call), void **a)
{
    kernel(*(const fref__call *)a[0]);
}
static void call_kernel(void (*kernel)(const fref__call, const int), void **a)
{
    kernel(*(const fref__call *)a[0], *(const int *)a[1]);
}

const emulated_entry emulated_entries[] = {
#define AS_ENTRY(name, shared)                                                                     \
    { "fref_" #name, [](void **a) { call_kernel(fref_##name, a); }, (shared) * 8 },
    FREF__KERNEL_LIST(AS_ENTRY)
#undef AS_ENTRY
};
const size_t emulated_entry_count = sizeof emulated_entries / sizeof *emulated_entries;
