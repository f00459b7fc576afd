/* Writes a record: JSON Lines, one object in one write (docs/records.md). A lock (flock) lets one
 * process write a record at a time. */
#ifndef FACTS_WRITER_H
#define FACTS_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "words/fail.h"

typedef enum facts_open_mode {
    FACTS_OPEN_NEW,    /* refuses a file that holds something */
    FACTS_OPEN_RESUME, /* goes on after what is there */
    FACTS_OPEN_REPLACE /* empties it */
} facts_open_mode;

typedef struct facts_writer facts_writer;

/* Opens and locks `path`. A file whose last byte is not a newline gets one first.
 * Returns 0; 2 (NEW, and the file holds something); 3 (cannot be opened, locked or written).
 * `error` is one line with path and remedy. */
int facts_writer_open(facts_writer **out, const char *path, facts_open_mode mode,
                      facts_error *error);
/* Appends one object (without its newline) in one write. False if it could not be written
 * completely; facts_writer_error says why. Nothing more is written after that. */
bool facts_writer_line(facts_writer *writer, const char *object, size_t length);
const char *facts_writer_error(const facts_writer *writer); /* "" while all is well */
/* Syncs and closes. False when that failed (`error` says what); NULL is fine. */
bool facts_writer_close(facts_writer *writer, facts_error *error);

#endif
