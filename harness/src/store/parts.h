/* Shared by the files of the store. */
#ifndef FACTS_STORE_PARTS_H
#define FACTS_STORE_PARTS_H

#include <pthread.h>
#include <sqlite3.h>

#include "answers.h"

#define STORE_FORMAT 1 /* of the tables: a file with a greater one is of a newer FACTS */

/* An answer that is not written yet. `text` and `name` are one block. */
typedef struct pending {
    int64_t scope;
    char *name, *text; /* text NULL: to be dropped */
    size_t length;
} pending;

#define STATEMENT_LIST(X)                                                                                                          \
    X(SCOPE_FIND, "select id from scope where key = ?")                                                                            \
    X(SCOPE_ADD, "insert or ignore into scope(key, used) values(?, ?)")                                                            \
    X(SCOPE_USED, "update scope set used = ? where id = ?")                                                                        \
    X(READY_GET, "select ready from scope where id = ?")                                                                           \
    X(READY_SET, "update scope set ready = ? where id = ?")                                                                        \
    X(GET, "select name, asked, sum, text from answer where scope = ? and hash = ?")                                               \
    X(PUT, "insert or replace into answer(scope, hash, name, asked, sum, text) values(?, ?, ?, ?, ?, ?)")                          \
    X(DROP, "delete from answer where scope = ? and hash = ?")                                                                     \
    X(FILE_GET, "select content, sha256 from file where path = ? and stamp = ?")                                                   \
    X(FILE_CONTENT, ("insert into file(path, stamp, content) values(?1, ?2, ?3) on conflict(path) do update set content = ?3,"     \
                     " sha256 = case stamp when ?2 then sha256 end, stamp = ?2"))                                                  \
    X(FILE_SHA256, ("insert into file(path, stamp, sha256) values(?1, ?2, ?3) on conflict(path) do update set sha256 = ?3,"        \
                    " content = case stamp when ?2 then content end, stamp = ?2"))
#define AS_ENUM(symbol, text) STATEMENT_##symbol,
typedef enum statement { STATEMENT_LIST(AS_ENUM) STATEMENT_COUNT } statement;
#undef AS_ENUM

struct facts_answers {
    sqlite3 *db;
    sqlite3_stmt *statements[STATEMENT_COUNT];
    char path[FACTS_PATH];
    int64_t most_bytes;
    pending *pending;
    size_t pending_count, pending_room, pending_bytes;
    int64_t opened, flushed; /* when, in seconds */
    bool broken;             /* nothing more is read or written */
    bool full;               /* nothing more is written */
    pthread_mutex_t lock;
};

/* With the lock held. A prepared statement, its bindings cleared. */
sqlite3_stmt *facts_answers_statement(facts_answers *store, statement which);
/* Steps and resets; true: SQLITE_DONE. What SQLite says of a file that is broken is remembered. */
bool facts_answers_step(facts_answers *store, sqlite3_stmt *s);
/* Remembers what an error means. */
void facts_answers_note_error(facts_answers *store, int status);
bool facts_answers_do(facts_answers *store, const char *sql);
/* Writes what is pending, unless another process is writing: then it stays pending. */
void facts_answers_flush(facts_answers *store);
/* Inside a transaction: keeps the file within its bounds. */
void facts_answers_trim(facts_answers *store);

#endif
