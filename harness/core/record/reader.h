/* Reads a record. A record may come from anybody: every line has a limit, nothing in it is trusted,
 * and lines that cannot be parsed are counted. */
#ifndef FACTS_READER_H
#define FACTS_READER_H

#include "words/span.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "words/fail.h"

/* Finds the members of one JSON object in its text, without building the object. Rows pass through
 * the supervisor unchanged, and are not printed again. It accepts what jansson accepts; keys may
 * repeat. */
typedef struct facts_member {
    facts_span key;   /* between the quotes, escapes as written */
    facts_span value; /* the whole value, quotes or braces included */
} facts_member;

/* Scans an object. At most `capacity` members are kept; *count is the number of all. Returns false
 * if the text is not exactly one valid object. Blanks around it are allowed. */
bool facts_scan_object(const char *text, size_t length, facts_member *out, size_t capacity,
                       size_t *count);
/* The elements of an array, the same way. */
bool facts_scan_array(const char *text, size_t length, facts_span *out, size_t capacity,
                      size_t *count);

/* The value of a key among scanned members; absent: at is NULL. */
facts_span facts_member_find(const facts_member *members, size_t count, const char *key);

/* The value of a key of an object; absent, or no object: at is NULL. */
facts_span facts_json_member(facts_span object, const char *key);
/* Values read from spans. False (and *out untouched) when the span is absent or of another kind. */
bool facts_json_int(facts_span value, int64_t *out);
bool facts_json_bool(facts_span value, bool *out);
/* The text of a JSON string, escapes resolved, cut to `capacity` - 1 bytes at a whole character. */
bool facts_json_string(facts_span value, char *out, size_t capacity);
bool facts_json_is(
    facts_span value,
    const char *string); /* the JSON string equals `string` (which has nothing to escape) */

#define FACTS_LINE_MAX ((size_t)8 << 20)
#define FACTS_ROW_MEMBERS 64
#define FACTS_RECORD_FORMAT                                                                        \
    1 /* the format, in each run object; a greater number is from a newer FACTS and is refused */

/* The kinds of lines. X(SYMBOL, "key that makes it one") */
#define FACTS_LINE_LIST(X)                                                                         \
    X(RUN, "run") X(TARGET, "target") X(START, "start") X(TIME, "time") X(END, "end")
#define AS_ENUM(symbol, key) FACTS_LINE_##symbol,
typedef enum facts_line_kind {
    FACTS_LINE_LIST(AS_ENUM) FACTS_LINE_ROW,
    FACTS_LINE_OTHER,
    FACTS_LINE_BAD
} facts_line_kind;
#undef AS_ENUM

/* One line. Spans point into the reader's buffer and live until the callback returns. */
typedef struct facts_line {
    facts_line_kind kind;
    const char *text; /* without the newline; not terminated */
    size_t length;
    facts_member members[FACTS_ROW_MEMBERS]; /* the members of the row, or of the object in
                                                {"run":{…}} and similar lines */
    size_t count;
} facts_line;

typedef struct facts_read_counts {
    uint64_t lines, rows, bad;
    bool torn;     /* the last line has no newline */
    int64_t newer; /* a run has this format, which is newer than this program: the reader stopped
                      there */
    const char *foreign; /* why it is no record at all; NULL: it is one, or empty */
} facts_read_counts;

facts_span facts_line_get(const facts_line *line, const char *key);

/* Reads a line's kind and members. Never fails: a line that is no object of a record is BAD or
 * OTHER. */
void facts_line_parse(facts_line *out, const char *text, size_t length);

/* Calls `each` for every line of a file, in order, until it returns false. Blank lines are skipped;
 * a line over FACTS_LINE_MAX is BAD. Returns false if the file cannot be read, is no record, or
 * comes from a newer FACTS. */
bool facts_record_read(const char *path, bool (*each)(void *context, const facts_line *line),
                       void *context, facts_read_counts *counts);
/* Call it directly after facts_record_read returned false. Writes the reason for people. Returns
 * the exit code: 2 for a newer record and for a file that is no record, else 3. */
int facts_record_trouble(const facts_read_counts *counts, facts_error *error);

/* Members of a row that several readers need. Texts are cut to their buffers and have no control
 * characters. */
/* The engine numbers of mode A in their order, "8 9 10"; empty: none. */
void facts_row_engines(const facts_line *row, char *out, size_t capacity);
/* The knobs of the row's configuration of mode A (the first, if the row names none), by name:
 * "KERNEL_CFG=1 TILE_M=3"; empty: it has none. False: the row does not contain them. */
bool facts_row_knobs(const facts_line *row, char *out, size_t capacity);
/* A member of the row's reason: "class", "text", "rule"; empty: absent. */
void facts_row_text(const facts_line *row, const char *key, char *out, size_t capacity);

#endif
