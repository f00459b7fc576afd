/* Modifies scores after the product: interprets the program of a score_mod, then applies the
 * adjustments of math_adjustments.cuh. A warp has a row of a tile, a lane four neighbouring keys,
 * one after the other. Values are in shared memory, so that no kernel needs a stack. */
#include "math_adjustments.cuh"

namespace fattn
{

/* fattn_mod_op and the kinds of program.h, by number; the host asserts that they agree. */
enum operation {
    NEG = 1,
    ABS,
    EXP,
    LOG,
    TANH,
    SIGMOID,
    ERF,
    SIN,
    COS,
    TAN,
    SQRT,
    RSQRT,
    RECIPROCAL,
    RELU,
    SOFTPLUS,
    CEIL,
    FLOOR,
    ADD,
    SUB,
    MUL,
    DIV,
    MAX,
    MIN,
    POW,
    MOD,
    EQ,
    NE,
    LT,
    LE,
    GT,
    GE,
    AND,
    OR,
    NOT,
    SELECT,
    SCORE = 64,
    GRADIENT,
    INDEX,
    CONSTANT,
    TENSOR
};

__device__ __forceinline__ float unary(int op, float x)
{
    switch (op) {
    case NEG:
        return -x;
    case ABS:
        return fabsf(x);
    case EXP:
        return expf(x);
    case LOG:
        return logf(x);
    case TANH:
        return tanhf(x);
    case SIGMOID:
        return 1.0f / (1.0f + expf(-x));
    case ERF:
        return erff(x);
    case SIN:
        return sinf(x);
    case COS:
        return cosf(x);
    case TAN:
        return tanf(x);
    case SQRT:
        return sqrtf(x);
    case RSQRT:
        return 1.0f / sqrtf(x);
    case RECIPROCAL:
        return 1.0f / x;
    case RELU:
        return x > 0.0f ? x : 0.0f;
    case SOFTPLUS:
        return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
    case CEIL:
        return ceilf(x);
    case FLOOR:
        return floorf(x);
    default: /* NOT */
        return x == 0.0f ? 1.0f : 0.0f;
    }
}

__device__ __forceinline__ float binary(int op, float x, float y)
{
    switch (op) {
    case ADD:
        return x + y;
    case SUB:
        return x - y;
    case MUL:
    case AND:
        return x * y;
    case DIV:
        return x / y;
    case MAX:
        return x > y || y != y ? x : y;
    case MIN:
        return x < y || y != y ? x : y;
    case POW:
        return powf(x, y);
    case MOD:
        return fmodf(x, y);
    case EQ:
        return x == y;
    case NE:
        return x != y;
    case LT:
        return x < y;
    case LE:
        return x <= y;
    case GT:
        return x > y;
    case GE:
        return x >= y;
    default: /* OR */
        return x > y ? x : y;
    }
}

typedef float values[FATTN__PROGRAM_SLOTS][FATTN__PROGRAM_THREADS];

struct programs {
    const fattn__program &program;
    const fattn__program_tensors &tensors;
    values &value;
};

/* Node by node, for the seat's j-th key. Masked keys are evaluated too, with arbitrary numbers, and
 * the caller drops the result; tensors are read only where the row is not masked. */
__device__ __noinline__ float evaluate(const fattn__call &c, const programs &p, const seat &t,
                                       int j, float score, float gradient)
{
    float *value = &p.value[0][threadIdx.x];
    const int row = c.row0 + t.row, key = c.key0 + t.key + j;
    const bool visible = key >= t.seen.begin && key < t.seen.end;
    for (int i = 0; i < p.program.count; i++) {
        const fattn__node node = p.program.node[i];
        float x = 0;
        if (node.op == TENSOR) {
            const fattn__matrix &m = p.tensors.at[node.a];
            if (visible)
                x = load(row_at(m, t.at.batch * m.stride[0], t.at.head, row), m.dtype,
                         key * m.stride[3]);
        } else if (node.op == SCORE) {
            x = score;
        } else if (node.op == GRADIENT) {
            x = gradient;
        } else if (node.op == INDEX) {
            x = (float)(node.a == 0   ? t.at.batch
                        : node.a == 1 ? t.at.head
                        : node.a == 2 ? row
                                      : key);
        } else if (node.op == CONSTANT) {
            x = node.more.constant;
        } else {
            const float a = value[node.a * FATTN__PROGRAM_THREADS];
            if (node.op == SELECT)
                x = value[(a != 0.0f ? node.b : node.more.c) * FATTN__PROGRAM_THREADS];
            else if (node.op >= ADD && node.op <= OR)
                x = binary(node.op, a, value[node.b * FATTN__PROGRAM_THREADS]);
            else
                x = unary(node.op, a);
        }
        value[node.out * FATTN__PROGRAM_THREADS] = x;
    }
    return value[p.program.result * FATTN__PROGRAM_THREADS];
}

/* Calls body(seat) for each four of a block's tile. */
template <class Body>
__device__ __forceinline__ void each_four(const fattn__call &c, const tile &t, Body body)
{
#pragma unroll 1
    for (int k = 0; k < FATTN__TILE * 32 / FATTN__PROGRAM_THREADS; k++) {
        const int i = (int)threadIdx.x + k * FATTN__PROGRAM_THREADS;
        body(seat_of(c, t, i / 32, i % 32 * 4));
    }
}

/* The scaled scores of a seat, as the products left them. */
__device__ __forceinline__ void read_scores(const fattn__call &c, const seat &at, float scale,
                                            float score[4])
{
    read_four(score, c.s + at.slot);
#pragma unroll
    for (int j = 0; j < 4; j++)
        score[j] *= scale;
}

/* Writes the final scores of a seat, before the softmax. */
__device__ __forceinline__ void final_scores(const fattn__call &c, const programs &p, const tile &t,
                                             const seat &at, float scale, float four[4])
{
    read_scores(c, at, scale, four);
    if (p.program.count > 0)
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] = evaluate(c, p, at, j, four[j], 0);
    settle(c, at, four);
    shade(c, t, at, four);
}

/* Forward: the scaled scores become final ones, with their statistics; what is dropped is then
 * hidden from the values alone. */
__device__ __forceinline__ void modify(const fattn__call &c, const programs &p)
{
    tile t;
    if (!tile_of(c, &t))
        return;
    const dropping drops = dropping_of(c.adjustments);
    const float scale = factor_of(1.0f, c.scale);
    each_four(c, t, [&](const seat &at) {
        float four[4];
        final_scores(c, p, t, at, scale, four);
        keep_statistics(c, at, four);
        if (drops.any) {
            const unsigned kept = kept_of(c, drops, at);
#pragma unroll
            for (int j = 0; j < 4; j++)
                four[j] = (kept >> j & 1u) != 0 ? four[j] : minus_infinity();
        }
        write_16(c.s + at.slot, four);
    });
}

/* Backward, first: probabilities as they meet the values, and dp becomes the gradient of the final
 * scores, which is the bias's too. Without a program that is the gradient of the scaled ones
 * already. */
__device__ __forceinline__ void modify_weights(const fattn__call &c, const programs &p)
{
    tile t;
    if (!tile_of(c, &t)) {
        zero_tile(c, t, c.dp);
        return;
    }
    const dropping drops = dropping_of(c.adjustments);
    const float scale = factor_of(1.0f, c.scale);
    each_four(c, t, [&](const seat &at) {
        float four[4], dp[4];
        final_scores(c, p, t, at, scale, four);
        read_four(dp, c.dp + at.slot);
        const row_facts facts = facts_of(c, at);
        weigh(facts, four);
        const unsigned kept = drops.any ? kept_of(c, drops, at) : 15u;
#pragma unroll
        for (int j = 0; j < 4; j++)
            dp[j] = (kept >> j & 1u) != 0 ? dp[j] * drops.factor : 0.0f;
        differentiate(facts, four, dp);
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] = (kept >> j & 1u) != 0 ? four[j] * drops.factor : 0.0f;
        store4(c.p, c.weight_dtype, at.slot, four, 4, true);
        write_16(c.dp + at.slot, dp);
        if (p.program.count == 0)
            store4(c.ds, c.weight_dtype, at.slot, dp, 4, true);
    });
}

/* Backward, second: the gradient of the scaled scores or, with `extra`, of a tensor of the user.
 * Keys with weight 0 have gradient 0. */
__device__ __forceinline__ void modify_gradients(const fattn__call &c, const programs &p)
{
    tile t;
    if (!tile_of(c, &t)) {
        if (c.extra != nullptr)
            zero_tile(c, t, c.extra);
        return;
    }
    const float scale = factor_of(1.0f, c.scale);
    each_four(c, t, [&](const seat &at) {
        float score[4], dp[4], four[4];
        read_scores(c, at, scale, score);
        read_four(dp, c.dp + at.slot);
#pragma unroll
        for (int j = 0; j < 4; j++)
            four[j] = dp[j] == 0.0f ? 0.0f : evaluate(c, p, at, j, score[j], dp[j]);
        if (c.extra != nullptr)
            write_16(c.extra + at.slot, four);
        else
            store4(c.ds, c.weight_dtype, at.slot, four, 4, true);
    });
}

} // namespace fattn

#define DEFINE(name)                                                                               \
    extern "C" __global__ void __launch_bounds__(FATTN__PROGRAM_THREADS) fattn_##name(             \
        const __grid_constant__ fattn__call c, const __grid_constant__ fattn__program program,     \
        const __grid_constant__ fattn__program_tensors tensors)                                    \
    {                                                                                              \
        __shared__ fattn::values value;                                                            \
        fattn::name(c, { program, tensors, value });                                               \
    }
DEFINE(modify)
DEFINE(modify_weights)
DEFINE(modify_gradients)
#undef DEFINE
