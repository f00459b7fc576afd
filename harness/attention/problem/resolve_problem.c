#include "resolution.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "huge.h"
#include "keys/key_values.h"
#include "keys/keys.h"
#include "lengths.h"
#include "valid_checks.h"
#include "words/case_text.h"

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
    ask->pass = facts_key_place(r->c, FACTS_KEY_PASS);
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
    ask->align = facts_key_place(r->c, FACTS_KEY_ALIGN);
    return FACTS_RESOLVED;
}

/* ---- the rest
 * --------------------------------------------------------------------------------------------------------------
 */

static facts_resolve_status resolve_how(facts_resolution *r)
{
    facts_problem *out = r->out;
    const facts_case *c = r->c;
    out->fill = (facts_fill)facts_key_place(c, FACTS_KEY_FILL);
    out->poison = (facts_poison)facts_key_place(c, FACTS_KEY_POISON);
    out->seed = strtoull(facts_case_get(c, FACTS_KEY_SEED), NULL, 10);
    unsigned long long repeat = strtoull(facts_case_get(c, FACTS_KEY_REPEAT), NULL, 10);
    if (repeat > 1000000)
        return facts_resolve_say(r->error, FACTS_BAD_PROBLEM, FACTS_KEY_REPEAT,
                                 "at most 1000000 runs");
    out->repeat = (int32_t)repeat;
    fattn_problem *ask = &out->ask;
    ask->impl = facts_key_place(c, FACTS_KEY_IMPL);
    ask->spelling = facts_key_place(c, FACTS_KEY_SPELLING);
    ask->deterministic = !facts_key_is(c, FACTS_KEY_DETERMINISTIC, "0");
    ask->determinism = facts_key_is(c, FACTS_KEY_DETERMINISTIC, "form")  ? FATTN_DETERMINISM_FORM
                       : facts_key_is(c, FACTS_KEY_DETERMINISTIC, "pin") ? FATTN_DETERMINISM_PIN
                                                                         : FATTN_DETERMINISM_AUTO;
    ask->guards_off = facts_key_is(c, FACTS_KEY_GUARDS, "off");
    out->policy = (facts_policy)facts_key_place(c, FACTS_KEY_POLICY);
    return FACTS_RESOLVED;
}

/* How the call is made. */
static facts_resolve_status resolve_exec(facts_resolution *r)
{
    facts_problem *out = r->out;
    out->exec = (facts_exec)facts_key_place(r->c, FACTS_KEY_EXEC);
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
    out->mod = (facts_mod)facts_key_place(r->c, FACTS_KEY_MOD);
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
    r->out->bias_fill = (facts_bias_fill)facts_key_place(r->c, FACTS_KEY_BIAS_FILL);
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
    r->out->check = (facts_check)facts_key_place(r->c, FACTS_KEY_CHECK);
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
