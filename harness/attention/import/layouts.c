#include "layouts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "keys/layout_word.h"
#include "problem/case_problem.h"
#include "problem/storage.h"
#include "tokens.h"

static const char letters[] = "bhsd";
static const char *const dense_words[] = { "bshd", "sbhd", "bhsd" }, *const packed_words[] = {
    "thd"
};
static const char *const three_words[] = { "bs3hd", "sb3hd", "bsh3d", "sbh3d" },
                         *const three_packed[] = { "t3hd", "th3d" };
static const char *const two_words[] = { "bs2hd", "sb2hd", "bsh2d", "sbh2d" },
                         *const two_packed[] = { "t2hd", "th2d" };

/* The case in the making. */
typedef struct shaping {
    const facts_import_attention *a;
    char keys[300];                   /* layouts */
    tokens gap, broadcast, sum, perm; /* of the forms of stride= */
    int64_t gap_of_all;               /* tried first: `gap:N`; 0: each tensor for itself */
    facts_problem *problem;           /* of the last try */
} shaping;

static void add_key(shaping *s, const char *key, const char *word)
{
    size_t used = strlen(s->keys);
    snprintf(s->keys + used, sizeof s->keys - used, " %s=%s", key, word);
}

/* Packed rows' numbers head by head: heads are as far apart as all tokens together, which follows
 * from lengths that the log does not say. */
static bool is_head_major(const facts_import_tensor *t)
{
    return t->ragged != -1 && t->dim[3] == 1 && t->dim[1] > 1 && t->stride[1] > t->stride[2];
}

/* Strides that are never used do not count: of extents of 1, and of b in ragged tensors. */
static bool same_strides(const facts_import_tensor *t, const int64_t stride[4])
{
    for (int d = 0; d < 4; d++)
        if (t->dim[d] > 1 && !(d == 0 && t->ragged != -1) && !(d == 1 && is_head_major(t)) &&
            t->stride[d] != stride[d])
            return false;
    return true;
}

static bool has_word(const facts_import_tensor *t, const char *word)
{
    static const facts_stride_form nothing = { 0 };
    facts_place_request request = { .form = &nothing, .tokens = t->dim[2] };
    facts_tensor out = { 0 };
    if (t->dim[0] < 1 || t->dim[1] < 1 || t->dim[2] < 1 || t->dim[3] < 1)
        return false;
    memcpy(request.dim, t->dim, sizeof request.dim);
    snprintf(request.order, sizeof request.order, "%s", word);
    return facts_place_tensor(&request, &out) == NULL && same_strides(t, out.stride);
}

static const char *word_of(const facts_import_tensor *t)
{
    const char *const *words = t->ragged != -1 ? packed_words : dense_words;
    size_t count = t->ragged != -1 ? sizeof packed_words / sizeof *packed_words
                                   : sizeof dense_words / sizeof *dense_words;
    for (size_t i = 0; i < count; i++)
        if (has_word(t, words[i]))
            return words[i];
    return NULL;
}

/* The elements after each index when the memory order is `order`; false when some would be fewer
 * than none. */
static bool gaps_in(const facts_import_tensor *t, const char *order, int64_t gap[4])
{
    int64_t run = 1;
    memset(gap, 0, 4 * sizeof *gap);
    for (size_t i = strlen(order); i-- > 0;) {
        int d = order[i] == 't' ? 2 : (int)(strchr(letters, order[i]) - letters);
        if (t->dim[d] == 1 || t->stride[d] == 0)
            continue;
        gap[d] = t->stride[d] - run;
        if (gap[d] < 0)
            return false;
        run = t->stride[d] * t->dim[d];
    }
    return true;
}

/* Outermost first, by stride; dimensions that nobody steps by stay where b,h,s,d has them. */
static void order_by_stride(const facts_import_tensor *t, char out[5])
{
    int sorted[4] = { 0, 1, 2, 3 };
    for (int i = 1; i < 3; i++)
        for (int j = i; j > 0; j--) {
            int x = sorted[j - 1], y = sorted[j];
            bool free_x = t->dim[x] == 1 || t->stride[x] == 0,
                 free_y = t->dim[y] == 1 || t->stride[y] == 0;
            if (free_x || free_y || t->stride[x] >= t->stride[y])
                continue;
            sorted[j - 1] = y;
            sorted[j] = x;
        }
    for (int i = 0; i < 4; i++)
        out[i] = letters[sorted[i]];
    out[4] = '\0';
}

/* Forms of stride= for a tensor that no word has; `base` receives the word they start from. */
static bool forms_of(shaping *s, const facts_import_tensor *t, const char *name,
                     const char *const *words, size_t count, const char **base)
{
    int64_t gap[4];
    char order[5];
    *base = NULL;
    for (size_t i = 0; *base == NULL && i < count; i++)
        if (gaps_in(t, words[i], gap))
            *base = words[i];
    if (*base == NULL) {
        order_by_stride(t, order);
        if (t->ragged != -1 || !gaps_in(t, order, gap))
            return false;
        *base = words[0];
        add(&s->perm, "%s.%s", name, order);
    }
    for (int d = 0; d < 4; d++) {
        if (t->dim[d] > 1 && t->stride[d] == 0)
            add(&s->broadcast, "%s.%c", name, letters[d]);
        else if (gap[d] > 0 && !(d == 1 && is_head_major(t)))
            add(&s->gap, "%s.%c.%" PRId64, name, letters[d], gap[d]);
    }
    return true;
}

static bool plain_forms(shaping *s, const facts_import_tensor *t, const char *name,
                        const char **base)
{
    return t->ragged != -1 ? forms_of(s, t, name, packed_words, 1, base)
                           : forms_of(s, t, name, dense_words, 3, base);
}

static bool all_have(const facts_import_tensor *const t[3], int from, const char *word)
{
    for (int i = from; i < 3; i++)
        if (!has_word(t[i], word) || memcmp(t[i]->dim, t[from]->dim, sizeof t[i]->dim) != 0 ||
            (t[i]->ragged != -1) != (t[from]->ragged != -1))
            return false;
    return true;
}

/* The words of three tensors: their own, or those of one storage for three or for two of them; NULL
 * where forms are needed. */
static void three_words_of(const facts_import_tensor *const t[3], const char *word[3])
{
    for (int i = 0; i < 3; i++)
        word[i] = word_of(t[i]);
    bool ragged = t[1]->ragged != -1;
    for (int n = 0; n < (ragged ? 2 : 4) && (word[0] == NULL || word[1] == NULL || word[2] == NULL);
         n++) {
        const char *three = ragged ? three_packed[n] : three_words[n],
                   *two = ragged ? two_packed[n] : two_words[n];
        if (word[0] == NULL && word[1] == NULL && word[2] == NULL && all_have(t, 0, three))
            word[0] = word[1] = word[2] = three;
        else if (word[1] == NULL && word[2] == NULL && all_have(t, 1, two))
            word[1] = word[2] = two;
    }
}

/* Tries what is there. False: it is no case, or nobody could compute it. */
static bool try_case(shaping *s, facts_case *out, const char *text, facts_error *error)
{
    tokens forms = { .between = ';' };
    char whole[8 * 1024];
    const struct {
        const char *word;
        const tokens *list;
    } rows[] = {
        { "gap", &s->gap }, { "broadcast", &s->broadcast }, { "sum", &s->sum }, { "perm", &s->perm }
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].list->length > 0)
            add(&forms, "%s:%s", rows[i].word, rows[i].list->text);
    snprintf(whole, sizeof whole, "%s%s%s%s", text, s->keys, forms.length > 0 ? " stride=" : "",
             forms.text);
    if (!facts_case_parse(out, whole, error))
        return false;
    return facts_problem_resolve(s->problem, out, error) == FACTS_RESOLVED;
}

static bool fits(const shaping *s, const facts_import_placed *p)
{
    const facts_tensor *is = &s->problem->tensor[p->id];
    const facts_import_tensor *t = &s->a->part[p->role];
    return !s->a->has[p->role] || (is->present && same_strides(t, is->stride) &&
                                   (is->packed != FACTS_PACKED_NOT) == (t->ragged != -1));
}

static bool fits_word(const shaping *s, const char *word)
{
    for (int i = 0; i < FACTS_IMPORT_PLACED; i++)
        if (strcmp(facts_import_placed_tensors[i].word, word) == 0 &&
            !fits(s, &facts_import_placed_tensors[i]))
            return false;
    return true;
}

static const facts_import_tensor *part(const shaping *s, facts_import_role role)
{
    return &s->a->part[role];
}

/* One order for Q, K and V that no layout has: `perm:hbsd`. */
static bool shape_order(shaping *s, const facts_import_tensor *const t[3])
{
    char order[3][5];
    int64_t gap[4];
    for (int i = 0; i < 3; i++) {
        order_by_stride(t[i], order[i]);
        bool dense = t[i]->ragged == -1 && gaps_in(t[i], order[i], gap) &&
                     (gap[0] | gap[1] | gap[2] | gap[3]) == 0;
        if (!dense || word_of(t[i]) != NULL || strcmp(order[i], order[0]) != 0)
            return false;
    }
    add(&s->perm, "%s", order[0]);
    return true;
}

/* The gap after each token that is the same in Q, K and V: `gap:N` says it of O and the gradients
 * too. 0: there is none. */
static int64_t gap_of_all(const facts_import_attention *a)
{
    int64_t gap[4], all = 0;
    for (facts_import_role role = FACTS_IMPORT_ROLE_Q; role <= FACTS_IMPORT_ROLE_V; role++) {
        const facts_import_tensor *t = &a->part[role];
        const char *const *words = t->ragged != -1 ? packed_words : dense_words;
        size_t i = 0, count = t->ragged != -1 ? 1 : 3;
        while (i < count && !gaps_in(t, words[i], gap))
            i++;
        if (i == count || gap[0] != 0 || gap[1] != 0 || gap[3] != 0 || gap[2] == 0 ||
            (all != 0 && gap[2] != all))
            return 0;
        all = gap[2];
    }
    return all;
}

static bool shape_inputs(shaping *s)
{
    static const char *const name[3] = { "q", "k", "v" };
    const facts_import_tensor *t[3] = { part(s, FACTS_IMPORT_ROLE_Q), part(s, FACTS_IMPORT_ROLE_K),
                                        part(s, FACTS_IMPORT_ROLE_V) };
    const char *word[3];
    if (shape_order(s, t))
        return true;
    three_words_of(t, word);
    int64_t gap[4];
    for (int i = 0; s->gap_of_all != 0 && i < 3; i++) { /* the word that the gap is in */
        const char *const *words = t[i]->ragged != -1 ? packed_words : dense_words;
        while (!gaps_in(t[i], *words, gap))
            words++;
        word[i] = *words;
    }
    if (s->gap_of_all != 0)
        add(&s->gap, "%" PRId64, s->gap_of_all);
    for (int i = 0; i < 3; i++) {
        if (word[i] == NULL && !plain_forms(s, t[i], name[i], &word[i]))
            return false;
        add_key(s, name[i], word[i]);
    }
    return true;
}

/* The rows' numbers: Stats, or where there are none Max or Sum_exp, which lie as they do. */
static bool shape_rows(shaping *s)
{
    static const facts_import_role roles[] = { FACTS_IMPORT_ROLE_STATS, FACTS_IMPORT_ROLE_MAX,
                                               FACTS_IMPORT_ROLE_SUM_EXP };
    const char *base;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        const facts_import_tensor *t = part(s, roles[i]);
        if (!s->a->has[roles[i]])
            continue;
        bool ragged = t->ragged != -1,
             other = ragged ? is_head_major(t) : has_word(t, "bshd") && !has_word(t, "bhsd");
        static const char *const order[2][2] = { { "bhsd", "bshd" }, { "thd", "htd" } },
                                 *const key[2][2] = { { "bhs1", "bsh1" }, { "th1", "ht1" } };
        add_key(s, "stats", key[ragged][other]);
        return has_word(t, order[ragged][other]) ||
               forms_of(s, t, "stats", &order[ragged][other], 1, &base);
    }
    return true;
}

bool facts_import_bias_row(const facts_import_attention *a)
{
    const facts_import_tensor *bias = &a->part[FACTS_IMPORT_ROLE_BIAS];
    return a->backward && !a->unified && a->has[FACTS_IMPORT_ROLE_BIAS] && bias->dim[2] > 1 &&
           bias->stride[2] == 0;
}

static bool shape_bias(shaping *s, facts_import_role role, const char *name)
{
    static const char *const row_major[] = { "bhsd" };
    const char *base;
    const facts_import_tensor *t = part(s, role);
    return !s->a->has[role] || has_word(t, "bhsd") || forms_of(s, t, name, row_major, 1, &base);
}

/* O and dO, when they do not lie as they would of themselves. */
static bool shape_following(shaping *s, facts_import_role role, const char *name)
{
    const char *word = word_of(part(s, role));
    if (word == NULL && !plain_forms(s, part(s, role), name, &word))
        return false;
    add_key(s, name, word);
    return true;
}

static bool shape_gradients(shaping *s)
{
    static const char *const name[3] = { "dq", "dk", "dv" };
    const facts_import_tensor *t[3] = { part(s, FACTS_IMPORT_ROLE_DQ),
                                        part(s, FACTS_IMPORT_ROLE_DK),
                                        part(s, FACTS_IMPORT_ROLE_DV) };
    const char *word[3];
    char layout[24];
    three_words_of(t, word);
    if (word[1] != NULL && word[2] != NULL &&
        strcmp(word[1], word[2]) != 0) /* dqkv= has one word for both */
        if (!forms_of(s, t[2], "dv", &word[1], 1, &word[2]))
            return false;
    for (int i = 0; i < 3; i++)
        if (word[i] == NULL) {
            bool alone = i == 0 || t[i]->ragged != -1 || word[3 - i] == NULL;
            if (!(alone ? plain_forms(s, t[i], name[i], &word[i])
                        : forms_of(s, t[i], name[i], &word[3 - i], 1, &word[i])))
                return false;
        }
    if (!facts_layout_write(facts_span_of(word[0]), facts_span_of(word[1]), layout))
        return false;
    add_key(s, "dqkv", layout);
    return true;
}

/* A gradient that has one element where its input has many is a sum. */
static void shape_sums(shaping *s)
{
    static const facts_import_role of[][2] = { { FACTS_IMPORT_ROLE_DQ, FACTS_IMPORT_ROLE_Q },
                                               { FACTS_IMPORT_ROLE_DK, FACTS_IMPORT_ROLE_K },
                                               { FACTS_IMPORT_ROLE_DV, FACTS_IMPORT_ROLE_V },
                                               { FACTS_IMPORT_ROLE_DBIAS,
                                                 FACTS_IMPORT_ROLE_BIAS } };
    static const char *const name[] = { "dq", "dk", "dv", "dbias" };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int d = 0; s->a->has[of[i][0]] && d < 4; d++)
            if (part(s, of[i][0])->dim[d] == 1 && part(s, of[i][1])->dim[d] > 1)
                add(&s->sum, "%s.%c", name[i], letters[d]);
}

static bool refuse_strides(const shaping *s, const char *word, facts_error *error)
{
    for (int i = 0; i < FACTS_IMPORT_PLACED; i++)
        if (strcmp(facts_import_placed_tensors[i].word, word) == 0 &&
            s->a->has[facts_import_placed_tensors[i].role]) {
            const facts_import_tensor *t = part(s, facts_import_placed_tensors[i].role);
            snprintf(error->text, sizeof error->text,
                     "no layout has %s with sizes %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                     " and strides %" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64,
                     word, t->dim[0], t->dim[1], t->dim[2], t->dim[3], t->stride[0], t->stride[1],
                     t->stride[2], t->stride[3]);
        }
    return false;
}

/* What follows something else is left alone where that is right already. */
static bool shape_outputs(shaping *s, facts_case *out, const char *text, facts_error *error)
{
    if (!fits_word(s, "o") &&
        (!shape_following(s, FACTS_IMPORT_ROLE_O, "o") || !try_case(s, out, text, error)))
        return error->text[0] != '\0' ? false : refuse_strides(s, "o", error);
    if (!fits_word(s, "do") &&
        (!shape_following(s, FACTS_IMPORT_ROLE_DO, "do") || !try_case(s, out, text, error)))
        return error->text[0] != '\0' ? false : refuse_strides(s, "do", error);
    bool gradients = fits_word(s, "dq") && fits_word(s, "dk") && fits_word(s, "dv");
    if (!gradients && (!shape_gradients(s) || !try_case(s, out, text, error)))
        return error->text[0] != '\0' ? false : refuse_strides(s, "dq", error);
    for (int i = 0; i < FACTS_IMPORT_PLACED; i++)
        if (!fits(s, &facts_import_placed_tensors[i]))
            return refuse_strides(s, facts_import_placed_tensors[i].word, error);
    return true;
}

/* One way through: inputs, rows, bias; then what follows from them is looked at. */
static bool shape(shaping *s, facts_case *out, const char *text, facts_error *error)
{
    *error = (facts_error){ .line = 0 };
    if (!shape_inputs(s))
        return refuse_strides(s,
                              word_of(part(s, FACTS_IMPORT_ROLE_Q)) == NULL   ? "q"
                              : word_of(part(s, FACTS_IMPORT_ROLE_K)) == NULL ? "k"
                                                                              : "v",
                              error);
    if (!shape_rows(s))
        return refuse_strides(s, "stats", error);
    if (!shape_bias(s, FACTS_IMPORT_ROLE_BIAS, "bias") ||
        !shape_bias(s, FACTS_IMPORT_ROLE_DBIAS, "dbias"))
        return refuse_strides(s, "bias", error);
    shape_sums(s);
    if (!try_case(s, out, text, error))
        return false;
    if (s->gap_of_all == 0)
        return shape_outputs(s, out, text, error);
    for (int i = 0; i < FACTS_IMPORT_PLACED; i++)
        if (!fits(s, &facts_import_placed_tensors[i]))
            return refuse_strides(s, facts_import_placed_tensors[i].word, error);
    return true;
}

bool facts_import_layouts(facts_case *out, facts_import_notes *notes,
                          const facts_import_attention *attention, const char *text,
                          facts_error *error)
{
    facts_problem *problem = calloc(1, sizeof *problem);
    facts_import_attention one_row = *attention;
    if (facts_import_bias_row(attention)) {
        one_row.part[FACTS_IMPORT_ROLE_BIAS].dim[2] = 1;
        one_row.has[FACTS_IMPORT_ROLE_DBIAS] =
            false; /* the gradient of one row is a sum over what cuDNN gives */
        attention = &one_row;
    }
    const tokens none = { .between = '+' };
    const shaping fresh = { .a = attention,
                            .gap = none,
                            .broadcast = none,
                            .sum = none,
                            .perm = none,
                            .problem = problem };
    shaping s = fresh;
    s.gap_of_all = gap_of_all(attention);
    bool ok = s.gap_of_all != 0 && shape(&s, out, text, error);
    if (!ok) {
        s = fresh;
        ok = shape(&s, out, text, error);
    }
    ok = ok && facts_import_agree(notes, attention, problem, error);
    free(problem);
    return ok;
}
