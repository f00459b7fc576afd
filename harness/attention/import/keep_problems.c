#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "attention.h"
#include "problem/case_problem.h"
#include "reading.h"
#include "suites/predicate.h"
#include "words/case_text.h"

/* ---- what is kept
 * ----------------------------------------------------------------------------------------------------------
 */

void facts_import_keep(char ***list, size_t *count, size_t most, const char *format, ...)
{
    char text[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (*count >= most)
        return;
    if ((*count & (*count - 1)) == 0)
        *list = realloc(*list, (*count ? 2 * *count : 1) * sizeof **list);
    (*list)[(*count)++] = strdup(text);
}

void facts_import_say_unread(facts_import *m, size_t line, const char *why)
{
    m->unread_total++;
    facts_import_keep(&m->unread, &m->unread_kept, FACTS_IMPORT_UNREAD_KEPT, "%s:%zu: %s", m->name,
                      line, why);
}

void facts_import_name(facts_import *m, const char *what, const char *format, ...)
{
    char version[sizeof m->named[0].version];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(version, sizeof version, format, arguments);
    va_end(arguments);
    for (size_t i = 0; i < m->named_count; i++)
        if (m->named[i].file == m->name && strcmp(m->named[i].what, what) == 0 &&
            strcmp(m->named[i].version, version) == 0)
            return;
    if (m->named_count == FACTS_IMPORT_NAMED)
        return;
    facts_import_named *named = &m->named[m->named_count++];
    *named = (facts_import_named){ .file = m->name, .what = what };
    facts_import_printable(named->version, sizeof named->version, version, strlen(version));
}

void facts_import_name_number(facts_import *m, const char *what, int packed)
{
    if (packed > 0)
        facts_import_name(m, what, "%d.%d.%d", packed / 10000, packed / 100 % 100, packed % 100);
}

static void name_graph(facts_import *m, const facts_import_graph *graph)
{
    const json_t *gpu = json_object_get(graph->root, "GPUProfile");
    const char *device = facts_import_word(gpu, "deviceName");
    const json_int_t sm = json_integer_value(json_object_get(gpu, "deviceVer")),
                     driver = json_integer_value(json_object_get(gpu, "driverVer"));
    facts_import_name_number(m, "cuDNN", graph->cudnn);
    facts_import_name_number(m, "cudnn-frontend", graph->frontend_version);
    if (device[0] != '\0')
        facts_import_name(m, "GPU", "%s", device);
    else if (sm > 0)
        facts_import_name(m, "GPU", "sm_%d", (int)(sm / 10));
    if (driver > 0)
        facts_import_name(m, "CUDA driver", "%d.%d", (int)(driver / 1000),
                          (int)(driver % 1000 / 10));
}

size_t facts_import_named_count(const facts_import *m)
{
    return m->named_count;
}

const facts_import_named *facts_import_named_at(const facts_import *m, size_t i)
{
    return &m->named[i];
}

void facts_import_printable(char *out, size_t room, const char *text, size_t length)
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

void facts_import_say_of(facts_imported *p, const char *note)
{
    for (int i = 0; i < p->log_count; i++)
        if (strcmp(p->log_text[i], note) == 0)
            return;
    if (p->log_count < FACTS_IMPORT_LOG)
        snprintf(p->log_text[p->log_count++], FACTS_IMPORT_LOG_TEXT, "%s", note);
}

/* The problem of that name, a new one if need be; FACTS_IMPORT_NO_PROBLEM when there are too many.
 */
static int problem_named(facts_import *m, const char *name)
{
    const uint32_t known = facts_intern_find(m->names, name);
    if (known)
        return (int)known - 1;
    if (m->count >= FACTS_IMPORT_PROBLEMS)
        return FACTS_IMPORT_NO_PROBLEM;
    m->problem = facts_grow(m->problem, m->count, sizeof *m->problem);
    const char *kept = facts_intern_text(m->names, facts_intern_id(m->names, name));
    m->problem[m->count++] = (facts_imported){ .name = kept, .file = m->name };
    return (int)m->count - 1;
}

void facts_import_forget_part(facts_import_thread *t)
{
    if (t->has_part)
        facts_import_graph_free(&t->part);
    t->has_part = false;
}

facts_import_thread *facts_import_thread_named(facts_import *m, const char *name)
{
    facts_import_thread *oldest = &m->thread[0];
    m->clock++;
    for (int i = 0; i < FACTS_IMPORT_THREADS; i++) {
        facts_import_thread *t = &m->thread[i];
        if (t->used != 0 && strcmp(t->name, name) == 0) {
            t->used = m->clock;
            return t;
        }
        if (t->used < oldest->used)
            oldest = t;
    }
    facts_import_forget_part(oldest);
    *oldest = (facts_import_thread){ .problem = FACTS_IMPORT_NO_PROBLEM, .used = m->clock };
    snprintf(oldest->name, sizeof oldest->name, "%s", name);
    return oldest;
}

/* ---- graphs
 * ----------------------------------------------------------------------------------------------------------------
 */

static int keep_case(facts_import *m, const facts_case *c, const facts_import_notes *notes,
                     const facts_import_graph *graph, size_t line)
{
    char name[FACTS_NAME_MAX];
    int at = problem_named(m, facts_case_name(c, name));
    if (at == FACTS_IMPORT_NO_PROBLEM) {
        facts_import_say_unread(m, line, "more different problems than are kept");
        return at;
    }
    facts_imported *p = &m->problem[at];
    if (p->seen == 0) {
        p->line = line;
        p->cudnn = graph->cudnn;
        p->frontend = graph->frontend_version;
    }
    if (p->seen == 0 || notes->count < p->notes.count) /* another spelling of it says more */
        p->notes = *notes;
    return at;
}

/* A graph becomes a problem, or a sentence about why not. Returns the problem, or
 * FACTS_IMPORT_NO_PROBLEM. */
static int add_attention(facts_import *m, const facts_import_graph *part,
                         const facts_import_attention *attention, size_t line)
{
    facts_case c;
    facts_import_notes notes = { 0 };
    const facts_import_graph *graph = attention->graph;
    facts_error error = { .line = 0 };
    facts_import_fields(&notes, graph);
    if (part != NULL)
        facts_import_fields(&notes, part);
    if (!facts_import_case(&c, &notes, attention, &error)) {
        facts_import_say_unread(m, line, error.text);
        return FACTS_IMPORT_NO_PROBLEM;
    }
    return keep_case(m, &c, &notes, graph, line);
}

int facts_import_add_case(facts_import *m, const char *text, const char *cudnn)
{
    facts_case c;
    facts_error error = { .line = 0 };
    const facts_import_notes none = { 0 };
    const facts_import_graph graph = { .cudnn = facts_version_number(facts_span_of(cudnn), 0) };
    if (!facts_case_parse(&c, text, &error)) {
        facts_import_say_unread(m, m->call_line, error.text);
        return FACTS_IMPORT_NO_PROBLEM;
    }
    const int at = keep_case(m, &c, &none, &graph, m->call_line);
    if (at >= 0)
        m->problem[at].seen++;
    return at;
}

void facts_import_add_calls(facts_import *m, int problem, uint64_t calls)
{
    if (problem < 0 || calls == 0)
        return;
    m->problem[problem].calls += calls;
    m->problem[problem].seen += calls - 1;
}

void facts_import_add_graph(facts_import *m, facts_import_thread *t, json_t *root, uint64_t hash,
                            size_t line)
{
    facts_import_graph graph;
    facts_import_attention attention;
    facts_error error = { .line = 0 };
    if (!facts_import_read(&graph, root, &error)) {
        facts_import_say_unread(m, line, error.text);
        t->problem = FACTS_IMPORT_NO_PROBLEM;
        return;
    }
    name_graph(m, &graph);
    const facts_import_graph *part = t->has_part ? &t->part : NULL;
    facts_import_found found = facts_import_recognise(&attention, &graph, part, &error);
    bool alone = part == NULL;
    int at = FACTS_IMPORT_NO_PROBLEM;
    if (found == FACTS_IMPORT_FOUND)
        at = add_attention(m, part, &attention, line);
    else if (found == FACTS_IMPORT_UNREAD)
        facts_import_say_unread(m, line, error.text);
    else if (found == FACTS_IMPORT_NO_ATTENTION)
        m->other++;
    if (at >= 0)
        m->problem[at].seen++;
    t->problem = at;
    facts_import_forget_part(t);
    if (found == FACTS_IMPORT_PART) {
        t->part = graph;
        t->has_part = true;
        return;
    }
    if (alone && hash != 0 && at >= 0) {
        m->graph[hash % FACTS_IMPORT_GRAPHS].hash = hash;
        m->graph[hash % FACTS_IMPORT_GRAPHS].problem = at;
    }
    facts_import_graph_free(&graph);
}

bool facts_import_known_graph(facts_import *m, facts_import_thread *t, uint64_t hash)
{
    if (m->graph[hash % FACTS_IMPORT_GRAPHS].hash != hash || t->has_part)
        return false;
    t->problem = m->graph[hash % FACTS_IMPORT_GRAPHS].problem;
    m->problem[t->problem].seen++;
    return true;
}

json_t *facts_import_parse(facts_import *m, const char *text, size_t length, size_t line)
{
    json_error_t error;
    json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    char why[300], quote[FACTS_QUOTE_MAX];
    if (root != NULL)
        return root;
    snprintf(why, sizeof why, "broken JSON of a graph, column %d: %s", error.column,
             facts_quote(quote, facts_span_of(error.text)));
    facts_import_say_unread(m, line, why);
    return NULL;
}

/* ---- owner
 * -----------------------------------------------------------------------------------------------------------------
 */

facts_import *facts_import_create(void)
{
    facts_import *m = calloc(1, sizeof *m);
    for (int i = 0; i < FACTS_IMPORT_THREADS; i++)
        m->thread[i].problem = FACTS_IMPORT_NO_PROBLEM;
    m->name = "?";
    m->names = facts_intern_new();
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
    for (int i = 0; i < FACTS_IMPORT_THREADS; i++)
        facts_import_forget_part(&m->thread[i]);
    json_decref(m->event.graph);
    free(m->problem);
    facts_intern_free(m->names);
    free(m->block);
    free_all(m->file, m->files);
    free_all(m->unread, m->unread_kept);
    free_all(m->orphan, m->orphan_kept);
    free(m);
}
