/* engine=, knob=, rescale=, memory=. */
#include <stdlib.h>
#include <string.h>

#include "resolution.h"

/* cuDNN's knobs, in its order from 0. */
static const char *const knob_words[] = {
    "split_k",
    "swizzle",
    "tile_size",
    "use_tex",
    "edge",
    "kblock",
    "ldga",
    "ldgb",
    "chunk_k",
    "split_h",
    "wino_tile",
    "multiply",
    "split_k_buf",
    "tilek",
    "stages",
    "reduction_mode",
    "cta_split_k_mode",
    "split_k_slc",
    "idx_mode",
    "sliced",
    "split_rs",
    "singlebuffer",
    "ldgc",
    "specfilt",
    "kernel_cfg",
    "workspace",
    "tile_cga",
    "tile_cga_m",
    "tile_cga_n",
    "block_size",
    "occupancy",
    "array_size_per_thread",
    "num_c_per_block",
    "split_cols",
    "tile_rows",
    "tile_cols",
    "load_size",
    "cta_count",
    "stream_k",
    "split_p_slc",
    "tile_m",
    "tile_n",
    "warp_spec_cfg",
    "swap_ab",
    "input_tma_enable",
    "output_tma_enable",
};

/* "stages", or "k14" for one that has no name here; -1: neither. */
static int32_t knob_of(facts_span name)
{
    uint64_t number;
    for (size_t i = 0; i < sizeof knob_words / sizeof *knob_words; i++)
        if (facts_span_is(name, knob_words[i]))
            return (int32_t)i;
    if (name.length > 1 && name.at[0] == 'k' &&
        facts_read_integer((facts_span){ name.at + 1, name.length - 1 }, 9999, &number))
        return (int32_t)number;
    return -1;
}

static facts_resolve_status read_knobs(facts_resolution *r)
{
    facts_problem *out = r->out;
    facts_span rest = facts_span_of(facts_case_get(r->c, FACTS_KEY_KNOB));
    if (facts_span_is(rest, "none"))
        return FACTS_RESOLVED;
    while (rest.length > 0) {
        facts_span value = facts_span_cut(&rest, '+'), name = facts_span_cut(&value, ':');
        fattn_knob *knob = &out->knob[out->knob_count];
        uint64_t number = 0;
        if (facts_span_is(
                name, "unfuse_fma")) { /* no knob of an engine: a word of the unified operation */
            facts_read_integer(value, INT64_MAX, &number);
            if (number > 1)
                return facts_resolve_bad(r, FACTS_KEY_KNOB, "unfuse_fma is 0 or 1");
            out->ask.unfuse_fma = (int32_t)number;
            continue;
        }
        if (out->engine < 0)
            return facts_resolve_bad(r, FACTS_KEY_KNOB, "a pin needs its engine: engine=N");
        knob->type = knob_of(name);
        if (knob->type < 0)
            return facts_resolve_bad(
                r, FACTS_KEY_KNOB,
                "no knob has this name; want cuDNN's names in lower case (tile_m, stages) or k14");
        facts_read_integer(value, INT64_MAX, &number);
        knob->value = (int64_t)number;
        out->knob_count++;
    }
    return FACTS_RESOLVED;
}

facts_resolve_status facts_resolve_knobs(facts_resolution *r)
{
    facts_problem *out = r->out;
    const char *engine = facts_case_get(r->c, FACTS_KEY_ENGINE);
    uint64_t threshold, mib;
    out->engine = strcmp(engine, "auto") == 0  ? FACTS_ENGINE_AUTO
                  : strcmp(engine, "all") == 0 ? FACTS_ENGINE_ALL
                                               : (int64_t)strtoll(engine, NULL, 10);
    out->rescale = -1;
    if (!facts_key_is(r->c, FACTS_KEY_RESCALE, "auto")) {
        if (!facts_read_integer(facts_span_of(facts_case_get(r->c, FACTS_KEY_RESCALE)), 64,
                                &threshold))
            return facts_resolve_bad(r, FACTS_KEY_RESCALE,
                                     "a threshold is the exponent of a power of two, 0 to 64");
        out->rescale = (int32_t)threshold;
    }
    out->memory_mib = -1;
    if (!facts_key_is(r->c, FACTS_KEY_MEMORY, "all")) {
        if (!facts_read_integer(facts_span_of(facts_case_get(r->c, FACTS_KEY_MEMORY)), INT32_MAX,
                                &mib))
            return facts_resolve_bad(r, FACTS_KEY_MEMORY, "at most 2147483647 MiB");
        out->memory_mib = (int64_t)mib;
    }
    return read_knobs(r);
}
