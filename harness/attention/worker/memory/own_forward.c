#include "own_forward.h"

#include <string.h>

#include "problem/huge.h"

bool facts_has_own_forward(const facts_problem *p)
{
    /* A forward of an 8-bit type has a scale and an amax that its backward lacks. The runs of a check read the reference's O and
     * Stats, and checks of bits compare with this one. */
    const bool graph = (p->exec == FACTS_EXEC_GRAPH || p->exec == FACTS_EXEC_GRAPH_UPDATE) &&
                       !facts_is_fp8(p->ask.dtype) && !facts_is_mx(p->ask.dtype) &&
                       p->check == FACTS_CHECK_NONE;
    return p->ask.pass == FATTN_BACKWARD &&
           (graph || facts_is_huge(p) || (p->own_forward && facts_may_do_without_forward(p)));
}

bool facts_may_do_without_forward(const facts_problem *p)
{
    return !facts_is_huge(p) && p->exec == FACTS_EXEC_EAGER;
}

fattn_problem facts_own_forward(const fattn_problem *backward)
{
    fattn_problem forward = *backward;
    int64_t *const unread[] = { forward.do_strides, forward.dq_strides, forward.dk_strides,
                                forward.dv_strides, forward.dbias_strides };
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++)
        memset(unread[i], 0, 4 * sizeof *unread[i]);
    forward.pass = FATTN_FORWARD;
    forward.outputs = FATTN_WANT_STATS;
    forward.grad_dtype = forward.do_dtype = FATTN_DTYPE_DEFAULT;
    forward.deterministic = 0;
    forward.determinism = FATTN_DETERMINISM_AUTO;
    forward.dbias = 0;
    forward.dsink = 0;
    forward.mod_gradients = 0;
    forward.ragged &=
        FATTN_RAGGED_Q | FATTN_RAGGED_K | FATTN_RAGGED_V | FATTN_RAGGED_O | FATTN_RAGGED_STATS;
    if (forward.ragged ==
        0) { /* the gradients alone are ragged; 0 with ragged_bits would mean every tensor */
        forward.ragged_bits = forward.ragged_tokens = 0;
        forward.total_q = forward.total_kv = 0;
    }
    return forward;
}
