#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "reading.h"
#include "words/case_text.h"

static const char *own_name(facts_import *m, const char *name)
{
    char shown[200];
    m->file = realloc(m->file, (m->files + 1) * sizeof *m->file);
    facts_import_printable(shown, sizeof shown, name, strlen(name));
    return m->file[m->files++] = strdup(shown);
}

void facts_import_know_gpus(facts_import *m, bool (*is_gpu)(const char *word))
{
    m->is_gpu = is_gpu;
    m->gpus_left = 100;
}

static void begin(facts_import *m, const char *name)
{
    m->name = own_name(m, name);
    m->line = 0;
    m->call_depth = 0;
    m->given_count = 0;
    m->gradients = false;
    for (int i = 0; i < FACTS_IMPORT_THREADS; i++) {
        facts_import_forget_part(&m->thread[i]);
        m->thread[i] = (facts_import_thread){ .problem = FACTS_IMPORT_NO_PROBLEM };
    }
}

static void end(facts_import *m)
{
    facts_import_close_event(m, "?");
    if (m->last_call && m->call_waits)
        facts_import_last_call(m);
    free(m->last_call);
    m->last_call = NULL;
    m->call_waits = false;
    if (m->block != NULL)
        facts_import_say_unread(m, m->block_line, "a graph over several lines that does not end");
    free(m->block);
    m->block = NULL;
    m->block_length = 0;
}

/* Of fattn_plan_save, or of a plan folder of an older FACTS, where a seal stands before it. */
static bool is_saved(const char *bytes, size_t count)
{
    return facts_import_starts(bytes, count, "FATTNPLN") ||
           facts_import_starts(bytes, count, "FACTSEAL");
}

/* A file of one JSON object, or of fattn_plan_save: a header, then such an object. */
static bool whole(facts_import *m, const char *bytes, size_t count)
{
    const char *at = bytes;
    size_t left = count;
    bool saved = is_saved(bytes, count);
    if (saved && (at = facts_import_find(bytes, count, "{\"cudnnVersion\"")) == NULL) {
        facts_import_say_unread(m, 1, "a saved plan without cuDNN's JSON in it");
        return true;
    }
    left = count - (size_t)(at - bytes);
    json_error_t error;
    json_t *root = json_loadb(at, left, 0, &error);
    if (root == NULL && saved)
        facts_import_say_unread(m, 1, "a saved plan whose JSON is broken");
    if (root == NULL)
        return saved;
    m->line = 1;
    facts_import_add_graph(m, facts_import_thread_named(m, ""), root, 0, 1);
    return true;
}

static bool is_whole(const char *bytes, size_t count)
{
    size_t i = 0;
    while (i < count &&
           (bytes[i] == ' ' || bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\t'))
        i++;
    return is_saved(bytes, count) || (i < count && bytes[i] == '{');
}

static void lines(facts_import *m, const char *bytes, size_t count)
{
    while (count > 0) {
        const char *newline = memchr(bytes, '\n', count);
        size_t length = newline != NULL ? (size_t)(newline - bytes) : count;
        facts_import_line(m, bytes, length);
        length += newline != NULL;
        bytes += length;
        count -= length;
    }
}

void facts_import_bytes(facts_import *m, const char *name, const char *bytes, size_t count)
{
    begin(m, name);
    if (!is_whole(bytes, count) || !whole(m, bytes, count))
        lines(m, bytes, count);
    end(m);
}

/* A piece of the file, and what of a line was before it. */
typedef struct stream {
    char *held;
    size_t length, room;
    bool skipping; /* the rest of a line that is too long */
} stream;

static void take_piece(facts_import *m, stream *s, const char *bytes, size_t count)
{
    while (count > 0) {
        const char *newline = memchr(bytes, '\n', count);
        size_t length = newline != NULL ? (size_t)(newline - bytes) : count;
        if (s->length + length > FACTS_IMPORT_LINE) {
            if (!s->skipping)
                facts_import_say_unread(m, m->line + 1, "a line of more than 16 MB: skipped");
            s->skipping = true;
            s->length = 0;
        }
        if (!s->skipping && (newline == NULL || s->length > 0)) {
            if (s->length + length > s->room) {
                s->room = 2 * (s->length + length);
                s->held = realloc(s->held, s->room);
            }
            memcpy(s->held + s->length, bytes, length);
            s->length += length;
        }
        if (newline != NULL) {
            if (s->skipping)
                m->line++;
            else
                facts_import_line(m, s->length > 0 ? s->held : bytes,
                                  s->length > 0 ? s->length : length);
            s->length = 0;
            s->skipping = false;
        }
        length += newline != NULL;
        bytes += length;
        count -= length;
    }
}

/* As much of a file in memory as a plan may be long. */
static char *read_whole(FILE *file, const char *head, size_t had, size_t *count)
{
    size_t room = 1 << 20;
    char *bytes = malloc(room);
    *count = 0;
    memcpy(bytes, head, had);
    for (size_t got = had; got > 0; got = fread(bytes + *count, 1, room - *count, file)) {
        *count += got;
        if (*count < room)
            continue;
        if (room >= FACTS_IMPORT_PLAN)
            break;
        room *= 2;
        bytes = realloc(bytes, room);
    }
    return bytes;
}

bool facts_import_file(facts_import *m, const char *path, facts_error *error)
{
    enum { PIECE = 1 << 16 };
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    char *piece = malloc(PIECE), quote[FACTS_QUOTE_MAX];
    stream s = { 0 };
    size_t got;
    if (file == NULL || ((got = fread(piece, 1, PIECE, file)) == 0 && ferror(file))) {
        snprintf(error->text, sizeof error->text, "%s: %s", facts_quote(quote, facts_span_of(path)),
                 strerror(errno));
        if (file != NULL && !standard)
            fclose(file);
        free(piece);
        return false;
    }
    begin(m, standard ? "stdin" : path);
    if (is_whole(piece, got)) {
        size_t count;
        char *bytes = read_whole(file, piece, got, &count);
        if (!whole(m, bytes, count))
            take_piece(m, &s, bytes, count);
        free(bytes);
        got = fread(piece, 1, PIECE, file);
    }
    for (; got > 0; got = fread(piece, 1, PIECE, file))
        take_piece(m, &s, piece, got);
    if (s.length > 0)
        facts_import_line(m, s.held, s.length);
    if (ferror(file))
        facts_import_say_unread(m, m->line, "the file could not be read to its end");
    end(m);
    free(s.held);
    free(piece);
    if (!standard)
        fclose(file);
    return true;
}
