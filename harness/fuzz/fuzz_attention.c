/* Any bytes as an attention problem and a call of it. Whatever is asked: an answer with a status,
 * and a sentence when it is no. What the cpu backend says yes to is run, forward or backward, with
 * every tensor in memory of exactly its own size: the sanitizers see the first byte beside it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/plan.h"
#include "problem/resolved_problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 18, MOST_WORKSPACE = 1 << 24 };

static const uint8_t *at, *end;

static void check(bool ok)
{
    if (!ok)
        abort();
}

static uint8_t take(void)
{
    return at < end ? *at++ : 0;
}

static int64_t below(int n)
{
    return take() % n;
}

static void take_bytes(void *out, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)out)[i] = take();
}

static fattn_context *cpu(void)
{
    static fattn_context *context;
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = 1;
    check(context != NULL || fattn_context_create(&context, &options) == FATTN_OK);
    return context;
}

static void take_strides(int64_t strides[4], int64_t dim)
{
    static const int64_t some[] = { 0, 1, 4, 8, 16, 64, 128, 256, 512, 1024, 2048, 4096 };
    if (below(4) != 0)
        return;
    for (int i = 0; i < 3; i++)
        strides[i] = below(3) == 0 ? dim * below(32) : some[below(12)];
    strides[3] = below(16) == 0 ? below(3) : 1;
}

static int64_t broadcast(int64_t extent)
{
    return below(2) ? extent : 1;
}

static void take_small(fattn_problem *p)
{
    p->pass = (int32_t)below(2);
    p->dtype = (int32_t)below(4);
    p->o_dtype = below(4) ? 0 : (int32_t)below(4);
    p->grad_dtype = below(4) ? 0 : (int32_t)below(4);
    p->batch = 1 + below(3);
    p->heads_k = 1 + below(2);
    p->heads_q = p->heads_k * (1 + below(3));
    p->heads_v = below(3) ? 0 : p->heads_q;
    p->seq_q = 1 + below(20);
    p->seq_kv = 1 + below(20);
    p->dim_qk = 1 + below(40);
    p->dim_v = below(2) ? 0 : 1 + below(40);
    p->has_attn_scale = (int32_t)below(2);
    p->attn_scale = (double)(int8_t)take() / 64;
    p->has_left = (int32_t)below(2);
    p->has_right = (int32_t)below(2);
    p->window_left = (int64_t)(int8_t)take();
    p->window_right = (int64_t)(int8_t)take();
    p->align = (int32_t)below(2);
    p->padding = (int32_t)below(2);
    p->len_broadcast = (int32_t)below(2);
    p->outputs = (uint32_t)below(8);
    p->deterministic = (int32_t)below(2);
    p->guards_off = below(8) == 0;
    p->training = below(4) == 0;
    p->has_bias = below(3) == 0;
    p->bias_dtype = (int32_t)below(4);
    p->dbias = p->has_bias && below(2);
    if (p->has_bias && below(2))
        memcpy(p->bias_dim,
               (int64_t[4]){ broadcast(p->batch), broadcast(p->heads_q), broadcast(p->seq_q),
                             broadcast(p->seq_kv) },
               sizeof p->bias_dim);
    int64_t *const all[] = { p->q_strides,     p->k_strides,    p->v_strides,    p->o_strides,
                             p->do_strides,    p->dq_strides,   p->dk_strides,   p->dv_strides,
                             p->stats_strides, p->bias_strides, p->dbias_strides };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        take_strides(all[i], p->dim_qk);
}

/* Every byte as it comes, in a struct of any size. */
static void take_wild(fattn_problem *p)
{
    take_bytes((char *)p + sizeof p->struct_size, sizeof *p - sizeof p->struct_size);
    p->score_mod = NULL;
    if (below(4) == 0)
        p->struct_size = (size_t)take() * 8;
}

static void run(const fattn_plan *plan)
{
    fattn_tensors tensors = FATTN_TENSORS_INIT;
    const fattn__arguments *a = &plan->arguments;
    void *block[FATTN__MAX_ARGUMENTS] = { NULL };
    bool small = true;
    tensors.workspace_bytes = a->workspace_bytes;
    for (int i = 0; i < a->count && small; i++) {
        const int64_t span = a->at[i].footprint.span;
        const bool workspace = a->at[i].offset == (int32_t)offsetof(fattn_tensors, workspace);
        small = span <= (workspace ? MOST_WORKSPACE : MOST_BYTES);
        block[i] = small ? malloc((size_t)span) : NULL;
        if (small && !a->at[i].written)
            take_bytes(block[i], (size_t)span);
        if (small && strncmp(a->at[i].name, "seq_len", 7) == 0 && below(16) != 0)
            for (int64_t b = 0; b < span / 4; b++) /* most of them right */
                ((int32_t *)block[i])[b] = (int32_t)below(8);
        memcpy((char *)&tensors + a->at[i].offset, &block[i], sizeof *block);
    }
    if (small) {
        const fattn_status st = plan->problem.pass == FATTN_FORWARD
                                    ? fattn_forward(plan, &tensors, NULL)
                                    : fattn_backward(plan, &tensors, NULL);
        check(st == FATTN_OK || (st == FATTN_BAD_PROBLEM && fattn_last_error()[0] != '\0'));
    }
    for (int i = 0; i < a->count; i++)
        free(block[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    fattn_decision *decision = NULL;
    fattn_plan *plan;
    at = data, end = data + size;
    if (below(8) == 0)
        take_wild(&problem);
    else
        take_small(&problem);
    fattn_decide(&decision, cpu(), &problem, FATTN_ASK_A);
    const bool yes = fattn_decision_supported(decision);
    check(yes == (fattn_decision_reason(decision) == FATTN_REASON_NONE) &&
          (yes || fattn_decision_text(decision)[0] != '\0'));
    fattn_decision_destroy(decision);
    const fattn_status st = fattn_plan_create(&plan, cpu(), &problem, NULL);
    check((st == FATTN_OK) == yes && (plan != NULL) == yes &&
          (yes || fattn_last_error()[0] != '\0'));
    if (yes)
        run(plan);
    fattn_plan_destroy(plan);
    return 0;
}
