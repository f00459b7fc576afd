#include "loaded_target.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "keys/keys.h"

/* Fields of a problem whose changes set a key to its default. */
static const struct field {
    size_t offset, bytes;
    facts_key key;
} fields[] = {
#define FIELD(field, key)                                                                          \
    { offsetof(fattn_problem, field), sizeof(((fattn_problem *)0)->field), FACTS_KEY_##key }
    FIELD(spelling, SPELLING),
    FIELD(impl, IMPL),
    FIELD(total_q, TOTAL),
    FIELD(total_kv, TOTAL),
    FIELD(len_rank, LENS_SHAPE),
    FIELD(q_strides, STRIDE),
    FIELD(k_strides, STRIDE),
    FIELD(v_strides, STRIDE),
    FIELD(cumulative, CU),
    FIELD(ragged_tokens, RMULT),
    FIELD(packed_table, TABLE),
    FIELD(rng_bits, RNG_DTYPE),
    FIELD(scale_in_memory, SCALE),
    FIELD(deterministic, DETERMINISTIC),
    FIELD(unfuse_fma, KNOB),
    FIELD(dsink, DSINK),
    FIELD(dbias, DBIAS),
    FIELD(o_dtype, OUT),
    FIELD(grad_dtype, GRAD),
    FIELD(do_dtype, DO_DTYPE),
    FIELD(bias_dtype, BIAS_DTYPE),
    FIELD(stats_dtype, STATS_DTYPE),
    FIELD(ragged_bits, LAYOUT),
    FIELD(align, ALIGN),
    FIELD(has_left, WINDOW),
    FIELD(has_right, MASK),
    FIELD(block_mask, BLOCKMASK),
    FIELD(dropout, DROPOUT),
    FIELD(dropout_mask, DROPOUT_MASK),
    FIELD(sink, SOFTMAX),
    FIELD(alibi, ALIBI),
    FIELD(rope, ROPE),
    FIELD(has_bias, BIAS),
    { offsetof(fattn_problem, score_mod), sizeof(void *), FACTS_KEY_MOD },
#undef FIELD
};

static bool set_ratio(facts_case *c, facts_key key, int64_t a, int64_t b)
{
    char text[64];
    facts_error ignored;
    snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, a, b);
    return facts_case_set(c, key, text, &ignored);
}

static bool set_default(facts_case *c, facts_key key)
{
    facts_error ignored;
    return facts_case_set(c, key, c->language->keys[key].otherwise, &ignored);
}

static bool set_outputs(facts_case *c, uint32_t outputs)
{
    static const struct {
        uint32_t bit;
        const char *word;
    } words[] = { { FATTN_WANT_STATS, "stats" },
                  { FATTN_WANT_MAX, "max" },
                  { FATTN_WANT_SUM_EXP, "sum_exp" },
                  { FATTN_WANT_STATS_LOG2, "stats2" },
                  { FATTN_WANT_RNG_DUMP, "rng_dump" } };
    char text[64] = "";
    facts_error ignored;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (outputs & words[i].bit)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", text[0] ? "+" : "",
                     words[i].word);
    return facts_case_set(c, FACTS_KEY_WANT, text[0] ? text : "none", &ignored);
}

/* The change from `was` to `is` in the words of a case. */
static bool change_case(facts_case *c, const fattn_problem *was, const fattn_problem *is)
{
    static const char *const dtypes[] = { [FATTN_BF16] = "bf16", [FATTN_F16] = "f16" };
    facts_error ignored;
    char text[64];
    bool ok = true;
    const bool sizes = was->dim_qk != is->dim_qk || was->dim_v != is->dim_v ||
                       was->seq_q != is->seq_q || was->seq_kv != is->seq_kv ||
                       was->heads_k != is->heads_k || was->heads_v != is->heads_v;
    for (size_t i = 0; i < sizeof fields / sizeof *fields && ok; i++) {
        const char *a = (const char *)was + fields[i].offset,
                   *b = (const char *)is + fields[i].offset;
        const bool strides = fields[i].key == FACTS_KEY_STRIDE;
        if (memcmp(a, b, fields[i].bytes) != 0 && !(strides && sizes))
            ok = set_default(c, fields[i].key);
    }
    if (was->outputs != is->outputs)
        ok = ok && set_outputs(c, is->outputs);
    if (was->dim_qk != is->dim_qk || was->dim_v != is->dim_v)
        ok = ok && set_ratio(c, FACTS_KEY_D, is->dim_qk, is->dim_v);
    if (was->seq_q != is->seq_q || was->seq_kv != is->seq_kv)
        ok = ok && set_ratio(c, FACTS_KEY_S, is->seq_q, is->seq_kv);
    if (was->heads_k != is->heads_k || was->heads_v != is->heads_v) {
        snprintf(text, sizeof text, "%" PRId64, is->heads_q);
        ok = ok && facts_case_set(c, FACTS_KEY_H, text, &ignored);
    }
    if (was->batch != is->batch) {
        snprintf(text, sizeof text, "%" PRId64, is->batch);
        ok = ok && facts_case_set(c, FACTS_KEY_B, text, &ignored);
    }
    if (was->dtype != is->dtype)
        ok = ok && (is->dtype == FATTN_BF16 || is->dtype == FATTN_F16) &&
             facts_case_set(c, FACTS_KEY_DTYPE, dtypes[is->dtype], &ignored);
    if (!was->has_right && is->has_right)
        ok = ok && facts_case_set(c, FACTS_KEY_MASK, "causal", &ignored);
    if (!was->padding && is->padding)
        ok = ok && facts_case_set(c, FACTS_KEY_PADDING, "full", &ignored);
    if (was->padding && !is->padding)
        ok = ok && set_default(c, FACTS_KEY_PADDING) && set_default(c, FACTS_KEY_LENS);
    if (was->page_size_k != is->page_size_k || was->page_size_v != is->page_size_v) {
        snprintf(text, sizeof text, "%" PRId64, is->page_size_k);
        ok = ok && (is->page_size_k == 0 ? set_default(c, FACTS_KEY_PAGED)
                                         : facts_case_set(c, FACTS_KEY_PAGED, text, &ignored));
    }
    return ok;
}

/* What the target answers to that case; NULL: there is no such problem. */
static fattn_decision *ask(fattn_context *context, const facts_case *c)
{
    facts_error ignored;
    fattn_decision *decision = NULL;
    facts_problem *problem = malloc(sizeof *problem);
    if (problem && facts_problem_resolve(problem, c, &ignored) == FACTS_RESOLVED)
        (void)fattn_decide(&decision, context, &problem->ask, FATTN_ASK_A);
    free(problem);
    return decision;
}

/* Does the target accept that case? It is asked again: what is printed must be true. */
static bool accepts(fattn_context *context, const facts_case *c)
{
    fattn_decision *decision = ask(context, c);
    const bool yes = decision && fattn_decision_supported(decision);
    fattn_decision_destroy(decision);
    return yes;
}

fattn_decision *facts_decide_forward(char name[FACTS_NAME_MAX], fattn_context *context,
                                     const facts_case *backward)
{
    static const facts_key only_backward[] = { FACTS_KEY_DBIAS, FACTS_KEY_DSINK,
                                               FACTS_KEY_DETERMINISTIC, FACTS_KEY_DO };
    facts_case c = *backward;
    facts_error ignored;
    bool ok =
        facts_case_set(&c, FACTS_KEY_PASS, "fwd", &ignored) && set_outputs(&c, FATTN_WANT_STATS);
    for (size_t i = 0; ok && i < sizeof only_backward / sizeof *only_backward; i++)
        ok = set_default(&c, only_backward[i]);
    facts_case_name(&c, name);
    return ok ? ask(context, &c) : NULL;
}

/* "d=192 is refused here; accepted: d=256, d=192/128, d=128": of the key of the nearest accepted
 * case. */
static void add_meaning(json_t *row, const facts_case *c, const facts_case *near, size_t count)
{
    char text[400] = "";
    size_t used = 0;
    for (facts_key key = 0; count > 0 && key < c->language->count; key++) {
        const char *is = facts_case_get(c, key), *word = c->language->keys[key].word;
        if (strcmp(is, facts_case_get(&near[0], key)) == 0)
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s%s=%s is refused here; accepted:", used ? "; " : "", word, is);
        for (size_t i = 0; i < count && used < sizeof text; i++)
            if (strcmp(is, facts_case_get(&near[i], key)) != 0 &&
                (i == 0 ||
                 strcmp(facts_case_get(&near[i - 1], key), facts_case_get(&near[i], key)) != 0))
                used += (size_t)snprintf(text + used, sizeof text - used, " %s=%s", word,
                                         facts_case_get(&near[i], key));
        if (used >= sizeof text)
            return;
    }
    json_t *reason = json_object_get(row, "reason");
    if (used > 0 && reason != NULL)
        json_object_set_new(reason, "meaning", json_string(text));
}

void facts_row_nearest(json_t *row, fattn_context *context, const facts_case *c,
                       const fattn_problem *refused)
{
    fattn_neighbour near[FATTN_MAX_NEIGHBOURS];
    facts_case *cases = malloc(sizeof *cases * FATTN_MAX_NEIGHBOURS);
    size_t count = 0, written = 0;
    if (cases == NULL || fattn_explain(context, refused, 0, near, &count) != FATTN_OK) {
        free(cases);
        return;
    }
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        facts_case *to = &cases[written];
        char name[FACTS_NAME_MAX];
        *to = *c;
        const bool expressed = change_case(to, refused, &near[i].problem) && accepts(context, to);
        json_array_append_new(list, json_pack("{s:s,s:s*}", "change", near[i].change, "case",
                                              expressed ? facts_case_name(to, name) : NULL));
        written += expressed;
    }
    json_object_set_new(row, "nearest", list);
    json_object_set_new(row, "nearest_asked",
                        json_integer(count > 0 ? near[count - 1].asked : near[0].asked));
    add_meaning(row, c, cases, written);
    free(cases);
}
