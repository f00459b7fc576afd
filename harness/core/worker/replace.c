#include "replace.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reply.h"

/* Reads the case, and what it needs in the environment variable of its language. */
static const char *wanted(facts_case *out, const facts_process *process, const char *text)
{
    facts_error error;
    return facts_case_read(process->driver->language, out, text, &error) ? facts_case_process(out)
                                                                         : "";
}

bool facts_replace_now(const facts_process *process, const facts_request *request)
{
    facts_case c;
    const char *variable = process->driver->language->process_variable;
    const char *now = variable ? getenv(variable) : NULL;
    if (process->device == FACTS_DEVICE_CPU)
        return false;
    if (request->fresh && process->driver->health(process->worker) != FACTS_HEALTH_FRESH)
        return true;
    return variable && strcmp(wanted(&c, process, request->text), now ? now : "") != 0;
}

static bool put(int file, const char *text, size_t length)
{
    return write(file, text, length) == (ssize_t)length;
}

static bool put_all(int file, const facts_in_hand *all)
{
    return file >= 0 && put(file, all->target, strlen(all->target)) && put(file, "\n", 1) &&
           put(file, all->request, all->request_length) && put(file, "\n", 1) &&
           put(file, all->rest, all->rest_length) && lseek(file, 0, SEEK_SET) == 0;
}

void facts_replace(const facts_process *process, const facts_request *request,
                   const facts_in_hand *in_hand)
{
    facts_case c;
    char number[16];
    const char *variable = process->driver->language->process_variable;
    const char *value = wanted(&c, process, request->text);
    int file = memfd_create("lines", 0); /* stays open over exec */
    if (!put_all(file, in_hand)) {
        if (file >= 0)
            close(file);
        return;
    }
    facts_reply_stage(request->id, "start", -1);
    snprintf(number, sizeof number, "%d", file);
    if (variable && value[0])
        setenv(variable, value, 1);
    else if (variable)
        unsetenv(variable);
    setenv(FACTS_REPLACED, number, 1);
    process->driver->close(process->worker);
    facts_reply_hand_on();
    execv("/proc/self/exe", (char *[]){ (char[]){ "facts-worker" }, NULL });
    _exit(EXIT_FAILURE); /* the process cannot answer any more */
}

int facts_replaced_lines(void)
{
    const char *number = getenv(FACTS_REPLACED);
    const long file = number ? strtol(number, NULL, 10) : -1;
    unsetenv(FACTS_REPLACED);
    return file > STDERR_FILENO && file <= INT_MAX ? (int)file : -1;
}
