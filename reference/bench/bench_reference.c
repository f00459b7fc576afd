/* Times of the reference, one line for each line on stdin, so that bench_reference.py can take turns with what it compares with.
 *
 *   bench_reference [HEADS [ROWS [DIM [cpu]]]]      prints: forward, forward with bounds, backward, backward with bounds; ms a
 * head, of processor time with `cpu`
 */
#include <fref/fref.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct bench {
    fref_problem problem;
    fref_tensor q, k, v, o, d_o, stats;
    fref_rounding rounding;
    fref_forward_out forward[2]; /* values alone; everything */
    fref_backward_out backward[2];
} bench;

static double *doubles(int64_t n)
{
    double *x = malloc((size_t)n * sizeof *x);
    if (!x)
        exit(3);
    return x;
}

/* Ordinary bf16 values: magnitudes in [0.5, 2), either sign. */
static fref_tensor tensor(int64_t heads, int64_t rows, int64_t dim, uint32_t *state)
{
    int64_t count = heads * rows * dim;
    uint16_t *data = malloc((size_t)count * sizeof *data);
    if (!data)
        exit(3);
    for (int64_t n = 0; n < count; n++) {
        *state = *state * 1664525U + 1013904223U;
        data[n] = (uint16_t)((*state >> 31) << 15 | (0x3f00U + (*state >> 8 & 0xffU)));
    }
    return (fref_tensor){ .data = data,
                          .type = FREF_BF16,
                          .stride = { heads * rows * dim, rows * dim, dim, 1 } };
}

static void start(bench *x, int64_t heads, int64_t rows, int64_t dim)
{
    uint32_t state = 1;
    int64_t count = heads * rows * dim, lines = heads * rows;
    x->problem = (fref_problem){ .batch = 1,
                                 .heads_q = heads,
                                 .heads_k = heads,
                                 .heads_v = heads,
                                 .rows = rows,
                                 .keys = rows,
                                 .dim_qk = dim,
                                 .dim_v = dim,
                                 .scale = 0.08838834764831845 };
    x->q = tensor(heads, rows, dim, &state);
    x->k = tensor(heads, rows, dim, &state);
    x->v = tensor(heads, rows, dim, &state);
    x->o = tensor(heads, rows, dim, &state);
    x->d_o = tensor(heads, rows, dim, &state);
    float *stats = malloc((size_t)lines * sizeof *stats);
    double *lse = doubles(lines);
    x->rounding = fref_rounding_of(FREF_BF16, FREF_BF16);
    x->forward[0] = (fref_forward_out){ .o = doubles(count), .lse = lse };
    x->forward[1] = x->forward[0];
    x->forward[1].o_sigma = doubles(count);
    x->forward[1].o_bound = doubles(count);
    x->forward[1].lse_tau = doubles(lines);
    x->backward[0] =
        (fref_backward_out){ .dq = doubles(count), .dk = doubles(count), .dv = doubles(count) };
    x->backward[1] = x->backward[0];
    double **const more[] = { &x->backward[1].dq_sigma, &x->backward[1].dq_bound,
                              &x->backward[1].dk_sigma, &x->backward[1].dk_bound,
                              &x->backward[1].dv_sigma, &x->backward[1].dv_bound };
    for (size_t n = 0; n < sizeof more / sizeof more[0]; n++)
        *more[n] = doubles(count);
    if (!stats || fref_forward(&x->problem, &x->q, &x->k, &x->v, &x->rounding, &x->forward[0]) != 0)
        exit(3);
    for (int64_t n = 0; n < lines; n++)
        stats[n] = (float)lse[n];
    x->stats = (fref_tensor){ .data = stats, .type = FREF_F32, .stride = { lines, rows, 1, 1 } };
}

static clockid_t used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(used, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static double time_of(const bench *x, bool backward, int with_bounds)
{
    double began = now();
    int status = backward ? fref_backward(&x->problem, &x->q, &x->k, &x->v, &x->o, &x->stats,
                                          &x->d_o, &x->rounding, &x->backward[with_bounds])
                          : fref_forward(&x->problem, &x->q, &x->k, &x->v, &x->rounding,
                                         &x->forward[with_bounds]);
    if (status != 0)
        exit(3);
    return (now() - began) / (double)x->problem.heads_q;
}

int main(int argc, char **argv)
{
    bench x;
    int64_t sizes[3] = { 4, 1024, 128 };
    for (int n = 1; n < argc && n < 4; n++)
        sizes[n - 1] = strtoll(argv[n], NULL, 10);
    if (sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1) {
        fprintf(stderr, "bench_reference: sizes are positive numbers: HEADS ROWS DIM\n");
        return 2;
    }
    if (argc > 4)
        used = CLOCK_PROCESS_CPUTIME_ID;
    start(&x, sizes[0], sizes[1], sizes[2]);
    while (getchar() != EOF) {
        double forward = time_of(&x, false, 0), forward_all = time_of(&x, false, 1);
        double backward = time_of(&x, true, 0), backward_all = time_of(&x, true, 1);
        printf("%.4f %.4f %.4f %.4f\n", forward, forward_all, backward, backward_all);
        fflush(stdout);
    }
    return 0;
}
