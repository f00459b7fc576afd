/* Kernels over answers: rows, other bits, rounding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_launch.h"
#include "try.h"

#define ROWS_OF_BLOCK 8

static int64_t elements_of(const facts_tensor *t)
{
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

static void index_of(const facts_tensor *t, uint64_t n, int64_t out[4])
{
    int64_t rest = (int64_t)n;
    for (int i = 3; i >= 0; i--) {
        out[i] = rest % t->dim[i];
        rest /= t->dim[i];
    }
}

fattn_status facts_gpu_round(facts_gpu *gpu, const facts_tensor *tensor, const double *values, void *storage)
{
    facts_round_call call = { .view = facts_strided_of(tensor), .values = values, .storage = storage };
    return facts_gpu_launch(gpu, FACTS_KERNEL_round, elements_of(tensor), &call);
}

fattn_status facts_gpu_bits(facts_gpu *gpu, const facts_tensor *tensor, const void *storage, uint64_t *bits)
{
    facts_counter sum = 0;
    facts_hash_call call = { .view = facts_strided_of(tensor), .storage = storage, .sum = gpu->counters };
    TRY(facts_gpu_count(gpu, &sum, 1));
    TRY(facts_gpu_launch(gpu, FACTS_KERNEL_hash, elements_of(tensor), &call));
    TRY(facts_gpu_counted(gpu, &sum, 1));
    *bits = sum;
    return FATTN_OK;
}

static bool all_owe_a_value(const int32_t *due, int64_t count)
{
    int32_t other = 0;
    for (int64_t n = 0; n < count; n++)
        other |= due[n] ^ FACTS_DUE_VALUE;
    return other == 0;
}

/* Which rows owe a value, on the device while one kernel runs; NULL: all do. */
static fattn_status send_due(facts_gpu *gpu, void **out, const facts_tensor *tensor, const int32_t *due)
{
    const int64_t count = tensor->dim[0] * tensor->dim[2];
    *out = NULL;
    if (!due || all_owe_a_value(due, count))
        return FATTN_OK;
    TRY(facts_gpu_make(gpu, out, (size_t)count * sizeof *due));
    return facts_gpu_send(gpu, *out, due, (size_t)count * sizeof *due);
}

fattn_status facts_gpu_repeat(facts_gpu *gpu, const facts_tensor *tensor, const void *a, const void *b, const int32_t *due,
                              const double *slack, double share, int64_t *different, int64_t first[4])
{
    facts_counter found[2] = { 0, UINT64_MAX };
    facts_repeat_call call = { .view = facts_strided_of(tensor),
                               .a = a,
                               .b = b,
                               .slack = slack,
                               .share = share,
                               .count = gpu->counters,
                               .least = gpu->counters + 1 };
    void *on_device;
    fattn_status status = send_due(gpu, &on_device, tensor, due);
    call.due = on_device;
    if (status == FATTN_OK)
        status = facts_gpu_count(gpu, found, 2);
    if (status == FATTN_OK)
        status = facts_gpu_launch(gpu, FACTS_KERNEL_repeat, elements_of(tensor), &call);
    if (status == FATTN_OK)
        status = facts_gpu_counted(gpu, found, 2);
    facts_gpu_free(gpu, on_device);
    *different = (int64_t)found[0];
    if (status == FATTN_OK && found[0])
        index_of(tensor, found[1], first);
    return status;
}

fattn_status facts_gpu_survey(facts_gpu *gpu, const facts_tensor *tensor, const void *storage, const int32_t *due,
                              facts_pattern pattern, facts_found *out)
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
    fattn_status status = send_due(gpu, &on_device, tensor, due);
    call.due = on_device;
    if (status == FATTN_OK)
        status = facts_gpu_count(gpu, found, 4);
    if (status == FATTN_OK)
        status = facts_gpu_launch(gpu, FACTS_KERNEL_survey, elements_of(tensor), &call);
    if (status == FATTN_OK)
        status = facts_gpu_counted(gpu, found, 4);
    facts_gpu_free(gpu, on_device);
    if (status != FATTN_OK)
        return status;
    out->unwritten = (int64_t)found[0];
    out->not_finite = (int64_t)found[2];
    if (out->unwritten)
        index_of(tensor, found[1], out->first_unwritten);
    if (out->not_finite)
        index_of(tensor, found[3], out->first_not_finite);
    return FATTN_OK;
}

/* ---- rows ---- */

typedef struct tables {
    void *due, *rows, *out;
} tables;

static fattn_status send_tables(facts_gpu *gpu, tables *t, const facts_tensor *tensor, const int32_t *due, const facts_part *part,
                                size_t answers)
{
    *t = (tables){ NULL, NULL, NULL };
    TRY(send_due(gpu, &t->due, tensor, due));
    if (part->rows) {
        TRY(facts_gpu_make(gpu, &t->rows, (size_t)part->row_count * sizeof *part->rows));
        TRY(facts_gpu_send(gpu, t->rows, part->rows, (size_t)part->row_count * sizeof *part->rows));
    }
    return answers > 0 ? facts_gpu_make(gpu, &t->out, answers * sizeof(facts_judged_row)) : FATTN_OK;
}

static void free_tables(facts_gpu *gpu, const tables *t)
{
    facts_gpu_free(gpu, t->due);
    facts_gpu_free(gpu, t->rows);
    facts_gpu_free(gpu, t->out);
}

static facts_judge_call call_of(const facts_tensor *tensor, const void *storage, const facts_bar *bar, const facts_part *part,
                                facts_lie lie)
{
    facts_judge_call call = { .bar = *bar,
                              .view = facts_strided_of(tensor),
                              .storage = storage,
                              .due_rows = tensor->dim[2],
                              .want = part->want,
                              .sigma = part->sigma,
                              .bound = part->bound,
                              .lie = (int32_t)lie };
    call.view.dim[0] = part->batches;
    call.view.dim[1] = part->heads;
    call.view.dim[2] = part->rows ? part->row_count : tensor->dim[2];
    call.view.first += (tensor->start ? 0 : part->b * tensor->stride[0]) + part->h * tensor->stride[1];
    call.view.start += tensor->start ? part->b : 0;
    call.view.live += tensor->live ? part->b : 0;
    return call;
}

static fattn_status judge(facts_gpu *gpu, facts_judge_call *call, const tables *t, const facts_tensor *tensor,
                          const facts_part *part)
{
    const int64_t rows = call->view.dim[0] * call->view.dim[1] * call->view.dim[2];
    call->due = t->due ? (const int32_t *)t->due + part->b * tensor->dim[2] : NULL;
    call->rows = t->rows;
    call->out = t->out;
    return facts_gpu_launch(gpu, FACTS_KERNEL_judge, rows * (FACTS_BLOCK / ROWS_OF_BLOCK), call);
}

fattn_status facts_gpu_judge(facts_gpu *gpu, const facts_tensor *tensor, const void *storage, const facts_bar *bar,
                             const int32_t *due, const facts_part *part, facts_lie lie, facts_judged_row *out)
{
    facts_judge_call call = call_of(tensor, storage, bar, part, lie);
    const size_t rows = (size_t)(call.view.dim[0] * call.view.dim[1] * call.view.dim[2]);
    tables t;
    fattn_status status = send_tables(gpu, &t, tensor, due, part, rows);
    if (status == FATTN_OK && rows > 0)
        status = judge(gpu, &call, &t, tensor, part);
    if (status == FATTN_OK)
        status = facts_gpu_fetch(gpu, out, t.out, rows * sizeof *out);
    free_tables(gpu, &t);
    return status;
}

/* ---- slices ---- */

static fattn_status walk(facts_gpu *gpu, facts_walk_call *call)
{
    const int64_t work = call->slices * FACTS_BLOCK;
    TRY(facts_gpu_launch(gpu, FACTS_KERNEL_walk, work, call));
    return call->rows.gates ? facts_gpu_launch(gpu, FACTS_KERNEL_walk_again, work, call) : FATTN_OK;
}

fattn_status facts_gpu_slices(facts_gpu *gpu, const facts_tensor *tensor, const void *storage, const facts_bar *bar,
                              const int32_t *due, const facts_part *part, const facts_judged_rows *weights, facts_lie lie,
                              facts_judged_slice *out)
{
    facts_judge_call call = call_of(tensor, storage, bar, part, lie);
    const int64_t *dim = call.view.dim;
    facts_walk_call sums = { .rows = *weights, .slices = dim[0] * dim[1], .of_slice = dim[2] };
    const size_t bytes = (size_t)sums.slices * sizeof *out;
    void *there = NULL;
    tables t;
    fattn_status status = send_tables(gpu, &t, tensor, due, part, (size_t)(sums.slices * sums.of_slice));
    if (status == FATTN_OK)
        status = facts_gpu_make(gpu, &there, bytes);
    sums.rows.row = t.out;
    sums.out = there;
    if (status == FATTN_OK)
        status = judge(gpu, &call, &t, tensor, part);
    if (status == FATTN_OK)
        status = walk(gpu, &sums);
    if (status == FATTN_OK)
        status = facts_gpu_fetch(gpu, out, there, bytes);
    facts_gpu_free(gpu, there);
    free_tables(gpu, &t);
    return status;
}

/* ---- lies ---- */

fattn_status facts_gpu_lies_begin(facts_gpu *gpu)
{
    return facts_gpu_watch_begin(gpu);
}

fattn_status facts_gpu_lie(facts_gpu *gpu, const facts_tensor *tensor, const facts_bar *bar, const int32_t *due,
                           const facts_part *part, facts_lie lie, size_t place)
{
    facts_judge_call call = call_of(tensor, NULL, bar, part, lie);
    tables t;
    fattn_status status = send_tables(gpu, &t, tensor, due, part, 0);
    call.checked = gpu->counters + 2 * place;
    call.refused = gpu->counters + 2 * place + 1;
    if (status == FATTN_OK)
        status = judge(gpu, &call, &t, tensor, part);
    free_tables(gpu, &t);
    return status;
}

fattn_status facts_gpu_lies_end(facts_gpu *gpu, facts_told *out, size_t count)
{
    facts_counter found[FACTS_COUNTERS];
    TRY(facts_gpu_counted(gpu, found, 2 * count));
    for (size_t n = 0; n < count; n++)
        out[n] = (facts_told){ found[2 * n], found[2 * n + 1] };
    return FATTN_OK;
}
