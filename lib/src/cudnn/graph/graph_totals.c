/* Declared totals: with ragged tensors the workspace of a backward holds the declared tokens, not
 * batch times the longest entry. */
#include <string.h>

#include "cudnn_graph.h"

enum { UNKNOWN_ON_AMPERE_FROM = 91801 };

/* May the total be declared? Not for head dims that are no multiple of 16, or on sm_8x and sm_12x
 * from 9.18.1: the gradients are then known to be wrong, or were never tested. Without it only the
 * workspace is larger. With the guards off it is always declared.
 */
static bool is_declarable(const fattn__chain *c)
{
    const fattn_problem *p = c->problem;
    const int major = c->g->sm / 10;
    const bool ampere = major == 8 || major == 12;
    return p->guards_off || (p->dim_qk % 16 == 0 && p->dim_v % 16 == 0 &&
                             !(ampere && fattn__graph_version(c->g) >= UNKNOWN_ON_AMPERE_FROM));
}

/* Offsets of the tensor serve for a group of heads too: the engines take the ratio of the strides
 * of s. */
fattn__desc fattn__chain_packed_scratch(const fattn__chain *c, fattn__role like, int type,
                                        int64_t heads)
{
    fattn__shape shape = fattn__problem_shape(c->problem, like);
    fattn__traits traits = fattn__chain_traits(c, like);
    const int64_t group = heads / shape.dim[1];
    traits.total = like == FATTN__ROLE_DK || like == FATTN__ROLE_DV ? c->problem->total_kv
                                                                    : c->problem->total_q;
    if (traits.offsets == NULL || traits.total == 0 || !is_declarable(c))
        return NULL;
    shape.dim[1] = heads;
    shape.strides[0] *= group;
    shape.strides[2] *= group;
    return fattn__scratch_with(c->g, type, shape.dim, shape.strides, &traits);
}
