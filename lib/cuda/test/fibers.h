/* The rest of emulate.h: a block's threads as fibers. Included once by each program, after its kernels. */
#ifndef FATTN_TEST_FIBERS_H
#define FATTN_TEST_FIBERS_H

#include <setjmp.h>
#include <ucontext.h>

#include "emulate.h"

namespace emulate {

block now;

enum { STACK = 256 << 10 };

enum { HOME = MOST_THREADS }; /* the block's caller */
static jmp_buf contexts[MOST_THREADS + 1];
static bool started[MOST_THREADS];
static char *stacks;
static void (*body)(void **);
static void **body_arguments;

static void thread();

/* Not by swapcontext, which asks the system for the signal mask each time: most of the time there is. */
static void change(int from, int to)
{
    if (_setjmp(contexts[from]) != 0)
        return;
    if (to == HOME || started[to])
        _longjmp(contexts[to], 1);
    started[to] = true;
    if (stacks == nullptr)
        stacks = (char *)malloc((size_t)STACK * MOST_THREADS);
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = stacks + (size_t)STACK * to;
    start.uc_stack.ss_size = STACK;
    start.uc_link = nullptr;
    makecontext(&start, thread, 0);
    setcontext(&start);
}

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
            change(before, next);
        } else if (now.over[before]) {
            break;
        }
        return;
    }
    change(before, HOME);
}

/* It stays, for the next block. */
static void thread()
{
    for (;;) {
        body(body_arguments);
        now.over[now.running] = true;
        now.alive--;
        give_way();
    }
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
    now.alive = threads;
    for (int i = 0; i < threads; i++) {
        now.over[i] = false;
        now.thread[i].x = (unsigned)i;
    }
    now.running = 0;
    change(HOME, 0);
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
