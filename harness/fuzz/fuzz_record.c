/* A line of somebody's record: parsed without harm, and accepted exactly when a JSON library
 * accepts it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "record/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static facts_line line;
    char text[64];
    facts_line_parse(&line, (const char *)data, size);
    for (size_t i = 0; i < line.count; i++) {
        facts_span value = line.members[i].value;
        if (value.at < (const char *)data || value.at + value.length > (const char *)data + size)
            abort();
        facts_json_string(value, text, sizeof text);
    }
    json_t *json = json_loadb((const char *)data, size, 0, NULL);
    /* jansson passes over a NUL after a number; we do not. */
    if ((line.kind != FACTS_LINE_BAD) != (json_is_object(json) && !memchr(data, 0, size)))
        abort();
    json_decref(json);
    return 0;
}
