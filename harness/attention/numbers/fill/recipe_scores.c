/* Bias, and the tensors of score modifications. */
#include <math.h>
#include <stdlib.h>

#include "mod.h"
#include "recipe.h"
#include "scalars.h"

#define STREAM_OF_MOD FACTS_STREAM_SINK /* no case has both */

static void make_bias(facts_recipe *r, const facts_problem *p)
{
    static const facts_element elements[FACTS_BIAS_FILL_COUNT] = {
        [FACTS_BIAS_RANDN] = FACTS_ELEMENT_NORMAL,
        [FACTS_BIAS_ZERO] = FACTS_ELEMENT_ZERO,
        [FACTS_BIAS_RANDOM] = FACTS_ELEMENT_HIDDEN,
        [FACTS_BIAS_ROWS_MASKED] = FACTS_ELEMENT_HIDDEN_ROW,
        [FACTS_BIAS_WINDOW] = FACTS_ELEMENT_BAND,
        [FACTS_BIAS_FINITE_MIN] = FACTS_ELEMENT_HIDDEN,
        [FACTS_BIAS_ROWS_LOW] = FACTS_ELEMENT_HIDDEN_ROW,
        [FACTS_BIAS_ALL_TRUE] = FACTS_ELEMENT_CONSTANT,
        [FACTS_BIAS_MINUS_INF] = FACTS_ELEMENT_CONSTANT,
    };
    const bool mask = r->dtype == FATTN_BOOL;
    r->stream = FACTS_STREAM_BIAS;
    r->element = elements[p->bias_fill];
    r->hidden = mask                                    ? 0.0
                : p->bias_fill == FACTS_BIAS_FINITE_MIN ? -facts_dtype_max(r->dtype)
                : p->bias_fill == FACTS_BIAS_ROWS_LOW   ? -20000.0
                                                        : -INFINITY;
    r->shown = p->bias_fill == FACTS_BIAS_MINUS_INF ? r->hidden : mask ? 1.0 : 0.0;
    r->left = p->bias_parameter[0];
    r->right = p->bias_parameter[1];
}

/* A head's slope, the document of a row or a key. */
static double listed(const facts_problem *p, facts_tensor_id id, const int64_t at[4])
{
    if (p->mod == FACTS_MOD_RELPOS)
        return facts_mod_slope(p->tensor[id].dim[1], at[1]);
    return (double)facts_mod_document(p, at[0], id == FACTS_TENSOR_MOD_A ? at[2] : at[3],
                                      id == FACTS_TENSOR_MOD_B);
}

static bool make_list(facts_recipe *r, const facts_problem *p, facts_tensor_id id)
{
    const int64_t *dim = r->dim, count = dim[0] * dim[1] * dim[2] * dim[3];
    double *list = malloc((size_t)count * sizeof *list + 1);
    r->element = FACTS_ELEMENT_LIST;
    r->list = list;
    for (int64_t n = 0; list && n < count; n++) {
        const int64_t at[4] = { n / (dim[1] * dim[2] * dim[3]), n / (dim[2] * dim[3]) % dim[1],
                                n / dim[3] % dim[2], n % dim[3] };
        list[n] = listed(p, id, at);
    }
    return list != NULL;
}

bool facts_recipe_scores(facts_recipe *r, const facts_problem *p, facts_tensor_id id)
{
    if (id == FACTS_TENSOR_BIAS) {
        make_bias(r, p);
        return true;
    }
    if (id == FACTS_TENSOR_DROPOUT_MASK) {
        r->stream = FACTS_STREAM_KEEP;
        r->element = FACTS_ELEMENT_KEEP;
        r->steps = p->drop;
        return true;
    }
    r->stream = STREAM_OF_MOD;
    r->element = FACTS_ELEMENT_NORMAL;
    return (p->mod != FACTS_MOD_RELPOS && p->mod != FACTS_MOD_DOCUMENT) || make_list(r, p, id);
}
