#include "reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "words/worker_exit.h"

/* Digits of a double: they identify every float, and measured values are not more precise. */
#define DIGITS 9

static int channel = -1;

bool facts_reply_open(void)
{
    channel = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    return channel >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

void facts_reply_hand_on(void)
{
    dup2(channel, STDOUT_FILENO);
}

/* One write, unless the pipe takes less. If the supervisor has ended, nothing is reported. */
static void put(const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(channel, text, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            _exit(FACTS_WORKER_NO_CHANNEL);
        text += n;
        length -= (size_t)n;
    }
}

void facts_reply(json_t *object)
{
    char *text =
        object ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS))
               : NULL;
    size_t length = text ? strlen(text) : 0;
    json_decref(object);
    if (!text)
        _exit(FACTS_WORKER_NO_MEMORY);
    text[length] = '\n'; /* over the final NUL: one write */
    put(text, length + 1);
    free(text);
}

void facts_reply_stage(int64_t id, const char *stage, int32_t config)
{
    json_t *object = json_pack("{s:I,s:s}", "id", (json_int_t)id, "stage", stage);
    if (config >= 0)
        json_object_set_new(object, "config", json_integer(config));
    facts_reply(object);
}

void facts_reply_row(int64_t id, json_t *row, bool last, bool bye)
{
    json_t *object = json_pack("{s:I,s:o}", "id", (json_int_t)id, "row", row);
    if (last)
        json_object_set_new(object, "last", json_true());
    if (bye)
        json_object_set_new(object, "bye", json_true());
    facts_reply(object);
}

void facts_reply_again(int64_t id)
{
    facts_reply(json_pack("{s:I,s:b}", "id", (json_int_t)id, "again", 1));
}

void facts_reply_turn(int64_t id, json_t *turn)
{
    facts_reply(json_pack("{s:I,s:o,s:b}", "id", (json_int_t)id, "time", turn, "last", 1));
}

void facts_reply_none(int64_t id, bool bye)
{
    facts_reply(
        json_pack("{s:I,s:b,s:b,s:b}", "id", (json_int_t)id, "none", 1, "last", 1, "bye", bye));
}
