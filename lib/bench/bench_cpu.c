/* How fast is the cpu backend? Within one run, in turns, so that the machine cancels out:
 *   cpu      fattn_forward and fattn_backward on host memory
 *   product  what the same machine multiplies in fp32 when everything lies in the nearest cache: the ceiling of attention by products
 *   torch    scaled_dot_product_attention of a PyTorch for CPUs, on as many threads, where its Python is given
 * Times are the best of several; the last column is torch / cpu. One thread is timed by the CPU time it took, which a busy machine changes
 * little; several by the clock on the wall.
 * usage: bench_cpu [THREADS [PYTHON]]     PYTHON: an interpreter that imports torch */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fattn/fattn.h>

#include "cpu/kernels/cpu_kernels.h"

enum { ROUNDS = 7, REPEATS = 5 };

typedef struct shape {
    int64_t b, h, s, d;
    int causal, backward;
} shape;

static const shape shapes[] = {
    { 1, 8, 1024, 64, 0, 0 },  { 1, 8, 1024, 128, 0, 0 }, { 1, 8, 1024, 64, 1, 0 },
    { 1, 8, 1024, 128, 1, 0 }, { 2, 8, 512, 64, 0, 0 },   { 1, 8, 1024, 64, 0, 1 },
    { 1, 8, 1024, 128, 0, 1 },
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static bool one_thread;

static double now(void)
{
    struct timespec t;
    clock_gettime(one_thread ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "bench_cpu: %s\n", what);
    exit(2);
}

/* ---- the other side
 * ---------------------------------------------------------------------------------------------------------------
 */

static const char *const script =
    "import sys, time, torch\n"
    "torch.set_num_threads(int(sys.argv[1]))\n"
    "now = time.process_time if sys.argv[1] == '1' else time.perf_counter\n"
    "attend = torch.nn.functional.scaled_dot_product_attention\n"
    "for line in sys.stdin:\n"
    "    b, h, s, d, causal, backward, repeats = map(int, line.split())\n"
    "    q, k, v, g = (torch.randn(b, s, h, d).transpose(1, 2).requires_grad_(bool(backward)) for "
    "_ in range(4))\n"
    "    best = 1e9\n"
    "    for _ in range(repeats + 1):\n"
    "        if backward:\n"
    "            o = attend(q, k, v, is_causal=bool(causal))\n"
    "            t = now()\n"
    "            torch.autograd.grad(o, (q, k, v), g)\n"
    "        else:\n"
    "            t = now()\n"
    "            attend(q, k, v, is_causal=bool(causal))\n"
    "        best = min(best, now() - t)\n"
    "    print(best, flush=True)\n";

static FILE *to_torch, *from_torch;

static void start_torch(const char *python, const char *threads)
{
    int questions[2], answers[2];
    if (pipe(questions) != 0 || pipe(answers) != 0)
        fail("no pipe");
    const pid_t child = fork();
    if (child == 0) {
        dup2(questions[0], 0);
        dup2(answers[1], 1);
        close(questions[1]);
        close(answers[0]);
        execlp(python, python, "-c", script, threads, (char *)NULL);
        _exit(127);
    }
    close(questions[0]);
    close(answers[1]);
    to_torch = fdopen(questions[1], "w");
    from_torch = fdopen(answers[0], "r");
}

static double ask_torch(const shape *x)
{
    double seconds = 0;
    if (to_torch == NULL)
        return 0;
    fprintf(to_torch, "%lld %lld %lld %lld %d %d %d\n", (long long)x->b, (long long)x->h,
            (long long)x->s, (long long)x->d, x->causal, x->backward, REPEATS);
    fflush(to_torch);
    if (fscanf(from_torch, "%lf", &seconds) != 1)
        fail("PYTHON does not answer; does it import torch?");
    return seconds;
}

/* ---- ours
 * ---------------------------------------------------------------------------------------------------------------------------
 */

typedef struct job {
    fattn_plan *forward, *backward;
    fattn_tensors tensors;
    double flops, best, torch;
} job;

static float *noise(int64_t n)
{
    static unsigned seed = 1;
    float *x = aligned_alloc(64, (size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = ((float)(seed >> 8) * 0x1p-23f - 1.0f) * 2;
    }
    return x;
}

static job prepare(fattn_context *context, const shape *x)
{
    job j = { .tensors = FATTN_TENSORS_INIT, .best = 1e9, .torch = 1e9 };
    fattn_problem p = FATTN_PROBLEM_INIT;
    p.dtype = FATTN_F32, p.batch = x->b, p.heads_q = x->h, p.seq_q = p.seq_kv = x->s,
    p.dim_qk = x->d, p.has_right = x->causal, p.training = x->backward;
    if (fattn_plan_create(&j.forward, context, &p, NULL) != FATTN_OK)
        fail(fattn_last_error());
    p.pass = FATTN_BACKWARD;
    if (fattn_plan_create(&j.backward, context, &p, NULL) != FATTN_OK)
        fail(fattn_last_error());
    const int64_t n = x->b * x->h * x->s * x->d;
    const size_t forward = fattn_plan_workspace_bytes(j.forward),
                 backward = fattn_plan_workspace_bytes(j.backward);
    j.tensors.q = noise(n), j.tensors.k = noise(n), j.tensors.v = noise(n), j.tensors.o = noise(n),
    j.tensors.d_o = noise(n);
    j.tensors.dq = noise(n), j.tensors.dk = noise(n), j.tensors.dv = noise(n),
    j.tensors.stats = noise(x->b * x->h * x->s);
    j.tensors.workspace_bytes = (forward > backward ? forward : backward) / 64 * 64 + 64;
    j.tensors.workspace = aligned_alloc(64, j.tensors.workspace_bytes);
    j.flops = (x->backward ? 10.0 : 4.0) * (double)n * (double)x->s * (x->causal ? 0.5 : 1.0);
    return j;
}

static double time_job(const job *j, bool backward)
{
    double best = 1e9;
    for (int i = 0; i <= REPEATS; i++) {
        const double start = now();
        if ((backward ? fattn_backward(j->backward, &j->tensors, NULL)
                      : fattn_forward(j->forward, &j->tensors, NULL)) != FATTN_OK)
            fail(fattn_last_error());
        best = now() - start < best ? now() - start : best;
    }
    return best;
}

/* Floating-point operations a second of all threads together. */
static double product_rate(int threads)
{
    enum { N = 96, TIMES = 400 };
    const fattn__kernels *kernels = fattn__cpu_kernels();
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        const double start = now();
#pragma omp parallel num_threads(threads)
        {
            static float a[64][N * N], b[64][N * N], c[64][N * N];
            const int t = omp_get_thread_num() % 64;
            const fattn__product p = { c[t], a[t], b[t], N, N, 1, N, N, 64, N, 1.0f, false };
            for (int k = 0; k < TIMES; k++)
                kernels->multiply(&p);
        }
        best = now() - start < best ? now() - start : best;
    }
    return 2.0 * N * 64 * N * TIMES * threads / best;
}

int main(int argc, char **argv)
{
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    fattn_context *context;
    job jobs[SHAPES];
    double rate = 0;
    options.device_kind = FATTN_DEVICE_CPU;
    options.threads = argc > 1 ? atoi(argv[1]) : omp_get_max_threads();
    if (options.threads < 1 || options.threads > 64)
        fail("THREADS: want 1 to 64");
    one_thread = options.threads == 1;
    if (fattn_context_create(&context, &options) != FATTN_OK)
        fail(fattn_last_error());
    if (argc > 2)
        start_torch(argv[2], argv[1]);
    for (int i = 0; i < SHAPES; i++) {
        jobs[i] = prepare(context, &shapes[i]);
        time_job(&jobs[i], false); /* Stats and O for the backward pass */
    }
    for (int round = 0; round < ROUNDS; round++) {
        const double now_rate = product_rate(options.threads);
        rate = now_rate > rate ? now_rate : rate;
        for (int i = 0; i < SHAPES; i++) {
            const double ours = time_job(&jobs[i], shapes[i].backward),
                         theirs = ask_torch(&shapes[i]);
            jobs[i].best = ours < jobs[i].best ? ours : jobs[i].best;
            jobs[i].torch = theirs < jobs[i].torch ? theirs : jobs[i].torch;
        }
    }
    printf("%d threads, product %.0f GFLOP/s\n%-32s %9s %9s %9s %9s %9s\n", options.threads,
           rate * 1e-9, "f32, dense b,s,h,d", "ms", "GFLOP/s", "product", "torch ms", "ratio");
    for (int i = 0; i < SHAPES; i++) {
        const shape *x = &shapes[i];
        char name[64];
        snprintf(name, sizeof name, "%s%s b%lld h%lld s%lld d%lld", x->backward ? "bwd" : "fwd",
                 x->causal ? " causal" : "", (long long)x->b, (long long)x->h, (long long)x->s,
                 (long long)x->d);
        printf("%-32s %9.3f %9.1f %8.0f%%", name, jobs[i].best * 1e3,
               jobs[i].flops / jobs[i].best * 1e-9, 100 * jobs[i].flops / jobs[i].best / rate);
        if (to_torch != NULL)
            printf(" %9.3f %9.2f", jobs[i].torch * 1e3, jobs[i].torch / jobs[i].best);
        printf("\n");
    }
    fattn_context_destroy(context);
    return 0;
}
