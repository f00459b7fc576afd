#include "builders.h"

#define HAS(symbol) FATTN__HAS(symbol)

/* The one place where a builder says what it spells (FATTN__HAS bits). A row without a function is not there yet: it spells nothing. */
static const fattn__builder composite[] = {
    [FATTN_FORWARD] = { "composite forward", 0, fattn__build_forward },
    [FATTN_BACKWARD] = { "composite backward", 0, fattn__build_backward },
};
static const fattn__builder unified[] = {
    [FATTN_FORWARD] = { "unified forward", 0, NULL },
    [FATTN_BACKWARD] = { "unified backward", 0, NULL },
};
static const fattn__builder fp8[] = {
    [FATTN_FORWARD] = { "fp8 forward", HAS(FP8), fattn__build_fp8_forward },
    [FATTN_BACKWARD] = { "fp8 backward", HAS(FP8), fattn__build_fp8_backward },
};
static const fattn__builder mx[] = {
    [FATTN_FORWARD] = { "mxfp8 forward", HAS(MXFP8) | HAS(FP8), fattn__build_mx_forward },
    [FATTN_BACKWARD] = { "mxfp8 backward", HAS(MXFP8) | HAS(FP8), fattn__build_mx_backward },
};

/* What the unified operation alone can say; NULL: nothing of it is asked for. */
static const char *unified_alone(const fattn_problem *p)
{
    if (p->cumulative != 0)
        return "cumulative lengths";
    if (p->ragged_tokens)
        return "ragged_tokens: offsets in tokens";
    if (p->block_mask)
        return "block_mask";
    return p->unfuse_fma ? "unfuse_fma" : NULL;
}

const fattn__builder *fattn__builder_of(const fattn_problem *p)
{
    if (p->impl == FATTN_IMPL_UNIFIED || (p->impl == FATTN_IMPL_AUTO && unified_alone(p) != NULL))
        return &unified[p->pass];
    if (p->dtype == FATTN_E4M3 || p->dtype == FATTN_E5M2)
        return &fp8[p->pass];
    if (p->dtype == FATTN_MXE4M3 || p->dtype == FATTN_MXE5M2)
        return &mx[p->pass];
    return &composite[p->pass];
}

fattn_status fattn__build(fattn__graph *g, const fattn_problem *p)
{
    const fattn__builder *builder = fattn__builder_of(p);
    const char *alone = unified_alone(p);
    if (p->impl == FATTN_IMPL_COMPOSITE && alone != NULL)
        return fattn__graph_refuse(g, FATTN_UNSUPPORTED, "%s: the composite graph has no words for it; want impl unified", alone);
    const char *missing = fattn__features_missing(p, builder->features);
    if (missing != NULL)
        return fattn__graph_refuse(g, FATTN_INTERNAL, "not implemented: %s (%s)", missing, builder->name);
    if (builder->build == NULL)
        return fattn__graph_refuse(g, FATTN_INTERNAL, "not implemented: %s", builder->name);
    return builder->build(g, p);
}
