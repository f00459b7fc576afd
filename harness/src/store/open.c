/* The file: made, checked, set aside, bounded. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "parts.h"

#define APPLICATION_ID 0x46414354 /* "FACT" */
#define BUSY_MS 500               /* another process writes: waited for so long, then done without */
#define FILES_MOST "4096"

static const char schema[] =
    "create table scope(id integer primary key, key text not null unique, used integer not null, ready text);"
    "create table answer(id integer primary key, scope integer not null, hash integer not null, name text not null,"
    " asked integer not null, sum integer not null, text text not null, unique(scope, hash));"
    "create table file(path text primary key, stamp text not null, content text, sha256 text);";

#define AS_TEXT(symbol, text) [STATEMENT_##symbol] = text,
static const char *const texts[STATEMENT_COUNT] = { STATEMENT_LIST(AS_TEXT) };
#undef AS_TEXT

void facts_answers_note_error(facts_answers *store, int status)
{
    status &= 0xff;
    if (status == SQLITE_CORRUPT || status == SQLITE_NOTADB)
        store->broken = true;
    else if (status == SQLITE_FULL || status == SQLITE_READONLY || status == SQLITE_IOERR)
        store->full = true;
}

bool facts_answers_do(facts_answers *store, const char *sql)
{
    int status = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    if (status != SQLITE_OK)
        facts_answers_note_error(store, status);
    return status == SQLITE_OK;
}

sqlite3_stmt *facts_answers_statement(facts_answers *store, statement which)
{
    sqlite3_clear_bindings(store->statements[which]);
    return store->statements[which];
}

bool facts_answers_step(facts_answers *store, sqlite3_stmt *s)
{
    int status = sqlite3_step(s);
    sqlite3_reset(s);
    if (status != SQLITE_DONE && status != SQLITE_ROW)
        facts_answers_note_error(store, status);
    return status == SQLITE_DONE;
}

static int64_t number(facts_answers *store, const char *sql)
{
    sqlite3_stmt *s = NULL;
    int64_t value = -1;
    int status = sqlite3_prepare_v2(store->db, sql, -1, &s, NULL);
    if (status == SQLITE_OK && (status = sqlite3_step(s)) == SQLITE_ROW)
        value = sqlite3_column_int64(s, 0);
    else
        facts_answers_note_error(store, status);
    sqlite3_finalize(s);
    return value;
}

/* Is it ours to use? Makes the tables of a file that is empty. *why: why not; NULL when it is merely not to be had. */
static bool take_over(facts_answers *store, const char **why)
{
    char text[200];
    *why = NULL;
    snprintf(text, sizeof text, "pragma application_id = %d; pragma user_version = %d;", APPLICATION_ID, STORE_FORMAT);
    sqlite3_busy_timeout(store->db, BUSY_MS);
    bool ok = facts_answers_do(store, "pragma page_size = 16384; pragma synchronous = off; pragma journal_mode = truncate;") &&
              facts_answers_do(store, "begin immediate");
    if (ok && number(store, "select count(*) from sqlite_master") == 0)
        ok = facts_answers_do(store, schema) && facts_answers_do(store, text);
    else if (ok && number(store, "pragma application_id") != APPLICATION_ID)
        *why = "is no store of answers";
    else if (ok && number(store, "pragma user_version") != STORE_FORMAT)
        *why = number(store, "pragma user_version") > STORE_FORMAT ? "was made by a newer FACTS" : "was made by an older FACTS";
    for (int i = 0; ok && !*why && i < STATEMENT_COUNT; i++)
        if (sqlite3_prepare_v2(store->db, texts[i], -1, &store->statements[i], NULL) != SQLITE_OK)
            *why = "has other tables than it should have";
    if (store->broken)
        *why = "is broken";
    ok = ok && !*why && facts_answers_do(store, "commit");
    return ok;
}

static void close_database(facts_answers *store)
{
    for (int i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(store->statements[i]);
    memset(store->statements, 0, sizeof store->statements);
    sqlite3_close(store->db);
    store->db = NULL;
}

static void set_aside(const char *path, const char *why, facts_error *note)
{
    char aside[FACTS_PATH + 16], journal[FACTS_PATH + 16];
    snprintf(aside, sizeof aside, "%s.aside", path);
    snprintf(journal, sizeof journal, "%s-journal", path);
    unlink(journal); /* it would be rolled back into the next file of that name */
    if (rename(path, aside) == 0)
        facts_fail(note, "%s %s; it is now %s, and answers are asked for again", path, why, aside);
}

/* Only a file of the user's own, which nobody else can read. 1: it is there now; 0: another thing is there; -1: not to be had. */
static int make_file(const char *path)
{
    struct stat info;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return errno == EISDIR || errno == ELOOP || errno == ENXIO ? 0 : -1;
    bool ours = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid();
    if (ours && (info.st_mode & 077))
        fchmod(fd, 0600);
    close(fd);
    return ours;
}

static bool try_open(facts_answers *store, const char **why)
{
    *why = NULL;
    store->broken = store->full = false;
    int made = make_file(store->path);
    if (made <= 0) {
        *why = made == 0 ? "is no file of yours" : NULL;
        return false;
    }
    if (sqlite3_open_v2(store->path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_FULLMUTEX, NULL) == SQLITE_OK &&
        take_over(store, why))
        return true;
    close_database(store);
    return false;
}

facts_answers *facts_answers_open(const char *path, int64_t most_bytes, facts_error *note)
{
    const char *why;
    facts_answers *store = calloc(1, sizeof *store);
    note->text[0] = '\0';
    if (!store)
        return NULL;
    snprintf(store->path, sizeof store->path, "%s", path);
    store->most_bytes = most_bytes;
    store->opened = (int64_t)time(NULL);
    bool ok = try_open(store, &why);
    if (!ok && why) {
        set_aside(path, why, note);
        ok = note->text[0] && try_open(store, &why);
    }
    if (!ok) {
        free(store);
        return NULL;
    }
    pthread_mutex_init(&store->lock, NULL);
    return store;
}

/* Whole scopes go, the one used longest ago first, until a tenth of the room is free. Those of this run stay: then nothing more is
 * kept. */
void facts_answers_trim(facts_answers *store)
{
    const char *bytes =
        "select (page_count - freelist_count) * page_size from pragma_page_count, pragma_freelist_count, pragma_page_size";
    char oldest[120], drop[160];
    int64_t most = store->most_bytes;
    snprintf(oldest, sizeof oldest, "select id from scope where used < %lld order by used, id limit 1", (long long)store->opened);
    while (number(store, bytes) > most && !store->full && !store->broken) {
        int64_t id = number(store, oldest);
        store->full = id < 0;
        snprintf(drop, sizeof drop, "delete from answer where scope = %lld; delete from scope where id = %lld", (long long)id,
                 (long long)id);
        if (id < 0 || !facts_answers_do(store, drop))
            return;
        most = store->most_bytes / 10 * 9;
    }
}

void facts_answers_close(facts_answers *store, facts_error *note)
{
    note->text[0] = '\0';
    if (!store)
        return;
    facts_answers_end(store);
    facts_answers_flush(store);
    facts_answers_do(store, "delete from file where rowid <= (select max(rowid) from file) - " FILES_MOST);
    bool broken = store->broken;
    close_database(store);
    if (broken)
        set_aside(store->path, "is broken", note);
    for (size_t i = 0; i < store->pending_count; i++)
        free(store->pending[i].name);
    free(store->pending);
    pthread_mutex_destroy(&store->lock);
    free(store);
}
