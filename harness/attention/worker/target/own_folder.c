#include "own_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int facts_folder_open(const char *path)
{
    struct stat info;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 &&
        (fstat(folder, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & 022))) {
        close(folder);
        folder = -1;
    }
    return folder;
}

static char *read_all(int file, size_t most, size_t *count)
{
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid() ||
        info.st_size > (off_t)most)
        return NULL;
    char *bytes = malloc((size_t)info.st_size + 1);
    *count = 0;
    while (bytes && *count < (size_t)info.st_size) {
        ssize_t n = read(file, bytes + *count, (size_t)info.st_size - *count);
        if (n <= 0) {
            free(bytes);
            return NULL;
        }
        *count += (size_t)n;
    }
    return bytes;
}

char *facts_folder_read(int folder, const char *name, size_t most, size_t *count)
{
    int file = openat(folder, name,
                      O_RDONLY | O_NONBLOCK | O_NOFOLLOW |
                          O_CLOEXEC); /* NONBLOCK: a FIFO is refused, not waited for */
    char *bytes = file >= 0 ? read_all(file, most, count) : NULL;
    if (file >= 0)
        close(file);
    return bytes;
}

static bool write_all(int file, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = write(file, bytes, count);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        count -= (size_t)n;
    }
    return true;
}

bool facts_folder_write(int folder, const char *name, const char *bytes, size_t count)
{
    char aside[120];
    snprintf(aside, sizeof aside, "%s.%ld", name, (long)getpid());
    int file = openat(folder, aside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return false;
    bool good = write_all(file, bytes, count);
    good = close(file) == 0 && good && renameat(folder, aside, folder, name) == 0;
    if (!good)
        unlinkat(folder, aside, 0);
    return good;
}

void facts_folder_drop(int folder, const char *name)
{
    unlinkat(folder, name, 0);
}
