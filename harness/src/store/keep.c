/* Scopes and their answers. What is put waits in memory and is written by the second, in one short transaction: other processes are held up for a
 * moment, not for a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xxhash.h>

#include "parts.h"

#define PENDING_MOST ((size_t)64 << 20) /* another process does not let us write: the rest is not kept */

static int64_t hash_of(const char *name)
{
    return (int64_t)XXH3_64bits(name, strlen(name));
}

/* Of name and text: a page that was torn by a power cut is no answer. */
static int64_t sum_of(const char *name, const char *text, size_t length)
{
    return (int64_t)XXH3_64bits_withSeed(text, length, XXH3_64bits(name, strlen(name)));
}

static int64_t now_s(void)
{
    return (int64_t)time(NULL);
}

int64_t facts_answers_scope(facts_answers *store, const char *key)
{
    pthread_mutex_lock(&store->lock);
    sqlite3_stmt *s = facts_answers_statement(store, STATEMENT_SCOPE_ADD);
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, now_s());
    facts_answers_step(store, s);
    s = facts_answers_statement(store, STATEMENT_SCOPE_FIND);
    sqlite3_bind_text(s, 1, key, -1, SQLITE_STATIC);
    int64_t id = sqlite3_step(s) == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_reset(s);
    s = facts_answers_statement(store, STATEMENT_SCOPE_USED);
    sqlite3_bind_int64(s, 1, now_s());
    sqlite3_bind_int64(s, 2, id);
    facts_answers_step(store, s);
    pthread_mutex_unlock(&store->lock);
    return id > 0 ? id : 0;
}

bool facts_answers_ready(facts_answers *store, int64_t scope, facts_text *out)
{
    pthread_mutex_lock(&store->lock);
    sqlite3_stmt *s = facts_answers_statement(store, STATEMENT_READY_GET);
    sqlite3_bind_int64(s, 1, scope);
    bool found = !store->broken && sqlite3_step(s) == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_TEXT;
    if (found)
        facts_text_add(out, (const char *)sqlite3_column_text(s, 0), (size_t)sqlite3_column_bytes(s, 0));
    sqlite3_reset(s);
    pthread_mutex_unlock(&store->lock);
    return found && !out->failed;
}

void facts_answers_set_ready(facts_answers *store, int64_t scope, const char *text, size_t length)
{
    pthread_mutex_lock(&store->lock);
    sqlite3_stmt *s = facts_answers_statement(store, STATEMENT_READY_SET);
    sqlite3_bind_text(s, 1, text, (int)length, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, scope);
    facts_answers_step(store, s);
    pthread_mutex_unlock(&store->lock);
}

void facts_answers_begin(facts_answers *store)
{
    pthread_mutex_lock(&store->lock);
    if (!store->broken && sqlite3_get_autocommit(store->db))
        facts_answers_do(store, "begin");
    pthread_mutex_unlock(&store->lock);
}

void facts_answers_end(facts_answers *store)
{
    pthread_mutex_lock(&store->lock);
    if (!sqlite3_get_autocommit(store->db))
        facts_answers_do(store, "commit");
    pthread_mutex_unlock(&store->lock);
}

/* The row at hand is this case's and whole. */
static bool take(sqlite3_stmt *s, const char *name, facts_text *out, char asked[24])
{
    const char *text = (const char *)sqlite3_column_text(s, 3), *kept = (const char *)sqlite3_column_text(s, 0);
    size_t length = (size_t)sqlite3_column_bytes(s, 3);
    time_t when = (time_t)sqlite3_column_int64(s, 1);
    struct tm utc;
    if (!text || !kept || strcmp(kept, name) != 0 || sum_of(name, text, length) != sqlite3_column_int64(s, 2) || !gmtime_r(&when, &utc))
        return false;
    facts_text_add(out, text, length);
    return strftime(asked, 24, "%Y-%m-%dT%H:%M:%SZ", &utc) > 0 && !out->failed;
}

bool facts_answers_get(facts_answers *store, int64_t scope, const char *name, facts_text *out, char asked[24])
{
    bool found = false;
    pthread_mutex_lock(&store->lock);
    if (!store->broken) {
        sqlite3_stmt *s = facts_answers_statement(store, STATEMENT_GET);
        sqlite3_bind_int64(s, 1, scope);
        sqlite3_bind_int64(s, 2, hash_of(name));
        int status = sqlite3_step(s);
        found = status == SQLITE_ROW && take(s, name, out, asked);
        if (status != SQLITE_ROW && status != SQLITE_DONE)
            facts_answers_note_error(store, status);
        sqlite3_reset(s);
    }
    pthread_mutex_unlock(&store->lock);
    return found;
}

static void write_one(facts_answers *store, const pending *p)
{
    sqlite3_stmt *s = facts_answers_statement(store, p->text ? STATEMENT_PUT : STATEMENT_DROP);
    sqlite3_bind_int64(s, 1, p->scope);
    sqlite3_bind_int64(s, 2, hash_of(p->name));
    if (p->text) {
        sqlite3_bind_text(s, 3, p->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 4, now_s());
        sqlite3_bind_int64(s, 5, sum_of(p->name, p->text, p->length));
        sqlite3_bind_text(s, 6, p->text, (int)p->length, SQLITE_STATIC);
    }
    facts_answers_step(store, s);
}

static void forget_pending(facts_answers *store)
{
    for (size_t i = 0; i < store->pending_count; i++)
        free(store->pending[i].name);
    store->pending_count = store->pending_bytes = 0;
}

void facts_answers_flush(facts_answers *store)
{
    store->flushed = now_s();
    if (store->pending_count && !store->broken && !store->full) {
        if (!facts_answers_do(store, "begin immediate")) {
            if (store->pending_bytes > PENDING_MOST)
                forget_pending(store);
            return;
        }
        for (size_t i = 0; i < store->pending_count && !store->broken && !store->full; i++)
            write_one(store, &store->pending[i]);
        facts_answers_trim(store);
        if (!facts_answers_do(store, "commit"))
            facts_answers_do(store, "rollback");
    }
    forget_pending(store);
}

static void add_pending(facts_answers *store, int64_t scope, const char *name, const char *text, size_t length)
{
    if (store->broken || store->full)
        return;
    if (store->pending_count == store->pending_room) {
        size_t room = store->pending_room ? store->pending_room * 2 : 256;
        pending *larger = realloc(store->pending, room * sizeof *larger);
        if (!larger)
            return;
        store->pending = larger;
        store->pending_room = room;
    }
    size_t name_bytes = strlen(name) + 1;
    char *block = malloc(name_bytes + length + 1);
    if (!block)
        return;
    memcpy(block, name, name_bytes);
    if (text)
        memcpy(block + name_bytes, text, length);
    store->pending[store->pending_count++] =
        (pending){ .scope = scope, .name = block, .text = text ? block + name_bytes : NULL, .length = length };
    store->pending_bytes += name_bytes + length;
    if (store->flushed != now_s() && sqlite3_get_autocommit(store->db))
        facts_answers_flush(store);
}

void facts_answers_put(facts_answers *store, int64_t scope, const char *name, const char *text, size_t length)
{
    pthread_mutex_lock(&store->lock);
    add_pending(store, scope, name, text, length);
    pthread_mutex_unlock(&store->lock);
}

void facts_answers_drop(facts_answers *store, int64_t scope, const char *name)
{
    facts_answers_put(store, scope, name, NULL, 0);
}
