/* The harness's kernels, by name, and an oracle on their GPU: the end of what emulated.cmake
 * compiles. */
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "fref/gpu.h"

extern "C" {
extern const gpu_image facts_image_of_kernels; /* in place of the compiled ones, which need nvcc */
}
const gpu_image facts_image_of_kernels = { (const unsigned char *)"", 1, "emulated" };

const emulated_entry emulated_entries[] = {
#define AS_ENTRY(name)                                                                             \
    { "facts_kernel_" #name,                                                                       \
      [](void **a) { facts_kernel_##name(*(const facts_##name##_call *)a[0]); }, 0 },
    FACTS_KERNEL_LIST(AS_ENTRY)
#undef AS_ENTRY
};
const size_t emulated_entry_count = sizeof emulated_entries / sizeof *emulated_entries;

/* ---- the oracle: the C reference, as device memory is the host's ---- */

/* The problem with its masks as the bias that they are for the C reference; a bias beside them is
 * bf16. */
struct masked {
    fref_problem problem;
    fref_tensor bias;
    std::vector<float> values;

    masked(const fref_problem *from, const fref_gpu_mod *mod) : problem(*from), bias()
    {
        const int64_t rows = from->rows, keys = from->keys, heads = from->heads_q,
                      tiles = (keys + 127) / 128;
        if (mod->seen.data == nullptr && mod->tiles == nullptr)
            return;
        for (int64_t n = 0; n < from->batch * heads * rows * keys; n++) {
            const int64_t j = n % keys, i = n / keys % rows, h = n / keys / rows % heads,
                          bh = n / keys / rows, b = bh / heads;
            const auto place = [=](const fref_tensor &t) {
                return b * t.stride[0] + h * t.stride[1] + i * t.stride[2] + j * t.stride[3];
            };
            const bool seen =
                (mod->seen.data == nullptr ||
                 ((const uint8_t *)mod->seen.data)[place(mod->seen)] != 0) &&
                (mod->tiles == nullptr ||
                 mod->tiles[(bh * ((rows + 127) / 128) + i / 128) * tiles + j / 128] != 0);
            const uint32_t bits =
                from->bias != nullptr
                    ? (uint32_t)((const uint16_t *)from->bias->data)[place(*from->bias)] << 16
                    : 0;
            float value;
            memcpy(&value, &bits, sizeof value);
            values.push_back(seen ? value : -INFINITY);
        }
        bias.data = values.data();
        bias.type = FREF_F32;
        bias.stride[0] = heads * rows * keys;
        bias.stride[1] = rows * keys;
        bias.stride[2] = keys;
        bias.stride[3] = 1;
        problem.bias = &bias;
    }
};

extern "C" int fref_gpu_create(fref_gpu **out, char *)
{
    static int here;
    *out = (fref_gpu *)&here;
    return 0;
}

extern "C" void fref_gpu_destroy(fref_gpu *)
{
}

/* 0, or what the oracle answers: of memory, or as its own refusal of modifications. */
extern "C" int emulated_oracle_fails;
int emulated_oracle_fails;

static int refusal(const fref_gpu_mod *mod, char *error)
{
    const int status = emulated_oracle_fails        ? emulated_oracle_fails
                       : mod->kind != FREF_MOD_NONE ? ENOTSUP
                                                    : 0;
    if (status)
        snprintf(error, 256, "emulated: %s", status == ENOTSUP ? "no modifications" : "no memory");
    return status;
}

extern "C" int fref_gpu_forward(fref_gpu *, const fref_problem *problem, const fref_gpu_mod *mod,
                                const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                                const fref_rounding *rounding, const fref_forward_out *out,
                                struct CUstream_st *, char *error)
{
    const emulated_in_reach now;
    const masked whole(problem, mod);
    const int status = refusal(mod, error);
    return status ? status : fref_forward(&whole.problem, q, k, v, rounding, out);
}

/* It says at once what it would owe. */
extern "C" void fref_gpu_run_ahead(fref_gpu *, bool)
{
}

extern "C" uint64_t fref_gpu_scores(const fref_gpu *)
{
    return 0;
}

/* How often its scratch memory was requested back. */
extern "C" int emulated_oracle_trims;
int emulated_oracle_trims;

extern "C" bool fref_gpu_trim(fref_gpu *)
{
    return emulated_oracle_trims++ == 0;
}

extern "C" int fref_gpu_backward(fref_gpu *, const fref_problem *problem, const fref_gpu_mod *mod,
                                 const fref_tensor *q, const fref_tensor *k, const fref_tensor *v,
                                 const fref_tensor *o, const fref_tensor *stats,
                                 const fref_tensor *d_o, const fref_rounding *rounding,
                                 const fref_backward_out *out, uint64_t, struct CUstream_st *,
                                 char *error)
{
    const emulated_in_reach now;
    const masked whole(problem, mod);
    const int status = refusal(mod, error);
    return status ? status : fref_backward(&whole.problem, q, k, v, o, stats, d_o, rounding, out);
}
