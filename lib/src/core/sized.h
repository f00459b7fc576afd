/* Structs that begin with their size. The struct of an older caller is shorter, that of a newer
 * caller longer. */
#ifndef FATTN_SIZED_H
#define FATTN_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* A larger size means that the caller did not set it: no struct will grow so far. */
enum { FATTN__STRUCT_SIZE_LIMIT = 4096 };

/* Copies the members that both sides know from `from`, whose first member is its size, over the
 * defaults in `to`. Returns false if the caller's struct is too short to hold its size, if it is
 * longer than the limit above, or if a member that this library does not know is set. */
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
