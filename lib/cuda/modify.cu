/* A score_mod's program, interpreted: a warp has a row of a tile, a lane four neighbouring keys, and every node is evaluated for the four. */
#include "score.cuh"

namespace fattn {

/* fattn_mod_op and the kinds of program.h, by number; the host asserts that they agree. */
enum operation {
    NEG = 1, ABS, EXP, LOG, TANH, SIGMOID, ERF, SIN, COS, TAN, SQRT, RSQRT, RECIPROCAL, RELU, SOFTPLUS, CEIL, FLOOR,
    ADD, SUB, MUL, DIV, MAX, MIN, POW, MOD, EQ, NE, LT, LE, GT, GE, AND, OR, NOT, SELECT,
    SCORE = 64, GRADIENT, INDEX, CONSTANT, TENSOR
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

struct evaluation {
    const fattn__program *program;
    const fattn__program_tensors *tensors;
    const float *score, *gradient; /* four each; gradient may be missing */
};

/* Node by node; what is out of the row's sight is evaluated too, from numbers that mean nothing, and thrown away by the caller. Tensors are
 * read only where the row sees. */
__device__ __noinline__ void evaluate(const fattn__call &c, const seat &t, const evaluation &e, float out[4])
{
    float4 value[FATTN__PROGRAM_NODES];
    const int row = c.row0 + t.row, key = c.key0 + t.key;
    const range k = t.seen.keys(row);
    for (int i = 0; i < e.program->count; i++) {
        const fattn__node node = e.program->node[i];
        float x[4] = { 0, 0, 0, 0 };
        if (node.op == TENSOR) {
            const fattn__matrix &m = e.tensors->at[node.a];
            const char *at = row_at(m, t.at.batch, t.at.head, row);
            for (int j = 0; j < 4; j++)
                if (key + j >= k.begin && key + j < k.end)
                    x[j] = load(at, m.dtype, (key + j) * m.stride[3]);
        } else if (node.op == SCORE || node.op == GRADIENT) {
            const float *from = node.op == SCORE ? e.score : e.gradient;
            for (int j = 0; j < 4; j++)
                x[j] = from[j];
        } else if (node.op == INDEX) {
            for (int j = 0; j < 4; j++)
                x[j] = (float)(node.a == 0 ? t.at.batch : node.a == 1 ? t.at.head : node.a == 2 ? row : key + j);
        } else if (node.op == CONSTANT) {
            for (int j = 0; j < 4; j++)
                x[j] = node.constant;
        } else {
            const float4 a4 = value[node.a], b4 = value[node.b];
            const float a[4] = { a4.x, a4.y, a4.z, a4.w }, b[4] = { b4.x, b4.y, b4.z, b4.w };
            if (node.op == SELECT) {
                const float4 c4 = value[node.c];
                const float other[4] = { c4.x, c4.y, c4.z, c4.w };
                for (int j = 0; j < 4; j++)
                    x[j] = a[j] != 0.0f ? b[j] : other[j];
            } else if (node.op >= ADD && node.op <= OR) {
#pragma unroll 1
                for (int j = 0; j < 4; j++)
                    x[j] = binary(node.op, a[j], b[j]);
            } else {
#pragma unroll 1
                for (int j = 0; j < 4; j++)
                    x[j] = unary(node.op, a[j]);
            }
        }
        value[i] = make_float4(x[0], x[1], x[2], x[3]);
    }
    const float4 r = value[e.program->result];
    out[0] = r.x, out[1] = r.y, out[2] = r.z, out[3] = r.w;
}

/* Calls body(seat) for each four of a block's tile. */
template <class Body> __device__ __forceinline__ void each_four(const tile &t, Body body)
{
#pragma unroll 1
    for (int i = (int)threadIdx.x; i < FATTN__TILE * 32; i += THREADS) {
        const seat at = { t.at, t.seen, t.row + i / 32, t.key + i % 32 * 4 };
        body(at);
    }
}

/* Forward: the scaled scores become final ones, with their statistics. */
__device__ __forceinline__ void modify(const fattn__call &c, const fattn__program &program, const fattn__program_tensors &tensors)
{
    tile t;
    if (!tile_of(c, &t))
        return;
    each_four(t, [&](const seat &at) {
        float score[4], four[4];
        read_four(score, c.s + score_at(c, at));
        evaluate(c, at, { &program, &tensors, score, nullptr }, four);
        settle(c, at, four);
        keep_statistics(c, at, four);
        write_four(c.s + score_at(c, at), four);
    });
}

/* Backward, first: probabilities, and dp becomes the gradient of the final scores, which is the bias's too. */
__device__ __forceinline__ void modify_weights(const fattn__call &c, const fattn__program &program, const fattn__program_tensors &tensors)
{
    tile t;
    if (!tile_of(c, &t)) {
        zero_tile(c, t, c.dp);
        return;
    }
    each_four(t, [&](const seat &at) {
        float score[4], four[4], dp[4];
        read_four(score, c.s + score_at(c, at));
        read_four(dp, c.dp + score_at(c, at));
        evaluate(c, at, { &program, &tensors, score, nullptr }, four);
        settle(c, at, four);
        differentiate(c, at, four, dp);
        write_four(c.dp + score_at(c, at), dp);
    });
}

/* Backward, then: the gradient of the scaled scores or, with `extra`, that of a tensor of the user's. What has no weight has no gradient. */
__device__ __forceinline__ void modify_gradients(const fattn__call &c, const fattn__program &program, const fattn__program_tensors &tensors)
{
    tile t;
    if (!tile_of(c, &t)) {
        if (c.extra != nullptr)
            zero_tile(c, t, c.extra);
        return;
    }
    each_four(t, [&](const seat &at) {
        float score[4], dp[4], four[4];
        read_four(score, c.s + score_at(c, at));
        read_four(dp, c.dp + score_at(c, at));
        evaluate(c, at, { &program, &tensors, score, dp }, four);
        for (int j = 0; j < 4; j++)
            four[j] = dp[j] == 0.0f ? 0.0f : four[j];
        if (c.extra != nullptr)
            write_four(c.extra + score_at(c, at), four);
        else
            store4(c.ds, c.weight_dtype, score_at(c, at), four, 4, true);
    });
}

}

#define DEFINE(name)                                                                                                               \
    extern "C" __global__ void __launch_bounds__(256)                                                                              \
        fattn_##name(const __grid_constant__ fattn__call c, const __grid_constant__ fattn__program program,                        \
                     const __grid_constant__ fattn__program_tensors tensors)                                                       \
    {                                                                                                                              \
        fattn::name(c, program, tensors);                                                                                          \
    }
DEFINE(modify)
DEFINE(modify_weights)
DEFINE(modify_gradients)
#undef DEFINE
