#include "resolution.h"

#define AS_WORD(symbol, word) word,
const char *const facts_check_words[FACTS_CHECKS] = { FACTS_CHECK_LIST(AS_WORD) };
#undef AS_WORD

/* Each row's keys weigh the same if all scores are 0. */
static bool keeps_equal_scores(facts_mod mod)
{
    return mod != FACTS_MOD_POST_SCALE_BIAS && mod != FACTS_MOD_RELPOS;
}

/* Writing one element of a broadcast input writes others. */
static bool has_shared_elements(const facts_problem *p)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        for (int d = 0; d < 4; d++)
            if (p->tensor[id].present && p->tensor[id].stride[d] == 0 && p->tensor[id].dim[d] > 1)
                return true;
    return false;
}

/* Something beside the keys decides what a row's keys weigh. */
static bool has_own_weights(const facts_problem *p)
{
    return p->ask.sink || p->ask.alibi;
}

static bool is_packed(const facts_problem *p)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (p->tensor[id].present && p->tensor[id].packed != FACTS_PACKED_NOT)
            return true;
    return false;
}

static bool is_paged(const facts_problem *p)
{
    return p->tensor[FACTS_TENSOR_K].page != 0 || p->tensor[FACTS_TENSOR_V].page != 0;
}

/* A check writes and reads elements by their strides, and their numbers are their codes. */
static bool is_strided(const facts_problem *p)
{
    return !is_packed(p) && !is_paged(p) && !facts_is_fp8(p->ask.dtype) &&
           !facts_is_mx(p->ask.dtype) && !p->high_backward;
}

/* What joins the softmax, that most checks know nothing of. */
static const char *refuses_joined(const facts_problem *p)
{
    const bool boolean = p->ask.has_bias && p->ask.bias_dtype == FATTN_BOOL,
               keep = p->check == FACTS_CHECK_KEEP;
    if (p->drop != 0.0 && !keep)
        return "needs rows of P that sum to 1: no dropout (keep reads what it keeps)";
    if (!keep && (p->ask.block_mask || boolean || has_own_weights(p)))
        return "supports only masks by keys, lengths and windows: no sink, slopes, boolean or tile "
               "masks";
    return p->ask.rope || (p->ask.outputs & FATTN_WANT_STATS_LOG2)
               ? "needs scores that are products of Q and K, and natural stats: no rope, no stats2"
               : NULL;
}

static const char *refuses_keep(const facts_problem *p)
{
    if (p->drop == 0.0)
        return "keep needs dropout: give dropout=P";
    return p->ask.has_bias || has_own_weights(p) || !keeps_equal_scores(p->mod)
               ? "keep needs equal scores: no bias, sink, slopes, and no modification that "
                 "adds to a score"
               : NULL;
}

const char *facts_check_refuses(const facts_problem *p)
{
    if (p->check == FACTS_CHECK_NONE)
        return NULL;
    if (has_shared_elements(p))
        return "needs tensors without shared elements: no stride 0";
    if (!is_strided(p))
        return "needs plain strided tensors: not packed, ragged or paged, and no 8-bit types";
    const char *why = refuses_joined(p);
    if (!why && p->check == FACTS_CHECK_KEEP)
        why = refuses_keep(p);
    const bool noise = p->fill == FACTS_FILL_GAUSS || p->fill == FACTS_FILL_UNIFORM ||
                       p->fill == FACTS_FILL_SPIKY ||
                       (p->fill == FACTS_FILL_UNIP && p->ask.pass == FATTN_FORWARD);
    if (!why && p->check == FACTS_CHECK_IDENTITIES && !noise)
        why = "identities weigh errors that look like noise: fill=gauss, uniform or spiky";
    return why;
}
