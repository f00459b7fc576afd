/* Structs that carry their size: an older caller's is shorter, a newer one's longer. */
#ifndef FATTN_SIZED_H
#define FATTN_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A size beyond this was never set: no struct will grow so far. */
enum { FATTN__STRUCT_SIZE_LIMIT = 4096 };

/* Copies what both know of `from`, whose first member is its size, over the defaults in `to`. False when the caller's struct is too
 * short to hold its size, absurdly long, or longer with something set that this library does not know. */
static inline bool fattn__read_sized(void *to, size_t size, const void *from)
{
    size_t theirs;
    memcpy(&theirs, from, sizeof theirs);
    if (theirs <= sizeof theirs || theirs > FATTN__STRUCT_SIZE_LIMIT)
        return false;
    for (size_t i = size; i < theirs; i++) {
        if (((const unsigned char *)from)[i] != 0)
            return false;
    }
    memcpy(to, from, theirs < size ? theirs : size);
    memcpy(to, &size, sizeof size);
    return true;
}

#endif
