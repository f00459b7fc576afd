/* All kernels, emulated, behind the driver's launch. */
#include "emulate.h"

#include <ucontext.h>

#include "../modify.cu"
#include "../over_keys.cu"
#include "../over_rows.cu"
#include "../scores.cu"
#include "../statistics.cu"
#include "../sum.cu"

namespace emulate {

block now;

enum { STACK = 256 << 10 };

static ucontext_t home;
static ucontext_t fibers[MOST_THREADS];
static char *stacks;
static void (*body)(void **);
static void **body_arguments;

/* The next thread that has not ended; the block's caller when none is left. */
void give_way()
{
    const int before = now.running, threads = (int)now.size.x;
    for (int i = 1; i <= threads; i++) {
        const int next = (before + i) % threads;
        if (now.over[next])
            continue;
        if (next != before) {
            now.running = next;
            swapcontext(&fibers[before], &fibers[next]);
        } else if (now.over[before]) {
            break;
        }
        return;
    }
    swapcontext(&fibers[before], &home);
}

static void thread()
{
    body(body_arguments);
    now.over[now.running] = true;
    now.alive--;
    give_way();
}

int barrier(int any)
{
    const unsigned generation = now.generation;
    now.any |= any != 0;
    if (++now.arrived == now.alive) {
        now.any_result = now.any;
        now.any = now.arrived = 0;
        now.generation++;
    }
    while (now.generation == generation)
        give_way();
    return now.any_result;
}

static void run_block()
{
    const int threads = (int)now.size.x;
    if (stacks == nullptr)
        stacks = (char *)malloc((size_t)STACK * MOST_THREADS);
    now.alive = threads;
    for (int i = 0; i < threads; i++) {
        now.over[i] = false;
        now.thread[i].x = (unsigned)i;
        getcontext(&fibers[i]);
        fibers[i].uc_stack.ss_sp = stacks + (size_t)STACK * i;
        fibers[i].uc_stack.ss_size = STACK;
        fibers[i].uc_link = &home;
        makecontext(&fibers[i], thread, 0);
    }
    now.running = 0;
    swapcontext(&home, &fibers[0]);
}

void run(unsigned blocks, unsigned threads, void (*call)(void **), void **arguments)
{
    body = call;
    body_arguments = arguments;
    for (unsigned i = 0; i < blocks; i++) {
        memset(&now, 0, sizeof now);
        now.index.x = i;
        now.size.x = threads;
        run_block();
    }
}

}

/* ---- the driver's side ------------------------------------------------------------------------------------------------------------ */

#include "../../src/math/kernel_list.h"

static void call_kernel(void (*kernel)(const fattn__call), void **a)
{
    kernel(*(const fattn__call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__sum_call), void **a)
{
    kernel(*(const fattn__sum_call *)a[0]);
}
static void call_kernel(void (*kernel)(const fattn__call, const fattn__program, const fattn__program_tensors), void **a)
{
    kernel(*(const fattn__call *)a[0], *(const fattn__program *)a[1], *(const fattn__program_tensors *)a[2]);
}

struct entry {
    const char *name;
    void (*call)(void **);
};

static const entry entries[] = {
#define AS_ENTRY(name) { "fattn_" #name, [](void **a) { call_kernel(fattn_##name, a); } },
    FATTN__KERNEL_LIST(AS_ENTRY)
#undef AS_ENTRY
};

extern "C" int emulated_module_function(struct CUfunc_st **out, struct CUmod_st *, const char *name)
{
    for (const entry &e : entries)
        if (strcmp(e.name, name) == 0) {
            *out = (struct CUfunc_st *)&e;
            return 0;
        }
    return 500; /* CUDA_ERROR_NOT_FOUND */
}

extern "C" int emulated_launch(struct CUfunc_st *function, unsigned grid, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                               struct CUstream_st *, void **arguments, void **)
{
    emulate::run(grid, threads, ((const entry *)function)->call, arguments);
    return 0;
}
