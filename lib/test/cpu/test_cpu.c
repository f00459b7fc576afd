#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include <fattn/fattn.h>

#include "cpu/cpu_attention.h"
#include "cpu/cpu_view.h"

/* A small problem in fp32, dense b,s,h,d, against four nested loops. */
typedef struct data {
    fattn_problem p;
    fattn_tensors t;
    float *q, *k, *v, *o, *d_o, *dq, *dk, *dv, *stats, *max, *sum;
    int32_t len_q[2], len_kv[2];
} data;

static float *noise(int64_t n, unsigned seed)
{
    float *x = malloc((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) * 0x1p-23f - 1.0f;
    }
    return x;
}

static void dense(int64_t stride[4], int64_t heads, int64_t seq, int64_t dim)
{
    stride[0] = seq * heads * dim, stride[1] = dim, stride[2] = heads * dim, stride[3] = 1;
}

static data make(void)
{
    data x = { .p = FATTN_PROBLEM_INIT, .len_q = { 70, 33 }, .len_kv = { 90, 101 } };
    fattn_problem *p = &x.p;
    p->dtype = p->o_dtype = p->do_dtype = p->grad_dtype = FATTN_F32;
    p->batch = 2, p->heads_q = 4, p->heads_k = 2, p->heads_v = 1, p->seq_q = 70, p->seq_kv = 101,
    p->dim_qk = 20, p->dim_v = 36;
    p->attn_scale = 0.3, p->has_attn_scale = 1,
    p->outputs = FATTN_WANT_STATS | FATTN_WANT_MAX | FATTN_WANT_SUM_EXP;
    dense(p->q_strides, 4, 70, 20), dense(p->dq_strides, 4, 70, 20),
        dense(p->k_strides, 2, 101, 20), dense(p->dk_strides, 2, 101, 20);
    dense(p->v_strides, 1, 101, 36), dense(p->dv_strides, 1, 101, 36),
        dense(p->o_strides, 4, 70, 36), dense(p->do_strides, 4, 70, 36);
    p->stats_strides[0] = 4 * 70, p->stats_strides[1] = 70, p->stats_strides[2] = 1,
    p->stats_strides[3] = 1;
    x.q = noise(2 * 4 * 70 * 20, 1), x.k = noise(2 * 2 * 101 * 20, 2), x.v = noise(2 * 101 * 36, 3),
    x.d_o = noise(2 * 4 * 70 * 36, 4);
    x.o = noise(2 * 4 * 70 * 36, 5), x.dq = noise(2 * 4 * 70 * 20, 6),
    x.dk = noise(2 * 2 * 101 * 20, 7), x.dv = noise(2 * 101 * 36, 8);
    x.stats = noise(2 * 4 * 70, 9), x.max = noise(2 * 4 * 70, 9), x.sum = noise(2 * 4 * 70, 9);
    return x;
}

static void wire(data *x)
{
    x->t = (fattn_tensors)FATTN_TENSORS_INIT;
    x->t.q = x->q, x->t.k = x->k, x->t.v = x->v, x->t.o = x->o, x->t.stats = x->stats,
    x->t.max = x->max, x->t.sum_exp = x->sum;
    x->t.d_o = x->d_o, x->t.dq = x->dq, x->t.dk = x->dk, x->t.dv = x->dv, x->t.seq_len_q = x->len_q,
    x->t.seq_len_kv = x->len_kv;
}

static bool visible(const data *x, int b, int i, int j)
{
    const fattn_problem *p = &x->p;
    int lq = p->padding ? x->len_q[b] : (int)p->seq_q,
        lk = p->padding ? x->len_kv[b] : (int)p->seq_kv;
    int shift = p->align == FATTN_BOTTOM_RIGHT ? lk - lq : 0;
    return i < lq && j < lk && !(p->has_right && j > i + shift + p->window_right) &&
           !(p->has_left && j <= i + shift - p->window_left);
}

static double score(const data *x, int b, int h, int i, int j)
{
    double s = 0;
    for (int d = 0; d < 20; d++)
        s += (double)x->q[((b * 70 + i) * 4 + h) * 20 + d] *
             (double)x->k[((b * 101 + j) * 2 + h / 2) * 20 + d];
    return s * x->p.attn_scale;
}

static void check_forward(data *x)
{
    wire(x);
    char *scratch = aligned_alloc(64, 2 * fattn__cpu_scratch_bytes(&x->p));
    fattn__cpu_forward(&x->p, &x->t, 2, scratch);
    for (int b = 0; b < 2; b++)
        for (int h = 0; h < 4; h++)
            for (int i = 0; i < 70; i++) {
                double top = -INFINITY, sum = 0, o[36] = { 0 };
                for (int j = 0; j < 101; j++)
                    if (visible(x, b, i, j))
                        top = fmax(top, score(x, b, h, i, j));
                for (int j = 0; j < 101; j++)
                    if (visible(x, b, i, j)) {
                        double e = exp(score(x, b, h, i, j) - top);
                        sum += e;
                        for (int d = 0; d < 36; d++)
                            o[d] += e * (double)x->v[(b * 101 + j) * 36 + d];
                    }
                float lse = x->stats[(b * 4 + h) * 70 + i];
                if (sum == 0) {
                    cr_assert_eq(lse, -INFINITY, "a row without keys has Stats -inf");
                    cr_assert_eq(x->o[((b * 70 + i) * 4 + h) * 36], 0.0f, "and O 0");
                    continue;
                }
                cr_assert_float_eq(lse, top + log(sum), 1e-5);
                cr_assert_float_eq(x->max[(b * 4 + h) * 70 + i], top, 1e-5);
                for (int d = 0; d < 36; d++)
                    cr_assert_float_eq(x->o[((b * 70 + i) * 4 + h) * 36 + d], o[d] / sum, 1e-5,
                                       "b %d h %d i %d d %d", b, h, i, d);
            }
    free(scratch);
}

static void check_backward(data *x)
{
    check_forward(x);
    char *scratch = aligned_alloc(64, 2 * fattn__cpu_scratch_bytes(&x->p));
    fattn__cpu_backward(&x->p, &x->t, 2, scratch);
    double *dq = calloc(2 * 4 * 70 * 20, 8), *dk = calloc(2 * 2 * 101 * 20, 8),
           *dv = calloc(2 * 101 * 36, 8);
    for (int b = 0; b < 2; b++)
        for (int h = 0; h < 4; h++)
            for (int i = 0; i < 70; i++) {
                const float *g = x->d_o + ((b * 70 + i) * 4 + h) * 36,
                            *o = x->o + ((b * 70 + i) * 4 + h) * 36;
                double D = 0;
                for (int d = 0; d < 36; d++)
                    D += (double)g[d] * (double)o[d];
                for (int j = 0; j < 101; j++) {
                    if (!visible(x, b, i, j))
                        continue;
                    double P = exp(score(x, b, h, i, j) - (double)x->stats[(b * 4 + h) * 70 + i]),
                           dP = 0;
                    for (int d = 0; d < 36; d++) {
                        dP += (double)g[d] * (double)x->v[(b * 101 + j) * 36 + d];
                        dv[(b * 101 + j) * 36 + d] += P * (double)g[d];
                    }
                    double dS = x->p.attn_scale * P * (dP - D);
                    for (int d = 0; d < 20; d++) {
                        dq[((b * 70 + i) * 4 + h) * 20 + d] +=
                            dS * (double)x->k[((b * 101 + j) * 2 + h / 2) * 20 + d];
                        dk[((b * 101 + j) * 2 + h / 2) * 20 + d] +=
                            dS * (double)x->q[((b * 70 + i) * 4 + h) * 20 + d];
                    }
                }
            }
    for (int i = 0; i < 2 * 4 * 70 * 20; i++)
        cr_assert_float_eq(x->dq[i], dq[i], 2e-5, "dq %d", i);
    for (int i = 0; i < 2 * 2 * 101 * 20; i++)
        cr_assert_float_eq(x->dk[i], dk[i], 5e-5, "dk %d", i);
    for (int i = 0; i < 2 * 101 * 36; i++)
        cr_assert_float_eq(x->dv[i], dv[i], 5e-5, "dv %d", i);
    free(scratch), free(dq), free(dk), free(dv);
}

Test(cpu, dense_attention_and_its_gradients_match_four_loops)
{
    data x = make();
    check_backward(&x);
}

Test(cpu, causal_bottom_right_with_lengths_matches_four_loops)
{
    data x = make();
    x.p.padding = 1, x.p.has_right = 1, x.p.align = FATTN_BOTTOM_RIGHT;
    check_backward(&x);
}

Test(cpu, a_window_with_a_left_and_a_right_bound_matches_four_loops)
{
    data x = make();
    x.p.has_left = x.p.has_right = 1, x.p.window_left = 9, x.p.window_right = 4;
    check_backward(&x);
}

Test(cpu, a_batch_entry_without_keys_gives_zeros)
{
    data x = make();
    x.p.padding = 1, x.len_kv[1] = 0;
    check_backward(&x);
}

Test(cpu, what_a_masked_key_holds_cannot_matter)
{
    data x = make();
    x.p.padding = 1;
    for (int d = 0; d < 36; d++)
        x.v[90 * 36 + d] = NAN; /* the first key past the length of batch entry 0 */
    check_backward(&x);
}

Test(cpu, sixteen_bit_types_round_to_nearest_even)
{
    int64_t stride[4] = { 1, 1, 1, 1 };
    for (uint32_t code = 0; code < 0x7c00u;
         code++) { /* between each f16 and the next: the tie goes to the even one */
        uint16_t out = 0, low = (uint16_t)code, high = (uint16_t)(code + 1);
        float a, b, middle;
        fattn__view view = { .data = (char *)&low, .dtype = FATTN_F16, .stride = stride };
        fattn__view_load(&a, 1, &view, 0, 0, 0, 1, 1);
        view.data = (char *)&high;
        fattn__view_load(&b, 1, &view, 0, 0, 0, 1, 1);
        middle = code == 0x7bffu ? 65520.0f : (a + b) / 2;
        view.data = (char *)&out;
        fattn__view_store(&view, 0, 0, 0, 1, 1, &middle, 1);
        cr_assert_eq(out, code & 1u ? high : low, "code %x", code);
        fattn__view_store(&view, 0, 0, 0, 1, 1, &a, 1);
        cr_assert_eq(out, low, "code %x stays itself", code);
    }
}
