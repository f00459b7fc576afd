#include "feature_set.h"

/* Has one of its tensors this type? */
static bool has_type(const fattn_problem *p, int32_t dtype)
{
    return p->dtype == dtype || p->o_dtype == dtype ||
           (p->pass == FATTN_BACKWARD && (p->grad_dtype == dtype || p->do_dtype == dtype)) ||
           p->bias_dtype == dtype;
}

const char *fattn__features_missing(const fattn_problem *p, uint64_t features)
{
    static const char *const clauses[] = {
#define AS_CLAUSE(symbol, clause, when) clause,
        FATTN__FEATURE_LIST(AS_CLAUSE)
#undef AS_CLAUSE
    };
    const bool asked[] = {
#define AS_ASKED(symbol, clause, when) (when),
        FATTN__FEATURE_LIST(AS_ASKED)
#undef AS_ASKED
    };
    for (int i = 0; i < FATTN__FEATURE_COUNT; i++)
        if (asked[i] && (features >> i & 1) == 0)
            return clauses[i];
    return NULL;
}

const char *fattn__unified_alone(const fattn_problem *p)
{
    if (p->cumulative != 0)
        return "cumulative: prefix sums of lengths";
    if (p->ragged_tokens)
        return "ragged_tokens: offsets in tokens";
    if (p->block_mask)
        return "block_mask";
    if (p->rope)
        return "rope";
    return p->unfuse_fma ? "unfuse_fma" : NULL;
}

bool fattn__is_unified(const fattn_problem *p)
{
    return p->impl == FATTN_IMPL_UNIFIED ||
           (p->impl == FATTN_IMPL_AUTO && fattn__unified_alone(p) != NULL);
}
