#include "builders.h"

#include "cudnn/unified/graph_unified.h"
#include "problem/layout.h"

#define HAS(symbol) FATTN__HAS(symbol)
#define COMPOSITE_BOTH                                                                             \
    (HAS(RAGGED) | HAS(TOTALS) | HAS(LEN_RANK) | HAS(BOOL_MASK) | HAS(ALIBI) | HAS(SINK) |         \
     HAS(DROPOUT) | HAS(DROPOUT_MASK) | HAS(RNG_DUMP) | HAS(STATS_DTYPE) | HAS(SCALE_IN_MEMORY) |  \
     HAS(FP8))
/* The second quantisations of a backward have no packed layout. */
#define MX_BOTH ((COMPOSITE_BOTH & ~(HAS(RAGGED) | HAS(TOTALS))) | HAS(MXFP8))
/* A feature that one unified operation cannot express is refused by its builder. */
#define UNIFIED_BOTH                                                                               \
    (HAS(UNIFIED) | HAS(RAGGED) | HAS(RAGGED_TOKENS) | HAS(TOTALS) | HAS(CUMULATIVE) |             \
     HAS(LEN_RANK) | HAS(BOOL_MASK) | HAS(ALIBI) | HAS(SINK) | HAS(DROPOUT) | HAS(DROPOUT_MASK) |  \
     HAS(RNG_DUMP) | HAS(STATS_DTYPE) | HAS(SCALE_IN_MEMORY) | HAS(BLOCK_MASK) | HAS(UNFUSE_FMA) | \
     HAS(ROPE) | HAS(FP8))

/* Only this list says which features each builder supports (FATTN__HAS bits). A row without a
 * function is not implemented and supports nothing. */
static const fattn__builder composite[] = {
    [FATTN_FORWARD] = { "composite forward",
                        COMPOSITE_BOTH | HAS(PAGED) | HAS(PACKED_TABLE) | HAS(STATS_LOG2),
                        fattn__build_forward },
    [FATTN_BACKWARD] = { "composite backward", COMPOSITE_BOTH, fattn__build_backward },
};
static const fattn__builder unified[] = {
    [FATTN_FORWARD] = { "unified forward",
                        UNIFIED_BOTH | HAS(MXFP8) | HAS(PAGED) | HAS(PACKED_TABLE) |
                            HAS(STATS_LOG2),
                        fattn__build_unified_forward },
    [FATTN_BACKWARD] = { "unified backward", UNIFIED_BOTH, fattn__build_unified_backward },
};
static const fattn__builder fp8[] = {
    [FATTN_FORWARD] = { "fp8 forward",
                        COMPOSITE_BOTH | HAS(PAGED) | HAS(PACKED_TABLE) | HAS(STATS_LOG2),
                        fattn__build_fp8_forward },
    [FATTN_BACKWARD] = { "fp8 backward", COMPOSITE_BOTH, fattn__build_fp8_backward },
};
static const fattn__builder mx[] = {
    [FATTN_FORWARD] = { "mxfp8 forward", MX_BOTH | HAS(RAGGED) | HAS(TOTALS) | HAS(STATS_LOG2),
                        fattn__build_mx_forward },
    [FATTN_BACKWARD] = { "mxfp8 backward", MX_BOTH, fattn__build_mx_backward },
};

static const fattn__builder *fattn__builder_of(const fattn_problem *p)
{
    if (fattn__is_unified(p))
        return &unified[p->pass];
    if (fattn__dtype_is_fp8(p->dtype))
        return &fp8[p->pass];
    if (fattn__dtype_is_mx(p->dtype))
        return &mx[p->pass];
    return &composite[p->pass];
}

fattn_status fattn__build(fattn__graph *g, const fattn_problem *p)
{
    const fattn__builder *builder = fattn__builder_of(p);
    if (p->impl == FATTN_IMPL_COMPOSITE && fattn__unified_alone(p) != NULL)
        return fattn__graph_refuse(
            g, FATTN_UNSUPPORTED,
            "%s: a composite graph cannot express it; want impl unified or auto",
            fattn__unified_alone(p));
    const char *missing = fattn__features_missing(p, builder->features);
    if (missing != NULL)
        return fattn__graph_refuse(g, FATTN_INTERNAL, "not implemented: %s (%s)", missing,
                                   builder->name);
    if (builder->build == NULL)
        return fattn__graph_refuse(g, FATTN_INTERNAL, "not implemented: %s", builder->name);
    return builder->build(g, p);
}
