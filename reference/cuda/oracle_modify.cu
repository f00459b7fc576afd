/* What becomes of the scaled logits before the softmax sees them: a modification in closed form,
 * then the bias, masks and alibi; beside each score what src/score.h calls extra and pull, and with
 * `sloped` the slope and its errors.
 */
#include "weigh.cuh"

namespace fref
{

struct modified {
    double value, slope, curvature, rounded, approximated, slope_rounded, slope_approximated;
};

/* A bound that masks nothing may be infinite. */
__device__ __forceinline__ int64_t count_of(double parameter)
{
    return parameter < 16777216.0 ? (int64_t)parameter : 16777216;
}

__device__ __forceinline__ void choose(modified *m, bool visible)
{
    if (!visible) {
        m->value = -infinity();
        m->slope = 0.0;
    }
}

/* s + added: one operation, and `before` more magnitudes rounded on the way to `added`. */
__device__ __forceinline__ void add(modified *m, double added, double before)
{
    m->value += added;
    m->rounded = fabs(m->value) + before;
}

/* a t, t = tanh(s / a). */
__device__ __forceinline__ void cap_softly(modified *m, double s, double cap)
{
    const double t = tanh(s / cap);
    m->slope = 1.0 - t * t;
    m->value = cap * t;
    m->curvature = -2.0 * t * m->slope / cap;
    m->rounded = fabs(m->slope * s) + 3.0 * fabs(m->value);
    m->approximated = fabs(m->value);
    m->slope_rounded = 2.0 * fabs(t * m->slope * s / cap) + 5.0 * t * t + 1.0;
    m->slope_approximated = 2.0 * t * t;
}

__device__ __forceinline__ modified modify(const fref_gpu_mod &mod, double s, int64_t b, int64_t h,
                                           int64_t i, int64_t j)
{
    const double *parameter = mod.parameter;
    modified m = { s, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0 };
    double added;
    switch (mod.kind) {
    case FREF_MOD_CAUSAL:
        choose(&m, j <= i);
        break;
    case FREF_MOD_WINDOW:
        choose(&m, j <= i + count_of(parameter[1]) && j > i - count_of(parameter[0]));
        break;
    case FREF_MOD_PREFIX_LM:
        choose(&m, j <= i || j < count_of(parameter[0]));
        break;
    case FREF_MOD_DOCUMENT:
        choose(&m, element(mod.a, b, 0, i, 0) == element(mod.b, b, 0, 0, j));
        break;
    case FREF_MOD_SOFTCAP:
        cap_softly(&m, s, parameter[0]);
        break;
    case FREF_MOD_TEMPERATURE:
        m.value = s / parameter[0];
        m.slope = 1.0 / parameter[0];
        m.rounded = 2.0 * fabs(m.value);
        m.slope_rounded = 2.0 / fabs(parameter[0]);
        break;
    case FREF_MOD_POST_SCALE_BIAS:
        add(&m, element(mod.a, b, h, i, j), 0.0);
        break;
    case FREF_MOD_RELPOS:
        added = element(mod.a, 0, h, 0, 0) * (double)(j - i);
        add(&m, added, fabs(added));
        break;
    default:
        break;
    }
    return m;
}

/* Neither mask hides key j from row i. */
__device__ __forceinline__ bool is_seen(const fref__call &c, int64_t b, int64_t h, int64_t i,
                                        int64_t j)
{
    const fref_tensor &seen = c.mod.seen;
    if (seen.data != nullptr &&
        ((const uint8_t *)seen.data)[place(seen, b, h, i) + j * seen.stride[3]] == 0)
        return false;
    const int64_t rows = (c.problem.rows + 127) / 128, keys = (c.problem.keys + 127) / 128;
    return c.mod.tiles == nullptr ||
           c.mod.tiles[((b * c.problem.heads_q + h) * rows + i / 128) * keys + j / 128] != 0;
}

} // namespace fref

using namespace fref;

/* A block for each row of the chunk. */
extern "C" __global__ void fref_modify(const __grid_constant__ fref__call c)
{
    const int64_t head = blockIdx.x / (uint32_t)c.chunk_rows,
                  chunk_row = blockIdx.x % (uint32_t)c.chunk_rows, i = c.row0 + chunk_row;
    const batch_head of = batch_head_of(c.head0 + head, c.problem.heads_q);
    const int64_t b = of.b, h = of.h;
    const fref__span range = c.range[head * c.rows_padded + i];
    if (range.first >= range.last)
        return;
    const int64_t row = (head * c.chunk_rows + chunk_row) * c.keys_padded;
    const double eps_mod = c.rounding.eps_mod;
    for (int64_t j = range.first + threadIdx.x; j < range.last; j += blockDim.x) {
        const int64_t at = row + j;
        const double s = c.x[at];
        const modified m = modify(c.mod, s, b, h, i, j);
        double x = m.value, extra = c.mod.kind != FREF_MOD_NONE ? fabs(m.slope * s) + m.rounded +
                                                                      eps_mod / E32 * m.approximated
                                                                : 0.0;
        if (c.bias.data != nullptr || c.masked) {
            x += c.bias.data != nullptr ? element(c.bias, b, h, i, j) : 0.0;
            x = is_seen(c, b, h, i, j) ? x : -infinity();
            extra += x != -infinity() ? fabs(x) : 0.0;
        }
        if (c.problem.alibi != nullptr) {
            const double added = c.problem.alibi[h] * (double)(j - i);
            x += added;
            extra += x != -infinity() ? fabs(added) + fabs(x) : 0.0;
        }
        if (!(x < infinity()))
            *c.trouble = 1;
        c.x[at] = x;
        c.extra[at] = extra;
        c.pull[at] = fabs(m.slope * s);
        if (c.sloped) {
            c.slope[at] = m.slope;
            c.curvature[at] = m.curvature;
            c.slope_extra[at] = m.slope_rounded + eps_mod / E32 * m.slope_approximated;
        }
    }
}
