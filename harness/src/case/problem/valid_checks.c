#include "valid_checks.h"

#define AS_WORD(symbol, word) word,
const char *const facts_check_words[FACTS_CHECKS] = { FACTS_CHECK_LIST(AS_WORD) };
#undef AS_WORD

static bool has_band(const fattn_problem *ask)
{
    return ask->has_left || ask->has_right;
}

/* The modification only masks, or there is none. */
static bool keeps_scores(facts_mod mod)
{
    return mod == FACTS_MOD_NONE || mod == FACTS_MOD_CAUSAL || mod == FACTS_MOD_WINDOW ||
           mod == FACTS_MOD_PREFIX_LM || mod == FACTS_MOD_DOCUMENT;
}

/* What a score becomes depends on nothing but the score. */
static bool is_blind(facts_mod mod)
{
    return mod == FACTS_MOD_NONE || mod == FACTS_MOD_SOFTCAP || mod == FACTS_MOD_TEMPERATURE;
}

static bool has_statistics(const facts_problem *p)
{
    return p->tensor[FACTS_TENSOR_STATS].present;
}

/* Writing one element of a broadcast input writes others. */
static bool has_shared_elements(const facts_problem *p)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        for (int d = 0; d < 4; d++)
            if (p->tensor[id].present && p->tensor[id].stride[d] == 0 && p->tensor[id].dim[d] > 1)
                return true;
    return false;
}

/* Groups of query heads that share no head of K or V. */
static int64_t groups_of(const fattn_problem *ask)
{
    int64_t groups = ask->heads_k < ask->heads_v ? ask->heads_k : ask->heads_v;
    while (ask->heads_k % groups != 0 || ask->heads_v % groups != 0)
        groups--;
    return groups;
}

/* Something beside the keys decides what a row's keys weigh. */
static bool has_own_weights(const facts_problem *p)
{
    return p->ask.sink || p->ask.alibi;
}

static bool is_packed(const facts_problem *p)
{
    for (int id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (p->tensor[id].present && p->tensor[id].packed != FACTS_PACKED_NOT)
            return true;
    return false;
}

static bool is_paged(const facts_problem *p)
{
    return p->tensor[FACTS_TENSOR_K].page != 0 || p->tensor[FACTS_TENSOR_V].page != 0;
}

/* The same call, except for the places of its rows. */
static bool moves_rows(const facts_problem *p)
{
    return p->check == FACTS_CHECK_RAGGED || p->check == FACTS_CHECK_PAGED;
}

/* Where a check writes and reads: elements by their strides, whose numbers are their codes;
 * sum_rows knows the scales of 8 bit types. */
static bool is_strided(const facts_problem *p)
{
    const bool has_codes = !facts_is_fp8(p->ask.dtype) || p->check == FACTS_CHECK_SUM_ROWS;
    return (moves_rows(p) || (!is_packed(p) && !is_paged(p))) && has_codes &&
           !facts_is_mx(p->ask.dtype) && !p->high_backward;
}

/* What joins the softmax, that most checks know nothing of. */
static const char *refuses_joined(const facts_problem *p)
{
    bool multiplies = p->check == FACTS_CHECK_POW2 ||
                      p->check == FACTS_CHECK_LINEAR; /* of V and dO, whatever P is */
    bool boolean = p->ask.has_bias && p->ask.bias_dtype == FATTN_BOOL,
         masks = p->ask.block_mask || boolean;
    bool drops = p->check == FACTS_CHECK_KEEP || p->check == FACTS_CHECK_DROPOUT_ZERO;
    if (moves_rows(p) || p->check == FACTS_CHECK_DROPOUT_ZERO) /* all of it stays as it is */
        return p->drop != 0.0 && !drops ? "compares the same P at other positions: no dropout"
                                        : NULL;
    if (p->drop != 0.0 && !drops)
        return "needs rows of P that sum to 1: no dropout (keep reads what it keeps)";
    if (p->check == FACTS_CHECK_OFF_BY_ONE)
        masks = masks || p->ask.alibi;
    else
        masks = masks || has_own_weights(p);
    if (masks && !multiplies && p->check != FACTS_CHECK_KEEP)
        return "supports only masks by keys, lengths and windows: no sink, slopes, boolean or tile "
               "masks (pow2 and linear support them)";
    return p->ask.rope || (p->ask.outputs & FATTN_WANT_STATS_LOG2)
               ? "needs scores that are products of Q and K, and natural stats: no rope, no stats2"
               : NULL;
}

static bool hides_nothing(const facts_problem *p)
{
    return p->ask.batch == 1 && groups_of(&p->ask) == 1 && !p->has_lengths && !has_band(&p->ask) &&
           (is_blind(p->mod) || p->mod == FACTS_MOD_POST_SCALE_BIAS || p->mod == FACTS_MOD_RELPOS);
}

static const char *refuses_probe(const facts_problem *p)
{
    bool backward = p->ask.pass == FATTN_BACKWARD;
    switch (p->check) {
    case FACTS_CHECK_COUNT:
        if (p->ask.has_bias || (!keeps_scores(p->mod) && !is_blind(p->mod)))
            return "count needs equal scores: no bias, and no modification that adds to a score";
        /* fallthrough */
    case FACTS_CHECK_READOUT:
        return backward ? "count and readout read a forward's answers" : NULL;
    case FACTS_CHECK_DS:
        return backward ? NULL : "ds reads a backward's gradients";
    case FACTS_CHECK_KEEP:
        if (p->drop == 0.0)
            return "keep needs dropout: give dropout=P";
        return p->ask.has_bias || has_own_weights(p) || (!keeps_scores(p->mod) && !is_blind(p->mod))
                   ? "keep needs equal scores: no bias, sink, slopes, and no modification that "
                     "adds to a score"
                   : NULL;
    case FACTS_CHECK_PERMUTE:
        return p->ask.batch == 1 && groups_of(&p->ask) == 1
                   ? "permute needs two batch entries, or two groups of heads"
                   : NULL;
    default:
        return NULL;
    }
}

/* A key of zeros stands before all others: score 0 for every row. */
static const char *refuses_key_of_zeros(const facts_problem *p)
{
    const fattn_problem *ask = &p->ask;
    if (!ask->sink)
        return "off_by_one needs a sink: softmax=off_by_one or sink";
    if (ask->has_left || (ask->has_right && ask->align != FATTN_BOTTOM_RIGHT))
        return "off_by_one needs rows that all read their first key: no window, or a bottom-right "
               "one without a left bound";
    if (!is_blind(p->mod) && p->mod != FACTS_MOD_POST_SCALE_BIAS)
        return "off_by_one needs scores that do not depend on the position: no mask or position";
    return ask->seq_kv < 2 ? "off_by_one needs two keys" : NULL;
}

static const char *refuses_law(const facts_problem *p)
{
    const fattn_problem *ask = &p->ask;
    switch (p->check) {
    case FACTS_CHECK_SUM_ROWS:
        return ask->pass == FATTN_BACKWARD ? "sum_rows needs pass=fwd" : NULL;
    case FACTS_CHECK_WINDOW:
        return ask->scale_in_memory ? "window asks with a quarter of the scale: not scale=tensor"
                                    : NULL;
    case FACTS_CHECK_SHIFT:
        if (ask->pass == FATTN_BACKWARD && ask->stats_dtype && ask->stats_dtype != FATTN_F32)
            return "shift moves the Stats of a backward, which 16 bits round: not stats_dtype=bf16 "
                   "or f16";
        return p->mod == FACTS_MOD_SOFTCAP
                   ? "shift does not work with softcap, which does not keep differences of scores"
                   : NULL;
    case FACTS_CHECK_REPEAT_HEADS:
        return ask->heads_k == ask->heads_q && ask->heads_v == ask->heads_q
                   ? "repeat_heads needs GQA"
                   : NULL;
    case FACTS_CHECK_OTHERS:
        return hides_nothing(p) ? "others needs elements that a query does not read: another batch "
                                  "entry, GQA group, lengths or a mask"
                                : NULL;
    case FACTS_CHECK_KEY_ORDER:
        return has_band(ask) || (!is_blind(p->mod) && p->mod != FACTS_MOD_POST_SCALE_BIAS)
                   ? "key_order needs queries that see the same keys in any order: no window, mask "
                     "or position"
                   : NULL;
    case FACTS_CHECK_SPLIT:
        if (has_band(ask) || p->has_lengths ||
            (!is_blind(p->mod) && p->mod != FACTS_MOD_POST_SCALE_BIAS))
            return "split needs queries that see every key: no window, lengths, mask or position";
        if (ask->seq_kv < 2)
            return "split needs at least two keys";
        return ask->pass == FATTN_FORWARD && !has_statistics(p)
                   ? "split needs the statistics of the parts: add want=stats"
                   : NULL;
    case FACTS_CHECK_PREFIX: {
        bool causal = ask->has_right && ask->window_right == 0 && ask->align == FATTN_TOP_LEFT;
        if ((!causal && p->mod != FACTS_MOD_CAUSAL) || p->has_lengths ||
            p->mod == FACTS_MOD_PREFIX_LM || p->mod == FACTS_MOD_DOCUMENT)
            return "prefix needs a top-left causal mask, and no lengths";
        return ask->seq_q < 2 || ask->seq_kv < 2 ? "prefix needs two rows and keys" : NULL;
    }
    case FACTS_CHECK_LENGTH:
        if (!p->has_lengths || p->mod == FACTS_MOD_DOCUMENT)
            return "length needs lengths (padding= or lens=), and no documents";
        return NULL;
    case FACTS_CHECK_OFF_BY_ONE:
        return refuses_key_of_zeros(p);
    case FACTS_CHECK_DROPOUT_ZERO:
        return p->drop == 0.0 ? "dropout_zero needs dropout: dropout=P" : NULL;
    case FACTS_CHECK_RAGGED:
        return is_packed(p) ? NULL : "ragged needs a ragged layout: layout=thd or a similar one";
    case FACTS_CHECK_PAGED:
        return is_paged(p) ? NULL : "paged needs pages: paged=N";
    case FACTS_CHECK_IDENTITIES:
        return p->fill == FACTS_FILL_GAUSS || p->fill == FACTS_FILL_UNIFORM ||
                       p->fill == FACTS_FILL_SPIKY
                   ? NULL
                   : "identities weigh errors that look like noise: fill=gauss, uniform or spiky";
    default:
        return NULL;
    }
}

const char *facts_check_refuses(const facts_problem *p)
{
    if (p->check == FACTS_CHECK_NONE)
        return NULL;
    if (has_shared_elements(p))
        return "needs tensors without shared elements: no stride 0";
    if (!is_strided(p))
        return "needs plain strided tensors: not packed, ragged or paged, and no 8-bit types";
    const char *why = refuses_joined(p);
    why = why ? why : refuses_probe(p);
    return why ? why : refuses_law(p);
}
