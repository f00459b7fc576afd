/* Which ways of repeating are known, and which one is taken. */
#include <criterion/criterion.h>
#include <string.h>

#include "cudnn/backend/abi.h"
#include "cudnn/backend/repeat.h"

static fattn_problem backward(fattn_determinism how, int64_t dim)
{
    return (fattn_problem){
        .pass = FATTN_BACKWARD, .deterministic = 1, .determinism = how, .dim_qk = dim
    };
}

static const fattn__repeat *find(fattn_problem p, int version, int sm)
{
    static char why[256];
    return fattn__repeat_find(&p, version, sm, why, sizeof why);
}

Test(repeat, every_row_says_where_it_holds_and_who_says_so)
{
    cr_assert_gt(fattn__repeat_count(), 0);
    cr_expect_null(fattn__repeat_at(fattn__repeat_count()));
    for (size_t i = 0; i < fattn__repeat_count(); i++) {
        const fattn__repeat *row = fattn__repeat_at(i);
        cr_expect(row->how == FATTN_DETERMINISM_FORM || row->how == FATTN_DETERMINISM_PIN,
                  "row %zu", i);
        cr_expect(row->sm_from >= 80 && row->sm_from <= row->sm_to, "row %zu", i);
        cr_expect(row->cudnn_from >= 90800 &&
                      (row->cudnn_to == 0 || row->cudnn_to >= row->cudnn_from),
                  "row %zu", i);
        cr_expect_leq(row->dim_from, row->dim_to, "row %zu", i);
        cr_expect_eq(row->how == FATTN_DETERMINISM_PIN, row->engine >= 0 && row->knob_count > 0,
                     "row %zu: a pin is an engine and its knobs", i);
        cr_expect(row->how == FATTN_DETERMINISM_PIN || row->keeps_dp, "row %zu", i);
        cr_expect(row->source != NULL && strlen(row->source) > 10, "row %zu", i);
    }
}

Test(repeat, hopper_takes_the_form_unless_the_pin_is_asked)
{
    for (int version = 90800; version <= 92800; version += 100) {
        const fattn__repeat *taken = find(backward(FATTN_DETERMINISM_AUTO, 128), version, 90);
        cr_assert_not_null(taken, "%d", version);
        cr_expect_eq(taken->how, FATTN_DETERMINISM_FORM);
        cr_expect(taken->keeps_dp && taken->engine < 0);
    }
    const fattn__repeat *pin = find(backward(FATTN_DETERMINISM_PIN, 128), 92500, 90);
    cr_assert_not_null(pin);
    cr_expect(!pin->keeps_dp, "dQ is accumulated, in order");
    cr_expect_eq(pin->engine, 6);
    cr_expect_eq(pin->knobs[5].type, DNN_KNOB_TYPE_STAGES);
    cr_expect_eq(pin->knobs[5].value, 4);
    cr_expect_null(find(backward(FATTN_DETERMINISM_PIN, 128), 92499, 90));
}

Test(repeat, blackwell_has_pins_alone)
{
    cr_expect_null(find(backward(FATTN_DETERMINISM_FORM, 128), 92800, 100));
    cr_expect_null(find(backward(FATTN_DETERMINISM_AUTO, 128), 91799, 100));
    cr_expect_eq(find(backward(FATTN_DETERMINISM_AUTO, 128), 91800, 100)->knobs[0].value, 31);
    cr_expect_eq(find(backward(FATTN_DETERMINISM_AUTO, 128), 92299, 100)->knob_count, 2);
    cr_expect_null(find(backward(FATTN_DETERMINISM_AUTO, 256), 92299, 100));
    const fattn__repeat *pin = find(backward(FATTN_DETERMINISM_AUTO, 128), 92300, 100);
    cr_assert_not_null(pin);
    cr_expect(pin->keeps_dp);
    cr_expect_eq(pin->engine, 5);
    cr_expect_eq(pin->knobs[5].value, 2);
    cr_expect_eq(find(backward(FATTN_DETERMINISM_AUTO, 256), 92300, 103)->knobs[5].value, 3);
    cr_expect_eq(find(backward(FATTN_DETERMINISM_AUTO, 128), 92300, 107)->engine, 17);
    cr_expect_null(find(backward(FATTN_DETERMINISM_AUTO, 200), 92300, 100),
                   "no row for this head dim");
    cr_expect_eq(find(backward(FATTN_DETERMINISM_AUTO, 128), 92300, 120)->how,
                 FATTN_DETERMINISM_FORM);
}

Test(repeat, of_8_bit_types_blackwells_pins_alone_are_known)
{
    fattn_problem p = backward(FATTN_DETERMINISM_PIN, 128);
    for (p.dtype = FATTN_E4M3; p.dtype <= FATTN_MXE5M2; p.dtype++) {
        cr_assert_not_null(find(p, 92300, 100));
        cr_expect_eq(find(p, 92300, 100)->engine, 5);
        cr_expect_eq(find(p, 92300, 100)->knobs[5].value, 2);
        cr_expect_eq(find(p, 92300, 107)->engine, 17);
        cr_expect_eq(find(p, 91900, 100)->knobs[0].value, 31);
        cr_expect_null(find(p, 91899, 100));
        cr_expect_null(find(p, 92800, 90));
        p.determinism = FATTN_DETERMINISM_FORM;
        cr_expect_null(find(p, 92800, 90), "nobody saw the graph of 8 bit types repeat there");
        p.determinism = FATTN_DETERMINISM_PIN;
    }
}

Test(repeat, a_gradient_of_the_bias_needs_the_form)
{
    fattn_problem p = backward(FATTN_DETERMINISM_AUTO, 128);
    p.dbias = 1;
    cr_expect_eq(find(p, 92700, 90)->how, FATTN_DETERMINISM_FORM);
    cr_expect_null(find(p, 92700, 100));
    p.determinism = FATTN_DETERMINISM_PIN;
    cr_expect_null(find(p, 92700, 90));
}

Test(repeat, the_old_pins_do_not_compile_with_a_bias)
{
    fattn_problem p = backward(FATTN_DETERMINISM_AUTO, 128);
    p.has_bias = 1;
    cr_expect_null(find(p, 92000, 100));
    cr_expect_not_null(find(p, 92300, 100));
}

Test(repeat, the_reason_names_what_would_do)
{
    char why[256];
    fattn_problem p = backward(FATTN_DETERMINISM_PIN, 128);
    cr_expect_null(fattn__repeat_find(&p, 92000, 90, why, sizeof why));
    cr_expect_str_eq(
        why, "deterministic: no pin of an engine is known to repeat on sm_90 with cuDNN 9.20.0; "
             "engine 6 with its knobs is, from 9.25.0 on");
    p.determinism = FATTN_DETERMINISM_AUTO, p.dbias = 1;
    cr_expect_null(fattn__repeat_find(&p, 92800, 100, why, sizeof why));
    cr_expect_str_eq(why, "deterministic: nothing is known to repeat on sm_100 with cuDNN 9.28.0 "
                          "and gives the gradient of a bias; "
                          "engine 5 with its knobs does not");
    p.determinism = FATTN_DETERMINISM_PIN;
    cr_expect_null(fattn__repeat_find(&p, 92800, 75, why, sizeof why));
    cr_expect_str_eq(
        why, "deterministic: no pin of an engine is known to repeat on sm_75 with cuDNN 9.28.0");
}

Test(repeat, the_unified_backward_has_pins_of_its_own_from_9_28_on)
{
    fattn_problem p = backward(FATTN_DETERMINISM_AUTO, 128);
    p.impl = FATTN_IMPL_UNIFIED;
    const fattn__repeat *hopper = find(p, 92800, 90), *blackwell = find(p, 92800, 100);
    cr_assert(hopper != NULL && blackwell != NULL);
    cr_expect(hopper->unified && hopper->engine == 13 && hopper->knobs[5].value == 4);
    cr_expect(blackwell->unified && blackwell->engine == 14 && blackwell->knobs[5].value == 2);
    cr_expect_null(find(p, 92700, 90));
    p.has_bias = 1;
    cr_expect_null(find(p, 92800, 100), "with a bias it does not compile");
    p.has_bias = 0, p.dim_qk = 256;
    cr_expect_null(find(p, 92800, 100));
    cr_expect_not_null(find(p, 92800, 90));
    p.dim_qk = 128, p.determinism = FATTN_DETERMINISM_FORM;
    cr_expect_null(find(p, 92800, 90), "the unified operation has no forms");
}
