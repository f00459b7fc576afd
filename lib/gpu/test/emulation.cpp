/* emulate.h's blocks, a block's threads as fibers, and emulated_driver.h's driver, which launches
 * them. */
#include "emulate.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "emulated_driver.h"

namespace emulate
{

block now;

/* No multiple of a page: the tops of all stacks would be in the same few lines of each cache. */
enum { STACK = (256 << 10) + 17 * 64 };

enum { HOME = MOST_THREADS }; /* the block's caller */
static jmp_buf contexts[MOST_THREADS + 1];
static bool started[MOST_THREADS];
static char *stacks;
static void (*body)(void **);
static void **body_arguments;

static void thread();

static void start(int to)
{
    started[to] = true;
    if (stacks == nullptr)
        stacks = (char *)malloc((size_t)STACK * MOST_THREADS);
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)STACK * to;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, thread, 0);
    setcontext(&context);
}

/* Not by swapcontext, which asks the system for the signal mask each time: most of the time there
 * is. */
static void change(int from, int to)
{
    if (_setjmp(contexts[from]) != 0)
        return;
    if (to == HOME || started[to])
        _longjmp(contexts[to], 1);
    start(to);
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

static void run(const unsigned grid[3], unsigned threads, void (*call)(void **), void **arguments)
{
    body = call;
    body_arguments = arguments;
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                memset(&now, 0, sizeof now);
                now.index = { x, y, z };
                now.size.x = threads;
                now.grid = { grid[0], grid[1], grid[2] };
                run_block();
            }
}

} // namespace emulate

/* ---- the driver ---- */

enum { SHARED = 160 << 10, NOT_FOUND = 500, LAUNCH_FAILED = 719 };

const char *emulated_kernel_fails;
int emulated_launches;

static const unsigned char image_data[] = { 1 };
const gpu_image emulated_image = { image_data, sizeof image_data, "emulated" };

static int current_context;

template <class... ARGUMENTS> static int do_nothing(ARGUMENTS...)
{
    return 0;
}

static int context_get(struct CUctx_st **out)
{
    *out = (struct CUctx_st *)(void *)&current_context;
    return 0;
}
static int context_device(int *out)
{
    *out = 0;
    return 0;
}
static int device_attribute(int *out, int attribute, int)
{
    *out = attribute == GPU_MULTIPROCESSORS ? 5 : 0; /* some problems have more tiles */
    return 0;
}

/* ---- device memory: pages of its own, out of the host's reach except in a call if it is hidden
 * ---- */

bool emulated_memory_is_hidden;

enum { MOST_PIECES = 4096 };
static struct {
    char *at;
    size_t bytes;
} pieces[MOST_PIECES];
static int piece_count, calls_inside;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

static void protect(int how)
{
    if (emulated_memory_is_hidden)
        for (int i = 0; i < piece_count; i++)
            mprotect(pieces[i].at, pieces[i].bytes, how);
}

void emulated_memory_enter(void)
{
    pthread_mutex_lock(&memory_lock);
    if (calls_inside++ == 0)
        protect(PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&memory_lock);
}

void emulated_memory_leave(void)
{
    pthread_mutex_lock(&memory_lock);
    if (--calls_inside == 0)
        protect(PROT_NONE);
    pthread_mutex_unlock(&memory_lock);
}

static int memory_alloc(gpu_address *out, size_t bytes)
{
    const emulated_in_reach now;
    const size_t pages = (bytes + 4095) / 4096 * 4096;
    void *at = mmap(nullptr, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_mutex_lock(&memory_lock);
    const bool kept = at != MAP_FAILED && piece_count < MOST_PIECES;
    if (kept)
        pieces[piece_count++] = { (char *)at, pages };
    pthread_mutex_unlock(&memory_lock);
    if (kept)
        memset(at, 0xff, bytes);
    *out = kept ? (gpu_address)(uintptr_t)at : 0;
    return kept ? 0 : GPU_OUT_OF_MEMORY;
}
static int memory_free(gpu_address at)
{
    pthread_mutex_lock(&memory_lock);
    for (int i = 0; i < piece_count; i++)
        if ((uintptr_t)pieces[i].at == at) {
            munmap(pieces[i].at, pieces[i].bytes);
            pieces[i] = pieces[--piece_count];
            break;
        }
    pthread_mutex_unlock(&memory_lock);
    return 0;
}
static int memory_info(size_t *free_bytes, size_t *all_bytes)
{
    *free_bytes = *all_bytes = (size_t)1 << 30;
    return 0;
}
static int memory_set(gpu_address at, unsigned char value, size_t bytes, struct CUstream_st *)
{
    const emulated_in_reach now;
    memset((void *)(uintptr_t)at, value, bytes);
    return 0;
}
static int host_alloc(void **out, size_t bytes, unsigned)
{
    *out = malloc(bytes);
    return *out != nullptr ? 0 : GPU_OUT_OF_MEMORY;
}
static int host_free(void *at)
{
    free(at);
    return 0;
}
static int copy_to_device(gpu_address to, const void *from, size_t bytes)
{
    const emulated_in_reach now;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}
static int copy_to_host(void *to, gpu_address from, size_t bytes)
{
    const emulated_in_reach now;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}
static int send(gpu_address to, const void *from, size_t bytes, struct CUstream_st *)
{
    return copy_to_device(to, from, bytes);
}
static int fetch(void *to, gpu_address from, size_t bytes, struct CUstream_st *)
{
    return copy_to_host(to, from, bytes);
}

static int module_load(struct CUmod_st **out, const void *image)
{
    *out = (struct CUmod_st *)(uintptr_t)image;
    return 0;
}
static int module_function(struct CUfunc_st **out, struct CUmod_st *, const char *name)
{
    for (size_t n = 0; n < emulated_entry_count; n++)
        if (strcmp(emulated_entries[n].name, name) == 0) {
            *out = (struct CUfunc_st *)(uintptr_t)&emulated_entries[n];
            return 0;
        }
    return NOT_FOUND;
}
static int launch(struct CUfunc_st *function, unsigned x, unsigned y, unsigned z, unsigned threads,
                  unsigned, unsigned, unsigned shared_bytes, struct CUstream_st *, void **arguments,
                  void **)
{
    const emulated_entry *e = (const emulated_entry *)function;
    const unsigned grid[3] = { x, y, z };
    if (emulated_kernel_fails && strcmp(emulated_kernel_fails, e->name) == 0)
        return LAUNCH_FAILED;
    if (shared_bytes != e->shared_bytes || shared_bytes > SHARED || x == 0 || y == 0 || z == 0 ||
        y > 65535 || z > 65535 || threads > emulate::MOST_THREADS)
        return GPU_INVALID_VALUE;
    emulated_launches++;
    const emulated_in_reach now;
    emulate::run(grid, threads, e->call, arguments);
    return 0;
}

static int error_text(int, const char **out)
{
    *out = "emulated";
    return 0;
}

gpu_driver *emulated_driver(void)
{
    static gpu_driver driver;
    driver.error_name = error_text;
    driver.error_string = error_text;
    driver.context_get = context_get;
    driver.context_set = do_nothing;
    driver.context_device = context_device;
    driver.device_attribute = device_attribute;
    driver.memory_alloc = memory_alloc;
    driver.memory_free = memory_free;
    driver.memory_info = memory_info;
    driver.memory_set = memory_set;
    driver.host_alloc = host_alloc;
    driver.host_free = host_free;
    driver.copy_to_device = copy_to_device;
    driver.copy_to_host = copy_to_host;
    driver.send = send;
    driver.fetch = fetch;
    driver.stream_synchronize = do_nothing;
    driver.module_load = module_load;
    driver.module_unload = do_nothing;
    driver.module_function = module_function;
    driver.function_set = do_nothing;
    driver.launch = launch;
    return &driver;
}
