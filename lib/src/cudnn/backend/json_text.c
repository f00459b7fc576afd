#include "json_text.h"

#include <stdlib.h>

char *fattn__json_text(const json_t *object)
{
    const size_t count = json_dumpb(object, NULL, 0, JSON_COMPACT);
    char *text = count > 0 ? malloc(count + 1) : NULL;
    if (text == NULL || json_dumpb(object, text, count, JSON_COMPACT) != count) {
        free(text);
        return NULL;
    }
    text[count] = '\0';
    return text;
}
