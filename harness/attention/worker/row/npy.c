#include "npy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "words/text_file.h"

/* NPY version 1.0: magic, version, header length, a Python dict padded so that the data start at a
 * multiple of 64. */
static bool put_header(FILE *file, const char *descr, const int64_t *dim, int rank)
{
    char header[192], prefix[10] = "\x93NUMPY\x01\x00";
    int length = snprintf(header, sizeof header,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++)
        length += snprintf(header + length, sizeof header - (size_t)length, "%s%" PRId64,
                           i ? ", " : "", dim[i]);
    length +=
        snprintf(header + length, sizeof header - (size_t)length, "%s), }", rank == 1 ? "," : "");
    const int padded = (length + 1 + 10 + 63) / 64 * 64 - 10;
    memset(header + length, ' ', (size_t)(padded - length));
    header[padded - 1] = '\n';
    prefix[8] = (char)(padded & 0xFF);
    prefix[9] = (char)(padded >> 8);
    return fwrite(prefix, 1, 10, file) == 10 &&
           fwrite(header, 1, (size_t)padded, file) == (size_t)padded;
}

#define MOST_PATH 4400

static void path_of(const facts_npy *d, const char *name, char out[MOST_PATH])
{
    snprintf(out, MOST_PATH, "%s/%s", d->folder, name);
}

/* Half a file must not look like a whole one. */
static void give_up(const facts_npy *d, const char *name, int number)
{
    char path[MOST_PATH];
    path_of(d, name, path);
    if (!d->error->text[0]) /* the first says most */
        facts_fail(d->error, "%.150s: %s", name, strerror(number));
    unlink(path);
}

FILE *facts_npy_open(const facts_npy *d, const char *name)
{
    char path[MOST_PATH];
    path_of(d, name, path);
    FILE *file = facts_file_new(path);
    if (!file)
        facts_fail(d->error, "%.150s: %s", name, strerror(errno));
    return file;
}

FILE *facts_npy_begin(const facts_npy *d, const char *name, const char *descr, const int64_t *dim,
                      int rank)
{
    FILE *file = facts_npy_open(d, name);
    if (!file || put_header(file, descr, dim, rank))
        return file;
    const int number = errno;
    fclose(file);
    give_up(d, name, number);
    return NULL;
}

void facts_npy_end(const facts_npy *d, FILE *file, const char *name)
{
    const bool bad = fflush(file) != 0 || ferror(file) != 0;
    const int number = errno;
    if (fclose(file) != 0 || bad)
        give_up(d, name, bad ? number : errno);
    else
        json_array_append_new(d->names, json_string(name));
}

void facts_npy_put(const facts_npy *d, const char *name, const char *descr, const void *from,
                   size_t size, int64_t count)
{
    FILE *file = facts_npy_begin(d, name, descr, &count, 1);
    if (!file)
        return;
    fwrite(from, size, (size_t)count, file);
    facts_npy_end(d, file, name);
}
