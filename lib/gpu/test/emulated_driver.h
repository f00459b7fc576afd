/* A GPU without a GPU: a driver whose device memory is the host's and whose kernels run as C++
 * (emulate.h). An emulated library lists its kernels. */
#ifndef GPU_EMULATED_DRIVER_H
#define GPU_EMULATED_DRIVER_H

#include <gpu/gpu_module.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A kernel that can be launched. */
typedef struct emulated_entry {
    const char *name;
    void (*call)(void **arguments); /* its body, for one thread */
    unsigned shared_bytes;          /* a launch that asks for another number is refused */
} emulated_entry;
extern const emulated_entry emulated_entries[];
extern const size_t emulated_entry_count;

/* The functions that libfattn, the oracle and the harness call; the others are NULL. Device memory
 * begins as NaN. A context is current from the start. A test may replace members. */
gpu_driver *emulated_driver(void);
extern const gpu_image emulated_image; /* of no bytes that count */

extern const char
    *emulated_kernel_fails;   /* its name: it cannot be launched from now on; NULL: none */
extern int emulated_launches; /* so far */

/* Set before the first allocation: the host cannot touch device memory, as with a GPU, except
 * between these two, which may be nested and called from several threads. Functions of the driver
 * call them themselves. */
extern bool emulated_memory_is_hidden;
void emulated_memory_enter(void);
void emulated_memory_leave(void);

#ifdef __cplusplus
}

/* A scope in which device memory is in reach. */
struct emulated_in_reach {
    emulated_in_reach()
    {
        emulated_memory_enter();
    }
    ~emulated_in_reach()
    {
        emulated_memory_leave();
    }
};
#endif
#endif
