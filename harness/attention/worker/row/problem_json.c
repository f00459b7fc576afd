#include "problem_json.h"

#include <math.h>
#include <string.h>

#include "numbers/expect/expectation.h"
#include "numbers/fill/scores.h"

#define AS_WORD(symbol, value, word) [value] = word,
static const char *const dtype_words[] = { "", FATTN_DTYPE_LIST(AS_WORD)[FATTN_BOOL] = "bool" };
static const char *const pass_words[] = { FATTN_PASS_LIST(AS_WORD) };
#undef AS_WORD

static void put_integer(json_t *out, const char *key, int64_t value)
{
    json_object_set_new(out, key, json_integer(value));
}

static void put_text(json_t *out, const char *key, const char *value)
{
    json_object_set_new(out, key, json_string(value));
}

static json_t *four(const int64_t at[4])
{
    return json_pack("[I, I, I, I]", (json_int_t)at[0], (json_int_t)at[1], (json_int_t)at[2],
                     (json_int_t)at[3]);
}

static json_t *bound(bool there, int64_t value)
{
    return there ? json_integer(value) : json_null();
}

static json_t *tensor_json(const facts_problem *p, facts_tensor_id id)
{
    static const char *const packings[] = { "", "q", "kv" };
    const facts_tensor *t = &p->tensor[id];
    json_t *out = json_object();
    put_text(out, "dtype", dtype_words[t->dtype]);
    json_object_set_new(out, "dim", four(t->dim));
    json_object_set_new(out, "stride", four(t->stride));
    put_integer(out, "first", t->first);
    put_integer(out, "elements", t->elements);
    put_integer(out, "skew_bytes", t->skew_bytes);
    put_text(out, "packed", packings[t->packed]);
    put_integer(out, "tokens", t->tokens);
    put_integer(out, "page", t->page);
    put_integer(out, "pages", t->pages);
    put_text(out, "storage_of",
             facts_tensor_word(t->shares ? (facts_tensor_id)(t->shares - 1) : id));
    json_object_set_new(out, "output", json_boolean(facts_tensor_is_output(p, id)));
    return out;
}

static void put_tensors(json_t *out, const facts_problem *p)
{
    json_t *tensors = json_object(), *arrays = json_object();
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (p->tensor[id].present)
            json_object_set_new(tensors, facts_tensor_word(id), tensor_json(p, id));
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (p->array[id].count > 0)
            json_object_set_new(arrays, facts_array_words[id],
                                json_pack("{s:I, s:b}", "count", (json_int_t)p->array[id].count,
                                          "output", p->array[id].output));
    json_object_set_new(out, "tensors", tensors);
    json_object_set_new(out, "arrays", arrays);
}

static void put_extents(json_t *out, const fattn_problem *ask)
{
    put_integer(out, "batch", ask->batch);
    put_integer(out, "heads_q", ask->heads_q);
    put_integer(out, "heads_k", ask->heads_k);
    put_integer(out, "heads_v", ask->heads_v);
    put_integer(out, "seq_q", ask->seq_q);
    put_integer(out, "seq_kv", ask->seq_kv);
    put_integer(out, "dim_qk", ask->dim_qk);
    put_integer(out, "dim_v", ask->dim_v);
}

static void put_masks(json_t *out, const fattn_problem *ask)
{
    json_object_set_new(out, "window_left", bound(ask->has_left != 0, ask->window_left));
    json_object_set_new(out, "window_right", bound(ask->has_right != 0, ask->window_right));
    put_text(out, "align", ask->align == FATTN_BOTTOM_RIGHT ? "br" : "tl");
    put_integer(out, "padding", ask->padding);
    json_object_set_new(out, "cumulative_q",
                        json_boolean((ask->cumulative & FATTN_CUMULATIVE_Q) != 0));
    json_object_set_new(out, "cumulative_kv",
                        json_boolean((ask->cumulative & FATTN_CUMULATIVE_KV) != 0));
    put_integer(out, "ragged_tokens", ask->ragged_tokens);
    put_integer(out, "table_k", ask->table_k);
    put_integer(out, "table_v", ask->table_v);
    put_integer(out, "packed_table", ask->packed_table);
    put_integer(out, "total_q", ask->total_q);
    put_integer(out, "total_kv", ask->total_kv);
}

/* The name of a modification, without the letters that stand for its parameters. */
static json_t *mod_word(facts_mod mod)
{
#define AS_WORD(symbol, word) word,
    static const char *const words[] = { FACTS_MOD_LIST(AS_WORD) };
#undef AS_WORD
    return json_stringn(words[mod], strcspn(words[mod], ":"));
}

/* An absent bound of a window is null. */
static json_t *parameter(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void put_scores(json_t *out, const facts_problem *p)
{
    const fattn_problem *ask = &p->ask;
    json_object_set_new(out, "scale", json_real(facts_oracle_scale(p)));
    json_object_set_new(out, "mod", mod_word(p->mod));
    json_object_set_new(
        out, "mod_parameters",
        json_pack("[o, o]", parameter(p->mod_parameter[0]), parameter(p->mod_parameter[1])));
    put_integer(out, "alibi", ask->alibi);
    json_object_set_new(out, "usual_slopes", json_boolean(ask->alibi && !p->given_slopes));
    put_integer(out, "sink", ask->sink);
    put_integer(out, "block_mask", ask->block_mask);
    put_integer(out, "rope_dim", ask->rope ? ask->rope_dim : 0);
    json_object_set_new(out, "dropout", json_real(p->drop));
    json_object_set_new(out, "keep_scale", json_real(facts_keep_scale_of(p)));
    json_object_set_new(out, "stats_log2",
                        json_boolean((ask->outputs & FATTN_WANT_STATS_LOG2) != 0));
}

static void put_call(json_t *out, const facts_problem *p)
{
#define AS_WORD(symbol, word) word,
    static const char *const ways[] = { FACTS_EXEC_LIST(AS_WORD) }, *const checks[] = {
        FACTS_CHECK_LIST(AS_WORD)
    };
#undef AS_WORD
    put_text(out, "exec", ways[p->exec]);
    put_text(out, "check", checks[p->check]);
    put_integer(out, "repeat", p->repeat);
    put_integer(out, "deterministic", p->ask.deterministic);
}

json_t *facts_problem_json(const facts_problem *p, const char *text)
{
    json_t *out = json_object();
    put_text(out, "case", text);
    put_text(out, "pass", pass_words[p->ask.pass]);
    put_text(out, "dtype", dtype_words[p->ask.dtype]);
    put_text(out, "do_dtype", dtype_words[p->ask.do_dtype]);
    put_extents(out, &p->ask);
    put_masks(out, &p->ask);
    put_scores(out, p);
    put_call(out, p);
    put_tensors(out, p);
    return out;
}
