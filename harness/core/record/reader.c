#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AS_KEY(symbol, key) [FACTS_LINE_##symbol] = key,
static const char *const kind_keys[] = { FACTS_LINE_LIST(AS_KEY) };
#undef AS_KEY

facts_span facts_line_get(const facts_line *line, const char *key)
{
    return facts_member_find(line->members, line->count, key);
}

static size_t kept(size_t count)
{
    return count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS;
}

/* {"run":{…}}: the members of the object inside become the line's. */
static bool unwrap(facts_line *out, facts_line_kind kind, facts_span inner)
{
    size_t count;
    if (!facts_scan_object(inner.at, inner.length, out->members, FACTS_ROW_MEMBERS, &count))
        return false;
    out->kind = kind;
    out->count = kept(count);
    return true;
}

void facts_line_parse(facts_line *out, const char *text, size_t length)
{
    size_t count;
    out->text = text;
    out->length = length;
    out->kind = FACTS_LINE_BAD;
    out->count = 0;
    if (!facts_scan_object(text, length, out->members, FACTS_ROW_MEMBERS, &count))
        return;
    out->count = kept(count);
    out->kind = FACTS_LINE_OTHER;
    if (facts_line_get(out, "case").at && facts_line_get(out, "verdict").at) {
        out->kind = FACTS_LINE_ROW;
        return;
    }
    for (size_t kind = 0; kind < sizeof kind_keys / sizeof kind_keys[0]; kind++) {
        facts_span inner = facts_line_get(out, kind_keys[kind]);
        if (inner.at && inner.length && inner.at[0] == '{' &&
            unwrap(out, (facts_line_kind)kind, inner))
            return;
    }
}

typedef struct reading {
    int fd;
    char *buffer;
    size_t capacity, used;
    bool skipping; /* inside a line that was too long */
    bool (*each)(void *, const facts_line *);
    void *context;
    facts_read_counts *counts;
    facts_line *line;
} reading;

static bool deliver(reading *r, size_t start, size_t length)
{
    facts_line *line = r->line;
    int64_t format;
    if (length && r->buffer[start + length - 1] == '\r')
        length--;
    if (!length && !r->skipping)
        return true;
    facts_line_parse(line, r->buffer + start, length);
    if (r->skipping)
        line->kind = FACTS_LINE_BAD;
    r->skipping = false;
    if (line->kind == FACTS_LINE_RUN && facts_json_int(facts_line_get(line, "format"), &format) &&
        format > FACTS_RECORD_FORMAT) {
        r->counts->newer = format;
        return false;
    }
    r->counts->lines++;
    r->counts->rows += line->kind == FACTS_LINE_ROW;
    r->counts->bad += line->kind == FACTS_LINE_BAD;
    return r->each(r->context, line);
}

/* Delivers every whole line of the buffer and moves the rest to its front. */
static bool drain(reading *r, size_t searched)
{
    size_t start = 0;
    char *newline;
    while ((newline = memchr(r->buffer + searched, '\n', r->used - searched)) != NULL) {
        size_t end = (size_t)(newline - r->buffer);
        if (!deliver(r, start, end - start))
            return false;
        start = searched = end + 1;
    }
    if (start == 0 && r->used >= FACTS_LINE_MAX) {
        r->skipping = true;
        start = r->used;
    }
    memmove(r->buffer, r->buffer + start, r->used - start);
    r->used -= start;
    return true;
}

/* The first bytes of xz and gzip. */
static bool is_packed(const reading *r)
{
    return r->used >= 2 &&
           (memcmp(r->buffer, "\xfd\x37", 2) == 0 || memcmp(r->buffer, "\x1f\x8b", 2) == 0);
}

static bool read_all(reading *r)
{
    for (;;) {
        if (r->used == r->capacity) {
            r->capacity *= 2;
            r->buffer = realloc(r->buffer, r->capacity);
        }
        size_t before = r->used;
        ssize_t got = read(r->fd, r->buffer + before, r->capacity - before);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        r->used += (size_t)got;
        if (r->counts->lines == 0 && before == 0 && !r->skipping && is_packed(r)) {
            r->counts->foreign = "is compressed: unpack it first";
            return true;
        }
        if (!drain(r, before))
            return true;
    }
    r->counts->torn = r->used > 0 || r->skipping;
    if (r->counts->torn)
        deliver(r, 0, r->used);
    /* A record with one torn line was stopped there; that line begins as an object does. */
    const bool no_object = r->counts->torn && !r->skipping && r->buffer[0] != '{';
    if (r->counts->bad == r->counts->lines && (r->counts->lines > r->counts->torn || no_object))
        r->counts->foreign = "is not a record (no line could be read)";
    return true;
}

/* Opening a fifo waits for a writer; /dev/fd/N is the `<(…)` of a shell. */
static int open_record(const char *path)
{
    struct stat info;
    if (strncmp(path, "/dev/", strlen("/dev/")) != 0 && stat(path, &info) == 0 &&
        S_ISFIFO(info.st_mode)) {
        errno = ESPIPE;
        return -1;
    }
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool facts_record_read(const char *path, bool (*each)(void *, const facts_line *), void *context,
                       facts_read_counts *counts)
{
    reading r = {
        .capacity = (size_t)256 << 10, .each = each, .context = context, .counts = counts
    };
    *counts = (facts_read_counts){ 0 };
    r.fd = open_record(path);
    if (r.fd < 0)
        return false;
    r.buffer = malloc(r.capacity);
    r.line = malloc(sizeof *r.line);
    bool ok = read_all(&r) && !counts->newer && !counts->foreign;
    int why = errno;
    free(r.buffer);
    free(r.line);
    close(r.fd);
    errno = why;
    return ok;
}

int facts_record_trouble(const facts_read_counts *counts, facts_error *error)
{
    const bool no_record = errno == ENOENT || errno == ENOTDIR || errno == EISDIR;
    if (counts->newer)
        facts_fail(error,
                   "was written by a newer FACTS (format %lld; this version reads %d): read it "
                   "with that version",
                   (long long)counts->newer, FACTS_RECORD_FORMAT);
    else
        facts_fail(error, "%s", counts->foreign ? counts->foreign : strerror(errno));
    return counts->newer || counts->foreign || no_record ? 2 : 3;
}
