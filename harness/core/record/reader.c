#include "reader.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* jansson proves the text valid. What follows only finds where its members begin and end. It passes
 * over a NUL after a number, which is no JSON. */
static bool is_valid(const char *text, size_t length, json_type type)
{
    json_t *root = memchr(text, '\0', length) ? NULL : json_loadb(text, length, 0, NULL);
    const bool valid = root && json_typeof(root) == type;
    json_decref(root);
    return valid;
}

static const char *after_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r')
        at++;
    return at;
}

static const char *after_string(const char *at)
{
    for (at++; *at != '"'; at++)
        at += *at == '\\';
    return at + 1;
}

static const char *after_value(const char *at)
{
    int depth = 0;
    if (*at != '"' && *at != '{' && *at != '[')
        return at + strcspn(at, ",]} \t\n\r");
    do {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at = *at == '"' ? after_string(at) : at + 1;
    } while (depth);
    return at;
}

/* The next element of a list, with its key in an object; false: there are no more. */
static bool next(const char **at, bool object, facts_member *out)
{
    const char *start = after_blanks(*at + 1); /* behind the bracket or the comma */
    *out = (facts_member){ 0 };
    if (*start == '}' || *start == ']')
        return false;
    if (object) {
        const char *end = after_string(start);
        out->key = (facts_span){ start + 1, (size_t)(end - start) - 2 };
        start = after_blanks(after_blanks(end) + 1);
    }
    const char *end = after_value(start);
    out->value = (facts_span){ start, (size_t)(end - start) };
    *at = after_blanks(end);
    return true;
}

bool facts_scan_object(const char *text, size_t length, facts_member *out, size_t capacity,
                       size_t *count)
{
    facts_member member;
    *count = 0;
    if (!is_valid(text, length, JSON_OBJECT))
        return false;
    for (text = after_blanks(text); *text != '}' && next(&text, true, &member); ++*count)
        if (*count < capacity)
            out[*count] = member;
    return true;
}

bool facts_scan_array(const char *text, size_t length, facts_span *out, size_t capacity,
                      size_t *count)
{
    facts_member member;
    *count = 0;
    if (!is_valid(text, length, JSON_ARRAY))
        return false;
    for (text = after_blanks(text); *text != ']' && next(&text, false, &member); ++*count)
        if (*count < capacity)
            out[*count] = member.value;
    return true;
}

facts_span facts_member_find(const facts_member *members, size_t count, const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < count; i++)
        if (members[i].key.length == n && memcmp(members[i].key.at, key, n) == 0)
            return members[i].value;
    return (facts_span){ 0 };
}

facts_span facts_json_member(facts_span object, const char *key)
{
    facts_member members[FACTS_ROW_MEMBERS];
    size_t count;
    if (!object.at ||
        !facts_scan_object(object.at, object.length, members, FACTS_ROW_MEMBERS, &count))
        return (facts_span){ 0 };
    return facts_member_find(members, count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS, key);
}

bool facts_json_int(facts_span value, int64_t *out)
{
    char text[24], *end;
    if (!value.at || !value.length || value.length >= sizeof text)
        return false;
    memcpy(text, value.at, value.length);
    text[value.length] = '\0';
    errno = 0;
    const long long read = strtoll(text, &end, 10);
    if (errno || *end)
        return false;
    *out = read;
    return true;
}

static bool is_word(facts_span value, const char *word)
{
    return value.at && value.length == strlen(word) && memcmp(value.at, word, value.length) == 0;
}

bool facts_json_bool(facts_span value, bool *out)
{
    if (!is_word(value, "true") && !is_word(value, "false"))
        return false;
    *out = value.at[0] == 't';
    return true;
}

bool facts_json_is(facts_span value, const char *text)
{
    return value.length >= 2 && value.at[0] == '"' &&
           is_word((facts_span){ value.at + 1, value.length - 2 }, text);
}

bool facts_json_string(facts_span value, char *out, size_t capacity)
{
    json_t *json = value.at ? json_loadb(value.at, value.length, JSON_DECODE_ANY, NULL) : NULL;
    const char *text = json_string_value(json);
    if (text && capacity) {
        size_t length = json_string_length(json);
        if (length >= capacity)
            for (length = capacity - 1; length && (text[length] & 0xC0) == 0x80; length--)
                ;
        memcpy(out, text, length);
        out[length] = '\0';
    }
    json_decref(json);
    return text && capacity;
}

#define ENGINES 64
#define KNOBS 64

/* An element of engines[]. */
static bool is_of_mode_a(facts_span engine)
{
    facts_span mode = facts_json_member(engine, "mode");
    return !mode.at || facts_json_is(mode, "A");
}

void facts_row_engines(const facts_line *row, char *out, size_t capacity)
{
    facts_span elements[ENGINES];
    size_t count, used = 0;
    facts_span engines = facts_line_get(row, "engines");
    out[0] = '\0';
    if (!engines.at || !facts_scan_array(engines.at, engines.length, elements, ENGINES, &count))
        return;
    for (size_t i = 0; i < count && i < ENGINES; i++) {
        int64_t index;
        if (!is_of_mode_a(elements[i]) ||
            !facts_json_int(facts_json_member(elements[i], "index"), &index))
            continue;
        int wrote =
            snprintf(out + used, capacity - used, "%s%lld", used ? " " : "", (long long)index);
        if (wrote < 0 || (size_t)wrote >= capacity - used)
            break;
        used += (size_t)wrote;
    }
}

static int by_key(const void *a, const void *b)
{
    const facts_span *x = &((const facts_member *)a)->key, *y = &((const facts_member *)b)->key;
    int order = memcmp(x->at, y->at, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

bool facts_row_knobs(const facts_line *row, char *out, size_t capacity)
{
    facts_span elements[ENGINES], engines = facts_line_get(row, "engines"), found = { NULL, 0 };
    facts_member knobs[KNOBS];
    size_t count, used = 0;
    int64_t wanted, config;
    bool any = facts_json_int(facts_line_get(row, "config"), &wanted);
    out[0] = '\0';
    if (!engines.at || !facts_scan_array(engines.at, engines.length, elements, ENGINES, &count))
        return false;
    for (size_t i = 0; i < count && i < ENGINES && !found.at; i++)
        if (is_of_mode_a(elements[i]) &&
            (!any || (facts_json_int(facts_json_member(elements[i], "config"), &config) &&
                      config == wanted)))
            found = facts_json_member(elements[i], "knobs");
    if (!found.at || !facts_scan_object(found.at, found.length, knobs, KNOBS, &count) ||
        count > KNOBS)
        return false;
    qsort(knobs, count, sizeof *knobs, by_key);
    for (size_t i = 0; i < count && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%.*s=%.*s", used ? " " : "",
                                 (int)knobs[i].key.length, knobs[i].key.at,
                                 (int)knobs[i].value.length, knobs[i].value.at);
    return true;
}

void facts_row_text(const facts_line *row, const char *key, char *out, size_t capacity)
{
    out[0] = '\0';
    facts_json_string(facts_json_member(facts_line_get(row, "reason"), key), out, capacity);
    for (char *p = out; *p; p++) /* lines become one */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    facts_plain(out);
}

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
