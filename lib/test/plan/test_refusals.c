/* Refusals that the caller keeps: what is asked again, what is not, and that nobody can tell the
 * answers apart. */
#include "cudnn/plan/kept_refusals.h"

#include "core/engine.h"
#include "fattn/policy.h"
#include "support/asked.h"

enum { ROOM = 8 };

/* A store in memory. */
typedef struct shelf {
    char key[ROOM][33];
    char *bytes[ROOM];
    size_t count[ROOM];
    int used, found, kept, dropped;
} shelf;

static shelf s;

static int place(const char *key)
{
    for (int i = 0; i < s.used; i++)
        if (strcmp(s.key[i], key) == 0 && s.bytes[i] != NULL)
            return i;
    return -1;
}

static bool find(void *user, const char *key, char **bytes, size_t *count)
{
    (void)user;
    const int i = place(key);
    if (i < 0)
        return false;
    *count = s.count[i];
    *bytes = malloc(*count + 1);
    memcpy(*bytes, s.bytes[i], *count);
    s.found++;
    return true;
}

static void keep(void *user, const char *key, const char *bytes, size_t count)
{
    (void)user;
    const int i = place(key);
    if (i >= 0) {
        free(s.bytes[i]);
        s.bytes[i] = NULL;
    }
    s.dropped += bytes == NULL;
    if (bytes == NULL)
        return;
    cr_assert_lt(s.used, ROOM);
    cr_expect_eq(strlen(key), 32);
    strcpy(s.key[s.used], key);
    s.bytes[s.used] = malloc(count);
    memcpy(s.bytes[s.used], bytes, count);
    s.count[s.used++] = count;
    s.kept++;
}

static void keep_all(void)
{
    const fattn_refusal_store store = { .struct_size = sizeof store, .find = find, .keep = keep };
    cr_assert_eq(fattn_context_keep_refusals(context, &store), FATTN_OK, "%s", fattn_last_error());
}

static void open_kept(void)
{
    open_context();
    keep_all();
}

static void close_kept(void)
{
    for (int i = 0; i < s.used; i++)
        free(s.bytes[i]);
    close_context();
}

static void reopen(void)
{
    close_context();
    open_kept();
}

TestSuite(refusals, .init = open_kept, .fini = close_kept);

/* Asked, and how often cuDNN was. */
static int asked(const fattn_problem *problem)
{
    const uint64_t before = fattn__asked((fattn_pass)problem->pass);
    fattn_decision_destroy(ask(problem));
    return (int)(fattn__asked((fattn_pass)problem->pass) - before);
}

static void expect_same(const fattn_decision *a, const fattn_decision *b)
{
    cr_expect_eq(a->backend, b->backend);
    cr_expect_eq(a->reason, b->reason);
    cr_expect_str_eq(a->message.status, b->message.status);
    cr_expect_str_eq(a->message.text, b->message.text);
    cr_expect_str_eq(a->message.remedy, b->message.remedy);
    cr_expect_str_eq(a->message.rule, b->message.rule);
    cr_assert_eq(a->refusal_count, b->refusal_count);
    for (size_t i = 0; i < a->refusal_count; i++) {
        cr_expect_eq(a->refusals[i].engine, b->refusals[i].engine);
        cr_expect_str_eq(a->refusals[i].status, b->refusals[i].status);
        cr_expect_str_eq(a->refusals[i].text, b->refusals[i].text);
        cr_expect_str_eq(a->refusals[i].condition, b->refusals[i].condition);
    }
}

/* Of the heuristics; of the operation graph; of mode A with everything in it. */
static fattn_problem refused(int i)
{
    fattn_problem problem = control_problem();
    if (i == 0)
        problem.dim_qk = 100;
    if (i == 1)
        problem.dim_qk = 512, problem.pass = FATTN_BACKWARD;
    if (i == 2)
        problem.dtype = FATTN_F32, problem.pass = FATTN_BACKWARD;
    return problem;
}

Test(refusals, are_asked_for_once_and_read_the_same_ever_after)
{
    for (int i = 0; i < 3; i++) {
        const fattn_problem problem = refused(i);
        fattn_decision *first = ask(&problem);
        cr_assert_eq(first->reason, FATTN_REASON_UNSUPPORTED, "%d: %s", i, first->message.text);
        cr_assert_eq(s.kept, i + 1, "%d: %s", i, first->message.text);
        reopen();
        const uint64_t before = fattn__asked((fattn_pass)problem.pass);
        fattn_decision *again = ask(&problem);
        cr_expect_eq(fattn__asked((fattn_pass)problem.pass), before, "cuDNN is not asked");
        expect_same(first, again);
        expect_no_plan(&problem, NULL, FATTN_UNSUPPORTED, first->message.text);
        cr_expect_eq(fattn__asked((fattn_pass)problem.pass), before,
                     "nor when a plan is asked for");
        fattn_decision_destroy(first);
        fattn_decision_destroy(again);
    }
    cr_expect_eq(s.dropped, 0);
    const fattn_problem control = control_problem(); /* a yes is always asked for */
    cr_expect_eq(asked(&control) + asked(&control), 2);
    cr_expect_eq(s.kept, 3);
}

/* The linker puts it in front of the library's own: another libfattn. */
uint64_t __real_fattn__code_id(void), __wrap_fattn__code_id(void);
static uint64_t other_code;

uint64_t __wrap_fattn__code_id(void)
{
    return __real_fattn__code_id() + other_code;
}

Test(refusals, and_plans_are_of_the_very_libfattn_that_asked)
{
    char key[33], other_key[33];
    const fattn_problem problem = refused(0);
    cr_expect_gt(asked(&problem), 0);
    cr_expect_eq(asked(&problem), 0);
    cr_expect_eq(fattn_plan_key(context, &problem, NULL, key), FATTN_OK);
    other_code = 1;
    cr_expect_gt(asked(&problem), 0);
    cr_expect_eq(fattn_plan_key(context, &problem, NULL, other_key), FATTN_OK);
    cr_expect_str_neq(key, other_key);
}

Test(refusals, of_another_graph_device_or_pin_are_other_refusals)
{
    fattn_problem problem = refused(0);
    cr_expect_eq(asked(&problem), 1);
    problem.seq_q++;
    cr_expect_eq(asked(&problem), 1, "another graph");
    const fattn_knob none[1];
    const fattn_plan_options pin = {
        .struct_size = sizeof pin, .engine = 2, .config = FATTN_ENGINE_AUTO, .knobs = none
    };
    const uint64_t before = fattn__asked(FATTN_FORWARD);
    expect_no_plan(&problem, &pin, FATTN_UNSUPPORTED, "");
    cr_expect_eq(fattn__asked(FATTN_FORWARD) - before, 1, "a pin");
    close_context();
    context = open_described("h200-sxm", &version);
    keep_all();
    cr_expect_eq(asked(&problem), 1, "another device");
    cr_expect_eq(s.found, 0);
}

/* Rules come before and after what cuDNN says: they are never kept, so that a rule of tomorrow
 * holds for a refusal of today. */
Test(refusals, rules_are_asked_anew)
{
    const fattn_problem problem = refused(0);
    cr_expect_eq(asked(&problem), 1);
    fattn_rule rule = FATTN_RULE_INIT;
    rule.name = "not this", rule.why = "it is a test", rule.unasked = 1;
    const fattn_policy policy = { .struct_size = sizeof policy, .rules = &rule, .rule_count = 1 };
    cr_assert_eq(fattn_policy_push(&policy, NULL), FATTN_OK);
    fattn_decision *decision = ask(&problem);
    cr_expect_eq(decision->reason, FATTN_REASON_POLICY);
    fattn_decision_destroy(decision);
    fattn_policy_pop(1);
    cr_expect_eq(s.kept, 1);
}

/* ---- what lies in the store
 * -----------------------------------------------------------------------------------------------------
 */

/* One bit in each byte of the head and in some of the words; every length but the right one. */
Test(refusals, damaged_ones_are_dropped_and_asked_for_again)
{
    const fattn_problem problem = refused(0);
    cr_assert_eq(asked(&problem), 1);
    const size_t count = s.count[0];
    char *good = s.bytes[0];
    for (size_t at = 0; at < 2 * count; at += at % count < 80 ? 1 : 37) {
        const bool cut = at >= count;
        const int dropped = s.dropped;
        s.bytes[0] = malloc(count), s.count[0] = cut ? at - count : count, s.used = 1;
        memcpy(s.bytes[0], good, count);
        s.bytes[0][at % count] ^= (char)(cut ? 0 : 1 << at % 8);
        cr_expect_eq(asked(&problem), 1, "%s %zu", cut ? "length" : "byte", at % count);
        cr_expect_eq(s.dropped, dropped + 1);
        cr_expect_eq(s.used, 2, "it is kept anew");
        free(s.bytes[0]), free(s.bytes[1]);
    }
    s.bytes[0] = good, s.count[0] = count, s.used = 1;
    cr_expect_eq(asked(&problem), 0);
}

Test(refusals, one_that_lies_under_another_key_is_dropped)
{
    fattn_problem problem = refused(0), other = problem;
    other.seq_q++;
    cr_assert_eq(asked(&problem), 1);
    cr_assert_eq(asked(&other), 1);
    char key[33];
    memcpy(key, s.key[0], sizeof key);
    memcpy(s.key[0], s.key[1], sizeof key);
    memcpy(s.key[1], key, sizeof key);
    reopen();
    cr_expect_eq(asked(&problem), 1);
    cr_expect_eq(s.dropped, 1);
}

/* ---- what is kept
 * ---------------------------------------------------------------------------------------------------------------
 */

Test(refusal_lasts, unless_it_may_be_gone_the_next_time)
{
    const fattn_reason no = FATTN_REASON_UNSUPPORTED;
    const struct {
        bool lasts;
        int status;
        fattn_reason reason;
        const char *line;
    } rows[] = {
        { true, 0, no, "CUDNN_STATUS_NOT_SUPPORTED_SHAPE" },
        { true, DNN_STATUS_NOT_SUPPORTED, no, NULL },
        { true, DNN_STATUS_BAD_PARAM, no, "CUDNN_STATUS_BAD_PARAM_NULL_POINTER" },
        { true, DNN_STATUS_NOT_SUPPORTED, no, "" },
        { false, DNN_STATUS_INTERNAL_ERROR, no, NULL },
        { false, DNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED, no, NULL },
        { false, DNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, no, NULL },
        { false, DNN_STATUS_EXECUTION_FAILED, no, NULL },
        { false, DNN_STATUS_NOT_INITIALIZED, no, NULL },
        { false, 0, no, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED" }, /* one engine's */
        { false, 0, no, "CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER" },
        { false, DNN_STATUS_NOT_SUPPORTED, FATTN_REASON_ENVIRONMENT, NULL },
        { false, DNN_STATUS_NOT_SUPPORTED, FATTN_REASON_POLICY, NULL },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        fattn_refusal refusal = {
            .engine = 2, .status = rows[i].line, .text = "", .condition = ""
        };
        const fattn_decision decision = { .reason = rows[i].reason,
                                          .refusals = &refusal,
                                          .refusal_count = rows[i].line != NULL };
        cr_expect_eq(fattn__refusal_lasts(rows[i].status, &decision), rows[i].lasts, "row %zu", i);
    }
}

Test(refusals, a_store_has_both_functions_or_none)
{
    fattn_refusal_store store = { .struct_size = sizeof store, .find = find };
    cr_expect_eq(fattn_context_keep_refusals(context, &store), FATTN_BAD_PROBLEM);
    store.find = NULL, store.struct_size = 0;
    cr_expect_eq(fattn_context_keep_refusals(context, &store), FATTN_BAD_PROBLEM);
    cr_expect_eq(fattn_context_keep_refusals(context, NULL), FATTN_OK);
    const fattn_problem problem = refused(0);
    cr_expect_eq(asked(&problem), 1);
}
