/* The rest of emulate.h: a block's threads as fibers. Included once by each program, after its kernels. */
#ifndef FATTN_TEST_FIBERS_H
#define FATTN_TEST_FIBERS_H

#include <ucontext.h>

#include "emulate.h"

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
        now.grid.x = blocks;
        run_block();
    }
}

}

#endif
