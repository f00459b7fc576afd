/* A supervisor without memory has nothing to go on with. It says so and ends with 3, as a SIGKILL would end it: the workers die with it,
 * every line of the record is whole, and --resume goes on. Linked over what the program's own code, libuv and jansson ask for (--wrap), so
 * that none of them can go on with an answer that is missing. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/options.h"

static _Noreturn void end_without_memory(void)
{
    static const char text[] = "facts: out of memory; a record is whole up to here, and --resume goes on with it\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(FACTS_EXIT_ENVIRONMENT);
    _exit(FACTS_EXIT_ENVIRONMENT);
}

static void *or_end(void *memory)
{
    if (!memory)
        end_without_memory();
    return memory;
}

/* Of a function that opens something: other failures are its caller's. */
static void *or_end_if_memory(void *opened)
{
    if (!opened && errno == ENOMEM)
        end_without_memory();
    return opened;
}

#define WRAP(type, name, parameters, arguments, answer)                                                                            \
    type __real_##name parameters;                                                                                                 \
    type __wrap_##name parameters;                                                                                                 \
    type __wrap_##name parameters                                                                                                  \
    {                                                                                                                              \
        return answer(__real_##name arguments);                                                                                    \
    }
WRAP(char *, strdup, (const char *text), (text), or_end)
WRAP(char *, strndup, (const char *text, size_t most), (text, most), or_end)
WRAP(FILE *, open_memstream, (char **text, size_t *size), (text, size), or_end)
WRAP(FILE *, fopen, (const char *path, const char *mode), (path, mode), or_end_if_memory)
WRAP(FILE *, fdopen, (int file, const char *mode), (file, mode), or_end_if_memory)
WRAP(DIR *, opendir, (const char *path), (path), or_end_if_memory)
WRAP(char *, realpath, (const char *path, char *out), (path, out), or_end_if_memory)

/* Nothing may come back for nothing. */
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return or_end(__real_malloc(size ? size : 1));
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return or_end(__real_calloc(count ? count : 1, size ? size : 1));
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
    return or_end(__real_realloc(memory, size ? size : 1));
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
