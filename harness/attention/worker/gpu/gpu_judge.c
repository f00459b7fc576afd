/* Kernels over answers: rows, different bits, rounding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_launch.h"
#include "numbers/fill/places.h"
#include "worker_gpu.h"

fattn_status facts_gpu_round(facts_gpu *gpu, const facts_tensor *tensor, const double *values,
                             double unit, void *storage)
{
    facts_round_call call = {
        .view = facts_strided_of(tensor), .values = values, .unit = unit, .storage = storage
    };
    return facts_gpu_launch(gpu, FACTS_KERNEL_round, facts_threads_of(&call.view), &call);
}

fattn_status facts_gpu_bits(facts_gpu *gpu, const facts_tensor *tensor, const void *storage,
                            uint64_t *bits)
{
    facts_counter sum = 0;
    facts_hash_call call = { .view = facts_strided_of(tensor),
                             .storage = storage,
                             .sum = gpu->counters };
    TRY(facts_gpu_count(gpu, &sum, 1));
    TRY(facts_gpu_launch(gpu, FACTS_KERNEL_hash, facts_threads_of(&call.view), &call));
    TRY(facts_gpu_counted(gpu, &sum, 1));
    *bits = sum;
    return FATTN_OK;
}

static bool all_owe_a_value(const int32_t *expects, int64_t count)
{
    int32_t other = 0;
    for (int64_t n = 0; n < count; n++)
        other |= expects[n] ^ FACTS_EXPECTS_VALUE;
    return other == 0;
}

/* The rows with an expected value, on the device while one kernel runs; NULL: all rows. */
static fattn_status send_expected(facts_gpu *gpu, void **out, const facts_tensor *tensor,
                                  const int32_t *expects)
{
    const int64_t count = tensor->dim[0] * tensor->dim[2];
    *out = NULL;
    if (!expects || all_owe_a_value(expects, count))
        return FATTN_OK;
    TRY(facts_gpu_make(gpu, out, (size_t)count * sizeof *expects));
    return facts_gpu_send(gpu, *out, expects, (size_t)count * sizeof *expects);
}

fattn_status facts_gpu_repeat(facts_gpu *gpu, facts_two_runs *of, size_t count)
{
    facts_counter found[FACTS_COUNTERS];
    void *on_device[FACTS_GPU_WATCHED];
    if (count == 0)
        return FATTN_OK;
    for (size_t n = 0; n < count; n++) {
        found[2 * n] = 0;
        found[2 * n + 1] = UINT64_MAX;
    }
    size_t sent = 0;
    fattn_status status = facts_gpu_count(gpu, found, 2 * count);
    for (; sent < count && status == FATTN_OK; sent++) {
        status = send_expected(gpu, &on_device[sent], of[sent].tensor, of[sent].expects);
        facts_repeat_call call = { .view = facts_strided_of(of[sent].tensor),
                                   .a = of[sent].a,
                                   .b = of[sent].b,
                                   .slack = of[sent].slack,
                                   .share = of[sent].share,
                                   .expects = on_device[sent],
                                   .count = gpu->counters + 2 * sent,
                                   .least = gpu->counters + 2 * sent + 1 };
        if (status == FATTN_OK)
            status =
                facts_gpu_launch(gpu, FACTS_KERNEL_repeat, facts_threads_of(&call.view), &call);
    }
    if (status == FATTN_OK)
        status = facts_gpu_counted(gpu, found, 2 * count);
    for (size_t n = 0; n < sent; n++)
        facts_gpu_free(gpu, on_device[n]);
    for (size_t n = 0; n < count && status == FATTN_OK; n++) {
        of[n].different = (int64_t)found[2 * n];
        if (of[n].different)
            facts_index_of(of[n].tensor->dim, (int64_t)found[2 * n + 1], of[n].first);
    }
    return status;
}

fattn_status facts_gpu_survey(facts_gpu *gpu, const facts_tensor *tensor, const void *storage,
                              const int32_t *expects, facts_pattern pattern, facts_found *out)
{
    facts_counter found[4] = { 0, UINT64_MAX, 0, UINT64_MAX };
    facts_survey_call call = { .view = facts_strided_of(tensor),
                               .storage = storage,
                               .unwritten = gpu->counters,
                               .first_unwritten = gpu->counters + 1,
                               .not_finite = gpu->counters + 2,
                               .first_not_finite = gpu->counters + 3 };
    void *on_device;
    for (int64_t i = 0; i < FACTS_PATTERN_PERIOD; i++)
        call.code[i] = facts_pattern_code(tensor->dtype, pattern, i);
    *out = (facts_found){ 0 };
    fattn_status status = send_expected(gpu, &on_device, tensor, expects);
    call.expects = on_device;
    if (status == FATTN_OK)
        status = facts_gpu_count(gpu, found, 4);
    if (status == FATTN_OK)
        status = facts_gpu_launch(gpu, FACTS_KERNEL_survey, facts_threads_of(&call.view), &call);
    if (status == FATTN_OK)
        status = facts_gpu_counted(gpu, found, 4);
    facts_gpu_free(gpu, on_device);
    if (status != FATTN_OK)
        return status;
    out->unwritten = (int64_t)found[0];
    out->not_finite = (int64_t)found[2];
    if (out->unwritten)
        facts_index_of(tensor->dim, (int64_t)found[1], out->first_unwritten);
    if (out->not_finite)
        facts_index_of(tensor->dim, (int64_t)found[3], out->first_not_finite);
    return FATTN_OK;
}

/* ---- rows ---- */

/* The device memory of one question. */
typedef struct tables {
    void *expects, *out;
} tables;

static void free_tables(facts_gpu *gpu, const tables *t)
{
    facts_gpu_free(gpu, t->expects);
    facts_gpu_free(gpu, t->out);
}

static int64_t slices_of(const facts_asked *a)
{
    return a->part.batches * a->part.heads;
}

static int64_t rows_of(const facts_asked *a)
{
    return slices_of(a) * a->tensor->dim[2];
}

/* `expects` and `out` are on the device. */
static facts_one_judging judging_of(const facts_asked *a, const int32_t *expects, void *out)
{
    facts_one_judging one = { .limits = a->limits,
                              .view = facts_strided_of(a->tensor),
                              .storage = a->storage,
                              .expects = expects,
                              .want = a->part.want,
                              .sigma = a->part.sigma,
                              .bound = a->part.bound,
                              .lie = (int32_t)a->lie,
                              .out = out };
    one.view.dim[0] = a->part.batches;
    one.view.dim[1] = a->part.heads;
    one.view.lane_bits = facts_joined_lane_bits(rows_of(a), one.view.dim[3]);
    return one;
}

fattn_status facts_gpu_judge(facts_gpu *gpu, const facts_asked *asked, facts_judged_row *out)
{
    const size_t bytes = (size_t)rows_of(asked) * sizeof *out;
    facts_judge_call call;
    tables t = { NULL, NULL };
    fattn_status status = send_expected(gpu, &t.expects, asked->tensor, asked->expects);
    if (status == FATTN_OK)
        status = facts_gpu_make(gpu, &t.out, bytes);
    if (status == FATTN_OK) {
        call.one[0] = judging_of(asked, t.expects, t.out);
        call.blocks[0] = facts_gpu_blocks(facts_threads_of(&call.one[0].view));
        status = facts_gpu_launch_blocks(gpu, FACTS_KERNEL_judge, call.blocks[0], &call);
    }
    if (status == FATTN_OK)
        status = facts_gpu_fetch(gpu, out, t.out, bytes);
    free_tables(gpu, &t);
    return status;
}

/* ---- slices ---- */

/* Several questions at once: slices of all, then rows of all, in one allocation. */
typedef struct hearing {
    const facts_asked *asked;
    size_t count;
    tables *table;
    unsigned char *there;
    size_t slice_bytes;
} hearing;

static fattn_status send_all(facts_gpu *gpu, hearing *h)
{
    size_t rows = 0;
    for (size_t n = 0; n < h->count; n++) {
        rows += (size_t)rows_of(&h->asked[n]);
        h->slice_bytes += (size_t)slices_of(&h->asked[n]) * sizeof(facts_judged_slice);
        size_t same = 0; /* lies about a tensor, and its answer */
        while (same < n && h->asked[same].expects != h->asked[n].expects)
            same++;
        if (same == n)
            TRY(send_expected(gpu, &h->table[n].expects, h->asked[n].tensor, h->asked[n].expects));
    }
    void *there = NULL;
    const fattn_status status =
        facts_gpu_make(gpu, &there, h->slice_bytes + rows * sizeof(facts_judged_row));
    h->there = there;
    return status;
}

static const int32_t *expects_of(const hearing *h, size_t n)
{
    size_t same = 0;
    while (h->asked[same].expects != h->asked[n].expects)
        same++;
    return h->table[same].expects;
}

/* Questions from..to: their rows, then the sums over the rows. */
static fattn_status hear(facts_gpu *gpu, const hearing *h, size_t from, size_t to)
{
    facts_judge_call judge;
    facts_walk_call walk, again;
    int64_t blocks = 0, walks = 0, agains = 0;
    size_t weighed = 0;
    facts_judged_slice *slice = (void *)h->there;
    facts_judged_row *row = (void *)(h->there + h->slice_bytes);
    for (size_t n = 0; n < to; n++) {
        const facts_asked *a = &h->asked[n];
        if (n >= from) {
            const size_t i = n - from;
            judge.one[i] = judging_of(a, expects_of(h, n), row);
            judge.blocks[i] = facts_gpu_blocks(facts_threads_of(&judge.one[i].view));
            walk.one[i] = (facts_one_walk){ .rows = a->weights,
                                            .slices = slices_of(a),
                                            .of_slice = judge.one[i].view.dim[2],
                                            .out = slice };
            walk.one[i].rows.row = row;
            walk.blocks[i] = facts_gpu_blocks(slices_of(a) * FACTS_BLOCK);
            blocks += judge.blocks[i];
            walks += walk.blocks[i];
            if (a->weights.gates) {
                again.one[weighed] = walk.one[i];
                again.blocks[weighed++] = walk.blocks[i];
                agains += walk.blocks[i];
            }
        }
        slice += slices_of(a);
        row += rows_of(a);
    }
    TRY(facts_gpu_launch_blocks(gpu, FACTS_KERNEL_judge, blocks, &judge));
    TRY(facts_gpu_launch_blocks(gpu, FACTS_KERNEL_walk, walks, &walk));
    return facts_gpu_launch_blocks(gpu, FACTS_KERNEL_walk_again, agains, &again);
}

static fattn_status fetch_all(facts_gpu *gpu, const hearing *h)
{
    unsigned char *here = malloc(h->slice_bytes + 1), *next = here;
    fattn_status status =
        here ? facts_gpu_fetch(gpu, here, h->there, h->slice_bytes) : FATTN_NO_MEMORY;
    for (size_t n = 0; n < h->count && status == FATTN_OK; n++) {
        const size_t bytes = (size_t)slices_of(&h->asked[n]) * sizeof(facts_judged_slice);
        memcpy(h->asked[n].out, next, bytes);
        next += bytes;
    }
    free(here);
    return status;
}

fattn_status facts_gpu_slices(facts_gpu *gpu, const facts_asked *asked, size_t count)
{
    hearing h = { .asked = asked, .count = count, .table = calloc(count + 1, sizeof *h.table) };
    fattn_status status = h.table ? send_all(gpu, &h) : FATTN_NO_MEMORY;
    for (size_t from = 0; from < count && status == FATTN_OK; from += FACTS_JUDGED_TOGETHER)
        status = hear(gpu, &h, from,
                      count < from + FACTS_JUDGED_TOGETHER ? count : from + FACTS_JUDGED_TOGETHER);
    if (status == FATTN_OK && count > 0)
        status = fetch_all(gpu, &h);
    facts_gpu_free(gpu, h.there);
    for (size_t n = 0; n < count && h.table; n++)
        free_tables(gpu, &h.table[n]);
    free(h.table);
    return status;
}
