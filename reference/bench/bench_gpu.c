/* How fast the oracle is on a GPU: useful products a second, as a part of the card's peak in double precision.
 *
 *   bench_gpu [rows] [dim] [heads] [causal] [kernels]
 *
 * Useful products, each 2 rows keys dim: forward 2 (Q K^T, P V); backward 6 (Q K^T, dO V^T, dS K, P K, dS^T Q, P^T dO). The
 * products for sigmas and bounds alone, forward 3 and backward 9, do not count. `kernels` times every kernel alone.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../cuda/test/primary.h"
#include "gpu/gpu_run.h"

static const gpu_driver *real;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- a driver that times what it launches
 * ------------------------------------------------------------------------------------------ */

enum { MOST = 64 };
static struct {
    struct CUfunc_st *function;
    char name[40];
    double seconds;
    int count;
} timed[MOST];
static int timed_count;

static int named_function(struct CUfunc_st **out, struct CUmod_st *module, const char *name)
{
    const int result = real->module_function(out, module, name);
    if (result == 0 && timed_count < MOST) {
        timed[timed_count].function = *out;
        snprintf(timed[timed_count++].name, sizeof timed[0].name, "%s", name);
    }
    return result;
}

static int timed_launch(struct CUfunc_st *function, unsigned x, unsigned y, unsigned z, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, struct CUstream_st *stream,
                        void **arguments, void **extra)
{
    real->stream_synchronize(stream);
    const double start = now();
    int result = real->launch(function, x, y, z, bx, by, bz, shared, stream, arguments, extra);
    if (result == 0)
        result = real->stream_synchronize(stream);
    for (int n = 0; n < timed_count; n++)
        if (timed[n].function == function) {
            timed[n].seconds += now() - start;
            timed[n].count++;
        }
    return result;
}

/* ---- a problem
 * ---------------------------------------------------------------------------------------------------------------------
 */

static void *device_memory(size_t bytes)
{
    gpu_address at;
    if (real->memory_alloc(&at, bytes) != 0) {
        printf("no memory for %zu bytes\n", bytes);
        exit(3);
    }
    return (void *)(uintptr_t)at;
}

static fref_tensor bf16_tensor(int64_t heads, int64_t rows, int64_t dim, double size, uint64_t seed)
{
    const size_t count = (size_t)(heads * rows * dim);
    uint16_t *host = malloc(count * sizeof *host);
    fref_tensor t = { .data = device_memory(count * 2),
                      .type = FREF_BF16,
                      .stride = { heads * rows * dim, rows * dim, dim, 1 } };
    for (size_t n = 0; n < count && host; n++) {
        double sum = 0.0;
        for (int k = 0; k < 4; k++) {
            seed = seed * 6364136223846793005U + 1442695040888963407U;
            sum += (double)(seed >> 40) * 0x1p-24 - 0.5;
        }
        const float value = (float)(size * sum * 1.7320508);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        host[n] = (uint16_t)((bits + 0x8000U) >> 16);
    }
    if (!host || real->send((gpu_address)(uintptr_t)t.data, host, count * 2, NULL) != 0 ||
        real->stream_synchronize(NULL) != 0)
        exit(3);
    free(host);
    return t;
}

static double *device_doubles(int64_t count)
{
    return device_memory((size_t)count * sizeof(double));
}

static void copy_lse(fref_tensor *stats, const double *lse, int64_t count)
{
    double *host = malloc((size_t)count * sizeof *host);
    float *narrow = malloc((size_t)count * sizeof *narrow);
    if (!host || !narrow ||
        real->fetch(host, (gpu_address)(uintptr_t)lse, (size_t)count * sizeof *host, NULL) != 0 ||
        real->stream_synchronize(NULL) != 0)
        exit(3);
    for (int64_t n = 0; n < count; n++)
        narrow[n] = (float)host[n];
    stats->data = device_memory((size_t)count * sizeof *narrow);
    real->send((gpu_address)(uintptr_t)stats->data, narrow, (size_t)count * sizeof *narrow, NULL);
    real->stream_synchronize(NULL);
    free(host);
    free(narrow);
}

/* Fused multiply-adds of a multiprocessor's fp64 tensor cores and of its other units in one clock.
 */
static void peak(double *tensor, double *plain)
{
    int device = 0, major = 0, clock = 0, processors = 0;
    real->context_device(&device);
    real->device_attribute(&major, GPU_MAJOR, device);
    real->device_attribute(&processors, GPU_MULTIPROCESSORS, device);
    real->device_attribute(&clock, 13, device);
    int minor = 0;
    real->device_attribute(&minor, GPU_MINOR, device);
    const double per_clock[2] = { major == 9                                  ? 128
                                  : (major == 8 && minor == 0) || major == 10 ? 64
                                                                              : 2,
                                  major == 9                 ? 64
                                  : major == 8 && minor == 0 ? 32
                                  : major == 10              ? 64
                                                             : 2 };
    *tensor = 2e3 * per_clock[0] * processors * clock;
    *plain = 2e3 * per_clock[1] * processors * clock;
}

static void report(const char *what, double seconds, double products, double one)
{
    double tensor, plain;
    peak(&tensor, &plain);
    const double speed = products * one / seconds;
    printf("%s: %.2f ms, %.1f TFLOP/s of products in double: %.0f %% of the tensor cores' %.1f, "
           "%.0f %% of the other units' %.1f\n",
           what, 1e3 * seconds, speed * 1e-12, 100.0 * speed / tensor, tensor * 1e-12,
           100.0 * speed / plain, plain * 1e-12);
}

static void print_kernels(void)
{
    for (int n = 0; n < timed_count; n++) {
        if (timed[n].count > 0)
            printf("    %-24s %4d launches %10.3f ms\n", timed[n].name, timed[n].count,
                   1e3 * timed[n].seconds);
        timed[n].seconds = 0.0;
        timed[n].count = 0;
    }
}

static void check(int status, const char *error)
{
    if (status == 0)
        return;
    printf("status %d: %s\n", status, error);
    exit(3);
}

int main(int count, char **arguments)
{
    char error[256] = "", name[100] = "";
    const int64_t s = count > 1 ? atoll(arguments[1]) : 4096,
                  d = count > 2 ? atoll(arguments[2]) : 128,
                  h = count > 3 ? atoll(arguments[3]) : 16;
    const bool causal = count > 4 && atoi(arguments[4]) != 0,
               kernels = count > 5 && atoi(arguments[5]) != 0;
    real = open_gpu(error);
    if (!real) {
        printf("%s\n", error);
        return 77;
    }
    int device = 0;
    real->context_device(&device);
    real->device_name(name, sizeof name, device);
    gpu_driver timing = *real;
    timing.launch = timed_launch;
    timing.module_function = named_function;
    if (kernels)
        gpu_driver_replace(&timing);
    fref_gpu *gpu;
    check(fref_gpu_create(&gpu, error), error);
    fref_problem p = { .batch = 1,
                       .heads_q = h,
                       .heads_k = h,
                       .heads_v = h,
                       .rows = s,
                       .keys = s,
                       .dim_qk = d,
                       .dim_v = d,
                       .scale = 1.0 / sqrt((double)d),
                       .has_right = causal };
    const fref_tensor q = bf16_tensor(h, s, d, 1.0, 1), k = bf16_tensor(h, s, d, 1.0, 2),
                      v = bf16_tensor(h, s, d, 1.0, 3), o = bf16_tensor(h, s, d, 0.05, 4),
                      d_o = bf16_tensor(h, s, d, 1.0, 5);
    fref_tensor stats = { .type = FREF_F32, .stride = { h * s, s, 1, 1 } };
    const int64_t rows = h * s;
    double *values[9];
    for (int n = 0; n < 9; n++)
        values[n] = device_doubles(rows * d);
    double *lone[8];
    for (int n = 0; n < 8; n++)
        lone[n] = device_doubles(rows);
    const fref_rounding r = fref_rounding_of(FREF_BF16, FREF_BF16);
    const fref_forward_out f = { .o = values[0],
                                 .o_sigma = values[1],
                                 .o_bound = values[2],
                                 .lse = lone[0],
                                 .lse_tau = lone[1],
                                 .max = lone[2],
                                 .max_tau = lone[3],
                                 .sum_exp = lone[4],
                                 .o_nu = lone[5],
                                 .o_neff = lone[6] };
    const fref_backward_out g = { .dq = values[0],
                                  .dq_sigma = values[1],
                                  .dq_bound = values[2],
                                  .dk = values[3],
                                  .dk_sigma = values[4],
                                  .dk_bound = values[5],
                                  .dv = values[6],
                                  .dv_sigma = values[7],
                                  .dv_bound = values[8],
                                  .dq_nu = lone[1],
                                  .dk_nu = lone[2],
                                  .dv_nu = lone[3] };
    const double one = 2.0 * (double)s * (double)s * (double)d * (double)h * (causal ? 0.5 : 1.0);
    printf("%s, rows = keys = %" PRId64 ", d = %" PRId64 ", %" PRId64 " heads%s\n", name, s, d, h,
           causal ? ", causal" : "");
    for (int n = 0; n < 3; n++) {
        const double start = now();
        check(fref_gpu_forward(gpu, &p, NULL, &q, &k, &v, &r, &f, NULL, error), error);
        if (n > 0)
            report("forward", now() - start, 2.0, one);
        if (kernels)
            print_kernels();
    }
    copy_lse(&stats, lone[0], rows);
    for (int n = 0; n < 3; n++) {
        const double start = now();
        check(
            fref_gpu_backward(gpu, &p, NULL, &q, &k, &v, &o, &stats, &d_o, &r, &g, 0, NULL, error),
            error);
        if (n > 0)
            report("backward", now() - start, 6.0, one);
        if (kernels)
            print_kernels();
    }
    fref_gpu_destroy(gpu);
    return 0;
}
