/* The gradient of a program, by reverse mode.
 *
 * At edges   abs: 1 at 0. relu: 0 at 0. max, min: a tie goes to the first input, as the text has it. select: the gradient goes to the input
 *            that was chosen. ceil, floor, comparisons and logic: 0. mod: as between two jumps. pow: 0 to the exponent where the base is not
 *            above 0.
 * No NaN     a masked key has d(loss)/d(modified score) = 0, and an input that was not chosen has 0 from its select; but 0 times the slope of
 *            log, a quotient, exp … there may be 0 times infinity. So where a slope may be infinite a zero stays a zero by a select, not by
 *            a product. */
#include <math.h>

#include "recording.h"

enum { UNBOUNDED = 120 }; /* fp32 ends at 2^128 */

typedef struct sweep {
    fattn__mod_builder *b;
    int slope[FATTN__MOD_MAX_NODES];   /* position of d(loss)/d(node); -1: no gradient reached it */
    bool routed[FATTN__MOD_MAX_NODES]; /* it may be 0 because a select chose the other input */
    bool active[FATTN__MOD_MAX_NODES]; /* depends on the score or on a tensor */
    int bound[FATTN__MOD_MAX_NODES];   /* see bound_of */
    bool steep;                        /* some slope may be infinite */
} sweep;

static int make(sweep *s, fattn_mod_op op, int x, int y)
{
    return fattn__mod_apply(s->b, op, x, y, 0);
}

static int number(sweep *s, double value)
{
    return fattn__mod_constant(s->b, (float)value);
}

static int zero_where_zero(sweep *s, int slope, int x)
{
    const int zero = number(s, 0);
    return fattn__mod_apply(s->b, FATTN_MOD_SELECT, make(s, FATTN_MOD_NE, slope, zero), x, zero);
}

/* Adds to what reaches `node`. */
static void give(sweep *s, int node, int slope, bool routed)
{
    if (!s->active[node])
        return;
    s->slope[node] = s->slope[node] < 0 ? slope : make(s, FATTN_MOD_ADD, s->slope[node], slope);
    s->routed[node] = s->routed[node] || routed;
}

/* The same if the factor `x` was multiplied with a slope, or divided it, and may have been
 * infinite. */
static void give_steep(sweep *s, int node, int from, int x)
{
    if (!s->active[node])
        return;
    s->steep = true;
    give(s, node, s->routed[from] ? zero_where_zero(s, s->slope[from], x) : x, s->routed[from]);
}

/* The slope multiplied with, or divided by, another input. */
static void give_factor(sweep *s, int node, int from, fattn_mod_op op, int factor, bool safe)
{
    if (!s->active[node])
        return;
    const int x = make(s, op, s->slope[from], factor);
    if (safe)
        give(s, node, x, s->routed[from]);
    else
        give_steep(s, node, from, x);
}

static int square(sweep *s, int x)
{
    return make(s, FATTN_MOD_MUL, x, x);
}

/* The slopes that stay finite wherever the input is. False: not one of these. */
static bool unary_smooth(sweep *s, int at, const fattn__mod_node *n)
{
    const int g = s->slope[at], x = n->a, one = number(s, 1);
    int d;
    switch (n->op) {
    case FATTN_MOD_NEG:
        give(s, x, make(s, FATTN_MOD_NEG, g, 0), s->routed[at]);
        return true;
    case FATTN_MOD_TANH:
        d = make(s, FATTN_MOD_SUB, one, square(s, at));
        break;
    case FATTN_MOD_SIGMOID:
        d = make(s, FATTN_MOD_MUL, at, make(s, FATTN_MOD_SUB, one, at));
        break;
    case FATTN_MOD_ERF:
        d = make(s, FATTN_MOD_EXP, make(s, FATTN_MOD_NEG, square(s, x), 0), 0);
        d = make(s, FATTN_MOD_MUL, d, number(s, 2 / sqrt(M_PI)));
        break;
    case FATTN_MOD_SOFTPLUS:
        d = make(s, FATTN_MOD_SIGMOID, x, 0);
        break;
    default:
        return false;
    }
    give_factor(s, x, at, FATTN_MOD_MUL, d, s->bound[x] < UNBOUNDED);
    return true;
}

static bool unary_steep(sweep *s, int at, const fattn__mod_node *n)
{
    const int g = s->slope[at], x = n->a;
    int d = -1;
    switch (n->op) {
    case FATTN_MOD_EXP:
        d = at;
        break;
    case FATTN_MOD_LOG:
        give_steep(s, x, at, make(s, FATTN_MOD_DIV, g, x));
        return true;
    case FATTN_MOD_SQRT:
        give_steep(s, x, at, make(s, FATTN_MOD_DIV, make(s, FATTN_MOD_MUL, g, number(s, 0.5)), at));
        return true;
    case FATTN_MOD_RSQRT:
        d = make(s, FATTN_MOD_MUL, make(s, FATTN_MOD_MUL, square(s, at), at), number(s, -0.5));
        break;
    case FATTN_MOD_RECIPROCAL:
        d = make(s, FATTN_MOD_NEG, square(s, at), 0);
        break;
    case FATTN_MOD_SIN: /* of an infinity: NaN */
        d = make(s, FATTN_MOD_COS, x, 0);
        break;
    case FATTN_MOD_COS:
        d = make(s, FATTN_MOD_NEG, make(s, FATTN_MOD_SIN, x, 0), 0);
        break;
    case FATTN_MOD_TAN:
        d = make(s, FATTN_MOD_ADD, square(s, at), number(s, 1));
        break;
    default:
        return false;
    }
    give_steep(s, x, at, make(s, FATTN_MOD_MUL, g, d));
    return true;
}

/* `where` chooses between two inputs of which each has a slope of 1 (or of `sign`, for abs). */
static void route(sweep *s, int at, int where, int x, int y)
{
    const int g = s->slope[at], zero = number(s, 0);
    if (x >= 0 && s->active[x])
        give(s, x, fattn__mod_apply(s->b, FATTN_MOD_SELECT, where, g, zero), true);
    if (y >= 0 && s->active[y])
        give(s, y, fattn__mod_apply(s->b, FATTN_MOD_SELECT, where, zero, g), true);
}

static bool piecewise(sweep *s, int at, const fattn__mod_node *n)
{
    const int g = s->slope[at], zero = number(s, 0);
    switch (n->op) {
    case FATTN_MOD_ABS:
        give(s, n->a,
             fattn__mod_apply(s->b, FATTN_MOD_SELECT, make(s, FATTN_MOD_GE, n->a, zero), g,
                              make(s, FATTN_MOD_NEG, g, 0)),
             s->routed[at]);
        return true;
    case FATTN_MOD_RELU:
        route(s, at, make(s, FATTN_MOD_GT, n->a, zero), n->a, -1);
        return true;
    case FATTN_MOD_MAX:
        route(s, at, make(s, FATTN_MOD_GE, n->a, n->b), n->a, n->b);
        return true;
    case FATTN_MOD_MIN:
        route(s, at, make(s, FATTN_MOD_LE, n->a, n->b), n->a, n->b);
        return true;
    case FATTN_MOD_SELECT:
        route(s, at, n->a, n->b, n->c);
        return true;
    case FATTN_MOD_CEIL:
    case FATTN_MOD_FLOOR:
        return true;
    default:
        return fattn__mod_is_condition(n->op);
    }
}

static void power(sweep *s, int at, const fattn__mod_node *n)
{
    const int g = s->slope[at], x = n->a, y = n->b, zero = number(s, 0);
    if (s->active[x]) {
        int d = make(s, FATTN_MOD_POW, x, make(s, FATTN_MOD_SUB, y, number(s, 1)));
        d = make(s, FATTN_MOD_MUL, d, y);
        if (s->b->at[y].op != FATTN__MOD_CONSTANT) /* 0 to the power 0 */
            d = zero_where_zero(s, y, d);
        give_steep(s, x, at, make(s, FATTN_MOD_MUL, g, d));
    }
    if (s->active[y]) {
        const int d = make(s, FATTN_MOD_MUL, at, make(s, FATTN_MOD_LOG, x, 0));
        give_steep(s, y, at,
                   fattn__mod_apply(s->b, FATTN_MOD_SELECT, make(s, FATTN_MOD_GT, x, zero),
                                    make(s, FATTN_MOD_MUL, g, d), zero));
    }
}

static void binary(sweep *s, int at, const fattn__mod_node *n)
{
    const int g = s->slope[at], x = n->a, y = n->b;
    switch (n->op) {
    case FATTN_MOD_ADD:
        give(s, x, g, s->routed[at]);
        give(s, y, g, s->routed[at]);
        break;
    case FATTN_MOD_SUB:
        give(s, x, g, s->routed[at]);
        if (s->active[y])
            give(s, y, make(s, FATTN_MOD_NEG, g, 0), s->routed[at]);
        break;
    case FATTN_MOD_MUL:
        give_factor(s, x, at, FATTN_MOD_MUL, y, s->bound[y] < UNBOUNDED);
        give_factor(s, y, at, FATTN_MOD_MUL, x, s->bound[x] < UNBOUNDED);
        break;
    case FATTN_MOD_DIV:
        give_factor(s, x, at, FATTN_MOD_DIV, y,
                    s->b->at[y].op == FATTN__MOD_CONSTANT && s->b->at[y].constant != 0.0f);
        if (s->active[y])
            give_steep(s, y, at,
                       make(s, FATTN_MOD_NEG,
                            make(s, FATTN_MOD_DIV, make(s, FATTN_MOD_MUL, g, at), y), 0));
        break;
    case FATTN_MOD_MOD: /* x - y * trunc(x / y) */
        give(s, x, g, s->routed[at]);
        if (s->active[y])
            give_steep(s, y, at,
                       make(s, FATTN_MOD_MUL, g,
                            make(s, FATTN_MOD_DIV, make(s, FATTN_MOD_SUB, at, x), y)));
        break;
    default:
        power(s, at, n);
    }
}

/* log2 of an upper bound of the size, and proof that it is no NaN, for scores below 2^40;
 * UNBOUNDED: cannot say. */
static int bound_of(const sweep *s, const fattn__mod_node *n)
{
    const int x = s->bound[n->a], y = s->bound[n->b], z = s->bound[n->c],
              one_more = (x > y ? x : y) + 1;
    switch (n->op) {
    case FATTN__MOD_SCORE:
        return 40;
    case FATTN__MOD_INDEX:
        return 31;
    case FATTN__MOD_CONSTANT:
        return n->constant == 0.0f ? 0 : isinf(n->constant) ? UNBOUNDED : ilogbf(n->constant) + 1;
    case FATTN_MOD_NEG:
    case FATTN_MOD_ABS:
    case FATTN_MOD_RELU:
        return x;
    case FATTN_MOD_CEIL:
    case FATTN_MOD_FLOOR:
    case FATTN_MOD_SOFTPLUS:
        return x >= UNBOUNDED ? UNBOUNDED : (x > 0 ? x : 0) + 1;
    case FATTN_MOD_ADD:
    case FATTN_MOD_SUB:
    case FATTN_MOD_MAX:
    case FATTN_MOD_MIN:
        return one_more;
    case FATTN_MOD_MUL:
        return x + y;
    case FATTN_MOD_DIV:
        return s->b->at[n->b].op == FATTN__MOD_CONSTANT && s->b->at[n->b].constant != 0.0f
                   ? x - y + 1
                   : UNBOUNDED;
    case FATTN_MOD_TANH:
    case FATTN_MOD_SIGMOID:
    case FATTN_MOD_ERF:
        return x >= UNBOUNDED ? UNBOUNDED : 0;
    case FATTN_MOD_SELECT:
        return y > z ? y : z;
    default:
        return fattn__mod_is_condition(n->op) ? 0 : UNBOUNDED;
    }
}

static void find_active(sweep *s, const fattn__mod_program *p)
{
    for (int i = 0; i < p->count; i++) {
        const int inputs = fattn__mod_inputs(p->at[i].op),
                  at[3] = { p->at[i].a, p->at[i].b, p->at[i].c };
        s->slope[i] = -1;
        s->active[i] = p->at[i].op == FATTN__MOD_SCORE || p->at[i].op == FATTN__MOD_TENSOR;
        for (int k = 0; k < inputs; k++)
            s->active[i] = s->active[i] || s->active[at[k]];
        const int bound = bound_of(s, &p->at[i]);
        s->bound[i] = bound < UNBOUNDED ? bound : UNBOUNDED;
    }
}

void fattn__mod_derive(fattn__mod_builder *b, const fattn__mod_program *program,
                       int roots[1 + FATTN_MOD_MAX_TENSORS])
{
    sweep s = { .b = b };
    const int gradient = fattn__mod_leaf(b, FATTN__MOD_GRADIENT, 0);
    find_active(&s, program);
    for (int i = 0; i <= FATTN_MOD_MAX_TENSORS; i++)
        roots[i] = -1;
    s.slope[program->result] = gradient;
    for (int i = program->count - 1; i >= 0 && !b->full; i--) {
        const fattn__mod_node *n = &program->at[i];
        if (s.slope[i] < 0 || !s.active[i] || fattn__mod_inputs(n->op) == 0)
            continue;
        if (!unary_smooth(&s, i, n) && !unary_steep(&s, i, n) && !piecewise(&s, i, n))
            binary(&s, i, n);
    }
    roots[0] = fattn__mod_constant(b, 0);
    for (int i = 0; i < program->count; i++) {
        if (s.slope[i] < 0 || !s.active[i])
            continue;
        if (program->at[i].op == FATTN__MOD_SCORE)
            roots[0] = s.steep ? zero_where_zero(&s, gradient, s.slope[i]) : s.slope[i];
        else if (program->at[i].op == FATTN__MOD_TENSOR)
            roots[1 + program->at[i].a] =
                s.steep ? zero_where_zero(&s, gradient, s.slope[i]) : s.slope[i];
    }
    roots[0] = fattn__mod_as_result(b, roots[0]);
}
