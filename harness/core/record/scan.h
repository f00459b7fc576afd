/* Finds the members of one JSON object in its text, without building the object. Rows pass through
 * the supervisor unchanged, and are not printed again. It accepts what jansson accepts; keys may
 * repeat. */
#ifndef FACTS_SCAN_H
#define FACTS_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "words/fail.h"

#include "words/span.h"

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

/* Values read from spans. False (and *out untouched) when the span is absent or of another kind. */
bool facts_json_int(facts_span value, int64_t *out);
bool facts_json_bool(facts_span value, bool *out);
/* The text of a JSON string, escapes resolved, cut to `capacity` - 1 bytes at a whole character. */
bool facts_json_string(facts_span value, char *out, size_t capacity);
bool facts_json_is(
    facts_span value,
    const char *string); /* the JSON string equals `string` (which has nothing to escape) */

#endif
