/* Attention and its gradient: two plans, two calls, checked against nested loops.
 *
 * Backward needs O and the statistics (log-sum-exp of every row) of the forward call, so forward is
 * asked to write them.
 */
#include "loops.h"

static naive shape = { .batch = 2, .heads = 4, .seq = 128, .dim = 64, .modify = naive_causal };

static fattn_plan *plan_of(example e, fattn_pass pass)
{
    fattn_problem problem = FATTN_PROBLEM_INIT;
    fattn_plan *plan;
    problem.pass = (int32_t)pass;
    problem.batch = shape.batch;
    problem.heads_q = shape.heads;
    problem.seq_q = problem.seq_kv = shape.seq;
    problem.dim_qk = shape.dim;
    problem.has_right = 1; /* causal */
    problem.training = 1;  /* forward: statistics for a backward to come */
    CHECK(fattn_plan_create(&plan, e.context, &problem, NULL));
    printf("%s: planned in %.1f ms, workspace %zu bytes\n",
           pass == FATTN_FORWARD ? "forward" : "backward", fattn_plan_ms(plan),
           fattn_plan_workspace_bytes(plan));
    return plan;
}

/* dV = P' dO; dS = P (dP - sum dO O) with dP = dO V'; dQ = dS K / sqrt(d); dK = dS' Q / sqrt(d) */
static void naive_backward(const float *q, const float *k, const float *v, const float *d_o,
                           const double *o, double *dq, double *dk, double *dv)
{
    const naive *n = &shape;
    double *p = example_allocate((size_t)n->seq * sizeof *p);
    for (int b = 0; b < n->batch; b++)
        for (int h = 0; h < n->heads; h++)
            for (int row = 0; row < n->seq; row++) {
                const size_t at = naive_at(n, b, h, row);
                double delta = 0;
                naive_row(n, q, k, b, h, row, p);
                for (int d = 0; d < n->dim; d++)
                    delta += (double)d_o[at + (size_t)d] * o[at + (size_t)d];
                for (int key = 0; key < n->seq; key++) {
                    const size_t to = naive_at(n, b, h, key);
                    double dp = 0;
                    for (int d = 0; d < n->dim; d++)
                        dp += (double)d_o[at + (size_t)d] * (double)v[to + (size_t)d];
                    const double ds = p[key] * (dp - delta) / sqrt(n->dim);
                    for (int d = 0; d < n->dim; d++) {
                        dv[to + (size_t)d] += p[key] * (double)d_o[at + (size_t)d];
                        dq[at + (size_t)d] += ds * (double)k[to + (size_t)d];
                        dk[to + (size_t)d] += ds * (double)q[at + (size_t)d];
                    }
                }
            }
    free(p);
}

int main(int argc, char **argv)
{
    example e = example_open(argc, argv);
    fattn_plan *forward = plan_of(e, FATTN_FORWARD), *backward = plan_of(e, FATTN_BACKWARD);
    if (e.kind == FATTN_DEVICE_DESCRIBED) {
        printf("compiled for the described device; there is none to run on\n");
        fattn_plan_destroy(forward);
        fattn_plan_destroy(backward);
        fattn_context_destroy(e.context);
        return 0;
    }

    const size_t count = naive_count(&shape), bytes = count * sizeof(uint16_t);
    float *x[4];          /* q, k, v, dO */
    void *in[4], *out[4]; /* o, dq, dk, dv */
    for (uint32_t i = 0; i < 4; i++) {
        x[i] = example_noise(count, i + 1);
        in[i] = example_upload(e, x[i], count);
        out[i] = example_buffer(e, bytes);
    }

    fattn_tensors t = FATTN_TENSORS_INIT;
    const size_t need[2] = { fattn_plan_workspace_bytes(forward),
                             fattn_plan_workspace_bytes(backward) };
    t.workspace_bytes = need[0] > need[1]
                            ? need[0]
                            : need[1]; /* one after the other on one stream: they can share it */
    t.workspace = example_buffer(e, t.workspace_bytes);
    t.stats = example_buffer(e, (size_t)(shape.batch * shape.heads * shape.seq) * sizeof(float));
    t.q = in[0], t.k = in[1], t.v = in[2], t.d_o = in[3];
    t.o = out[0], t.dq = out[1], t.dk = out[2], t.dv = out[3];

    struct CUstream_st *stream;
    CHECK(fattn_stream_create(&stream, e.context));
    CHECK(fattn_forward(forward, &t,
                        stream)); /* enqueued; the stream's order is enough for backward */
    CHECK(fattn_backward(backward, &t, stream));
    CHECK(fattn_stream_synchronize(e.context, stream));

    double *want[4] = { naive_forward(&shape, x[0], x[1], x[2]) };
    for (int i = 1; i < 4; i++)
        want[i] = example_allocate(count * sizeof(double));
    naive_backward(x[0], x[1], x[2], x[3], want[0], want[1], want[2], want[3]);
    int status = 0;
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = { "O", "dQ", "dK", "dV" };
        status |= example_verdict(names[i], example_error(e, out[i], want[i], count));
        fattn_buffer_destroy(e.context, in[i]), fattn_buffer_destroy(e.context, out[i]);
        free(x[i]), free(want[i]);
    }
    fattn_buffer_destroy(e.context, t.workspace), fattn_buffer_destroy(e.context, t.stats);
    fattn_stream_destroy(e.context, stream);
    fattn_plan_destroy(forward), fattn_plan_destroy(backward);
    fattn_context_destroy(e.context); /* last: plans and buffers belong to the context */
    return status;
}
