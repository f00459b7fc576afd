#include "drawn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "modifications.h"

const char *const feature_words[FEATURE_COUNT] = {
    "any",     "plain", "band",  "lengths", "groups",           "bias", "modification",
    "dropout", "sink",  "alibi", NULL,      "ragged and paged", "mask", "steep"
};

static int64_t between(uint64_t *state, int64_t least, int64_t most)
{
    return least + (int64_t)(random_bits(state) % (uint64_t)(most - least + 1));
}

static bool chance(uint64_t *state, int of)
{
    return random_bits(state) % (uint64_t)of == 0;
}

static fref_problem draw_sizes(uint64_t *state, feature with, const size_limits *most)
{
    static const int64_t dims[] = { 1, 8, 20, 40, 64, 72, 96, 128 };
    int64_t dim_qk, dim_v;
    do
        dim_qk = dims[random_bits(state) % 8];
    while (dim_qk > most->dim);
    do
        dim_v = chance(state, 2) ? dim_qk : dims[random_bits(state) % 8];
    while (dim_v > most->dim);
    fref_problem p =
        dense_problem(between(state, 1, most->batch), between(state, 1, most->heads), 1,
                      between(state, 1, most->seq), between(state, 1, most->seq), dim_qk, dim_v);
    if (with == FEATURE_GROUPS)
        p.heads_q = most->heads;
    p.heads_k = chance(state, 2) ? p.heads_q : 1;
    p.heads_v = chance(state, 4) ? (p.heads_k == 1 ? p.heads_q : 1) : p.heads_k;
    if (with == FEATURE_PLAIN || with == FEATURE_STEEP)
        p.heads_k = p.heads_v = p.heads_q;
    return p;
}

static void draw_mask(fref_problem *p, uint64_t *state, feature with, int32_t len_q[8],
                      int32_t len_kv[8])
{
    if (with == FEATURE_PLAIN || with == FEATURE_STEEP)
        return;
    const bool band = with == FEATURE_BAND;
    p->bottom_right = chance(state, 2);
    p->has_right = band || chance(state, 2);
    p->has_left = chance(state, 3);
    p->right = chance(state, 2) ? 0 : between(state, -3, 20);
    p->left = between(state, 1, 40);
    if (with != FEATURE_LENGTHS && with != FEATURE_APART && !chance(state, 3))
        return;
    for (int64_t b = 0; b < p->batch; b++) {
        len_q[b] = (int32_t)between(state, 0, p->rows);
        len_kv[b] = (int32_t)between(state, 0, p->keys);
    }
    p->len_q = len_q;
    p->len_kv = len_kv;
}

static void draw_bias(drawn *x, uint64_t *state)
{
    const fref_problem *p = &x->data.problem;
    const int64_t dim[4] = { chance(state, 2) ? 1 : p->batch, chance(state, 2) ? 1 : p->heads_q,
                             chance(state, 3) ? 1 : p->rows, p->keys };
    data_bias(&x->data, dim, chance(state, 2) ? FREF_F32 : x->data.type, 0.5);
}

static int64_t tiles_of(int64_t n)
{
    return (n + 127) / 128;
}

static bool is_seen(const drawn *x, int64_t b, int64_t h, int64_t i, int64_t j)
{
    const fref_problem *p = &x->data.problem;
    const int64_t *stride = x->seen.stride;
    if (x->seen_memory &&
        !x->seen_memory[b * stride[0] + h * stride[1] + i * stride[2] + j * stride[3]])
        return false;
    return !x->tiles ||
           x->tiles[((b * p->heads_q + h) * tiles_of(p->rows) + i / 128) * tiles_of(p->keys) +
                    j / 128];
}

/* Elements in the layout rows, keys, heads, batch, those that are one broadcast; tiles; the bias
 * that both are for the one in C. */
static void draw_masks(drawn *x, uint64_t *state)
{
    fref_problem *p = &x->data.problem;
    const int64_t batch = chance(state, 2) ? 1 : p->batch,
                  heads = chance(state, 2) ? 1 : p->heads_q, rows = chance(state, 3) ? 1 : p->rows,
                  all = p->batch * p->heads_q * p->rows * p->keys;
    const int64_t tiles = p->batch * p->heads_q * tiles_of(p->rows) * tiles_of(p->keys);
    const int which = (int)between(state, 1, 3);
    if (which & 1) {
        x->seen_memory = malloc((size_t)all);
        for (int64_t n = 0; n < all; n++)
            x->seen_memory[n] = chance(state, 4) ? 0 : (uint8_t)between(state, 1, 255);
        x->seen =
            (fref_tensor){ .data = x->seen_memory,
                           .stride = { batch > 1 ? 1 : 0, heads > 1 ? batch : 0,
                                       rows > 1 ? batch * heads * p->keys : 0, batch * heads } };
    }
    if (which & 2) {
        x->tiles = malloc((size_t)tiles);
        for (int64_t n = 0; n < tiles; n++)
            x->tiles[n] = !chance(state, 4);
    }
    x->masked_memory = malloc((size_t)all * sizeof *x->masked_memory);
    if (!x->masked_memory || (which & 1 && !x->seen_memory) || (which & 2 && !x->tiles))
        abort();
    x->masked = (fref_tensor){ .data = x->masked_memory,
                               .type = FREF_F32,
                               .stride = { p->heads_q * p->rows * p->keys, p->rows * p->keys,
                                           p->keys, 1 } };
    for (int64_t n = 0; n < all; n++) {
        const int64_t j = n % p->keys, i = n / p->keys % p->rows,
                      h = n / p->keys / p->rows % p->heads_q,
                      b = n / p->keys / p->rows / p->heads_q;
        const double value = p->bias ? element(p->bias, b, h, i, j) : 0.0;
        x->masked_memory[n] = is_seen(x, b, h, i, j) ? (float)value : -INFINITY;
    }
    p->bias = &x->masked;
}

static fref_tensor mod_tensor(float *memory, const int64_t stride[4])
{
    fref_tensor t = { .data = memory, .type = FREF_F32 };
    memcpy(t.stride, stride, sizeof t.stride);
    return t;
}

static void draw_mod(drawn *x, uint64_t *state)
{
    const fref_problem *p = &x->data.problem;
    x->mod.kind = (fref_mod_kind)between(state, 1, FREF_MOD_COUNT - 1);
    const bool window = x->mod.kind == FREF_MOD_WINDOW;
    x->mod.parameter[0] =
        window || x->mod.kind == FREF_MOD_PREFIX_LM ? (double)between(state, 1, 30) : (double)0.7F;
    x->mod.parameter[1] = chance(state, 3) ? INFINITY : (double)between(state, 0, 20);
    if (x->mod.kind == FREF_MOD_SOFTCAP)
        x->mod.parameter[0] = 3.0;
    const int64_t size = p->heads_q * p->rows * p->keys + p->batch * (p->rows + p->keys);
    x->mod_memory = malloc((size_t)size * sizeof(float));
    if (!x->mod_memory)
        abort();
    const bool documents = x->mod.kind == FREF_MOD_DOCUMENT;
    for (int64_t n = 0; n < size; n++)
        x->mod_memory[n] = documents ? (float)(n % 3) : (float)(0.1 * random_normal(state));
    if (documents) {
        x->mod_a = mod_tensor(x->mod_memory, (const int64_t[]){ p->rows, 0, 1, 0 });
        x->mod_b =
            mod_tensor(x->mod_memory + p->batch * p->rows, (const int64_t[]){ p->keys, 0, 0, 1 });
    } else if (x->mod.kind == FREF_MOD_RELPOS) {
        x->mod_a = mod_tensor(x->mod_memory, (const int64_t[]){ 0, 1, 0, 0 });
    } else if (x->mod.kind == FREF_MOD_POST_SCALE_BIAS) {
        x->mod_a = mod_tensor(x->mod_memory, (const int64_t[]){ 0, p->rows * p->keys, p->keys, 1 });
    }
}

/* The same closed forms for the oracle in C; those of modifications.h have its parameters. */
static fref_modified modify(const void *owner, double s, const int64_t at[4])
{
    const drawn *x = owner;
    const double *parameter = x->mod.parameter;
    const int64_t i = at[2], j = at[3];
    fref_modified m = { .value = s, .slope = 1.0 };
    bool visible = true;
    double added = 0.0;
    switch (x->mod.kind) {
    case FREF_MOD_CAUSAL:
        visible = j <= i;
        break;
    case FREF_MOD_WINDOW:
        visible = (double)j <= (double)i + parameter[1] && (double)j > (double)i - parameter[0];
        break;
    case FREF_MOD_PREFIX_LM:
        visible = j <= i || (double)j < parameter[0];
        break;
    case FREF_MOD_DOCUMENT:
        visible = element(&x->mod_a, at[0], 0, i, 0) == element(&x->mod_b, at[0], 0, 0, j);
        break;
    case FREF_MOD_SOFTCAP:
        return modify_exactly(&(mod_kind){ MOD_SOFTCAP }, s, at);
    case FREF_MOD_TEMPERATURE:
        return modify_exactly(&(mod_kind){ MOD_TEMPERATURE }, s, at);
    case FREF_MOD_POST_SCALE_BIAS:
        m.value = s + element(&x->mod_a, at[0], at[1], i, j);
        m.rounded = fabs(m.value);
        return m;
    case FREF_MOD_RELPOS:
        added = element(&x->mod_a, 0, at[1], 0, 0) * (double)(j - i);
        m.value = s + added;
        m.rounded = fabs(m.value) + fabs(added);
        return m;
    default:
        return m;
    }
    m.value = visible ? s : -INFINITY;
    m.slope = visible ? 1.0 : 0.0;
    return m;
}

static void draw_extras(drawn *x, uint64_t *state, feature with)
{
    fref_problem *p = &x->data.problem;
    const bool plain = with == FEATURE_PLAIN || with == FEATURE_STEEP;
    if (with == FEATURE_BIAS || (!plain && chance(state, 4)))
        draw_bias(x, state);
    x->bias = p->bias;
    if (with == FEATURE_MASK || (with == FEATURE_ANY && chance(state, 4)))
        draw_masks(x, state);
    if (with == FEATURE_MOD || (!plain && chance(state, 4))) {
        draw_mod(x, state);
        p->modify = modify;
        p->modify_owner = x;
    }
    if (with == FEATURE_DROPOUT || (!plain && chance(state, 5))) {
        size_t size = (size_t)(p->batch * p->heads_q * p->rows * p->keys);
        x->keep = malloc(size);
        for (size_t n = 0; n < size; n++)
            x->keep[n] = !chance(state, 5);
        p->keep = x->keep;
        p->keep_scale = 1.25;
    }
    if (with == FEATURE_SINK || (!plain && chance(state, 5))) {
        x->sink = malloc((size_t)p->heads_q * sizeof *x->sink);
        for (int64_t h = 0; h < p->heads_q; h++)
            x->sink[h] = (float)random_normal(state);
        p->sink = x->sink;
    }
    if (with == FEATURE_ALIBI || (!plain && chance(state, 5))) {
        x->alibi = malloc((size_t)p->heads_q * sizeof *x->alibi);
        for (int64_t h = 0; h < p->heads_q; h++)
            x->alibi[h] = exp2(-8.0 * (double)(h + 1) / (double)p->heads_q);
        p->alibi = x->alibi;
    }
}

static void draw_rounding(drawn *x, uint64_t *state)
{
    fref_rounding *r = &x->rounding;
    *r = fref_rounding_of(x->data.type, x->data.type);
    if (bytes_of(x->data.type) == 1)
        r->ds = chance(state, 2) ? FREF_E5M2 : FREF_E4M3;
    r->acc_pv = chance(state, 4) ? 0.01 : 0.0;
    r->acc_run = chance(state, 2) ? 128.0 : 40.0;
    r->eps_exp = chance(state, 4) ? 1e-4 : 0.0;
    r->eps_mod = chance(state, 4) ? 1e-4 : 0.0;
    r->p_normalised = chance(state, 4);
    r->discrete = chance(state, 4);
    r->own_o = !chance(state, 4);
    r->partials_cast = !chance(state, 3);
    r->bias_parts_cast = !chance(state, 3);
    r->cw = r->cl = chance(state, 3) ? 4.0 : 1.0;
    r->coherent = chance(state, 4) ? FREF_GRADIENT_Q | FREF_GRADIENT_V : 0U;
}

void drawn_create(drawn *x, feature with, uint64_t seed, const size_limits *most)
{
    uint64_t state = seed * 77 + (uint64_t)with + 1;
    int32_t len_q[8], len_kv[8];
    for (int n = 0; n < 8; n++)
        random_bits(&state);
    memset(x, 0, sizeof *x);
    fref_problem p = draw_sizes(&state, with, most);
    draw_mask(&p, &state, with, len_q, len_kv);
    const fref_type types[] = { FREF_F32, FREF_F16, FREF_BF16, FREF_E4M3, FREF_E5M2 };
    data_create(&x->data, &p, types[random_bits(&state) % 5],
                (data_fill)(random_bits(&state) % FILL_COUNT), seed);
    if (chance(&state, 4))
        x->data.problem.scale *= -1.0;
    if (with == FEATURE_STEEP)
        x->data.problem.scale *= 80.0;
    if (bytes_of(x->data.type) == 1)
        x->data.problem.scales = (fref_scales){ 3.0, 0.3, 5.0, 0.25, 7.0, 11.0, 0.7, 1.3 };
    draw_extras(x, &state, with);
    draw_rounding(x, &state);
    data_answer(&x->data);
}

void drawn_destroy(drawn *x)
{
    data_destroy(&x->data);
    free(x->mod_memory);
    free(x->seen_memory);
    free(x->tiles);
    free(x->masked_memory);
    free(x->keep);
    free(x->alibi);
    free(x->sink);
}
