#include "graph_rope.h"

#include "cudnn/backend/backend_parts.h"
#include "problem/layout.h"

/* Attributes of the operation and of its gradient, which differ by number alone. */
typedef struct rotation {
    int type, x, y, angles, scale, dim;
    const char *what;
} rotation;

static const rotation forward = { DNN_BACKEND_OPERATION_ROPE_FWD_DESCRIPTOR,
                                  DNN_ATTR_OPERATION_ROPE_FWD_XDESC,
                                  DNN_ATTR_OPERATION_ROPE_FWD_YDESC,
                                  DNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC,
                                  DNN_ATTR_OPERATION_ROPE_FWD_OUTPUT_SCALE,
                                  DNN_ATTR_OPERATION_ROPE_FWD_ROPE_DIM,
                                  "rotary embedding" };
static const rotation backward = {
    DNN_BACKEND_OPERATION_ROPE_BWD_DESCRIPTOR, DNN_ATTR_OPERATION_ROPE_BWD_DYDESC,
    DNN_ATTR_OPERATION_ROPE_BWD_DXDESC,        DNN_ATTR_OPERATION_ROPE_BWD_FREQSDESC,
    DNN_ATTR_OPERATION_ROPE_BWD_OUTPUT_SCALE,  DNN_ATTR_OPERATION_ROPE_BWD_ROPE_DIM,
    "gradient of the rotary embedding"
};

fattn_status fattn__rope_check(fattn__graph *g, const fattn_problem *p)
{
    const uint32_t rotated = FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_DQ | FATTN_RAGGED_DK;
    if (!p->rope)
        return FATTN_OK;
    if (p->ragged_bits != 0 && (p->ragged & rotated) != 0)
        return fattn__graph_refuse(
            g, FATTN_UNSUPPORTED,
            "rope: a row of a ragged tensor is not a position; Q and K must not be ragged");
    if (p->page_size_k != 0)
        return fattn__graph_refuse(g, FATTN_UNSUPPORTED,
                                   "rope: a row of a page is not a position; page only V, or "
                                   "rotate K before you store it");
    return FATTN_OK;
}

static void rotate(const fattn__chain *c, const rotation *r, fattn__desc x, fattn__desc y,
                   fattn__role input)
{
    const fattn_problem *p = c->problem;
    const bool q = input == FATTN__ROLE_Q;
    const int64_t rows = q ? p->seq_q : p->seq_kv, lanes = p->rope_dim;
    const float scale = 1.0F;
    const fattn__desc angles =
        fattn__tensor(c->g, q ? FATTN__SLOT_ROPE_Q : FATTN__SLOT_ROPE_K, DNN_DATA_FLOAT,
                      (int64_t[4]){ rows, 1, 1, lanes }, (int64_t[4]){ lanes, lanes, lanes, 1 });
    fattn__desc operation = fattn__part(c->g, r->type, r->what);
    fattn__part_desc(c->g, operation, r->x, x);
    fattn__part_desc(c->g, operation, r->angles, angles);
    fattn__part_desc(c->g, operation, r->y, y);
    fattn__part_set(c->g, operation, r->scale, DNN_TYPE_FLOAT, 1, &scale);
    fattn__part_set(c->g, operation, r->dim, DNN_TYPE_INT64, 1, &lanes);
    fattn__part_append(c->g, operation, r->what);
}

/* Dense, in the order b,s,h,d. */
static fattn__desc room_for(const fattn__chain *c, fattn__role input)
{
    const fattn__shape shape = fattn__problem_shape(c->problem, input);
    int64_t strides[4];
    fattn__dense_strides(shape.dim, "bshd", strides);
    return fattn__scratch(c->g, fattn__data_type(shape.dtype), shape.dim, strides);
}

fattn__desc fattn__rope_rotated(const fattn__chain *c, fattn__role role)
{
    if (!c->problem->rope)
        return fattn__chain_tensor(c, role);
    if (c->problem->pass == FATTN_BACKWARD)
        return room_for(c, role);
    const fattn__desc x = fattn__chain_tensor(c, role);
    const fattn__desc y = room_for(c, role);
    rotate(c, &forward, x, y, role);
    return y;
}

fattn__desc fattn__rope_gradient(const fattn__chain *c, fattn__role gradient, fattn__role input)
{
    return c->problem->rope ? room_for(c, input) : fattn__chain_gradient(c, gradient, input);
}

void fattn__rope_back(const fattn__chain *c, fattn__desc from, fattn__role gradient,
                      fattn__role input)
{
    if (!c->problem->rope)
        return;
    const fattn__desc to = fattn__chain_gradient(c, gradient, input);
    rotate(c, &backward, from, to, input);
}
