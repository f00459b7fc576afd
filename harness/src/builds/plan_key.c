/* The user's key, which seals the files of FACTS in plan folders: 32 random bytes in the cache,
 * readable by the user only. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "home.h"

enum { KEY_BYTES = 32 };

/* Written to another name and linked: of two processes that create the key at once, one succeeds,
 * and both read it. */
static bool make(const char *path)
{
    char aside[FACTS_PATH + 32];
    unsigned char key[KEY_BYTES];
    (void)snprintf(aside, sizeof aside, "%s.%ld", path, (long)getpid());
    if (getrandom(key, sizeof key, 0) != (ssize_t)sizeof key)
        return false;
    const int file = open(aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool good = write(file, key, sizeof key) == (ssize_t)sizeof key && fsync(file) == 0;
    good = close(file) == 0 && good && (link(aside, path) == 0 || errno == EEXIST);
    const int why = errno;
    (void)unlink(aside);
    errno = why;
    return good;
}

static int open_key(const char *path)
{
    return open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
}

/* Returns 0, or 3 with the reason. */
static int read_key(unsigned char out[KEY_BYTES], int file, const char *path, facts_error *error)
{
    struct stat info;
    if (fstat(file, &info) != 0)
        return facts_fail_as(3, error, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077))
        return facts_fail_as(
            3, error, "%s: must be a file of your own that nobody else can read (chmod 600)", path);
    if (read(file, out, KEY_BYTES) != KEY_BYTES || info.st_size != KEY_BYTES)
        return facts_fail_as(
            3, error,
            "%s: is not a key of %d bytes; remove the file, and FACTS compiles the plans again",
            path, KEY_BYTES);
    return 0;
}

int facts_plan_key(char out[65], facts_error *error)
{
    char path[FACTS_PATH];
    unsigned char key[KEY_BYTES] = { 0 };
    if (!facts_cache_path("plan.key", path))
        return facts_fail_as(3, error,
                             "neither XDG_CACHE_HOME nor HOME is set: there is no folder for the "
                             "key that seals plans");
    int file = open_key(path);
    if (file < 0 && errno == ENOENT && facts_make_folders(path) && make(path))
        file = open_key(path);
    if (file < 0)
        return facts_fail_as(3, error, "%s: %s", path, strerror(errno));
    const int status = read_key(key, file, path, error);
    (void)close(file);
    for (size_t i = 0; status == 0 && i < sizeof key; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", key[i]);
    return status;
}
