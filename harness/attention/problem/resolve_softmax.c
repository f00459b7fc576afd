/* scale=tensor, alibi=, blockmask=, softmax=, dsink=, dropout and what belongs to it, rope=. */
#include <stdlib.h>
#include <string.h>

#include "resolution.h"

static facts_resolve_status resolve_dropout(facts_resolution *r)
{
    static const facts_key of_dropout[] = { FACTS_KEY_RNG, FACTS_KEY_RNG_DTYPE,
                                            FACTS_KEY_DROPOUT_MASK };
    facts_problem *out = r->out;
    fattn_problem *ask = &out->ask;
    facts_span offset = facts_span_of(facts_case_get(r->c, FACTS_KEY_RNG)),
               seed = facts_span_cut(&offset, ':');
    if (!facts_read_real(facts_span_of(facts_case_get(r->c, FACTS_KEY_DROPOUT)), &out->drop) ||
        out->drop >= 1.0)
        return facts_resolve_bad(
            r, FACTS_KEY_DROPOUT,
            "the probability must be below 1: with 1 nothing is left to scale");
    if (out->drop == 0.0)
        return facts_resolve_idle(r, of_dropout, 3, "there is no dropout: give dropout=P");
    ask->dropout_mask = facts_key_is(r->c, FACTS_KEY_DROPOUT_MASK, "1");
    if (ask->dropout_mask)
        return facts_resolve_idle(r, of_dropout, 2, "a given mask needs no random numbers");
    ask->dropout = out->drop;
    ask->rng_bits = facts_key_is(r->c, FACTS_KEY_RNG_DTYPE, "i32") ? 32 : 64;
    uint64_t most = ask->rng_bits == 32 ? INT32_MAX : INT64_MAX;
    if (!facts_read_integer(seed, most, &out->rng_seed) ||
        !facts_read_integer(offset, most, &out->rng_offset))
        return facts_resolve_bad(r, FACTS_KEY_RNG,
                                 "seed and offset must fit their type (rng_dtype)");
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_masks(facts_resolution *r)
{
    facts_problem *out = r->out;
    out->block_pattern = (facts_block_pattern)facts_key_place(r->c, FACTS_KEY_BLOCKMASK);
    out->ask.block_mask = out->block_pattern != FACTS_BLOCKS_NONE;
    out->ask.alibi = !facts_key_is(r->c, FACTS_KEY_ALIBI, "0");
    out->given_slopes = facts_key_is(r->c, FACTS_KEY_ALIBI, "custom");
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_sink(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    ask->sink = !facts_key_is(r->c, FACTS_KEY_SOFTMAX, "vanilla");
    r->out->off_by_one = facts_key_is(r->c, FACTS_KEY_SOFTMAX, "off_by_one");
    ask->dsink = facts_key_is(r->c, FACTS_KEY_DSINK, "1");
    if (!ask->dsink)
        return FACTS_RESOLVED;
    if (!facts_key_is(r->c, FACTS_KEY_SOFTMAX, "sink"))
        return facts_resolve_bad(r, FACTS_KEY_DSINK, "there is no sink: give softmax=sink");
    return ask->pass == FATTN_BACKWARD
               ? FACTS_RESOLVED
               : facts_resolve_bad(r, FACTS_KEY_DSINK, "a forward has no gradients");
}

static facts_resolve_status resolve_scale(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    const char *scale = facts_case_get(r->c, FACTS_KEY_SCALE);
    ask->scale_in_memory = strcmp(scale, "tensor") == 0;
    ask->has_attn_scale = !ask->scale_in_memory && strcmp(scale, "auto") != 0;
    if (ask->has_attn_scale && !facts_read_real(facts_span_of(scale), &ask->attn_scale))
        return facts_resolve_bad(r, FACTS_KEY_SCALE, "not a number");
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_rope(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    uint64_t lanes = 0;
    if (!facts_read_integer(facts_span_of(facts_case_get(r->c, FACTS_KEY_ROPE)),
                            (uint64_t)ask->dim_qk, &lanes))
        return facts_resolve_bad(r, FACTS_KEY_ROPE,
                                 "more channels than Q and K have cannot be rotated");
    lanes = lanes == 1 ? (uint64_t)ask->dim_qk : lanes;
    if (lanes % 2 != 0)
        return facts_resolve_bad(r, FACTS_KEY_ROPE,
                                 "channels rotate in pairs: an even number of them");
    ask->rope = lanes != 0;
    ask->rope_dim = (int64_t)lanes;
    return FACTS_RESOLVED;
}

facts_resolve_status facts_resolve_softmax(facts_resolution *r)
{
    facts_resolve_status (*const steps[])(facts_resolution *) = { resolve_scale, resolve_masks,
                                                                  resolve_sink, resolve_dropout,
                                                                  resolve_rope };
    facts_resolve_status status = FACTS_RESOLVED;
    for (size_t i = 0; status == FACTS_RESOLVED && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](r);
    return status;
}
