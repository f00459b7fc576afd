/* Memory that the case language cannot lay out yet: sequences one after another, and pages. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "case/problem/philox.h"
#include "numbers/dtype.h"
#include "numbers/fill/fill.h"
#include "numbers/fill/places.h"
#include "scene_parts.h"

#define PAGE 16

typedef struct extents {
    int64_t heads, dim;
    bool of_keys;
} extents;

static extents extents_of(const facts_scene *x, facts_tensor_id id)
{
    const int64_t *dim = x->problem.tensor[id].dim;
    return (extents){ dim[1], dim[3], id == FACTS_TENSOR_K || id == FACTS_TENSOR_V };
}

/* The same elements at other places: token s of head h of entry b goes to `to` of it. */
static void *move(facts_scene *x, facts_tensor_id id, int64_t elements, const fref_tensor *to)
{
    const facts_tensor *t = &x->problem.tensor[id];
    size_t bytes = facts_dtype_bytes(t->dtype);
    unsigned char *moved = malloc((size_t)elements * bytes + 1);
    if (!moved)
        return NULL;
    facts_fill_gaps(&x->problem, t->dtype, moved, elements);
    for (int64_t b = 0; b < t->dim[0]; b++) {
        int64_t live = extents_of(x, id).of_keys ? facts_live_kv(&x->problem, b)
                                                 : facts_live_q(&x->problem, b);
        for (int64_t h = 0; h < t->dim[1]; h++)
            for (int64_t s = 0; s < live; s++)
                for (int64_t d = 0; d < t->dim[3]; d++) {
                    int64_t from = t->first + b * t->stride[0] + h * t->stride[1] +
                                   s * t->stride[2] + d * t->stride[3];
                    int64_t place = (to->first ? to->first[b] : b * to->stride[0]) +
                                    h * to->stride[1] + s * to->stride[2] + d;
                    if (to->pages)
                        place = to->pages[b * to->pages_of_batch + s / PAGE] * to->stride[0] +
                                h * to->stride[1] + s % PAGE * to->stride[2] + d;
                    facts_store(t->dtype, moved, place, facts_load(t->dtype, x->storage[id], from));
                }
    }
    free(x->storage[id]);
    x->storage[id] = moved;
    return moved;
}

bool facts_scene_make_ragged(facts_scene *x)
{
    static const facts_tensor_id ids[] = { FACTS_TENSOR_Q, FACTS_TENSOR_K, FACTS_TENSOR_V,
                                           FACTS_TENSOR_O, FACTS_TENSOR_STATS };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        facts_tensor_id id = ids[i];
        extents e = extents_of(x, id);
        int64_t token = e.heads * e.dim, tokens = 0,
                *first = malloc((size_t)(x->asked.batch + 1) * sizeof *first);
        x->first[id] = first;
        if (!first)
            return false;
        for (int64_t b = 0; b < x->asked.batch; b++) {
            first[b] = tokens * token;
            tokens += e.of_keys ? facts_live_kv(&x->problem, b) : facts_live_q(&x->problem, b);
        }
        first[x->asked.batch] = tokens * token;
        if (id == FACTS_TENSOR_O || id == FACTS_TENSOR_STATS)
            continue;
        fref_tensor *t = &x->in[id];
        t->first = first;
        t->stride[0] = 0;
        t->stride[1] = e.dim;
        t->stride[2] = token;
        t->stride[3] = 1;
        t->data = move(x, id, (tokens + 1) * token, t);
        if (!t->data)
            return false;
    }
    return true;
}

bool facts_scene_make_pages(facts_scene *x)
{
    int64_t per_entry = (x->asked.keys + PAGE - 1) / PAGE, count = per_entry * x->asked.batch;
    x->pages = malloc((size_t)count * sizeof *x->pages);
    if (!x->pages)
        return false;
    for (int64_t n = 0; n < count;
         n++) { /* a shuffle: each page changes places with one before it */
        facts_draw draw =
            facts_draw_at(x->problem.seed, FACTS_STREAM_PAGES, FACTS_LANE_VALUE, (uint64_t)n);
        int64_t other = facts_pick(draw.r[0], (uint32_t)n + 1);
        x->pages[n] = other == n ? (int32_t)n : x->pages[other];
        x->pages[other] = (int32_t)n;
    }
    static const facts_tensor_id ids[] = { FACTS_TENSOR_K, FACTS_TENSOR_V };
    for (size_t i = 0; i < 2; i++) {
        extents e = extents_of(x, ids[i]);
        fref_tensor *t = &x->in[ids[i]];
        t->pages = x->pages;
        t->page_size = PAGE;
        t->pages_of_batch = per_entry;
        t->stride[0] = e.heads * PAGE * e.dim;
        t->stride[1] = PAGE * e.dim;
        t->stride[2] = e.dim;
        t->stride[3] = 1;
        t->data = move(x, ids[i], count * t->stride[0], t);
        if (!t->data)
            return false;
    }
    return true;
}

bool facts_scene_make_huge(facts_scene *x)
{
    const facts_tensor *t = &x->problem.tensor[FACTS_TENSOR_K];
    fref_tensor *k = &x->in[FACTS_TENSOR_K];
    size_t bytes = facts_dtype_bytes(t->dtype),
           of_entry = (size_t)(t->dim[1] * t->dim[2] * t->dim[3]) * bytes;
    int64_t far = INT64_C(1) << 32, *first = malloc(2 * sizeof *first);
    x->first[FACTS_TENSOR_K] = first;
    x->huge_bytes = (size_t)far * bytes + of_entry;
    x->huge = mmap(NULL, x->huge_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!first || x->huge == MAP_FAILED) {
        x->huge = NULL;
        return false;
    }
    first[0] = 0;
    first[1] = far;
    for (int64_t b = 0; b < 2; b++)
        memcpy((unsigned char *)x->huge + (size_t)first[b] * bytes,
               (const unsigned char *)k->data + (size_t)(b * k->stride[0]) * bytes, of_entry);
    k->data = x->huge;
    k->first = first;
    k->stride[0] = 0;
    return true;
}
