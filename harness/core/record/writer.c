#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader.h"

struct facts_writer {
    int fd;
    char *path;
    char *line; /* the object and its newline, so that both go out in one write */
    size_t capacity;
    facts_error error;
};

static int refuse(facts_error *error, int status, const char *path, const char *why)
{
    return facts_fail_as(status, error, "%s: %s", path, why);
}

/* Where the last line begins. */
static off_t last_line(int fd, off_t size)
{
    char part[4096];
    for (off_t end = size; end > 0;) {
        const off_t from = end > (off_t)sizeof part ? end - (off_t)sizeof part : 0;
        const ssize_t n = pread(fd, part, (size_t)(end - from), from);
        const char *newline = n == end - from ? memrchr(part, '\n', (size_t)n) : NULL;
        if (n != end - from || newline)
            return n != end - from ? -1 : from + (newline - part) + 1;
        end = from;
    }
    return 0;
}

/* Is this half an object, left by a kill or a power failure? */
static bool is_torn(int fd, off_t from, size_t length)
{
    facts_member members[1];
    size_t count;
    char *text = malloc(length);
    const bool read = pread(fd, text, length, from) == (ssize_t)length;
    const bool torn =
        read && text[0] == '{' && !facts_scan_object(text, length, members, 1, &count);
    free(text);
    return torn;
}

/* Text after the last newline would make the next object unreadable. Half an object is removed: its
 * case is asked again, and an unreadable line would make the record incomplete forever. Other text
 * stays, on a line of its own. */
static bool end_torn_line(int fd, off_t size)
{
    const off_t from = last_line(fd, size);
    if (from < 0)
        return false;
    if (from == size)
        return true;
    if (is_torn(fd, from, (size_t)(size - from)))
        return ftruncate(fd, from) == 0;
    return write(fd, "\n", 1) == 1;
}

/* The process that has locked the file; 0: the kernel does not say. */
static long holder_of(const struct stat *file)
{
    char line[256];
    long process = 0;
    FILE *locks = fopen("/proc/locks", "re");
    while (locks && !process && fgets(line, sizeof line, locks)) {
        /* "1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF" */
        char kind[16], owner[24], device[64];
        if (sscanf(line, "%*s %15s %*s %*s %23s %63s", kind, owner, device) != 3 ||
            strcmp(kind, "FLOCK") != 0)
            continue;
        const char *inode = strrchr(device, ':');
        if (inode && strtoul(inode + 1, NULL, 10) == (unsigned long)file->st_ino)
            process = strtol(owner, NULL, 10);
    }
    if (locks)
        (void)fclose(locks);
    return process;
}

static int refuse_second(facts_error *error, const char *path, const struct stat *file)
{
    const long process = holder_of(file);
    if (process)
        return facts_fail_as(3, error, "%s: another run is writing this record (process %ld)", path,
                             process);
    return refuse(error, 3, path, "another run is writing this record");
}

/* /dev/stdout, and what `>(…)` of a shell stands for. */
static bool is_device(const char *path)
{
    return strncmp(path, "/dev/", strlen("/dev/")) == 0;
}

static int prepare(int fd, const char *path, facts_open_mode mode, facts_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return refuse(error, 3, path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? refuse_second(error, path, &st)
                                    : refuse(error, 3, path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return is_device(path) || S_ISCHR(st.st_mode)
                   ? 0
                   : refuse(error, 3, path, "is no file; give another name");
    if (st.st_nlink > 1)
        return refuse(error, 3, path,
                      "has a second name (a hard link), and its contents would change too; give "
                      "another file");
    if (mode == FACTS_OPEN_NEW && st.st_size > 0)
        return refuse(error, 2, path, "exists; --resume continues it, --overwrite replaces it");
    if (mode == FACTS_OPEN_REPLACE && ftruncate(fd, 0) != 0)
        return refuse(error, 3, path, strerror(errno));
    if (mode == FACTS_OPEN_RESUME && !end_torn_line(fd, st.st_size))
        return refuse(error, 3, path, strerror(errno));
    return 0;
}

int facts_writer_open(facts_writer **out, const char *path, facts_open_mode mode,
                      facts_error *error)
{
    *out = NULL;
    int fd = open(
        path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | (is_device(path) ? 0 : O_NOFOLLOW), 0666);
    if (fd < 0)
        return refuse(error, 3, path,
                      errno == ELOOP    ? "is a link; give the file itself"
                      : errno == EISDIR ? "is a folder; give a file"
                      : errno == ENOENT ? "its folder does not exist; make it, or give another file"
                                        : strerror(errno));
    int status = prepare(fd, path, mode, error);
    if (status != 0) {
        close(fd);
        return status;
    }
    facts_writer *writer = calloc(1, sizeof *writer);
    writer->fd = fd;
    writer->path = strdup(path);
    *out = writer;
    return 0;
}

static void reserve(facts_writer *writer, size_t length)
{
    if (length <= writer->capacity)
        return;
    writer->line = realloc(writer->line, length * 2);
    writer->capacity = length * 2;
}

bool facts_writer_line(facts_writer *writer, const char *object, size_t length)
{
    if (writer->error.text[0])
        return false;
    reserve(writer, length + 1);
    memcpy(writer->line, object, length);
    writer->line[length] = '\n';
    ssize_t written;
    do {
        written = write(writer->fd, writer->line, length + 1);
    } while (written < 0 && errno == EINTR);
    if (written == (ssize_t)(length + 1))
        return true;
    refuse(&writer->error, 0, writer->path,
           written < 0 ? strerror(errno) : "short write (is the disk full?)");
    return false;
}

const char *facts_writer_error(const facts_writer *writer)
{
    return writer->error.text;
}

bool facts_writer_close(facts_writer *writer, facts_error *error)
{
    if (!writer)
        return true;
    /* EINVAL and EROFS: a pipe or terminal, which cannot be synced. */
    bool synced = fsync(writer->fd) == 0 || errno == EINVAL || errno == EROFS;
    int why = errno;
    struct stat st;
    const bool removed = fstat(writer->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 0;
    bool closed = close(writer->fd) == 0;
    if (!synced || !closed)
        refuse(error, 3, writer->path, strerror(synced ? errno : why));
    else if (removed)
        refuse(error, 3, writer->path, "was removed while it was written; its rows are lost");
    free(writer->path);
    free(writer->line);
    free(writer);
    return synced && closed && !removed;
}
