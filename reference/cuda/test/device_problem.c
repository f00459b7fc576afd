#include "device_problem.h"

#include <stdlib.h>
#include <string.h>

void *device_array(device *d, const void *from, size_t bytes)
{
    gpu_address at = 0;
    if (d->count == DEVICE_PIECES || d->driver->memory_alloc(&at, bytes ? bytes : 1) != 0)
        abort();
    d->piece[d->count++] = at;
    if (from &&
        (d->driver->send(at, from, bytes, NULL) != 0 || d->driver->stream_synchronize(NULL) != 0))
        abort();
    return (void *)(uintptr_t)at;
}

void device_free(device *d)
{
    for (int n = 0; n < d->count; n++)
        d->driver->memory_free(d->piece[n]);
    d->count = 0;
}

/* Where element (b,h,s,0) of a tensor lies whose `first` and `pages` are on the host. */
static int64_t place_of(const fref_tensor *t, int64_t b, int64_t h, int64_t s)
{
    const int64_t batch = t->first ? t->first[b]
                          : t->pages
                              ? t->pages[b * t->pages_of_batch + s / t->page_size] * t->stride[0]
                              : b * t->stride[0];
    return batch + h * t->stride[1] + (t->pages ? s % t->page_size : s) * t->stride[2];
}

/* Copies to where `out` says, NaN everywhere else, and brings it and its tables to the device. */
static fref_tensor place_tensor(device *d, const fref_tensor *t, fref_tensor out, int64_t elements,
                                const int64_t dim[4], const int32_t *len)
{
    const size_t size = bytes_of(t->type);
    unsigned char *copy = malloc((size_t)elements * size);
    if (!copy)
        abort();
    memset(copy, 0xff, (size_t)elements * size);
    for (int64_t b = 0; b < dim[0]; b++)
        for (int64_t h = 0; h < dim[1]; h++)
            for (int64_t s = 0; s < dim[2]; s++)
                for (int64_t c = 0; c < dim[3] && !(len && s >= len[b]); c++)
                    memcpy(copy + (size_t)(place_of(&out, b, h, s) + c * out.stride[3]) * size,
                           (const unsigned char *)t->data + (size_t)offset_of(t, b, h, s, c) * size,
                           size);
    out.data = device_array(d, copy, (size_t)elements * size);
    if (out.first)
        out.first = device_array(d, out.first, (size_t)dim[0] * sizeof *out.first);
    if (out.pages)
        out.pages =
            device_array(d, out.pages, (size_t)(dim[0] * out.pages_of_batch) * sizeof *out.pages);
    free(copy);
    return out;
}

fref_tensor device_ragged(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len,
                          uint64_t *state)
{
    int64_t first[8], at = 0;
    fref_tensor out = *t;
    out.stride[3] = 1;
    out.stride[1] = dim[3];
    out.stride[2] = dim[1] * dim[3];
    for (int64_t b = dim[0] - 1; b >= 0; b--) {
        at += (int64_t)(random_bits(state) % 4);
        first[b] = at;
        at += (len ? len[b] : dim[2]) * out.stride[2];
    }
    out.first = first;
    return place_tensor(d, t, out, at + 1, dim, len);
}

fref_tensor device_paged(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len,
                         uint64_t *state)
{
    int32_t pages[1024];
    fref_tensor out = *t;
    out.page_size = 1 + (int64_t)(random_bits(state) % 20);
    out.pages_of_batch = (dim[2] + out.page_size - 1) / out.page_size;
    const int64_t count = dim[0] * out.pages_of_batch;
    if (count > 1024)
        return device_ragged(d, t, dim, len, state);
    for (int64_t n = 0; n < count; n++)
        pages[n] = (int32_t)n;
    for (int64_t n = count - 1; n > 0; n--) {
        const int64_t other = (int64_t)(random_bits(state) % (uint64_t)(n + 1));
        const int32_t page = pages[n];
        pages[n] = pages[other];
        pages[other] = page;
    }
    out.stride[3] = 1;
    out.stride[2] = dim[3];
    out.stride[1] = out.page_size * dim[3];
    out.stride[0] = dim[1] * out.stride[1];
    out.pages = pages;
    return place_tensor(d, t, out, count * out.stride[0], dim, len);
}

fref_tensor device_tensor(device *d, const fref_tensor *t, const int64_t dim[4], const int32_t *len,
                          uint64_t *state)
{
    static const int orders[4][4] = {
        { 0, 1, 2, 3 }, { 0, 2, 1, 3 }, { 2, 0, 1, 3 }, { 1, 0, 2, 3 }
    };
    const int *order = orders[random_bits(state) % 4];
    const int64_t gap = (int64_t)(random_bits(state) % 3) * 8;
    fref_tensor out = *t;
    int64_t step = 1;
    for (int n = 3; n >= 0; n--) {
        out.stride[order[n]] = step;
        step = step * dim[order[n]] + gap;
    }
    return place_tensor(d, t, out, step, dim, len);
}

fref_problem device_problem(device *d, const drawn *x, fref_tensor *bias, fref_gpu_mod *mod)
{
    fref_problem p = x->data.problem;
    const size_t batch = (size_t)p.batch, heads = (size_t)p.heads_q,
                 scores = batch * heads * (size_t)p.rows * (size_t)p.keys;
    p.len_q = p.len_q ? device_array(d, p.len_q, batch * sizeof *p.len_q) : NULL;
    p.len_kv = p.len_kv ? device_array(d, p.len_kv, batch * sizeof *p.len_kv) : NULL;
    p.keep = p.keep ? device_array(d, p.keep, scores) : NULL;
    p.sink = p.sink ? device_array(d, p.sink, heads * sizeof *p.sink) : NULL;
    p.alibi = p.alibi ? device_array(d, p.alibi, heads * sizeof *p.alibi) : NULL;
    *mod = x->mod;
    mod->a = x->mod_a;
    mod->b = x->mod_b;
    if (x->mod_memory) {
        const size_t size =
            heads * (size_t)p.rows * (size_t)p.keys + batch * (size_t)(p.rows + p.keys);
        const float *memory = device_array(d, x->mod_memory, size * sizeof *memory);
        mod->a.data = memory;
        mod->b.data = memory + batch * (size_t)p.rows;
    }
    mod->seen = x->seen;
    mod->seen.data = x->seen_memory ? device_array(d, x->seen_memory, scores) : NULL;
    mod->tiles =
        x->tiles
            ? device_array(d, x->tiles,
                           batch * heads * (size_t)((p.rows + 127) / 128 * ((p.keys + 127) / 128)))
            : NULL;
    p.bias = x->bias;
    if (p.bias) {
        const int64_t *dim = x->data.dbias_dim;
        *bias = *p.bias;
        bias->data = device_array(
            d, p.bias->data, (size_t)(dim[0] * dim[1] * dim[2] * dim[3]) * bytes_of(bias->type));
        p.bias = bias;
    }
    return p;
}
