/* The state of reading logs, and the functions that its three files share. */
#ifndef FACTS_IMPORT_READING_H
#define FACTS_IMPORT_READING_H

#include <string.h>

#include "import.h"
#include "words/intern.h"

enum {
    FACTS_IMPORT_THREADS = 64,
    FACTS_IMPORT_GRAPHS = 1 << 14,
    FACTS_IMPORT_NO_PROBLEM = -1,
    FACTS_IMPORT_CALL = 1 << 13,
    FACTS_IMPORT_GIVEN = 64,
    FACTS_IMPORT_GIVEN_TEXT = 240
};

/* What is remembered of a thread. */
typedef struct facts_import_thread {
    char name[64]; /* "Process=1; Thread=2"; "" for cudnn-frontend, which does not write it */
    int problem;   /* the last one; FACTS_IMPORT_NO_PROBLEM */
    bool has_part;
    facts_import_graph part; /* owned when has_part */
    uint64_t used;
} facts_import_thread;

/* An event of cuDNN in the reading: from "function … called:" to the line that names its thread. */
typedef struct facts_import_event {
    bool open, graph_event, refused,
        reasoned;  /* reasoned: of the engine in hand, its reason is there */
    size_t line;   /* of its graph */
    json_t *graph; /* owned */
    uint64_t hash; /* of the graph's text */
    int log_count;
    char log_text[FACTS_IMPORT_LOG][FACTS_IMPORT_LOG_TEXT];
} facts_import_event;

enum { FACTS_IMPORT_NAMED = 64 };

struct facts_import {
    facts_import_named named[FACTS_IMPORT_NAMED];
    size_t named_count;
    facts_imported *problem;
    size_t count;
    facts_intern *names; /* of problem i: the text i + 1 */
    char **file;         /* names, owned */
    size_t files;
    char **unread, **orphan;
    size_t unread_kept, unread_total, orphan_kept, orphan_total, other;
    facts_import_thread thread[FACTS_IMPORT_THREADS];
    uint64_t clock;
    struct {
        uint64_t hash;
        int problem;
    } graph[FACTS_IMPORT_GRAPHS]; /* of texts that were read before */
    facts_import_event event;
    const char *name; /* of the file in hand */
    size_t line;
    char *block; /* a graph over several lines, from "{" to "}"; owned */
    size_t block_length, block_line;
    char call[FACTS_IMPORT_CALL]; /* a call that somebody pasted, up to its closing parenthesis */
    size_t call_length, call_line;
    int call_depth; /* of parentheses; 0: no call is open */
    bool call_jax,  /* sequence before heads, no enable_gqa */
        call_gives; /* no call: what variables are given */
    struct {
        char name[24], text[FACTS_IMPORT_GIVEN_TEXT];
    } given[FACTS_IMPORT_GIVEN]; /* to variables of a pasted program, the last one last */
    size_t given_count, last_line;
    bool (*is_gpu)(const char *word); /* NULL: nobody knows */
    int gpus_left;                    /* words to ask; 0: one was found */
    char *last_call;                  /* owned; NULL: none, or its backward was asked */
    bool gradients,                   /* the text asks for gradients */
        call_waits;                   /* the last call stands before what its variables are given */
};

/* keep_problems.c: the list of problems, and turning a graph into a problem. */
void facts_import_keep(char ***list, size_t *count, size_t most, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void facts_import_say_unread(facts_import *m, size_t line, const char *why);
void facts_import_printable(char *out, size_t room, const char *text,
                            size_t length); /* a piece of a log that may be shown */
/* The file in hand names a version of `what` (a literal). */
__attribute__((format(printf, 3, 4))) void facts_import_name(facts_import *m, const char *what,
                                                             const char *format, ...);
void facts_import_name_number(facts_import *m, const char *what, int packed); /* 92700; 0: none */
void facts_import_say_of(facts_imported *p, const char *note);
/* The thread of that name. If there are too many, it replaces the one without events for the
 * longest time. */
facts_import_thread *facts_import_thread_named(facts_import *m, const char *name);
void facts_import_forget_part(facts_import_thread *t);
/* Takes over `root`. */
void facts_import_add_graph(facts_import *m, facts_import_thread *t, json_t *root, uint64_t hash,
                            size_t line);
/* The same text as before is the same problem. */
bool facts_import_known_graph(facts_import *m, facts_import_thread *t, uint64_t hash);
json_t *facts_import_parse(facts_import *m, const char *text, size_t length, size_t line);

/* A problem of this case, given as tokens; `cudnn` is a version. Returns the problem, or
 * FACTS_IMPORT_NO_PROBLEM. */
int facts_import_add_case(facts_import *m, const char *text, const char *cudnn);
/* That many calls of a problem; 0: they are not counted. */
void facts_import_add_calls(facts_import *m, int problem, uint64_t calls);

/* pasted.c: is the line one of a call or of a configuration that somebody pasted? */
bool facts_import_call_line(facts_import *m, const char *text, size_t length);
/* Reads the last call again: with gradients, or at the end of a program that calls its function
 * there. */
void facts_import_last_call(facts_import *m);
/* The cuDNN and the GPU that a line of no log names. */
void facts_import_environment(facts_import *m, const char *text, size_t length);
/* A line of an exception or a warning about cuDNN. */
bool facts_import_is_failure(const char *text, size_t length);

/* lines.c: a line of any log; and the end of a file or of an event. */
void facts_import_line(facts_import *m, const char *text, size_t length);
void facts_import_close_event(facts_import *m, const char *thread);

static inline const char *facts_import_find(const char *text, size_t length, const char *word)
{
    return memmem(text, length, word, strlen(word));
}

static inline bool facts_import_starts(const char *text, size_t length, const char *word)
{
    size_t n = strlen(word);
    return length >= n && memcmp(text, word, n) == 0;
}

#endif
