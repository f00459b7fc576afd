#include "log.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

enum { LOG_LIMIT = 256 * 1024 };

static _Thread_local fattn__log_buffer *current;

void fattn__log_open(fattn__log_buffer *buffer)
{
    *buffer = (fattn__log_buffer){ .outer = current };
    current = buffer;
}

void fattn__log_close(fattn__log_buffer *buffer)
{
    current = buffer->outer;
}

void fattn__log_free(fattn__log_buffer *buffer)
{
    free(buffer->text);
    buffer->text = NULL;
    buffer->used = 0;
}

/* A message is a row of strings, ended by an empty one. */
void fattn__log_callback(int severity, void *user, const void *debug, const char *message)
{
    (void)severity, (void)user, (void)debug;
    fattn__log_buffer *buffer = current;
    for (const char *line = message; buffer != NULL && line != NULL && *line != '\0';
         line += strlen(line) + 1) {
        size_t n = strlen(line);
        if (buffer->used + n + 2 > LOG_LIMIT)
            return;
        char *text = realloc(buffer->text, buffer->used + n + 2);
        if (text == NULL)
            return;
        memcpy(text + buffer->used, line, n);
        buffer->used += n;
        text[buffer->used++] = '\n';
        text[buffer->used] = '\0';
        buffer->text = text;
    }
}

/* ---- reading
 * ---------------------------------------------------------------------------------------------------------------
 */

static char *after(char *text, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

/* "CUDNN_STATUS_X; Reason: sentence at: condition", of which each part may be missing. Cuts `line`
 * in place. */
static fattn_refusal read_refusal(char *line, int64_t engine)
{
    fattn_refusal refusal = { .engine = engine, .status = "", .text = line, .condition = "" };
    char *semicolon = strchr(line, ';');
    if (after(line, "CUDNN_STATUS_") != NULL && semicolon != NULL) {
        *semicolon = '\0';
        refusal.status = line;
        line = semicolon + 1 + strspn(semicolon + 1, " ");
        char *reason = after(line, "Reason: ");
        refusal.text = line = reason != NULL ? reason : line;
    }
    char *at = NULL;
    for (char *next = line; (next = strstr(next, " at: ")) != NULL; next++)
        at = next;
    if (at != NULL) {
        *at = '\0';
        refusal.condition = at + strlen(" at: ");
    }
    return refusal;
}

static fattn_refusal *grow(fattn_decision *out)
{
    size_t count = out->refusal_count;
    if (count % 32 == 0) {
        fattn_refusal *refusals = realloc(out->refusals, (count + 32) * sizeof *refusals);
        if (refusals == NULL)
            return NULL;
        out->refusals = refusals;
    }
    out->refusal_count++;
    return &out->refusals[count];
}

fattn_status fattn__log_refusals(fattn_decision *out, const char *text, int *first)
{
    *first = -1;
    char *copy = strdup(text);
    if (copy == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for cuDNN's reasons");
    free(out->refusals);
    free(out->refusal_text);
    out->refusals = NULL;
    out->refusal_count = 0;
    out->refusal_text = copy;
    int64_t engine = -1;
    bool of_first_engine = false;
    char *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        line += strspn(line, " ");
        char *id = strstr(line, "\"engineId\":");
        if (id != NULL) {
            of_first_engine = engine == -1;
            engine = strtoll(id + strlen("\"engineId\":"), NULL, 10);
            continue;
        }
        char *body = after(line, "Warning: ");
        body = body != NULL ? body : after(line, "Error: ");
        if (body == NULL)
            continue;
        fattn_refusal *refusal = grow(out);
        if (refusal == NULL)
            return fattn__fail(FATTN_NO_MEMORY, "no memory for cuDNN's reasons");
        *refusal = read_refusal(body, engine);
        bool is_first = of_first_engine || *first < 0;
        of_first_engine = false;
        if (is_first)
            *first = (int)out->refusal_count - 1;
    }
    return FATTN_OK;
}

void fattn__log_sentence(const fattn__log_buffer *buffer, const char *status, char *out,
                         size_t capacity)
{
    fattn_decision answer = { 0 };
    int first = -1;
    snprintf(out, capacity, "%s", status);
    if (buffer->text != NULL && fattn__log_refusals(&answer, buffer->text, &first) == FATTN_OK &&
        first >= 0) {
        const fattn_refusal *refusal = &answer.refusals[first];
        const char *name = refusal->status[0] != '\0' ? refusal->status : status;
        if (refusal->condition[0] != '\0')
            snprintf(out, capacity, "%s: %s (%s)", name, refusal->text, refusal->condition);
        else
            snprintf(out, capacity, "%s: %s", name, refusal->text);
    }
    free(answer.refusals);
    free(answer.refusal_text);
}
