/* The end of a process, in every order: nothing may crash, hang or complain, with plans in the
 * cache, held, and already dropped. Each order is run by a process of its own: this program again,
 * as `PROGRAM --life ORDER DEVICE`. */
#include <criterion/criterion.h>
#include <criterion/options.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "core/context.h"
#include "fattn/cache.h"
#include "support/described_h100.h"

extern char **environ;

/* X(ORDER, what is done) */
#define ORDER_LIST(X)                                                                              \
    X(plan_first, "plans, then the context, then return from main")                                \
    X(context_first, "the context, then the plans that are held, which still work in between")     \
    X(nothing, "nothing is destroyed; return from main")                                           \
    X(exit_in_a_thread, "nothing is destroyed; a thread calls exit")                               \
    X(early_handler,                                                                               \
      "destroyed by an exit handler that was registered before any library was mapped")            \
    X(destructor, "destroyed by a destructor of the program, after every exit handler")            \
    X(thread_end, "destroyed by a thread-specific destructor")                                     \
    X(main_thread_ends, "the main thread ends first; another destroys and exits")                  \
    X(abandoned, "abandoned, then the plans that are held")                                        \
    X(device_reset, "the GPU's context is reset before anything is destroyed")                     \
    X(fork_destroys, "a child of fork destroys everything; the parent goes on")

typedef struct life {
    fattn_context *context;
    fattn_plan *held, *dropped; /* `dropped` has left the cache */
} life;

static life now;

/* LeakSanitizer asks the program at its end: some orders leave memory behind, the library's by
 * contract or cuDNN's own. */
static int leaves_memory;

int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return leaves_memory;
}

static void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, fattn_last_error());
    _exit(3);
}

/* Exit status 77: there is no GPU. */
static void begin_with(int kind)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    if (kind != FATTN_DEVICE_CPU)
        options = h100_options();
    options.device_kind = kind;
    if (kind == FATTN_DEVICE_GPU)
        options.driver = NULL;
    fattn_status st = fattn_context_create(&now.context, &options);
    if (st == FATTN_ENVIRONMENT && kind == FATTN_DEVICE_GPU)
        _exit(77);
    if (st != FATTN_OK)
        die("context");
    fattn_cache_limits limits = FATTN_CACHE_LIMITS_INIT;
    limits.entries =
        1; /* full; a described device has but one plan, for each takes half a second */
    fattn_cache_limit(&limits);
    fattn_problem problem = control_problem();
    if (kind != FATTN_DEVICE_DESCRIBED &&
        fattn_plan_get(&now.dropped, now.context, &problem, NULL) != FATTN_OK)
        die("plan");
    problem.batch = 3;
    if (fattn_plan_get(&now.held, now.context, &problem, NULL) != FATTN_OK)
        die("plan");
}

static void destroy_plans(void)
{
    fattn_plan_destroy(now.held);
    fattn_plan_destroy(now.dropped);
    now.held = now.dropped = NULL;
}

static void destroy_context(void)
{
    fattn_context_destroy(now.context);
    now.context = NULL;
}

static void destroy_all(void)
{
    destroy_context();
    destroy_plans();
}

static bool in_destructor;

__attribute__((destructor)) static void at_the_very_end(void)
{
    if (in_destructor)
        destroy_all();
}

static void run_in_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    pthread_create(&thread, NULL, body, argument);
    pthread_join(thread, NULL);
}

static int device_of(const char *word)
{
    return strcmp(word, "gpu") == 0   ? FATTN_DEVICE_GPU
           : strcmp(word, "cpu") == 0 ? FATTN_DEVICE_CPU
                                      : FATTN_DEVICE_DESCRIBED;
}

/* ---- the orders; each returns from main with what it returns
 * ----------------------------------------------------------------------- */

static int plan_first(int kind)
{
    begin_with(kind);
    destroy_plans();
    destroy_context();
    return 0;
}

static int context_first(int kind)
{
    begin_with(kind);
    fattn_problem problem = control_problem();
    problem.batch = 3;
    destroy_context();
    bool works = fattn_plan_covers(now.held, &problem) && fattn_plan_engine(now.held)->index >= 0;
    char *bytes = NULL;
    size_t count;
    if (kind != FATTN_DEVICE_CPU) {
        works = works && fattn_plan_save(now.held, &bytes, &count) == FATTN_OK && count > 0;
        fattn_free(bytes);
    }
    destroy_plans();
    return works ? 0 : 4;
}

static int nothing(int kind)
{
    begin_with(kind);
    return 0;
}

static void *call_exit(void *unused)
{
    (void)unused;
    exit(0);
}

static int exit_in_a_thread(int kind)
{
    begin_with(kind);
    run_in_thread(call_exit, NULL);
    return 4;
}

static int early_handler(int kind)
{
    atexit(destroy_all);
    begin_with(kind);
    return 0;
}

static int destructor(int kind)
{
    in_destructor = true;
    begin_with(kind);
    return 0;
}

static pthread_key_t key;

static void destroy_at_thread_end(void *unused)
{
    (void)unused;
    destroy_all();
}

static void *begin_with_key(void *kind)
{
    pthread_key_create(&key, destroy_at_thread_end);
    pthread_setspecific(key, kind);
    begin_with(*(int *)kind);
    return NULL;
}

static int thread_end(int kind)
{
    run_in_thread(begin_with_key, &kind);
    return now.context == NULL ? 0 : 4;
}

static pthread_t main_thread;

static void *outlive_main(void *unused)
{
    (void)unused;
    pthread_join(main_thread, NULL);
    destroy_all();
    exit(0);
}

static int main_thread_ends(int kind)
{
    pthread_t thread;
    leaves_memory = kind == FATTN_DEVICE_DESCRIBED; /* what cuDNN's own threads have when the
                                                       process ends beside them */
    begin_with(kind);
    main_thread = pthread_self();
    pthread_create(&thread, NULL, outlive_main, NULL);
    pthread_exit(NULL);
}

static int abandoned(int kind)
{
    leaves_memory = kind != FATTN_DEVICE_CPU;
    begin_with(kind);
    fattn_context_abandon(now.context);
    now.context = NULL;
    destroy_plans();
    return 0;
}

static int device_reset(int kind)
{
    begin_with(kind);
    if (kind == FATTN_DEVICE_GPU) {
        int (*reset)(int);
        void *address = dlsym(RTLD_DEFAULT, "cuDevicePrimaryCtxReset_v2");
        memcpy(&reset, &address, sizeof reset);
        if (address == NULL || reset(0) != 0)
            return 4;
    }
    destroy_all();
    return 0;
}

static int fork_destroys(int kind)
{
    int status;
    fattn_problem problem = control_problem();
    problem.batch = 3;
    begin_with(kind);
    const pid_t child = fork();
    if (child == 0) {
        leaves_memory = 1;
        destroy_all();
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0)
        return 4;
    const bool works = fattn_plan_covers(now.held, &problem);
    destroy_all();
    return works ? 0 : 5;
}

/* ---- the shared library, unloaded
 * ------------------------------------------------------------------------------------------------------
 */

typedef struct shared_library {
    void *handle;
    __typeof__(fattn_context_create) *context_create;
    __typeof__(fattn_plan_create) *plan_create;
    __typeof__(fattn_forward) *forward;
    __typeof__(fattn_last_error) *last_error;
} shared_library;

static void find(shared_library *of, const char *name, void *out)
{
    void *address = dlsym(of->handle, name);
    memcpy(out, &address, sizeof address);
    if (address == NULL)
        die(name);
}

static void use(shared_library *library, int kind)
{
    static _Alignas(64) float zeros[4][2 * 4 * 128 * 64], workspace[1 << 22];
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *context;
    fattn_plan *plan;
    fattn_problem problem = control_problem();
    if (kind != FATTN_DEVICE_CPU)
        options = h100_options();
    options.device_kind = kind;
    options.threads = 4;
    problem.heads_q = 4, problem.seq_q = problem.seq_kv = 128, problem.dim_qk = 64;
    if (library->context_create(&context, &options) != FATTN_OK ||
        library->plan_create(&plan, context, &problem, NULL) != FATTN_OK)
        die("shared");
    const fattn_tensors t = { .struct_size = sizeof t,
                              .q = zeros[0],
                              .k = zeros[1],
                              .v = zeros[2],
                              .o = zeros[3],
                              .workspace = workspace,
                              .workspace_bytes = sizeof workspace };
    if (kind == FATTN_DEVICE_CPU && library->forward(plan, &t, NULL) !=
                                        FATTN_OK) /* OpenMP's threads wait for more from now on */
        die(library->last_error());
}

static int unloaded(int kind)
{
    char path[4096];
    shared_library library = { .handle = NULL };
    snprintf(path, sizeof path, "%s/../package/libfattn.so", getenv("FACTS_BIN"));
    library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library.handle == NULL)
        return 4;
    find(&library, "fattn_context_create", &library.context_create);
    find(&library, "fattn_plan_create", &library.plan_create);
    find(&library, "fattn_forward", &library.forward);
    find(&library, "fattn_last_error", &library.last_error);
    use(&library, kind);
    leaves_memory = 1;
    if (dlclose(library.handle) != 0)
        return 5;
    usleep(100000);
    return 0;
}

/* ---- one process each
 * ----------------------------------------------------------------------------------------------------------------
 */

static int live(const char *order, const char *device)
{
#define AS_CASE(name, what)                                                                        \
    if (strcmp(order, #name) == 0)                                                                 \
        return name(device_of(device));
    ORDER_LIST(AS_CASE)
#undef AS_CASE
    if (strcmp(order, "unloaded") == 0)
        return unloaded(device_of(device));
    return 2;
}

static void expect_clean_end(const char *order, const char *what, const char *device)
{
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    cr_assert_gt(length, 0);
    program[length] = '\0';
    char *arguments[] = { program, (char *)"--life", (char *)(uintptr_t)order,
                          (char *)(uintptr_t)device, NULL };
    pid_t child;
    int status;
    unsetenv(
        "BXFI_MAP"); /* Criterion's own: who finds it believes to be one of its test processes */
    setenv("ASAN_OPTIONS", "detect_leaks=1", 0); /* the tests themselves leak */
    cr_assert_eq(posix_spawn(&child, program, NULL, NULL, arguments, environ), 0);
    for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++) {
        if (i == 30000) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            cr_assert_fail("%s, %s: still there after five minutes", device, what);
        }
        usleep(10000);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        cr_skip_test("no GPU");
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s, %s: %s %d", device, what,
              WIFEXITED(status) ? "exit" : "signal",
              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

#define EXPECT(name, what) expect_clean_end(#name, what, device);

Test(life, the_cpu_ends_cleanly_in_every_order)
{
    const char *device = "cpu";
    ORDER_LIST(EXPECT)
}

Test(life, a_described_device_ends_cleanly_in_every_order)
{
    const char *device = "described";
    h100_options();        /* skips where there is no cuDNN */
    if (compiling_all()) { /* each order compiles */
        ORDER_LIST(EXPECT)
        return;
    }
    EXPECT(plan_first, "a plan of the cache, then the context, then return from main")
    if (compiling()) {
        EXPECT(nothing, "nothing is destroyed; return from main")
        EXPECT(early_handler, "destroyed by an exit handler of before any library was mapped")
        EXPECT(destructor, "destroyed by a destructor of the program, after every exit handler")
    }
}

Test(life, a_gpu_ends_cleanly_in_every_order)
{
    const char *device = "gpu";
    h100_options();
    ORDER_LIST(EXPECT)
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--life") == 0)
        return live(argv[2], argv[3]);
    struct criterion_test_set *tests = criterion_initialize();
    int failed = criterion_handle_args(argc, argv, true) && !criterion_run_all_tests(tests);
    criterion_finalize(tests);
    return failed;
}

#ifndef __SANITIZE_ADDRESS__ /* built beside the release alone */
/* Several times: whether OpenMP's threads are still running is chance. */
Test(life, the_shared_library_may_be_closed_with_everything_alive)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/../package/libfattn.so",
             getenv("FACTS_BIN") != NULL ? getenv("FACTS_BIN") : "");
    if (access(path, R_OK) != 0)
        cr_skip_test("no libfattn.so was built");
    for (int i = 0; i < 6; i++)
        expect_clean_end("unloaded", "dlclose, then exit", "cpu");
    h100_options();
    expect_clean_end("unloaded", "dlclose, then exit", "described");
}
#endif
