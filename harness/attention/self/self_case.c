#include "self_case.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "fattn/score_mod.h"
#include "numbers/fill/score_inputs.h"
#include "numbers/judge/calibration.h"
#include "worker/target/loaded_target.h"
#include "worker/timing/time_turn.h"

enum { FP32, TABLE, HOPPER };

static const struct {
    const char *word, *dtype;
    int adds, constants;
} types[FACTS_SELF_TYPES] = {
#define AS_ROW(symbol, word, dtype, adds, constants) { word, dtype, adds, constants },
    FACTS_SELF_TYPE_LIST(AS_ROW)
#undef AS_ROW
};

static facts_self_type now;
static bool by_limits;

const char *facts_self_type_word(facts_self_type type)
{
    return types[type].word;
}

const char *facts_self_type_dtype(facts_self_type type)
{
    return types[type].dtype;
}

bool facts_self_type_is_narrow(facts_self_type type)
{
    return type >= FACTS_SELF_E4M3;
}

facts_self_type facts_self_type_find(const char *word)
{
    facts_self_type type = 0;
    while (type < FACTS_SELF_TYPES && strcmp(types[type].word, word) != 0)
        type++;
    return type;
}

bool facts_self_type_has(facts_self_type type, const fattn__fault *fault)
{
    const bool narrow = facts_self_type_is_narrow(type), f16 = type == FACTS_SELF_F16,
               hopper = types[type].adds == HOPPER;
    const bool has[] = { [FATTN__TYPES_ANY] = true,
                         [FATTN__TYPES_CAST] = type != FACTS_SELF_F32,
                         [FATTN__TYPES_WIDE] = !narrow,
                         [FATTN__TYPES_F8] = narrow,
                         [FATTN__TYPES_F16] = f16,
                         [FATTN__TYPES_HOPPER] = hopper,
                         [FATTN__TYPES_FINER] = f16 || strcmp(types[type].dtype, "e4m3") == 0 };
    return has[fault->types];
}

fattn__gpu_like facts_self_begin(facts_self_type type)
{
    const fattn__adder fp32 = { 0 };
    now = type;
    return (fattn__gpu_like){ .on = true,
                              .tile = 128,
                              .lazy = facts_self_type_is_narrow(type) ? 4.0F : 0.0F,
                              .adder = types[type].adds == HOPPER ? FATTN__HOPPER_8 : fp32 };
}

void facts_self_limits(bool limits)
{
    by_limits = limits;
}

/* The linker puts it in the place of facts_constants_of (--wrap): the kernel is none of the
 * table's. */
facts_constants __wrap_facts_constants_of(const facts_who *who);
facts_constants __wrap_facts_constants_of(const facts_who *who)
{
    facts_constants out = facts_constants_widest(who->dtype);
    if (types[now].constants == FP32) { /* 16 products at a time, unlike the engines of a GPU */
        out = facts_constants_start(who->dtype);
        out.ua = 0x1p-23;
        out.chunk = 16.0;
        out.cw = out.cl = 1.0;
        out.acc_pv = out.acc_run = 0.0;
    }
    if (by_limits)
        out = facts_constants_limit(who->dtype);
    out.calibrated = true;
    return out;
}

#define MOST_FLOPS 4e9 /* a second or two, reference and kernel */

static facts_worker *worker(facts_error *error)
{
    static facts_worker opened;
    static bool is_open;
    if (!is_open) {
        const facts_target_request request = { .device = FACTS_DEVICE_CPU };
        json_t *reply = NULL;
        is_open = facts_target_open(&opened, &request, &reply);
        json_decref(reply);
        if (!is_open)
            facts_fail(error, "the cpu backend cannot be opened");
    }
    return is_open ? &opened : NULL;
}

static void no_stage(void *owner, const char *stage)
{
    (void)owner, (void)stage;
}

static bool resolve(facts_case *c, facts_problem *p, const char *name, facts_error *error)
{
    return facts_case_parse(c, name, error) && facts_problem_resolve(p, c, error) == FACTS_RESOLVED;
}

bool facts_self_case_takes(const char *name)
{
    facts_case c;
    facts_problem p;
    facts_error error = { 0 };
    return resolve(&c, &p, name, &error) && facts_flops(&p) < MOST_FLOPS &&
           p.exec == FACTS_EXEC_EAGER;
}

bool facts_self_case_open(facts_self_case *x, const char *name, facts_error *error)
{
    *x = (facts_self_case){ 0 };
    facts_worker *w = worker(error);
    if (w == NULL || !resolve(&x->asked, &x->problem, name, error))
        return false;
    x->asked_is_valid = true;
    x->problem.own_forward = false; /* its faults would change what the backward is given */
    fattn_status status = facts_mod_create(&x->mod, &x->problem);
    x->problem.ask.score_mod = x->mod;
    fattn__like_gpu.on = false;
    if (status == FATTN_OK)
        status = fattn_plan_create(&x->plan, w->context, &x->problem.ask, NULL);
    if (status != FATTN_OK) {
        facts_fail(error, "%.300s", fattn_last_error());
        return false;
    }
    return true;
}

void facts_self_case_close(facts_self_case *x)
{
    fattn_plan_destroy(x->plan);
    facts_reference_destroy(&x->reference);
    fattn_score_mod_destroy(x->mod);
}

static void take(facts_self_end *out, const facts_judgement *j, const char *name)
{
    if (!j->checked && !j->overrun && !j->unwritten && !j->not_finite)
        return;
    out->answers++;
    for (int gate = 0; gate < FACTS_GATE_COUNT; gate++)
        out->gates[gate] = fmax(out->gates[gate], j->gates[gate]);
    const bool found = facts_judgement_verdict(j) != FACTS_VERDICT_PASS;
    const double ratio = found ? j->ratio : fmin(j->ratio, 1.0);
    if (out->gate[0] && ratio <= out->ratio)
        return;
    out->ratio = ratio;
    snprintf(out->gate, sizeof out->gate, "%s", facts_gate_words[j->gate]);
    snprintf(out->tensor, sizeof out->tensor, "%s", name);
}

/* Data on which zeros would pass too are no question: without answers, as of a refused call. */
static void end_of(facts_self_end *out, const facts_trial *trial)
{
    *out = (facts_self_end){ .found = trial->status != FATTN_OK ||
                                      trial->verdict != FACTS_VERDICT_PASS };
    if (trial->verdict == FACTS_VERDICT_MISTRUSTED) {
        out->found = false;
        return;
    }
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (trial->judged[id])
            take(out, &trial->judgement[id], facts_tensor_word(id));
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        take(out, &trial->array[id], facts_array_words[id]);
    if (out->found && out->ratio <= 1.0) {
        out->ratio = INFINITY;
        snprintf(out->gate, sizeof out->gate, "%s",
                 trial->status != FATTN_OK ? fattn_status_name(trial->status)
                                           : facts_verdict_name(trial->verdict));
    }
}

void facts_self_case_run(facts_self_end *out, facts_self_case *x, const fattn__gpu_like *like,
                         fattn__liar fault)
{
    facts_error error = { 0 };
    facts_trial trial;
    for (int once = fault != FATTN__LIAR_NONE; once >= 0;
         once--) { /* over one poison; then over both, if it is unseen */
        const facts_trial_options options = {
            .worker = worker(&error), .problem = &x->problem, .once = once != 0, .stage = no_stage
        };
        fattn__like_gpu = *like;
        fattn__liar_now = x->reference.memory.problem ? fault : FATTN__LIAR_NONE;
        facts_trial_run(&trial, &x->reference, x->plan, &options);
        fattn__liar_now = FATTN__LIAR_NONE;
        end_of(out, &trial);
        if (out->found)
            return;
    }
}
