#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "huge.h"
#include "keys/keys.h"
#include "resolution.h"
#include "words/case_text.h"

facts_resolve_status facts_resolve_say(facts_error *error, facts_resolve_status status,
                                       facts_key key, const char *what)
{
    if (error != NULL) {
        snprintf(error->text, sizeof error->text, "%s: %s", facts_keys[key].word, what);
        error->line = 1;
        error->column = 1;
    }
    return status;
}

facts_resolve_status facts_resolve_bad(facts_resolution *r, facts_key key, const char *what)
{
    return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, key, what);
}

facts_resolve_status facts_resolve_idle(facts_resolution *r, const facts_key *keys, size_t count,
                                        const char *why)
{
    for (size_t i = 0; i < count; i++)
        if (facts_key_given(r->c, keys[i]))
            return facts_resolve_bad(r, keys[i], why);
    return FACTS_RESOLVED;
}

bool facts_key_given(const facts_case *c, facts_key key)
{
    return c->at[key] != 0;
}

bool facts_key_is(const facts_case *c, facts_key key, const char *word)
{
    return strcmp(facts_case_get(c, key), word) == 0;
}

int facts_key_index(const facts_case *c, facts_key key)
{
    char scratch[FACTS_CASE_TEXT];
    return facts_template_match(facts_keys[key].allowed, facts_span_of(facts_case_get(c, key)),
                                scratch);
}

/* fattn_dtype */
static int32_t facts_key_dtype(const facts_case *c, facts_key key)
{
#define AS_WORD(symbol, value, word) [value] = word,
    static const char *const words[] = { "", FATTN_DTYPE_LIST(AS_WORD) };
#undef AS_WORD
    for (size_t dtype = 1; dtype < sizeof words / sizeof *words; dtype++)
        if (facts_key_is(c, key, words[dtype]))
            return (int32_t)dtype;
    return -1;
}

/* engine=, knob=, rescale=, memory=. */

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

static facts_resolve_status facts_resolve_knobs(facts_resolution *r)
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

/* scale=tensor, alibi=, blockmask=, softmax=, dsink=, dropout and what belongs to it, rope=. */

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
    out->block_pattern = (facts_block_pattern)facts_key_index(r->c, FACTS_KEY_BLOCKMASK);
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

static facts_resolve_status facts_resolve_softmax(facts_resolution *r)
{
    facts_resolve_status (*const steps[])(facts_resolution *) = { resolve_scale, resolve_masks,
                                                                  resolve_sink, resolve_dropout,
                                                                  resolve_rope };
    facts_resolve_status status = FACTS_RESOLVED;
    for (size_t i = 0; status == FACTS_RESOLVED && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](r);
    return status;
}

/* dtype=, out=, grad=, do_dtype=, bwd_dtype=, stats_dtype=, and how 8 bit types are scaled. */

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
    r->out->scales = (facts_scales)facts_key_index(r->c, FACTS_KEY_SCALES);
    if (facts_is_fp8(ask->dtype))
        ask->scaling = facts_key_is(r->c, FACTS_KEY_SCALING, "current") ? FATTN_SCALING_CURRENT
                                                                        : FATTN_SCALING_DELAYED;
    return FACTS_RESOLVED;
}

static facts_resolve_status facts_resolve_types(facts_resolution *r)
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

/* ---- sizes and types
 * -------------------------------------------------------------------------------------------------------
 */

/* The parts of 8/2/2; a part that is absent repeats the one before. Returns false when one is not a
 * size anybody has. */
static bool read_parts(const facts_case *c, facts_key key, int64_t *out, size_t count)
{
    facts_span rest = facts_span_of(facts_case_get(c, key));
    for (size_t i = 0; i < count; i++) {
        uint64_t value = 0;
        if (i > 0 && rest.length == 0) {
            out[i] = out[i - 1];
            continue;
        }
        if (!facts_read_integer(facts_span_cut(&rest, '/'), INT32_MAX, &value) || value == 0)
            return false;
        out[i] = (int64_t)value;
    }
    return true;
}

static facts_resolve_status resolve_sizes(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    int64_t heads[3], seq[2], dim[2];
    const struct {
        facts_key key;
        int64_t *out;
        size_t count;
    } part[] = { { FACTS_KEY_B, &ask->batch, 1 },
                 { FACTS_KEY_H, heads, 3 },
                 { FACTS_KEY_S, seq, 2 },
                 { FACTS_KEY_D, dim, 2 } };
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        if (!read_parts(r->c, part[i].key, part[i].out, part[i].count))
            return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, part[i].key,
                                     "a size must lie between 1 and 2147483647");
    }
    if (heads[0] % heads[1] != 0 || heads[0] % heads[2] != 0)
        return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_H,
                                 "heads of Q must be a multiple of the heads of K and of V");
    ask->heads_q = heads[0];
    ask->heads_k = heads[1];
    ask->heads_v = heads[2];
    ask->seq_q = seq[0];
    ask->seq_kv = seq[1];
    ask->dim_qk = dim[0];
    ask->dim_v = dim[1];
    ask->pass = facts_key_index(r->c, FACTS_KEY_PASS);
    return FACTS_RESOLVED;
}

#define MOST_WINDOW (UINT64_C(1) << 30) /* of the library */

static facts_resolve_status resolve_band(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    facts_span right = facts_span_of(facts_case_get(r->c, FACTS_KEY_WINDOW));
    facts_span left = facts_span_cut(&right, ':');
    uint64_t bound;
    if (!facts_span_is(left, "inf")) {
        if (!facts_read_integer(left, MOST_WINDOW, &bound))
            return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_WINDOW,
                                     "a bound is at most 2^30; inf for none");
        ask->has_left = 1;
        ask->window_left = (int64_t)bound;
    }
    if (!facts_span_is(right, "inf")) {
        if (!facts_read_integer(right, MOST_WINDOW, &bound))
            return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_WINDOW,
                                     "a bound is at most 2^30; inf for none");
        ask->has_right = 1;
        ask->window_right = (int64_t)bound;
    }
    ask->align = facts_key_index(r->c, FACTS_KEY_ALIGN);
    return FACTS_RESOLVED;
}

/* ---- the rest
 * --------------------------------------------------------------------------------------------------------------
 */

static facts_resolve_status resolve_how(facts_resolution *r)
{
    facts_problem *out = r->out;
    const facts_case *c = r->c;
    out->fill = (facts_fill)facts_key_index(c, FACTS_KEY_FILL);
    out->poison = (facts_poison)facts_key_index(c, FACTS_KEY_POISON);
    out->seed = strtoull(facts_case_get(c, FACTS_KEY_SEED), NULL, 10);
    unsigned long long repeat = strtoull(facts_case_get(c, FACTS_KEY_REPEAT), NULL, 10);
    if (repeat > 1000000)
        return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_REPEAT,
                                 "at most 1000000 runs");
    out->repeat = (int32_t)repeat;
    fattn_problem *ask = &out->ask;
    ask->impl = facts_key_index(c, FACTS_KEY_IMPL);
    ask->spelling = facts_key_index(c, FACTS_KEY_SPELLING);
    ask->deterministic = !facts_key_is(c, FACTS_KEY_DETERMINISTIC, "0");
    ask->determinism = facts_key_is(c, FACTS_KEY_DETERMINISTIC, "form")  ? FATTN_DETERMINISM_FORM
                       : facts_key_is(c, FACTS_KEY_DETERMINISTIC, "pin") ? FATTN_DETERMINISM_PIN
                                                                         : FATTN_DETERMINISM_AUTO;
    ask->guards_off = facts_key_is(c, FACTS_KEY_GUARDS, "off");
    out->policy = (facts_policy)facts_key_index(c, FACTS_KEY_POLICY);
    return FACTS_RESOLVED;
}

/* How the call is made. */
static facts_resolve_status resolve_exec(facts_resolution *r)
{
    facts_problem *out = r->out;
    out->exec = (facts_exec)facts_key_index(r->c, FACTS_KEY_EXEC);
    out->ask.capture = out->exec == FACTS_EXEC_GRAPH || out->exec == FACTS_EXEC_GRAPH_UPDATE ||
                       out->exec == FACTS_EXEC_GRAPH_NATIVE;
    return FACTS_RESOLVED;
}

/* The two numbers of word:A:B into out[]; inf for an absent bound, 0 for a number that the word
 * does not have. */
static void read_parameters(const facts_case *c, facts_key key, double out[2])
{
    facts_span text = facts_span_of(facts_case_get(c, key));
    facts_span_cut(&text, ':');
    for (int i = 0; i < 2; i++) {
        facts_span part = facts_span_cut(&text, ':');
        if (facts_span_is(part, "inf"))
            out[i] = INFINITY;
        else if (!facts_read_real(part, &out[i]))
            out[i] = 0.0;
    }
}

static bool fp32_holds(double value)
{
    return value == INFINITY || (fabs(value) <= 16777216.0 && fabs(value) >= 1e-30);
}

static facts_resolve_status resolve_mod(facts_resolution *r)
{
    facts_problem *out = r->out;
    out->mod = (facts_mod)facts_key_index(r->c, FACTS_KEY_MOD);
    out->mod_dtype = facts_key_dtype(r->c, FACTS_KEY_BIAS_DTYPE);
    read_parameters(r->c, FACTS_KEY_MOD, out->mod_parameter);
    bool number = out->mod == FACTS_MOD_SOFTCAP || out->mod == FACTS_MOD_TEMPERATURE;
    if (number && (out->mod_parameter[0] <= 0.0 || !fp32_holds(out->mod_parameter[0])))
        return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_MOD,
                                 "want a number above 0 and at most 2^24");
    for (int k = 0; !number && k < 2; k++) {
        if (out->mod_parameter[k] != 0.0 && !fp32_holds(out->mod_parameter[k]))
            return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_MOD,
                                     "a count is at most 2^24");
    }
    if (out->mod == FACTS_MOD_DOCUMENT && (out->mod_parameter[0] > (double)out->ask.seq_q ||
                                           out->mod_parameter[0] > (double)out->ask.seq_kv))
        return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_MOD,
                                 "more documents than rows or keys");
    return FACTS_RESOLVED;
}

static facts_resolve_status resolve_bias(facts_resolution *r)
{
    fattn_problem *ask = &r->out->ask;
    const char *shape = facts_case_get(r->c, FACTS_KEY_BIAS);
    bool boolean = strncmp(shape, "bool:", 5) == 0;
    shape += boolean ? 5 : 0;
    ask->has_bias = strcmp(shape, "none") != 0;
    ask->dbias = facts_key_is(r->c, FACTS_KEY_DBIAS, "1");
    if (ask->dbias && (!ask->has_bias || ask->pass != FATTN_BACKWARD))
        return facts_resolve_bad(r, FACTS_KEY_DBIAS,
                                 ask->has_bias ? "a forward has no gradients" : "there is no bias");
    if (ask->dbias && boolean)
        return facts_resolve_bad(r, FACTS_KEY_DBIAS, "a boolean mask has no gradient");
    if (!ask->has_bias)
        return FACTS_RESOLVED;
    const int64_t full[4] = { ask->batch, ask->heads_q, ask->seq_q, ask->seq_kv };
    for (int d = 0; d < 4; d++)
        ask->bias_dim[d] = shape[d] == '1' ? 1 : full[d];
    ask->bias_dtype = boolean ? FATTN_BOOL : facts_key_dtype(r->c, FACTS_KEY_BIAS_DTYPE);
    if (boolean && facts_key_given(r->c, FACTS_KEY_BIAS_DTYPE))
        return facts_resolve_bad(r, FACTS_KEY_BIAS_DTYPE, "a boolean mask has no other type");
    r->out->bias_fill = (facts_bias_fill)facts_key_index(r->c, FACTS_KEY_BIAS_FILL);
    read_parameters(r->c, FACTS_KEY_BIAS_FILL, r->out->bias_parameter);
    bool numbers = r->out->bias_fill == FACTS_BIAS_RANDN || r->out->bias_fill == FACTS_BIAS_ZERO ||
                   r->out->bias_fill == FACTS_BIAS_FINITE_MIN ||
                   r->out->bias_fill == FACTS_BIAS_ROWS_LOW;
    if (boolean && numbers)
        return facts_resolve_bad(r, FACTS_KEY_BIAS_FILL,
                                 "a boolean mask holds no numbers; want random, rows_masked, "
                                 "window, all_true or minus_inf");
    return FACTS_RESOLVED;
}

/* Ragged and paged tensors have lengths in any case: where the case gives none, all of them are
 * full. */
static void make_full(facts_problem *out)
{
    out->has_lengths = true;
    out->ask.padding = 1;
    for (int64_t b = 0; b < out->ask.batch; b++) {
        out->len_q[b] = (int32_t)out->ask.seq_q;
        out->len_kv[b] = (int32_t)out->ask.seq_kv;
    }
}

static facts_resolve_status resolve_lengths(facts_resolution *r)
{
    facts_resolve_sides(r);
    facts_key key = facts_key_is(r->c, FACTS_KEY_LENS, "none") ? FACTS_KEY_PADDING : FACTS_KEY_LENS;
    bool any = key == FACTS_KEY_LENS || !facts_key_is(r->c, FACTS_KEY_PADDING, "none");
    bool shared = facts_key_is(r->c, FACTS_KEY_LENS_SHAPE, "bcast"),
         paged = !facts_key_is(r->c, FACTS_KEY_PAGED, "0");
    bool full = !any && (r->packs_q || r->packs_kv || paged);
    if (shared && !any)
        return facts_resolve_bad(r, FACTS_KEY_LENS_SHAPE, "there are no lengths");
    if (((any && (key == FACTS_KEY_PADDING || shared)) || full) &&
        r->out->ask.batch > FACTS_MAX_BATCH_LENS)
        return facts_resolve_say(
            r->error, FACTS_NOT_IMPLEMENTED, full ? FACTS_KEY_B : key,
            "a case holds lengths of at most 4096 batch entries; the library has no such bound");
    const char *wrong = facts_lengths_resolve(r->out, r->c);
    if (wrong != NULL)
        return facts_resolve_bad(r, key, wrong);
    if (full)
        make_full(r->out);
    return FACTS_RESOLVED;
}

/* What is verified beside the reference, and whether that says anything here; last, as it may
 * depend on everything. */
static facts_resolve_status resolve_check(facts_resolution *r)
{
    r->out->check = (facts_check)facts_key_index(r->c, FACTS_KEY_CHECK);
    const char *why = facts_check_refuses(r->out);
    return why == NULL ? FACTS_RESOLVED
                       : facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_CHECK, why);
}

/* One backward in five reads O and Stats of its own forward (docs/numerics.md section 1). The
 * case's name says which, whatever the engine. None does with a check, an O whose places are
 * shared, or 8 bit types, whose forward has scales and factors of its own. All do where the
 * reference has no O of every row. */
static bool reads_own_forward(const facts_problem *p, const facts_case *c)
{
    facts_case any = *c;
    facts_error error;
    char name[FACTS_NAME_MAX];
    const facts_tensor *o = &p->tensor[FACTS_TENSOR_O];
    if (p->ask.pass == FATTN_BACKWARD && facts_is_huge(p))
        return true;
    if (p->ask.pass != FATTN_BACKWARD || p->check != FACTS_CHECK_NONE ||
        facts_is_fp8(p->ask.dtype) || facts_is_mx(p->ask.dtype))
        return false;
    for (int axis = 0; axis < 3; axis++)
        if (o->stride[axis] == 0 && o->dim[axis] > 1)
            return false;
    facts_case_set(&any, FACTS_KEY_ENGINE, "auto", &error);
    facts_case_name(&any, name);
    return XXH3_64bits(name, strlen(name)) % 5 == 0;
}

facts_resolve_status facts_problem_resolve(facts_problem *out, const facts_case *c,
                                           facts_error *error)
{
    *out = (facts_problem){ .ask = FATTN_PROBLEM_INIT };
    facts_resolution r = { .c = c, .out = out, .error = error };
    facts_resolve_status (*const steps[])(facts_resolution *) = {
        resolve_sizes,         facts_resolve_types,  resolve_band,         resolve_how,
        facts_resolve_knobs,   resolve_exec,         resolve_bias,         resolve_mod,
        facts_resolve_softmax, resolve_lengths,      facts_resolve_packed, facts_resolve_paged,
        facts_resolve_tensors, facts_resolve_arrays, resolve_check
    };
    facts_resolve_status status = FACTS_RESOLVED;
    for (size_t i = 0; status == FACTS_RESOLVED && i < sizeof steps / sizeof *steps; i++)
        status = steps[i](&r);
    out->own_forward = status == FACTS_RESOLVED && reads_own_forward(out, c);
    return status;
}
