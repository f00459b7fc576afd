/* Two digests of a file from one reading. Those of a large file are kept in the user's cache folder
 * (digests/), because every command would read the libraries of cuDNN again: 0.2 s, half of a start.
 *
 * The kept digests count only for the same device, inode, size, time of writing and time of change,
 * in nanoseconds. Who could be deceived:
 * - A file that is written or replaced gets a new time of change, which no program can set. While the
 *   clock of the file system stands still, it gets the same one again. A page that a program mapped
 *   and changed may get none for the 35 s until the kernel writes it. So the digests are kept only if
 *   the last change is SETTLED_S old when the reading begins, and not in the future.
 * - An image file system (squashfs) has the times that its maker chose, and another image may get the
 *   same device. Such times, and those of coarse clocks, are whole seconds: they are never kept.
 * - Someone else may own the cache. An entry counts only if it belongs to this user and no one else
 *   may write it.
 * - Root can set the clock back, or write to the disk below the file system. That is not noticed.
 * An entry that cannot be read or written costs time, nothing else. */
#ifndef FACTS_DIGEST_H
#define FACTS_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

typedef struct facts_digest {
    uint64_t xxh3; /* of the bytes; the seed is the XXH3 of the file's name without its folder */
    char sha256[65];
} facts_digest;

/* False: the file cannot be read; the digest of what could be read is in `out`. Any thread may ask;
 * a second one waits for the first. */
bool facts_digest_file(const char *path, facts_digest *out);

#endif
