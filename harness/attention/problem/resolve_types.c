/* dtype=, out=, grad=, do_dtype=, bwd_dtype=, stats_dtype=, and how 8 bit types are scaled. */
#include <string.h>

#include "resolution.h"

/* A backward of 16 bit types over values that the 8 bit type has. */
static facts_resolve_status resolve_other_backward(facts_resolution *r)
{
    facts_problem *out = r->out;
    fattn_problem *ask = &out->ask;
    if (!facts_key_given(r->c, FACTS_KEY_BWD_DTYPE))
        return FACTS_RESOLVED;
    bool high = facts_key_is(r->c, FACTS_KEY_BWD_DTYPE, "high");
    int32_t wide = high ? FATTN_BF16 : facts_key_dtype(r->c, FACTS_KEY_BWD_DTYPE);
    if (ask->pass != FATTN_BACKWARD)
        return facts_resolve_bad(r, FACTS_KEY_BWD_DTYPE, "a forward has no type of a backward");
    if (wide == ask->dtype)
        return FACTS_RESOLVED;
    if (!facts_is_fp8(ask->dtype) || facts_is_fp8(wide) || facts_is_mx(wide))
        return facts_resolve_bad(
            r, FACTS_KEY_BWD_DTYPE,
            "want dtype=e4m3 or e5m2, and a backward in bf16, f16 or f32 (high: bf16)");
    out->high_backward = true;
    out->narrow = ask->dtype;
    ask->o_dtype = ask->o_dtype == ask->dtype ? wide : ask->o_dtype;
    ask->grad_dtype = ask->grad_dtype == ask->dtype ? wide : ask->grad_dtype;
    ask->dtype = wide;
    return FACTS_RESOLVED;
}

/* What a backward of the type that it has in the end reads as dO. */
static facts_resolve_status resolve_do(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    const bool mx = facts_is_mx(ask->dtype);
    ask->do_dtype = mx ? ask->dtype : ask->o_dtype;
    if (!facts_key_given(r->c, FACTS_KEY_DO_DTYPE))
        return FACTS_RESOLVED;
    ask->do_dtype = facts_key_dtype(r->c, FACTS_KEY_DO_DTYPE);
    if (ask->pass != FATTN_BACKWARD)
        return facts_resolve_bad(r, FACTS_KEY_DO_DTYPE, "a forward has no dO");
    if (!mx && !facts_is_fp8(ask->dtype))
        return facts_resolve_bad(
            r, FACTS_KEY_DO_DTYPE,
            "dO has its own type only with 8-bit types; otherwise out= sets it");
    if (facts_is_mx(ask->do_dtype) != mx)
        return facts_resolve_bad(r, FACTS_KEY_DO_DTYPE,
                                 "dO is block-scaled exactly if Q, K and V are");
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_scales(facts_resolution *r)
{
    static const facts_key of_fp8[] = { FACTS_KEY_SCALES, FACTS_KEY_SCALING };
    fattn_problem *ask = &r->out->ask;
    facts_resolve_status status = FACTS_RESOLVED;
    if (!facts_is_fp8(ask->dtype))
        status = facts_resolve_idle(r, of_fp8, 2, "only e4m3 and e5m2 have scales");
    if (status != FACTS_RESOLVED)
        return status;
    r->out->scales = (facts_scales)facts_key_place(r->c, FACTS_KEY_SCALES);
    if (facts_is_fp8(ask->dtype))
        ask->scaling = facts_key_is(r->c, FACTS_KEY_SCALING, "current") ? FATTN_SCALING_CURRENT
                                                                        : FATTN_SCALING_DELAYED;
    return FACTS_RESOLVED;
}

facts_resolve_status facts_resolve_types(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    ask->dtype = facts_key_dtype(r->c, FACTS_KEY_DTYPE);
    ask->o_dtype = facts_key_dtype(r->c, FACTS_KEY_OUT);
    ask->grad_dtype = facts_key_dtype(r->c, FACTS_KEY_GRAD);
    ask->stats_dtype = facts_key_dtype(r->c, FACTS_KEY_STATS_DTYPE);
    if (facts_is_mx(ask->o_dtype))
        return facts_resolve_bad(r, FACTS_KEY_OUT, "no output has a block-scaled type");
    if (facts_is_mx(ask->grad_dtype))
        return facts_resolve_bad(r, FACTS_KEY_GRAD, "no output has a block-scaled type");
    if (!facts_is_fp8(ask->dtype) &&
        (facts_is_fp8(ask->o_dtype) ||
         (ask->pass == FATTN_BACKWARD && facts_is_fp8(ask->grad_dtype))))
        return facts_resolve_bad(
            r, facts_is_fp8(ask->o_dtype) ? FACTS_KEY_OUT : FACTS_KEY_GRAD,
            "an 8-bit output needs a scale, which only dtype=e4m3 and e5m2 have");
    facts_resolve_status status = resolve_other_backward(r);
    status = status == FACTS_RESOLVED ? resolve_do(r) : status;
    return status == FACTS_RESOLVED ? resolve_scales(r) : status;
}
