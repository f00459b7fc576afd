#include "replace.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "keys/keys.h"
#include "language/case.h"
#include "problem/case_problem.h"
#include "reply.h"
#include "words/rescale.h"

/* rescale= of a case; "" for cuDNN's own. */
static void threshold_of(char out[24], const char *text)
{
    facts_case c;
    facts_error error;
    const char *value = "auto";
    if (facts_case_parse(&c, text, &error))
        value = facts_case_get(&c, FACTS_KEY_RESCALE);
    snprintf(out, 24, "%s", strcmp(value, "auto") == 0 ? "" : value);
}

bool facts_replace_now(const facts_process *process, const facts_request *request)
{
    char wanted[24];
    const char *now = getenv(FACTS_RESCALE);
    if (process->device == FACTS_DEVICE_CPU)
        return false;
    if (request->fresh && process->driver->health(process->worker) != FACTS_HEALTH_FRESH)
        return true;
    threshold_of(wanted, request->text);
    return strcmp(wanted, now ? now : "") != 0;
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
    char wanted[24], number[16];
    int file = memfd_create("lines", 0); /* stays open over exec */
    if (!put_all(file, in_hand)) {
        if (file >= 0)
            close(file);
        return;
    }
    facts_reply_stage(request->id, "start", -1);
    threshold_of(wanted, request->text);
    snprintf(number, sizeof number, "%d", file);
    if (wanted[0])
        setenv(FACTS_RESCALE, wanted, 1);
    else
        unsetenv(FACTS_RESCALE);
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
