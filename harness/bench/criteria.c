#include "criteria.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eager.h"
#include "emulation/emulated_trial.h"
#include "emulation/scenes.h"
#include "numbers/dtype.h"

#define AS_NAME(symbol, name) name,
const char *const facts_criterion_names[FACTS_CRITERION_COUNT] = { FACTS_CRITERION_LIST(AS_NAME) };
#undef AS_NAME
#define AS_HEADING(symbol, heading, type, size) heading,
const char *const facts_column_headings[FACTS_COLUMN_COUNT] = { FACTS_COLUMN_LIST(AS_HEADING) };
#undef AS_HEADING
static const struct {
    facts_survey_type type;
    facts_size size;
} columns[FACTS_COLUMN_COUNT] = {
#define AS_COLUMN(symbol, heading, type, size) { FACTS_SURVEY_##type, FACTS_SIZE_##size },
    FACTS_COLUMN_LIST(AS_COLUMN)
#undef AS_COLUMN
};
static const fref_type type_of[FACTS_SURVEY_TYPES] = { FREF_BF16, FREF_F16, FREF_F32, FREF_E4M3,
                                                       FREF_E5M2 };

/* Every criterion runs on the fill gauss; ours run on four fills, one criterion on a fill of its
 * own. Correct kernels run on all of these. */
static const char *const fills[] = { "gauss",      "needle",  "neglse", "stair_up",
                                     "sparse_int", "uniform", "spiky" };
enum { GAUSS, NEEDLE, NEGLSE, STAIR_UP, SPARSE_INT, FILLS = sizeof fills / sizeof *fills };

/* ---- others' criteria ---- */

/* Live elements: the answer and the reference. */
typedef struct pairs {
    size_t n;
    double *got, *want;
} pairs;

static bool pairs_of(pairs *out, const facts_expected_answer *answer, const unsigned char *storage)
{
    const facts_tensor *t = &answer->tensor;
    size_t total = (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
    *out = (pairs){ .got = malloc((2 * total + 1) * sizeof(double)) };
    if (!out->got)
        return false;
    out->want = out->got + total;
    for (size_t i = 0; i < total; i++) {
        int64_t n = (int64_t)i, d = n % t->dim[3], s = n / t->dim[3] % t->dim[2],
                h = n / (t->dim[3] * t->dim[2]) % t->dim[1],
                b = n / (t->dim[3] * t->dim[2] * t->dim[1]);
        if (answer->expects[b * t->dim[2] + s] != FACTS_EXPECTS_VALUE)
            continue;
        int64_t first = answer->slot.first ? answer->slot.first[b] : t->first + b * t->stride[0];
        uint32_t code = facts_load(t->dtype, storage,
                                   first + h * t->stride[1] + s * t->stride[2] + d * t->stride[3]);
        out->got[out->n] = facts_decode(t->dtype, code) * (answer->unit > 0.0 ? answer->unit : 1.0);
        out->want[out->n++] = answer->answer.want[i];
    }
    return true;
}

/* As torch.testing.assert_close: infinities of one sign are equal, a NaN is not. */
static bool all_close(const pairs *x, double atol, double rtol)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->got[i] != x->want[i] &&
            !(fabs(x->got[i] - x->want[i]) <= atol + rtol * fabs(x->want[i]) &&
              isfinite(x->want[i])))
            return false;
    return true;
}

static bool nmse(const pairs *x, double most)
{
    double off = 0.0, power = 0.0;
    for (size_t i = 0; i < x->n; i++) {
        off += (x->got[i] - x->want[i]) * (x->got[i] - x->want[i]);
        power += x->want[i] * x->want[i];
    }
    return off <= most * power;
}

static double largest_error(const pairs *x)
{
    double most = 0.0;
    for (size_t i = 0; i < x->n; i++) {
        double off = fabs(x->got[i] - x->want[i]);
        most = off <= most ? most : isnan(off) ? INFINITY : off;
    }
    return most;
}

static bool one_dnn(const pairs *x, fref_type type)
{
    double allowed = type == FREF_BF16 ? 0.0079 : 0.001466;
    size_t off = 0;
    for (size_t i = 0; i < x->n; i++)
        off += !(fabs(x->got[i] - x->want[i]) <= allowed * fmax(1.0, fabs(x->want[i])));
    return off <= (size_t)((double)x->n * 0.0006) && largest_error(x) <= 0.03;
}

static bool transformer_engine(const pairs *x, fref_type type)
{
    if (type != FREF_E4M3 && type != FREF_E5M2)
        return all_close(x, type == FREF_BF16 ? 1.5e-2 : 1e-3, type == FREF_BF16 ? 1.5e-2 : 1e-3);
    double squares = 0.0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < x->n; i++) {
        squares += (x->got[i] - x->want[i]) * (x->got[i] - x->want[i]);
        least = fmin(least, fmin(x->got[i], x->want[i]));
        most = fmax(most, fmax(x->got[i], x->want[i]));
    }
    return all_close(x, 0.5, 0.5) || sqrt(squares / (double)x->n) <= 0.15 * (most - least);
}

/* ---- one run ---- */

typedef struct reported {
    bool wrong[FACTS_CRITERION_COUNT];
} reported;

static bool ask_others(reported *out, const facts_scene *x, const facts_answers *a,
                       double eager_error)
{
    pairs o, stats = { 0 };
    bool ok = pairs_of(&o, &x->out[FACTS_SLOT_O], a->storage[FACTS_SLOT_O]) &&
              pairs_of(&stats, &x->out[FACTS_SLOT_STATS], a->storage[FACTS_SLOT_STATS]);
    if (ok) {
        bool cudnn = all_close(&o, 2e-2, 2e-2) && all_close(&stats, 2e-2, 2e-2);
        out->wrong[FACTS_CRITERION_CUDNN] = out->wrong[FACTS_CRITERION_CUDNN_SPARSE] = !cudnn;
        out->wrong[FACTS_CRITERION_GGML] = !nmse(&o, 5e-4);
        out->wrong[FACTS_CRITERION_FLASH] = !(largest_error(&o) <= 2.0 * eager_error);
        out->wrong[FACTS_CRITERION_ONEDNN] = !one_dnn(&o, x->type);
        out->wrong[FACTS_CRITERION_TE] = !transformer_engine(&o, x->type);
    }
    free(o.got);
    free(stats.got);
    return ok;
}

static int run(reported *out, const facts_scene *x, const facts_kernel *kernel, double eager_error)
{
    facts_answers a;
    facts_trial t;
    *out = (reported){ { false } };
    bool ok = facts_answers_create(&a, x, kernel, FACTS_PATTERN_A) &&
              facts_answers_judge(&t, x, &a, FACTS_PATTERN_A) &&
              ask_others(out, x, &a, eager_error);
    if (ok) {
        bool o = facts_judgement_verdict(&t.judgement[FACTS_SLOT_O]) != FACTS_VERDICT_PASS;
        out->wrong[FACTS_CRITERION_OURS] = out->wrong[FACTS_CRITERION_OURS_GAUSS] =
            t.verdict != FACTS_VERDICT_PASS;
        out->wrong[FACTS_CRITERION_OURS_O] = o;
    }
    facts_answers_destroy(&a);
    return ok ? 0 : ENOMEM;
}

/* Does this criterion run with this fill? */
static bool asks(facts_criterion c, int fill)
{
    switch (c) {
    case FACTS_CRITERION_CUDNN_SPARSE:
        return fill == SPARSE_INT;
    case FACTS_CRITERION_OURS:
    case FACTS_CRITERION_OURS_O:
        return fill <= STAIR_UP;
    default:
        return fill == GAUSS;
    }
}

/* ---- a column ---- */

typedef struct column {
    facts_survey_type type;
    facts_size size;
    uint64_t seed;
    bool killed[FACTS_LIAR_COUNT][FACTS_CRITERION_COUNT];
    bool failed[FILLS][FACTS_CRITERION_COUNT];
} column;

static bool takes_part(const column *c, facts_liar liar)
{
    return strncmp(facts_liar_words[liar], "fwd.", 4) == 0 &&
           !facts_not_applicable(liar, c->type, c->size);
}

static facts_kernel kernel_of(const column *c, facts_scene_id scene, facts_liar liar)
{
    return (facts_kernel){ .liar = liar,
                           .lazy = c->type == FACTS_SURVEY_E4M3 ? 4.0 : 0.0,
                           .splits = scene == FACTS_SCENE_SPLIT ? 3 : 1 };
}

static int run_scene(column *c, facts_scene_id id, int fill, facts_error *error)
{
    char text[FACTS_CASE_TEXT];
    facts_scene scene;
    reported t;
    double eager_error = 0.0;
    facts_scene_text(text, id, c->size, fills[fill], c->seed);
    fref_type type = type_of[c->type];
    int status = facts_scene_create(
        &scene, &(facts_scene_plan){ text, type, type, facts_scene_features(id), NULL }, error);
    if (status == 0 && !facts_eager_error(&eager_error, &scene))
        status = ENOMEM;
    facts_kernel honest = kernel_of(c, id, FACTS_LIAR_NONE);
    if (status == 0 && (status = run(&t, &scene, &honest, eager_error)) == 0)
        for (facts_criterion k = 0; k < FACTS_CRITERION_COUNT; k++)
#pragma omp atomic
            c->failed[fill][k] |= t.wrong[k];
    for (facts_liar liar = 1; status == 0 && liar < FACTS_LIAR_COUNT && fill <= SPARSE_INT;
         liar++) {
        facts_kernel kernel = kernel_of(c, id, liar);
        if (facts_scene_of_liar(liar) != id || !takes_part(c, liar) ||
            (status = run(&t, &scene, &kernel, eager_error)) != 0)
            continue;
        for (facts_criterion k = 0; k < FACTS_CRITERION_COUNT; k++)
#pragma omp atomic
            c->killed[liar][k] |= t.wrong[k] && asks(k, fill);
    }
    facts_scene_destroy(&scene);
    return status;
}

static int run_column(column *c, facts_error *error)
{
    int failed = 0;
#pragma omp parallel for schedule(dynamic)
    for (int n = 0; n < FACTS_SCENE_NOWHERE * FILLS; n++) {
        facts_scene_id id = (facts_scene_id)(n / FILLS);
        facts_error why = { 0 };
        bool needed = false;
        for (facts_liar liar = 1; liar < FACTS_LIAR_COUNT; liar++)
            needed |= facts_scene_of_liar(liar) == id && takes_part(c, liar);
        int status = needed && !failed ? run_scene(c, id, n % FILLS, &why) : 0;
        if (status)
#pragma omp critical(facts_compare_error)
        {
            failed = status;
            facts_fail(error, "%.500s", why.text);
        }
    }
    return failed;
}

static void tally(facts_comparison *out, facts_column at, const column *c)
{
    out->fills[at] = FILLS;
    for (facts_liar liar = 1; liar < FACTS_LIAR_COUNT; liar++) {
        out->liars[at] += takes_part(c, liar);
        for (facts_criterion k = 0; k < FACTS_CRITERION_COUNT; k++)
            out->killed[at][k] += c->killed[liar][k];
    }
    for (int fill = 0; fill < FILLS; fill++)
        for (facts_criterion k = 0; k < FACTS_CRITERION_COUNT; k++) {
            out->failed[at][k] += c->failed[fill][k];
            out->accuses[at][k] |= c->failed[fill][k] && asks(k, fill);
        }
}

int facts_compare(facts_comparison *out, bool quick, uint64_t seed, facts_error *error)
{
    *out = (facts_comparison){ .columns = quick ? 1 : FACTS_COLUMN_COUNT };
    error->text[0] = '\0';
    for (int at = 0; at < out->columns; at++) {
        column c = { .type = columns[at].type, .size = columns[at].size, .seed = seed };
        int status = run_column(&c, error);
        if (status)
            return status;
        tally(out, (facts_column)at, &c);
    }
    return 0;
}
