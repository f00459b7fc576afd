/* Which ways of repeating are known, and which one is taken. */
#include <criterion/criterion.h>
#include <string.h>

#include "cudnn/backend/abi.h"
#include "cudnn/backend/repeat.h"

static const fattn__repeat *find(fattn_problem p, int version, int sm, char why[256])
{
    p.pass = FATTN_BACKWARD, p.deterministic = 1, p.dim_qk = p.dim_qk ? p.dim_qk : 128;
    return fattn__repeat_find(&p, version, sm, why, 256);
}

enum { NONE = -2, FORM = -1 };

/* What is taken: NONE, FORM, or the engine of a pin and the value of its last knob. */
Test(repeat, the_way_that_is_known_for_the_device_and_the_version_is_taken)
{
#define PIN .determinism = FATTN_DETERMINISM_PIN
#define UNIFIED .impl = FATTN_IMPL_UNIFIED
    static const struct {
        int sm, version, engine, knob;
        fattn_problem p;
    } rows[] = {
        { 90, 90800, FORM, 0, { .dbias = 0 } },
        { 90, 92800, FORM, 0, { .dbias = 0 } },
        { 90, 92500, 6, 4, { PIN } },
        { 90, 92499, NONE, 0, { PIN } },
        { 90, 92700, FORM, 0, { .dbias = 1 } },
        { 90, 92700, NONE, 0, { .dbias = 1, PIN } },
        { 90, 92800, NONE, 0, { .dtype = FATTN_E4M3, PIN } },
        { 90, 92800, NONE, 0, { .dtype = FATTN_E4M3, .determinism = FATTN_DETERMINISM_FORM } },
        { 90, 92800, 13, 4, { UNIFIED } },
        { 90, 92800, 13, 4, { UNIFIED, .dim_qk = 256 } },
        { 90, 92700, NONE, 0, { UNIFIED } },
        { 90, 92800, NONE, 0, { UNIFIED, .determinism = FATTN_DETERMINISM_FORM } },
        { 100, 92800, NONE, 0, { .determinism = FATTN_DETERMINISM_FORM } },
        { 100, 91799, NONE, 0, { .dbias = 0 } },
        { 100, 91800, 5, 31, { .dbias = 0 } },
        { 100, 92299, 5, 31, { .dbias = 0 } },
        { 100, 92299, NONE, 0, { .dim_qk = 256 } },
        { 100, 92000, NONE, 0, { .has_bias = 1 } },
        { 100, 92300, 5, 2, { .has_bias = 1 } },
        { 100, 92300, 5, 2, { .dbias = 0 } },
        { 103, 92300, 5, 3, { .dim_qk = 256 } },
        { 107, 92300, 17, 2, { .dbias = 0 } },
        { 100, 92300, NONE, 0, { .dim_qk = 200 } },
        { 120, 92300, FORM, 0, { .dbias = 0 } },
        { 100, 92700, NONE, 0, { .dbias = 1 } },
        { 100, 92300, 5, 2, { .dtype = FATTN_MXE5M2, PIN } },
        { 107, 92300, 17, 2, { .dtype = FATTN_E4M3, PIN } },
        { 100, 91900, 5, 31, { .dtype = FATTN_E5M2, PIN } },
        { 100, 91899, NONE, 0, { .dtype = FATTN_E5M2, PIN } },
        { 100, 92800, 14, 2, { UNIFIED } },
        { 100, 92800, NONE, 0, { UNIFIED, .has_bias = 1 } },
        { 100, 92800, NONE, 0, { UNIFIED, .dim_qk = 256 } },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[256];
        const fattn__repeat *taken = find(rows[i].p, rows[i].version, rows[i].sm, why);
        const int engine = taken == NULL                          ? NONE
                           : taken->how == FATTN_DETERMINISM_FORM ? FORM
                                                                  : (int)taken->engine;
        cr_expect_eq(engine, rows[i].engine, "row %zu, sm_%d, %d: engine %d", i, rows[i].sm,
                     rows[i].version, engine);
        if (engine >= 0) {
            const int last = taken->knob_count > 2 ? 5 : 0;
            cr_expect_eq(taken->knobs[last].value, rows[i].knob, "row %zu: %d", i,
                         (int)taken->knobs[last].value);
            cr_expect_eq(taken->unified, rows[i].p.impl == FATTN_IMPL_UNIFIED, "row %zu", i);
        }
    }
}

Test(repeat, the_reason_names_what_would_do)
{
    static const struct {
        int sm, version;
        fattn_problem p;
        const char *why;
    } rows[] = {
        { 90,
          92000,
          { PIN },
          "deterministic: no pin of an engine is known to repeat on sm_90 with cuDNN 9.20.0; "
          "engine 6 with its knobs is, from 9.25.0 on" },
        { 100,
          92800,
          { .dbias = 1 },
          "deterministic: nothing is known to repeat on sm_100 with cuDNN 9.28.0 and gives the "
          "gradient of a bias; engine 5 with its knobs does not" },
        { 75,
          92800,
          { PIN },
          "deterministic: no pin of an engine is known to repeat on sm_75 with cuDNN 9.28.0" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[256];
        cr_expect_null(find(rows[i].p, rows[i].version, rows[i].sm, why));
        cr_expect_str_eq(why, rows[i].why);
    }
}
