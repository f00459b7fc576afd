#include "import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "case/text.h"

enum { THREADS = 64, GRAPHS = 1 << 14, MOST_ORPHANS = 100, NO_PROBLEM = -1, NO_ATTENTION = -2 };

/* What is remembered of a thread. */
typedef struct thread {
    char name[64]; /* "Process=1; Thread=2"; "" cudnn-frontend's, which do not say */
    int problem;   /* the last one; NO_PROBLEM */
    bool has_part;
    facts_import_graph part; /* owned when has_part */
    uint64_t used;
} thread;

/* An event of cuDNN in the reading: from "function … called:" to the line that names its thread. */
typedef struct event {
    bool open, graph_event, refused, reasoned; /* reasoned: of the engine in hand, its reason is there */
    size_t line;      /* of its graph */
    json_t *graph;    /* owned */
    uint64_t hash;    /* of the graph's text */
    int said_count;
    char said[FACTS_IMPORT_SAID][FACTS_IMPORT_SAID_TEXT];
} event;

struct facts_import {
    facts_imported *problem;
    size_t count, room;
    uint32_t *slot; /* by the hash of the name: index + 1 */
    size_t slots;
    char **file; /* names, owned */
    size_t files;
    char **unread, **orphan;
    size_t unread_kept, unread_total, orphan_kept, orphan_total, other;
    thread thread[THREADS];
    uint64_t clock;
    struct {
        uint64_t hash;
        int problem;
    } graph[GRAPHS]; /* of texts that were read before */
    event event;
    const char *name; /* of the file in hand */
    size_t line;
    char *block; /* a graph over several lines, from "{" to "}"; owned */
    size_t block_length, block_line;
};

/* ---- what is kept ---------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static void keep(char ***list, size_t *count, size_t most, const char *format, ...)
{
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (*count >= most)
        return;
    char **moved = (*count & (*count - 1)) == 0 ? realloc(*list, (*count ? 2 * *count : 1) * sizeof **list) : *list;
    if (moved == NULL)
        return;
    *list = moved;
    if ((moved[*count] = strdup(text)) != NULL)
        ++*count;
}

static void unread(facts_import *m, size_t line, const char *why)
{
    m->unread_total++;
    keep(&m->unread, &m->unread_kept, FACTS_IMPORT_UNREAD_KEPT, "%s:%zu: %s", m->name, line, why);
}

/* A piece of a log that may be shown. */
static void printable(char *out, size_t room, const char *text, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length && used + 1 < room; i++) {
        unsigned char c = (unsigned char)text[i];
        out[used++] = (char)(c < 32 || c > 126 ? '?' : c);
    }
    while (used > 0 && out[used - 1] == ' ')
        used--;
    out[used] = '\0';
}

static void say_of(facts_imported *p, const char *said)
{
    for (int i = 0; i < p->said_count; i++)
        if (strcmp(p->said[i], said) == 0)
            return;
    if (p->said_count < FACTS_IMPORT_SAID)
        snprintf(p->said[p->said_count++], FACTS_IMPORT_SAID_TEXT, "%s", said);
}

static bool grow_slots(facts_import *m)
{
    size_t slots = m->slots ? 2 * m->slots : 1024;
    uint32_t *slot = calloc(slots, sizeof *slot);
    if (slot == NULL)
        return false;
    for (size_t i = 0; i < m->count; i++) {
        size_t at = XXH3_64bits(m->problem[i].name, strlen(m->problem[i].name)) & (slots - 1);
        while (slot[at] != 0)
            at = (at + 1) & (slots - 1);
        slot[at] = (uint32_t)i + 1;
    }
    free(m->slot);
    m->slot = slot;
    m->slots = slots;
    return true;
}

/* The problem of that name, a new one if need be; NO_PROBLEM when there are too many. */
static int problem_named(facts_import *m, const char *name)
{
    if (2 * (m->count + 1) > m->slots && !grow_slots(m))
        return NO_PROBLEM;
    size_t at = XXH3_64bits(name, strlen(name)) & (m->slots - 1);
    for (; m->slot[at] != 0; at = (at + 1) & (m->slots - 1))
        if (strcmp(m->problem[m->slot[at] - 1].name, name) == 0)
            return (int)m->slot[at] - 1;
    if (m->count >= FACTS_IMPORT_PROBLEMS)
        return NO_PROBLEM;
    if (m->count == m->room) {
        size_t room = m->room ? 2 * m->room : 64;
        facts_imported *moved = realloc(m->problem, room * sizeof *moved);
        if (moved == NULL)
            return NO_PROBLEM;
        m->problem = moved;
        m->room = room;
    }
    char *own = strdup(name);
    if (own == NULL)
        return NO_PROBLEM;
    m->problem[m->count] = (facts_imported){ .name = own, .file = m->name };
    m->slot[at] = (uint32_t)++m->count;
    return (int)m->count - 1;
}

static void forget_part(thread *t)
{
    if (t->has_part)
        facts_import_graph_free(&t->part);
    t->has_part = false;
}

/* The thread of that name; the one that was silent longest makes room. */
static thread *thread_named(facts_import *m, const char *name)
{
    thread *oldest = &m->thread[0];
    m->clock++;
    for (int i = 0; i < THREADS; i++) {
        thread *t = &m->thread[i];
        if (t->used != 0 && strcmp(t->name, name) == 0) {
            t->used = m->clock;
            return t;
        }
        if (t->used < oldest->used)
            oldest = t;
    }
    forget_part(oldest);
    *oldest = (thread){ .problem = NO_PROBLEM, .used = m->clock };
    snprintf(oldest->name, sizeof oldest->name, "%s", name);
    return oldest;
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------------- */

/* A graph becomes a problem, or a sentence about why not. Returns the problem, NO_PROBLEM or NO_ATTENTION. */
static int add_attention(facts_import *m, thread *t, const facts_import_graph *graph, const facts_import_attention *attention, size_t line)
{
    facts_case c;
    facts_import_notes notes;
    facts_error error = { .line = 0 };
    char name[FACTS_NAME_MAX];
    (void)t;
    if (!facts_import_case(&c, &notes, attention, &error)) {
        unread(m, line, error.text);
        return NO_PROBLEM;
    }
    int at = problem_named(m, facts_case_name(&c, name));
    if (at == NO_PROBLEM) {
        unread(m, line, "more different problems than are kept");
        return at;
    }
    facts_imported *p = &m->problem[at];
    if (p->seen == 0) {
        p->line = line;
        p->cudnn = graph->cudnn;
        p->frontend = graph->frontend_version;
    }
    if (p->seen == 0 || notes.count < p->notes.count) /* another spelling of it says more */
        p->notes = notes;
    return at;
}

/* Takes over `root`. */
static void add_graph(facts_import *m, thread *t, json_t *root, uint64_t hash, size_t line, bool counts)
{
    facts_import_graph graph;
    facts_import_attention attention;
    facts_error error = { .line = 0 };
    if (!facts_import_read(&graph, root, &error)) {
        unread(m, line, error.text);
        t->problem = NO_PROBLEM;
        return;
    }
    facts_import_found found = facts_import_recognise(&attention, &graph, t->has_part ? &t->part : NULL, &error);
    bool alone = !t->has_part;
    forget_part(t);
    int at = NO_PROBLEM;
    if (found == FACTS_IMPORT_FOUND)
        at = add_attention(m, t, &graph, &attention, line);
    else if (found == FACTS_IMPORT_UNREAD)
        unread(m, line, error.text);
    else if (found == FACTS_IMPORT_NO_ATTENTION)
        m->other++;
    if (at >= 0)
        m->problem[at].seen += counts || m->problem[at].seen == 0;
    t->problem = at;
    if (found == FACTS_IMPORT_PART) {
        t->part = graph;
        t->has_part = true;
        return;
    }
    if (alone && hash != 0 && at >= 0) {
        m->graph[hash % GRAPHS].hash = hash;
        m->graph[hash % GRAPHS].problem = at;
    }
    facts_import_graph_free(&graph);
}

/* The same text as before is the same problem. */
static bool known_graph(facts_import *m, thread *t, uint64_t hash, bool counts)
{
    if (m->graph[hash % GRAPHS].hash != hash || t->has_part)
        return false;
    t->problem = m->graph[hash % GRAPHS].problem;
    m->problem[t->problem].seen += counts;
    return true;
}

static json_t *parse(facts_import *m, const char *text, size_t length, size_t line)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    char why[300], quote[FACTS_QUOTE_MAX];
    if (root != NULL)
        return root;
    snprintf(why, sizeof why, "broken JSON of a graph, column %d: %s", error.column, facts_quote(quote, facts_span_of(error.text)));
    unread(m, line, why);
    return NULL;
}

/* ---- lines ----------------------------------------------------------------------------------------------------------------- */

static const char *find(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word));
}

static bool starts(const char *text, size_t length, const char *word)
{
    size_t n = strlen(word);
    return length >= n && memcmp(text, word, n) == 0;
}

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
    thread *t = thread_named(m, "");
    size_t whole = length;
    const char *at = text;
    if (!object_in(&at, &length))
        length = whole; /* cut off: the parser says where */
    uint64_t hash = XXH3_64bits(at, length) | 1;
    if (known_graph(m, t, hash, true))
        return;
    json_t *root = parse(m, at, length, line);
    t->problem = NO_PROBLEM;
    if (root != NULL)
        add_graph(m, t, root, hash, line, true);
}

static void fail(facts_import *m, thread *t, const char *said)
{
    if (t != NULL && t->problem >= 0) {
        say_of(&m->problem[t->problem], said);
        return;
    }
    for (size_t i = 0; i < m->orphan_kept; i++)
        if (strcmp(strchr(m->orphan[i], ' ') + 1, said) == 0)
            return;
    m->orphan_total++;
    keep(&m->orphan, &m->orphan_kept, MOST_ORPHANS, "%s:%zu: %s", m->name, m->line, said);
}

static void close_event(facts_import *m, const char *name)
{
    event *e = &m->event;
    if (e->open && (e->graph != NULL || e->refused)) {
        thread *t = thread_named(m, name);
        if (e->graph != NULL && !known_graph(m, t, e->hash, true))
            add_graph(m, t, json_incref(e->graph), e->hash, e->line, true);
        for (int i = 0; e->refused && i < e->said_count; i++)
            fail(m, t, e->said[i]);
    }
    json_decref(e->graph);
    *e = (event){ 0 };
}

/* An event's line that holds JSON. The configurations that follow a graph hold it again. */
static void event_json(facts_import *m, const char *text, size_t length)
{
    event *e = &m->event;
    if (!e->graph_event || e->graph != NULL || find(text, length < 400 ? length : 400, "\"operationGraph\"") == NULL)
        return;
    size_t whole = length;
    if (!object_in(&text, &length))
        length = whole;
    e->line = m->line;
    e->hash = XXH3_64bits(text, length) | 1;
    e->graph = parse(m, text, length, m->line);
}

/* The first reason after each engine is the reason; what follows is the way out of it. */
static void event_reason(facts_import *m, const char *text, size_t length)
{
    event *e = &m->event;
    bool nobody = find(text, length, "No viable") != NULL, status = find(text, length, "CUDNN_STATUS_") != NULL;
    e->refused = e->refused || nobody;
    if (nobody || !status || e->reasoned || e->said_count >= FACTS_IMPORT_SAID)
        return;
    e->reasoned = true;
    printable(e->said[e->said_count++], FACTS_IMPORT_SAID_TEXT, text, length);
}

/* A line of cuDNN's own log, its prefix ("i! ") taken off. */
static void backend_line(facts_import *m, const char *text, size_t length, char severity)
{
    event *e = &m->event;
    if (starts(text, length, "CuDNN (v") || (starts(text, length, "Function ") && find(text, length, "called:"))) {
        close_event(m, "?");
        e->open = true;
        e->graph_event = find(text, length, "GraphVisualize") != NULL;
        e->refused = severity == 'E';
        return;
    }
    while (length > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        length--;
    }
    const char *json = starts(text, length, "apiLog: type=json; val=") ? text + strlen("apiLog: type=json; val=") : NULL;
    bool warns = starts(text, length, "Warning: ") || starts(text, length, "Error: ");
    if (json != NULL)
        event_json(m, json, length - (size_t)(json - text));
    else if (starts(text, length, "=== error stack") || starts(text, length, "engineConfig:"))
        e->reasoned = false;
    else if (warns)
        event_reason(m, text, length);
    else if (starts(text, length, "Process=") && e->open) {
        char name[64];
        const char *end = find(text, length, "; GPU=");
        printable(name, sizeof name, text, end != NULL ? (size_t)(end - text) : length);
        close_event(m, name);
    }
}

static void frontend_failure(facts_import *m, const char *text, size_t length)
{
    char said[FACTS_IMPORT_SAID_TEXT];
    printable(said, sizeof said, text, length);
    fail(m, thread_named(m, ""), said);
}

/* A graph that is spread over several lines, as an indented dump is. */
static bool block_line(facts_import *m, const char *text, size_t length)
{
    bool first = m->block == NULL && length == 1 && text[0] == '{';
    if (!first && m->block == NULL)
        return false;
    char *moved = m->block_length + length + 1 <= FACTS_IMPORT_LINE ? realloc(m->block, m->block_length + length + 1) : NULL;
    if (first)
        m->block_line = m->line;
    if (moved == NULL) {
        unread(m, m->block_line, "a graph over several lines that does not end");
    } else {
        m->block = moved;
        memcpy(m->block + m->block_length, text, length);
        m->block_length += length;
        m->block[m->block_length++] = '\n';
        if (!(length == 1 && text[0] == '}'))
            return true;
        if (find(m->block, m->block_length, "\"nodes\"") != NULL)
            frontend_graph(m, m->block, m->block_length, m->block_line);
    }
    free(m->block);
    m->block = NULL;
    m->block_length = 0;
    return true;
}

static void read_line(facts_import *m, const char *text, size_t length)
{
    m->line++;
    while (length > 0 && (text[length - 1] == '\r' || text[length - 1] == '\n'))
        length--;
    if (block_line(m, text, length) || length == 0)
        return;
    const char *graph = find(text, length < 4096 ? length : 4096, "{\"context\":");
    bool prefixed = length > 2 && text[1] == '!' && strchr("IiWwEe", text[0]) != NULL;
    if (graph != NULL)
        frontend_graph(m, graph, length - (size_t)(graph - text), m->line);
    else if (starts(text, length, "[cudnn_frontend]")) {
        bool failed = find(text, length, "ERROR") || (find(text, length, "CUDNN_STATUS_") && !find(text, length, "CUDNN_STATUS_SUCCESS"));
        if (failed)
            frontend_failure(m, text, length);
    } else if (prefixed) {
        size_t skip = text[2] == ' ' ? 3 : 2;
        backend_line(m, text + skip, length - skip, text[0]);
    } else if (m->event.open || starts(text, length, "CuDNN (v") || starts(text, length, "Function ")) {
        backend_line(m, text, length, ' ');
    }
}

/* ---- files ----------------------------------------------------------------------------------------------------------------- */

static const char *own_name(facts_import *m, const char *name)
{
    char shown[200];
    char **moved = realloc(m->file, (m->files + 1) * sizeof *moved);
    printable(shown, sizeof shown, name, strlen(name));
    if (moved == NULL)
        return "?";
    m->file = moved;
    char *own = strdup(shown);
    if (own == NULL)
        return "?";
    m->file[m->files++] = own;
    return own;
}

static void begin(facts_import *m, const char *name)
{
    m->name = own_name(m, name);
    m->line = 0;
    for (int i = 0; i < THREADS; i++) {
        forget_part(&m->thread[i]);
        m->thread[i] = (thread){ .problem = NO_PROBLEM };
    }
}

static void end(facts_import *m)
{
    close_event(m, "?");
    if (m->block != NULL)
        unread(m, m->block_line, "a graph over several lines that does not end");
    free(m->block);
    m->block = NULL;
    m->block_length = 0;
}

/* A file of one JSON object, or of fattn_plan_save: a header, then such an object. */
static bool whole(facts_import *m, const char *bytes, size_t count)
{
    const char *at = bytes;
    size_t left = count;
    bool saved = starts(bytes, count, "FATTNPLN");
    if (saved && (at = find(bytes, count, "{\"cudnnVersion\"")) == NULL) {
        unread(m, 1, "a saved plan without cuDNN's JSON in it");
        return true;
    }
    left = count - (size_t)(at - bytes);
    json_error_t error;
    json_t *root = json_loadb(at, left, 0, &error);
    if (root == NULL && saved)
        unread(m, 1, "a saved plan whose JSON is broken");
    if (root == NULL)
        return saved;
    m->line = 1;
    add_graph(m, thread_named(m, ""), root, 0, 1, true);
    return true;
}

static bool is_whole(const char *bytes, size_t count)
{
    size_t i = 0;
    while (i < count && (bytes[i] == ' ' || bytes[i] == '\n' || bytes[i] == '\r' || bytes[i] == '\t'))
        i++;
    return starts(bytes, count, "FATTNPLN") || (i < count && bytes[i] == '{');
}

static void lines(facts_import *m, const char *bytes, size_t count)
{
    while (count > 0) {
        const char *newline = memchr(bytes, '\n', count);
        size_t length = newline != NULL ? (size_t)(newline - bytes) : count;
        read_line(m, bytes, length);
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
                unread(m, m->line + 1, "a line of more than 16 MB: skipped");
            s->skipping = true;
            s->length = 0;
        }
        if (!s->skipping && (newline == NULL || s->length > 0)) {
            if (s->length + length > s->room) {
                size_t room = 2 * (s->length + length);
                char *moved = realloc(s->held, room);
                s->skipping = moved == NULL;
                s->held = moved != NULL ? moved : s->held;
                s->room = moved != NULL ? room : s->room;
            }
            if (!s->skipping)
                memcpy(s->held + s->length, bytes, length);
            s->length += s->skipping ? 0 : length;
        }
        if (newline != NULL) {
            if (s->skipping)
                m->line++;
            else
                read_line(m, s->length > 0 ? s->held : bytes, s->length > 0 ? s->length : length);
            s->length = 0;
            s->skipping = false;
        }
        length += newline != NULL;
        bytes += length;
        count -= length;
    }
}

/* A whole file in memory, for plans; NULL: it is longer than they are. */
static char *read_whole(FILE *file, const char *head, size_t had, size_t *count)
{
    size_t room = 1 << 20;
    char *bytes = malloc(room);
    *count = 0;
    if (bytes == NULL)
        return NULL;
    memcpy(bytes, head, had);
    for (size_t got = had; got > 0; got = fread(bytes + *count, 1, room - *count, file)) {
        *count += got;
        if (*count < room)
            continue;
        char *moved = room < FACTS_IMPORT_PLAN ? realloc(bytes, 2 * room) : NULL;
        if (moved == NULL)
            break;
        bytes = moved;
        room *= 2;
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
    if (file == NULL || piece == NULL || ((got = fread(piece, 1, PIECE, file)) == 0 && ferror(file))) {
        snprintf(error->text, sizeof error->text, "%s: %s", facts_quote(quote, facts_span_of(path)), strerror(errno));
        if (file != NULL && !standard)
            fclose(file);
        free(piece);
        return false;
    }
    begin(m, standard ? "stdin" : path);
    if (is_whole(piece, got)) {
        size_t count;
        char *bytes = read_whole(file, piece, got, &count);
        if (bytes == NULL || !whole(m, bytes, count))
            take_piece(m, &s, bytes, bytes != NULL ? count : 0);
        free(bytes);
        got = fread(piece, 1, PIECE, file);
    }
    for (; got > 0; got = fread(piece, 1, PIECE, file))
        take_piece(m, &s, piece, got);
    if (s.length > 0)
        read_line(m, s.held, s.length);
    if (ferror(file))
        unread(m, m->line, "the file could not be read to its end");
    end(m);
    free(s.held);
    free(piece);
    if (!standard)
        fclose(file);
    return true;
}

/* ---- owner ----------------------------------------------------------------------------------------------------------------- */

facts_import *facts_import_create(void)
{
    facts_import *m = calloc(1, sizeof *m);
    for (int i = 0; m != NULL && i < THREADS; i++)
        m->thread[i].problem = NO_PROBLEM;
    if (m != NULL)
        m->name = "?";
    return m;
}

size_t facts_import_count(const facts_import *m)
{
    return m->count;
}

const facts_imported *facts_import_at(const facts_import *m, size_t i)
{
    return &m->problem[i];
}

const char *facts_import_unread(const facts_import *m, size_t i, size_t *total)
{
    *total = m->unread_total;
    return i < m->unread_kept ? m->unread[i] : NULL;
}

const char *facts_import_orphan(const facts_import *m, size_t i, size_t *total)
{
    *total = m->orphan_total;
    return i < m->orphan_kept ? m->orphan[i] : NULL;
}

size_t facts_import_other_graphs(const facts_import *m)
{
    return m->other;
}

static void free_all(char **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void facts_import_destroy(facts_import *m)
{
    if (m == NULL)
        return;
    for (int i = 0; i < THREADS; i++)
        forget_part(&m->thread[i]);
    for (size_t i = 0; i < m->count; i++)
        free((char *)(uintptr_t)m->problem[i].name);
    json_decref(m->event.graph);
    free(m->problem);
    free(m->slot);
    free(m->block);
    free_all(m->file, m->files);
    free_all(m->unread, m->unread_kept);
    free_all(m->orphan, m->orphan_kept);
    free(m);
}
