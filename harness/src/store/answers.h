/* What described devices answered before: an unchanged question to an unchanged build is not asked twice. One SQLite file in the
 * user's cache. It is a convenience: whatever is wrong with it, everything is asked as if it were not there.
 *
 * A scope is all that an answer depends on but the case: the build's libraries, the device, the worker program …
 * (supervisor/stored.c puts that into words; here it is a key). Under a scope lie what the worker said when it was ready, and
 * answers by the case's canonical name.
 *
 * Threads: any may call; several processes may share the file. */
#ifndef FACTS_ANSWERS_H
#define FACTS_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "builds/home.h"
#include "record/text.h"

#define FACTS_STORE_BYTES ((int64_t)1 << 30) /* of answers; beyond it what was used longest ago goes */

typedef struct facts_answers facts_answers;

/* Opens or makes the file (0600). One that is broken, not ours or of a newer FACTS is renamed to PATH.aside, which `note` says in
 * one line; otherwise `note` is empty. NULL: there is no store to be had here. */
facts_answers *facts_answers_open(const char *path, int64_t most_bytes, facts_error *note);
/* Writes what is pending. `note` as above: the file may turn out to be broken while it is used. NULL is fine. */
void facts_answers_close(facts_answers *store, facts_error *note);

/* The scope of a key, from 1; 0: the store cannot say. */
int64_t facts_answers_scope(facts_answers *store, const char *key);

/* Appends the worker's `ready` object to `out`. False: none is kept. */
bool facts_answers_ready(facts_answers *store, int64_t scope, facts_text *out);
void facts_answers_set_ready(facts_answers *store, int64_t scope, const char *text, size_t length);

/* Many questions in a row are faster between these two. No put in between. */
void facts_answers_begin(facts_answers *store);
void facts_answers_end(facts_answers *store);
/* Appends an answer to `out`; `asked` gets the time of its asking, "2026-11-21T23:00:00Z". False: none is kept. */
bool facts_answers_get(facts_answers *store, int64_t scope, const char *name, facts_text *out, char asked[24]);
/* Keeps an answer, instead of one that is there. It is written some time before facts_answers_close returns. */
void facts_answers_put(facts_answers *store, int64_t scope, const char *name, const char *text, size_t length);
/* What was put under this name is no answer after all. */
void facts_answers_drop(facts_answers *store, int64_t scope, const char *name);

/* A file's content: 128 bits of XXH3, and SHA-256, as hex digits. Both are remembered by path, size, times and inode, as git does.
 * False: the file cannot be read. `store` may be NULL: then the file is read. */
bool facts_answers_content(facts_answers *store, const char *path, char out[33]);
bool facts_answers_sha256(facts_answers *store, const char *path, char out[65]);

#endif
