#include "dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/seen.h"
#include "worker/memory/due.h"

typedef struct dump {
    const char *folder;
    json_t *names;
    facts_error *error;
} dump;

/* NPY version 1.0: magic, version, header length, a Python dict padded so that the data start at a multiple of 64. */
static bool put_header(FILE *file, const char *descr, const int64_t dim[4])
{
    char header[192], prefix[10] = "\x93NUMPY\x01\x00";
    int length =
        snprintf(header, sizeof header,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 "), }", descr,
                 dim[0], dim[1], dim[2], dim[3]);
    int padded = (length + 1 + 10 + 63) / 64 * 64 - 10;
    if (length < 0 || padded > (int)sizeof header)
        return false;
    memset(header + length, ' ', (size_t)(padded - length));
    header[padded - 1] = '\n';
    prefix[8] = (char)(padded & 0xFF);
    prefix[9] = (char)(padded >> 8);
    return fwrite(prefix, 1, 10, file) == 10 && fwrite(header, 1, (size_t)padded, file) == (size_t)padded;
}

static FILE *begin(dump *d, const char *name, const char *descr, const int64_t dim[4])
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", d->folder, name);
    FILE *file = fopen(path, "wbe");
    if (file && put_header(file, descr, dim))
        return file;
    facts_fail(d->error, "dump: %.150s: %s", name, strerror(errno));
    if (file)
        fclose(file);
    return NULL;
}

static void end(dump *d, FILE *file, const char *name)
{
    bool bad = ferror(file) != 0;
    bad = fclose(file) != 0 || bad;
    if (bad)
        facts_fail(d->error, "dump: %.150s: could not be written", name);
    else
        json_array_append_new(d->names, json_string(name));
}

/* Rows that a packed sequence does not have are told as 0. */
static uint32_t code_at(const facts_tensor *t, const void *storage, int64_t i)
{
    int64_t d = i % t->dim[3], s = i / t->dim[3] % t->dim[2], h = i / (t->dim[3] * t->dim[2]) % t->dim[1];
    int64_t b = i / (t->dim[3] * t->dim[2] * t->dim[1]);
    return facts_row_exists(t, b, s) ? facts_load(t->dtype, storage, facts_row_place(t, b, h, s) + d * t->stride[3]) : 0;
}

static int64_t elements_of(const facts_tensor *t)
{
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

static void put_bits(dump *d, const facts_tensor *t, const char *word, const void *storage)
{
    char name[64];
    size_t size = facts_dtype_bytes(t->dtype);
    const char *descr = t->dtype == FATTN_F32 ? "<f4" : t->dtype == FATTN_F16 ? "<f2" : size == 2 ? "<u2" : "|u1";
    snprintf(name, sizeof name, "%s.npy", word);
    FILE *file = begin(d, name, descr, t->dim);
    for (int64_t i = 0; file && i < elements_of(t); i++) {
        const uint32_t code = code_at(t, storage, i); /* little-endian, as the machine */
        fwrite(&code, size, 1, file);
    }
    if (file)
        end(d, file, name);
}

static void put_f32(dump *d, const facts_tensor *t, const char *word, const void *storage)
{
    char name[64];
    snprintf(name, sizeof name, "%s_f32.npy", word);
    FILE *file = begin(d, name, "<f4", t->dim);
    for (int64_t i = 0; file && i < elements_of(t); i++) {
        float value = (float)facts_decode(t->dtype, code_at(t, storage, i));
        fwrite(&value, sizeof value, 1, file);
    }
    if (file)
        end(d, file, name);
}

static void put_doubles(dump *d, const facts_tensor *t, const char *word, const char *what, const double *values)
{
    char name[64];
    if (!values)
        return;
    snprintf(name, sizeof name, "%s.%s.npy", word, what);
    FILE *file = begin(d, name, "<f8", t->dim);
    if (!file)
        return;
    fwrite(values, sizeof *values, (size_t)elements_of(t), file);
    end(d, file, name);
}

json_t *facts_dump(facts_truth *truth, const char *folder, facts_error *error)
{
    dump d = { folder, json_array(), error };
    const facts_problem *p = truth->memory.problem;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor seen = p->tensor[id].page ? facts_tensor_stored(p, id) : facts_tensor_seen(p, id), *t = &seen;
        const char *word = facts_tensor_word(id);
        if (!t->present)
            continue;
        const void *storage = facts_memory_storage(&truth->memory, id, FACTS_PATTERN_A);
        put_bits(&d, t, word, storage);
        put_f32(&d, t, word, storage);
        facts_answer due;
        if (!facts_due_here(&due, truth, id)) {
            facts_fail(error, "dump: %s: what is due could not be fetched", word);
            continue;
        }
        put_doubles(&d, t, word, "want", due.want);
        put_doubles(&d, t, word, "sigma", due.sigma);
        put_doubles(&d, t, word, "bound", due.bound);
        facts_due_leave(&due, truth, id);
    }
    return d.names;
}
