/* A program that continues without a part of its data gives a wrong answer. Without memory, facts
 * and facts-worker therefore print one line and end, as after a SIGKILL. Every line of the record
 * is complete, workers end with their supervisor, and
 * --resume continues the run. --wrap links these functions into all allocations of their own code,
 * libuv, jansson and OpenMP. The build sets how each program ends: FACTS_ENDS_WITH,
 * FACTS_ENDS_SAYING. An allocation above FACTS_ENDS_BELOW bytes is a tensor's: its caller handles
 * the failure. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Noreturn void end_without_memory(void)
{
    static const char text[] = FACTS_ENDS_SAYING "\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(FACTS_ENDS_WITH);
    _exit(FACTS_ENDS_WITH);
}

static void *or_end(void *memory)
{
    if (!memory)
        end_without_memory();
    return memory;
}

/* For a function that opens a file: its caller handles other failures. */
static void *or_end_if_memory(void *opened)
{
    if (!opened && errno == ENOMEM)
        end_without_memory();
    return opened;
}

#define WRAP(type, name, parameters, arguments, answer)                                            \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return answer(__real_##name arguments);                                                    \
    }
WRAP(char *, strdup, (const char *text), (text), or_end)
WRAP(char *, strndup, (const char *text, size_t most), (text, most), or_end)
WRAP(FILE *, open_memstream, (char **text, size_t *size), (text, size), or_end)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), or_end_if_memory)
WRAP(FILE *, fdopen, (int file, const char *mode), (file, mode), or_end_if_memory)
WRAP(DIR *, opendir, (const char *path), (path), or_end_if_memory)
WRAP(char *, realpath, (const char *path, char *out), (path, out), or_end_if_memory)

/* A request for 0 bytes may return NULL. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    void *memory = __real_malloc(size ? size : 1);
    return size > FACTS_ENDS_BELOW ? memory : or_end(memory);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    void *memory = __real_calloc(count ? count : 1, size ? size : 1);
    return size && count > FACTS_ENDS_BELOW / size ? memory : or_end(memory);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
    void *more = __real_realloc(memory, size ? size : 1);
    return size > FACTS_ENDS_BELOW ? more : or_end(more);
}

typedef int choose(const struct dirent *entry);
typedef int order(const struct dirent **a, const struct dirent **b);
int __real_scandir(const char *folder, struct dirent ***out, choose *chosen, order *in);
int __wrap_scandir(const char *folder, struct dirent ***out, choose *chosen, order *in);
int __wrap_scandir(const char *folder, struct dirent ***out, choose *chosen, order *in)
{
    const int count = __real_scandir(folder, out, chosen, in);
    if (count < 0 && errno == ENOMEM)
        end_without_memory();
    return count;
}

int __wrap_asprintf(char **out, const char *format, ...) __attribute__((format(printf, 2, 3)));
int __wrap_asprintf(char **out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vasprintf(out, format, arguments);
    va_end(arguments);
    if (length < 0)
        end_without_memory();
    return length;
}

/* OpenMP ends in this way if it gets no thread. No other linked code calls it. */
_Noreturn void __wrap_exit(int status);
_Noreturn void __wrap_exit(int status)
{
    (void)status;
    end_without_memory();
}
