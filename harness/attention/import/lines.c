#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "reading.h"

enum { MOST_ORPHANS = 100 };

/* From the first '{' on to the last '}'. */
static bool object_in(const char **text, size_t *length)
{
    const char *end = memrchr(*text, '}', *length);
    if (end == NULL)
        return false;
    *length = (size_t)(end - *text) + 1;
    return true;
}

static void frontend_graph(facts_import *m, const char *text, size_t length, size_t line)
{
    facts_import_thread *t = facts_import_thread_named(m, "");
    size_t whole = length;
    const char *at = text;
    if (!object_in(&at, &length))
        length = whole; /* cut off: the parser says where */
    uint64_t hash = XXH3_64bits(at, length) | 1;
    if (facts_import_known_graph(m, t, hash))
        return;
    json_t *root = facts_import_parse(m, at, length, line);
    t->problem = FACTS_IMPORT_NO_PROBLEM;
    if (root != NULL)
        facts_import_add_graph(m, t, root, hash, line);
}

static void fail(facts_import *m, facts_import_thread *t, const char *note)
{
    if (t != NULL && t->problem >= 0) {
        facts_import_say_of(&m->problem[t->problem], note);
        return;
    }
    for (size_t i = 0; i < m->orphan_kept; i++)
        if (strcmp(strchr(m->orphan[i], ' ') + 1, note) == 0)
            return;
    m->orphan_total++;
    facts_import_keep(&m->orphan, &m->orphan_kept, MOST_ORPHANS, "%s:%zu: %s", m->name, m->line,
                      note);
}

void facts_import_close_event(facts_import *m, const char *name)
{
    facts_import_event *e = &m->event;
    if (e->open && (e->graph != NULL || e->refused)) {
        facts_import_thread *t = facts_import_thread_named(m, name);
        if (e->graph != NULL && !facts_import_known_graph(m, t, e->hash))
            facts_import_add_graph(m, t, json_incref(e->graph), e->hash, e->line);
        for (int i = 0; e->refused && i < e->log_count; i++)
            fail(m, t, e->log_text[i]);
    }
    json_decref(e->graph);
    *e = (facts_import_event){ 0 };
}

/* An event's line that holds JSON. The configurations that follow a graph hold it again. */
static void event_json(facts_import *m, const char *text, size_t length)
{
    facts_import_event *e = &m->event;
    if (!e->graph_event || e->graph != NULL ||
        facts_import_find(text, length < 400 ? length : 400, "\"operationGraph\"") == NULL)
        return;
    size_t whole = length;
    if (!object_in(&text, &length))
        length = whole;
    e->line = m->line;
    e->hash = XXH3_64bits(text, length) | 1;
    e->graph = facts_import_parse(m, text, length, m->line);
}

/* The first reason after each engine is the reason; what follows is the way out of it. */
static void event_reason(facts_import *m, const char *text, size_t length)
{
    facts_import_event *e = &m->event;
    bool nobody = facts_import_find(text, length, "No viable") != NULL,
         status = facts_import_find(text, length, "CUDNN_STATUS_") != NULL;
    e->refused = e->refused || nobody;
    if (nobody || !status || e->reasoned || e->log_count >= FACTS_IMPORT_LOG)
        return;
    e->reasoned = true;
    facts_import_printable(e->log_text[e->log_count++], FACTS_IMPORT_LOG_TEXT, text, length);
}

/* The number behind a word; 0: there is none. */
static int number_behind(const char *text, size_t length, const char *word)
{
    const char *at = facts_import_find(text, length, word), *end = text + length;
    int number = 0;
    for (at = at != NULL ? at + strlen(word) : end;
         at < end && *at >= '0' && *at <= '9' && number < 1000000; at++)
        number = 10 * number + (*at - '0');
    return number;
}

/* "smVersion" of a configuration; "GPU 0: NVIDIA H100 80GB HBM3" of nvidia-smi -L and PyTorch's
 * collect_env. */
static void name_gpu(facts_import *m, const char *text, size_t length)
{
    const int sm = number_behind(text, length, "\"smVersion\":");
    const char *at = facts_import_find(text, length, ": NVIDIA ");
    if (sm > 0)
        facts_import_name(m, "GPU", "sm_%d", sm / 10);
    if (at != NULL && facts_import_starts(text, length, "GPU ")) {
        const size_t room = length - (size_t)(at + 2 - text);
        const char *end = facts_import_find(at + 2, room, " (");
        facts_import_name(m, "GPU", "%.*s", (int)(end != NULL ? (size_t)(end - at) - 2 : room),
                          at + 2);
    }
}

/* A line of cuDNN's own log, its prefix ("i! ") taken off. */
static void backend_line(facts_import *m, const char *text, size_t length, char severity)
{
    facts_import_event *e = &m->event;
    if (facts_import_starts(text, length, "CuDNN (v") ||
        (facts_import_starts(text, length, "Function ") &&
         facts_import_find(text, length, "called:"))) {
        facts_import_close_event(m, "?");
        facts_import_name_number(m, "cuDNN", number_behind(text, length, "CuDNN (v"));
        e->open = true;
        e->graph_event = facts_import_find(text, length, "GraphVisualize") != NULL;
        e->refused = severity == 'E';
        return;
    }
    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    const char *json = facts_import_starts(text, length, "apiLog: type=json; val=")
                           ? text + strlen("apiLog: type=json; val=")
                           : NULL;
    bool warns = facts_import_starts(text, length, "Warning: ") ||
                 facts_import_starts(text, length, "Error: ");
    if (json != NULL)
        event_json(m, json, length - (size_t)(json - text));
    else if (facts_import_starts(text, length, "=== error stack") ||
             facts_import_starts(text, length, "engineConfig:")) {
        name_gpu(m, text, length);
        e->reasoned = false;
    } else if (warns)
        event_reason(m, text, length);
    else if (facts_import_starts(text, length, "Process=") && e->open) {
        char name[64];
        const char *end = facts_import_find(text, length, "; GPU=");
        facts_import_printable(name, sizeof name, text,
                               end != NULL ? (size_t)(end - text) : length);
        facts_import_close_event(m, name);
    }
}

static void frontend_failure(facts_import *m, const char *text, size_t length)
{
    char log_text[FACTS_IMPORT_LOG_TEXT];
    facts_import_printable(log_text, sizeof log_text, text, length);
    fail(m, facts_import_thread_named(m, ""), log_text);
}

/* A graph that is spread over several lines, as an indented dump is. */
static bool block_line(facts_import *m, const char *text, size_t length)
{
    bool first = m->block == NULL && length == 1 && text[0] == '{';
    if (!first && m->block == NULL)
        return false;
    if (first)
        m->block_line = m->line;
    if (m->block_length + length + 1 > FACTS_IMPORT_LINE) {
        facts_import_say_unread(m, m->block_line, "a graph over several lines that does not end");
    } else {
        m->block = realloc(m->block, m->block_length + length + 1);
        memcpy(m->block + m->block_length, text, length);
        m->block_length += length;
        m->block[m->block_length++] = '\n';
        if (!(length == 1 && text[0] == '}'))
            return true;
        if (facts_import_find(m->block, m->block_length, "\"nodes\"") != NULL)
            frontend_graph(m, m->block, m->block_length, m->block_line);
    }
    free(m->block);
    m->block = NULL;
    m->block_length = 0;
    return true;
}

void facts_import_line(facts_import *m, const char *text, size_t length)
{
    m->line++;
    while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == '\n'))
        length--;
    if (block_line(m, text, length) || length == 0)
        return;
    const char *graph = facts_import_find(text, length < 4096 ? length : 4096, "{\"context\":");
    bool prefixed = length > 2 && text[1] == '!' && strchr("IiWwEe", text[0]) != NULL;
    if (graph != NULL)
        frontend_graph(m, graph, length - (size_t)(graph - text), m->line);
    else if (facts_import_starts(text, length, "[cudnn_frontend]")) {
        facts_import_name_number(m, "cuDNN", number_behind(text, length, "used at runtime ("));
        facts_import_name_number(m, "cuDNN at compile time",
                                 number_behind(text, length, "used at compilation ("));
        bool failed = facts_import_find(text, length, "ERROR") ||
                      (facts_import_find(text, length, "CUDNN_STATUS_") &&
                       !facts_import_find(text, length, "CUDNN_STATUS_SUCCESS"));
        if (failed)
            frontend_failure(m, text, length);
    } else if (prefixed) {
        size_t skip = text[2] == ' ' ? 3 : 2;
        backend_line(m, text + skip, length - skip, text[0]);
    } else if (m->event.open || facts_import_starts(text, length, "CuDNN (v") ||
               facts_import_starts(text, length, "Function ")) {
        backend_line(m, text, length, ' ');
    } else if (!facts_import_call_line(m, text, length)) {
        name_gpu(m, text, length);
        facts_import_environment(m, text, length);
        if (facts_import_is_failure(text, length))
            frontend_failure(m, text, length);
    }
}
