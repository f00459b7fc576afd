/* Reads one JSON object without building it: where its members lie in the text. Rows pass through the supervisor unchanged, so
 * nothing has to be parsed into memory and printed again. What is accepted is exactly valid JSON in valid UTF-8 (as jansson accepts it, except that
 * keys may repeat), nested at most FACTS_SCAN_DEPTH deep. */
#ifndef FACTS_SCAN_H
#define FACTS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACTS_SCAN_DEPTH 64

/* A piece of somebody's text; not terminated. */
typedef struct facts_slice {
    const char *at; /* NULL: absent */
    size_t length;
} facts_slice;

typedef struct facts_member {
    facts_slice key;   /* between the quotes, escapes as written */
    facts_slice value; /* the whole value, quotes or braces included */
} facts_member;

/* Scans an object. At most `capacity` members are kept; *count is how many it has in all.
 * Returns false when the text is not exactly one valid object (blanks around it are fine). */
bool facts_scan_object(const char *text, size_t length, facts_member *out, size_t capacity, size_t *count);
/* The elements of an array, the same way. */
bool facts_scan_array(const char *text, size_t length, facts_slice *out, size_t capacity, size_t *count);

/* The value of a key among scanned members; absent: at is NULL. */
facts_slice facts_member_find(const facts_member *members, size_t count, const char *key);

/* Values read from spans. False (and *out untouched) when the span is absent or of another kind. */
bool facts_slice_int(facts_slice value, int64_t *out);
bool facts_slice_bool(facts_slice value, bool *out);
/* The text of a JSON string, escapes resolved, cut to `capacity` - 1 bytes at a whole character. */
bool facts_slice_string(facts_slice value, char *out, size_t capacity);
bool facts_slice_is(facts_slice value, const char *string); /* the JSON string equals `string` (which has nothing to escape) */

/* Bytes of the UTF-8 character at `text`, 0 when it is none. */
size_t facts_utf8_length(const char *text, size_t length);

#endif
