/* Lets call number N of some functions of libc fail, stop short, or kill the process. For LD_PRELOAD, and for a program that links
 * it and calls torture_arm. ci/torture/README.md says what uses it. Environment: TORTURE_PROGRAM  names of programs, separated by
 * commas; every other program runs untouched TORTURE_CALLS    which calls count: memory, or a list of open read write fsync rename
 * close mkdir TORTURE_AT       the number of the call, from 1; 0 or absent: calls are only counted TORTURE_DO       ENOMEM
 * (default), ENOSPC, EIO, EINTR: the call fails so; short: half of a read or write is done; kill, stop: the process gets SIGKILL or
 * SIGSTOP before the call; torn: half of a write is done, then SIGKILL TORTURE_EVER     set: all later calls fail too TORTURE_COUNT
 * a file of 16 bytes: how many calls there were, how many did not go through. It survives the process. TORTURE_TRACE    set: the
 * call that fails shows its callers on stderr */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CALL_LIST(X) X(memory) X(open) X(read) X(write) X(fsync) X(rename) X(close) X(mkdir)
#define AS_ENUM(name) CALL_##name,
enum call { CALL_LIST(AS_ENUM) CALL_COUNT };
#undef AS_ENUM
#define AS_NAME(name) #name,
static const char *const call_names[] = { CALL_LIST(AS_NAME) };
#undef AS_NAME

enum way { WAY_ERRNO, WAY_SHORT, WAY_KILL, WAY_STOP, WAY_TORN, WAY_SIGNAL, WAY_TWICE, WAY_ALONE };
static const struct {
    const char *name;
    enum way way;
    int error;
} ways[] = { { "ENOMEM", WAY_ERRNO, ENOMEM },
             { "ENOSPC", WAY_ERRNO, ENOSPC },
             { "EIO", WAY_ERRNO, EIO },
             { "EINTR", WAY_ERRNO, EINTR },
             { "short", WAY_SHORT, 0 },
             { "kill", WAY_KILL, 0 },
             { "stop", WAY_STOP, 0 },
             { "torn", WAY_TORN, 0 },
             { "SIGINT", WAY_SIGNAL, SIGINT },
             { "SIGTERM", WAY_SIGNAL, SIGTERM },
             { "SIGINT twice", WAY_TWICE, SIGINT },
             { "SIGTERM twice", WAY_TWICE, SIGTERM },
             { "SIGTERM alone", WAY_ALONE, SIGTERM } };

typedef struct counts {
    _Atomic uint64_t calls, fired;
} counts;

static struct {
    bool on, ever, trace;
    unsigned calls; /* bits */
    uint64_t at;
    enum way way;
    int error;
    pid_t process;
    uintptr_t from, to; /* not 0: only calls from this stretch of code count */
    counts *counts;
} plan;
static counts own_counts;
static long clock_offset;
static _Thread_local bool busy; /* inside this file: what it calls itself does not count */

static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (; list && *list; list += strcspn(list, ","), list += *list == ',')
        if (strcspn(list, ",") == n && memcmp(list, word, n) == 0)
            return true;
    return false;
}

static counts *shared_counts(const char *path)
{
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *page = file < 0 ? MAP_FAILED
                          : mmap(NULL, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    return page == MAP_FAILED ? &own_counts : page;
}

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("TORTURE_AT"), *what = getenv("TORTURE_DO"),
               *which = getenv("TORTURE_CALLS"), *offset = getenv("TORTURE_CLOCK");
    clock_offset = offset ? strtol(offset, NULL, 10) : 0;
    plan.counts = &own_counts;
    if (!which || !has_word(getenv("TORTURE_PROGRAM"), program_invocation_short_name))
        return;
    for (int i = 0; i < CALL_COUNT; i++)
        plan.calls |= has_word(which, call_names[i]) ? 1u << i : 0;
    plan.error = ENOMEM;
    for (size_t i = 0; what && i < sizeof ways / sizeof ways[0]; i++)
        if (strcmp(ways[i].name, what) == 0)
            plan.way = ways[i].way, plan.error = ways[i].error;
    plan.at = at ? strtoull(at, NULL, 10) : 0;
    plan.ever = getenv("TORTURE_EVER") != NULL;
    plan.trace = getenv("TORTURE_TRACE") != NULL;
    plan.counts = shared_counts(getenv("TORTURE_COUNT"));
    plan.process = getpid();
    plan.on = true;
}

static int whole_program(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            plan.from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            plan.to = plan.from + info->dlpi_phdr[i].p_memsz;
        }
    return 1; /* the first is the program itself */
}

/* For a program that asks function after function: allocation number `at` from now on fails, and
 * with `ever` all behind it. Only calls out of the program's own code count: what a library of
 * others does without memory is not ours. */
void torture_arm(uint64_t at, bool ever);
void torture_arm(uint64_t at, bool ever)
{
    dl_iterate_phdr(whole_program, NULL);
    plan.calls = 1u << CALL_memory;
    plan.error = ENOMEM;
    plan.at = at;
    plan.ever = ever;
    plan.trace = getenv("TORTURE_TRACE") != NULL;
    plan.counts = &own_counts;
    own_counts.calls = own_counts.fired = 0;
    plan.process = getpid();
    plan.on = true;
}

/* Returns how many allocations did not go through. */
uint64_t torture_disarm(void);
uint64_t torture_disarm(void)
{
    plan.on = false;
    return own_counts.fired;
}

static void show_callers(void)
{
    void *callers[24];
    busy = true;
    const int n = backtrace(callers, 24);
    backtrace_symbols_fd(callers + 2, n - 2, 2);
    busy = false;
}

/* True: this call shall not go through. */
static bool hit(enum call call, const void *caller)
{
    if (!plan.on || busy || !(plan.calls & 1u << call) || plan.process != getpid() ||
        (plan.from && ((uintptr_t)caller < plan.from || (uintptr_t)caller >= plan.to)))
        return false;
    const uint64_t n = atomic_fetch_add(&plan.counts->calls, 1) + 1;
    if (!plan.at || (plan.ever ? n < plan.at : n != plan.at))
        return false;
    atomic_fetch_add(&plan.counts->fired, 1);
    if (plan.trace)
        show_callers();
    if (plan.way == WAY_KILL || plan.way == WAY_STOP)
        kill(getpid(), plan.way == WAY_KILL ? SIGKILL : SIGSTOP);
    for (int i = 0; i < 2 && plan.way >= WAY_SIGNAL; i++)
        if (i == 0 || plan.way == WAY_TWICE)
            kill(plan.way == WAY_ALONE ? getppid()
                                       : 0, /* 0: the process group, as a terminal does */
                 plan.error);
    if (plan.way == WAY_STOP || plan.way >= WAY_SIGNAL)
        return false;
    errno = plan.error;
    return true;
}

/* The next definition of a function. While dlsym itself asks for memory there is none yet. */
#define NEXT(name)                                                                                 \
    static __typeof__(name) *next;                                                                 \
    if (!next) {                                                                                   \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                                                 \
    }
#define HIT(call) hit(CALL_##call, __builtin_return_address(0))

/* SIMPLE(type, name, call, failed, parameters, arguments): a function whose failure has one form.
 */
#define SIMPLE(type, name, call, failed, parameters, ...)                                          \
    type name parameters                                                                           \
    {                                                                                              \
        NEXT(name)                                                                                 \
        return HIT(call) ? failed : next(__VA_ARGS__);                                             \
    }

/* ---- memory
 * -------------------------------------------------------------------------------------------------------------------
 */

static char early[4096]; /* what dlsym asks for before there is an allocator; never given back */
static _Atomic size_t early_used;

static void *early_room(size_t size)
{
    const size_t at = atomic_fetch_add(&early_used, (size + 15) & ~(size_t)15);
    return at + size <= sizeof early ? early + at : NULL;
}

static bool is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof early;
}

/* dlsym itself asks for memory and gives some back: what it does while we look for the allocator is
 * done here. */
static _Thread_local volatile bool
    looking; /* volatile: glibc promises that dlsym does not come back here, and it does */
#define NEXT_UNLESS_LOOKING(name, otherwise)                                                       \
    static __typeof__(name) *next;                                                                 \
    if (!next) {                                                                                   \
        if (looking)                                                                               \
            return otherwise;                                                                      \
        looking = true;                                                                            \
        *(void **)&next = dlsym(RTLD_NEXT, #name);                                                 \
        looking = false;                                                                           \
    }

void *malloc(size_t size)
{
    NEXT_UNLESS_LOOKING(malloc, early_room(size))
    return HIT(memory) ? NULL : next(size);
}

void *calloc(size_t count, size_t size)
{
    NEXT_UNLESS_LOOKING(calloc, early_room(count * size))
    return HIT(memory) ? NULL : next(count, size);
}

SIMPLE(void *, realloc, memory, NULL, (void *p, size_t size), p, size)

void free(void *p)
{
    NEXT_UNLESS_LOOKING(free, (void)0)
    if (!is_early(p))
        next(p);
}

SIMPLE(int, posix_memalign, memory, ENOMEM, (void **out, size_t alignment, size_t size), out,
       alignment, size)
SIMPLE(void *, aligned_alloc, memory, NULL, (size_t alignment, size_t size), alignment, size)

/* What they ask of malloc does not count again. */
#define COPY(name, parameters, ...)                                                                \
    char *name parameters                                                                          \
    {                                                                                              \
        NEXT(name)                                                                                 \
        const bool failed = HIT(memory), was = busy;                                               \
        busy = true;                                                                               \
        char *copy = failed ? NULL : next(__VA_ARGS__);                                            \
        busy = was;                                                                                \
        return copy;                                                                               \
    }
COPY(strdup, (const char *text), text)
COPY(strndup, (const char *text, size_t size), text, size)

/* Does a read or write of it count? Not what libuv wakes itself up with: a pipe of its own and an
 * eventfd, which cannot fail. */
static bool counts_as_file(int file)
{
    struct stat info;
    const int error = errno;
    const bool known =
        fstat(file, &info) == 0 && (info.st_mode & S_IFMT) && !(S_ISFIFO(info.st_mode) && file > 2);
    errno = error;
    return known;
}

/* ---- files
 * --------------------------------------------------------------------------------------------------------------------
 */

#define MODE(flags)                                                                                \
    mode_t mode = 0;                                                                               \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                                                         \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        mode = va_arg(rest, mode_t);                                                               \
        va_end(rest);                                                                              \
    }
#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...)                                                     \
    {                                                                                              \
        NEXT(name)                                                                                 \
        MODE(flags)                                                                                \
        return HIT(open) ? -1 : next(path, flags, mode);                                           \
    }
#define OPENAT(name)                                                                               \
    int name(int folder, const char *path, int flags, ...)                                         \
    {                                                                                              \
        NEXT(name)                                                                                 \
        MODE(flags)                                                                                \
        return HIT(open) ? -1 : next(folder, path, flags, mode);                                   \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

SIMPLE(FILE *, fopen, open, NULL, (const char *path, const char *mode), path, mode)
SIMPLE(FILE *, fopen64, open, NULL, (const char *path, const char *mode), path, mode)
SIMPLE(DIR *, opendir, open, NULL, (const char *path), path)
SIMPLE(DIR *, fdopendir, open, NULL, (int folder), folder)
SIMPLE(int, mkstemp, open, -1, (char *path), path)
SIMPLE(int, mkstemp64, open, -1, (char *path), path)
SIMPLE(int, fsync, fsync, -1, (int file), file)
SIMPLE(int, fdatasync, fsync, -1, (int file), file)
SIMPLE(int, rename, rename, -1, (const char *from, const char *to), from, to)
SIMPLE(int, renameat, rename, -1, (int a, const char *from, int b, const char *to), a, from, b, to)
SIMPLE(int, mkdir, mkdir, -1, (const char *path, mode_t mode), path, mode)
SIMPLE(int, mkdirat, mkdir, -1, (int folder, const char *path, mode_t mode), folder, path, mode)
SIMPLE(char *, mkdtemp, mkdir, NULL, (char *path), path)

ssize_t read(int file, void *bytes, size_t count)
{
    NEXT(read)
    if (!counts_as_file(file) || !HIT(read))
        return next(file, bytes, count);
    return plan.way == WAY_SHORT ? next(file, bytes, count > 1 ? count / 2 : count) : -1;
}

ssize_t write(int file, const void *bytes, size_t count)
{
    NEXT(write)
    if (!counts_as_file(file) || !HIT(write))
        return next(file, bytes, count);
    const ssize_t wrote =
        plan.way == WAY_ERRNO ? -1 : next(file, bytes, count > 1 ? count / 2 : count);
    if (plan.way == WAY_TORN)
        kill(getpid(), SIGKILL);
    return wrote;
}

/* A clock that was set to another day. */
int clock_gettime(clockid_t clock, struct timespec *out)
{
    NEXT(clock_gettime)
    const int status = next(clock, out);
    out->tv_sec += clock == CLOCK_REALTIME ? clock_offset : 0;
    return status;
}

/* Closing what was only read loses nothing. */
static bool was_written(int file)
{
    struct stat info;
    const int error = errno, flags = fcntl(file, F_GETFL);
    const bool written = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(file, &info) == 0 &&
                         S_ISREG(info.st_mode);
    errno = error;
    return written;
}

/* On Linux the descriptor is gone, whatever close returns. */
#define CLOSE(name, type, number)                                                                  \
    int name(type file)                                                                            \
    {                                                                                              \
        NEXT(name)                                                                                 \
        const bool failed = was_written(number) && HIT(close);                                     \
        const int error = errno, status = next(file);                                              \
        if (!failed)                                                                               \
            return status;                                                                         \
        errno = error;                                                                             \
        return -1; /* EOF too */                                                                   \
    }
CLOSE(close, int, file)
CLOSE(fclose, FILE *, fileno(file))
