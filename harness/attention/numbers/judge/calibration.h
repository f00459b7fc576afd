/* The constants of an engine's error model (docs/numerics.md, sections 2 and 10), from
 * cases/calibration.json, which the build embeds in the program. An engine that the table does not
 * name has the starting values and is not calibrated. */
#ifndef FACTS_CALIBRATION_H
#define FACTS_CALIBRATION_H

#include <fref/fref.h>
#include <stdbool.h>

#include "problem/case_problem.h"
#include "words/fail.h"

#define FACTS_THR_MOST 8
/* The constants that are measured for an engine. Each has a value that gives the narrowest bounds
 * (values beyond it change nothing) and a limit, which gives the widest: for 8-bit types, for
 * 16-bit types, for f32. With all constants of a type at their limits, FACTS still finds every liar
 * of docs/numerics.md, section 11, that it finds with the starting values, except one (section 10):
 * test_self.c.
 * X(field, narrowest, limit8, limit16, limit32) */
/* clang-format off */
#define FACTS_CONSTANT_LIST(X)                                                          \
    X(ua, 0x1p-24, 0x1p-13, 0x1p-22, 0x1p-23) X(chunk, 64, 32, 16, 1) X(cw, 1, 4, 1, 1) \
    X(cl, 1, 6, 2, 1) X(acc_pv, 0, 0x1p-13, 0x1p-17, 0x1p-17) X(acc_run, 0, 128, 0, 0)  \
    X(eps_exp, 0, 0x1p-17, 0x1p-17, 0x1p-17) X(thr, 0, 4, 0, 0)
/* clang-format on */
/* The constants that are true or false, with their limits. X(field, limit8, limit16, limit32) */
#define FACTS_TRAIT_LIST(X) X(partials_cast, false, true, true) X(p_normalised, false, true, true)

typedef struct facts_constants {
#define AS_FIELD(field, ...) double field;
    FACTS_CONSTANT_LIST(AS_FIELD)
#undef AS_FIELD
#define AS_FIELD(field, ...) bool field;
    FACTS_TRAIT_LIST(AS_FIELD)
#undef AS_FIELD
    bool calibrated; /* they were measured for this engine in this version of cuDNN: T1 without its
                        factor */
    int32_t
        assumed; /* they were measured in this version (92800), the nearest to the one in use. 0: none was measured, or the
                    constants are calibrated */
} facts_constants;

/* The engine whose answers are compared. */
typedef struct facts_who {
    int32_t sm;      /* 0: no GPU */
    int32_t backend; /* fattn_backend */
    int32_t dtype, pass;
    int64_t engine; /* -1: the engine has no number */
    int32_t cudnn;  /* 92801 is 9.28.1; 0: no cuDNN */
} facts_who;

/* The starting values, those of fref_rounding_of, for inputs of that type. They are not calibrated.
 */
facts_constants facts_constants_start(int32_t dtype);
/* The starting values, replaced by those of the first row of the table that fits. A row fits every
 * version of cuDNN. An engine of cuDNN is calibrated only in the versions that the row names. */
facts_constants facts_constants_of(const facts_who *who);
/* Replaces `thr` by the case's rescale= (log2; negative: not set) if cuDNN reads it: on sm_10x, for
 * 8-bit types. FACTS_THR_MOST at most. */
void facts_constants_rescale(facts_constants *constants, const facts_who *who, int32_t rescale);
/* Do the constants `a` and `b` give the same expected values? (`calibrated` only matters when
 * answers are compared.) */
bool facts_constants_agree(const facts_constants *a, const facts_constants *b);
void facts_constants_apply(fref_rounding *out, const facts_constants *constants);
/* All constants at their limits: no row for that type has wider ones. */
facts_constants facts_constants_limit(int32_t dtype);
/* The widest constants that the program's table has for that type, of all engines. */
facts_constants facts_constants_widest(int32_t dtype);

/* ---- the table ---- */

typedef struct facts_calibration facts_calibration; /* owner; opaque */

/* Reads the text of a table. False, with one line in `error`, which names the row and its error.
 * Destroy in any case. */
bool facts_calibration_read(facts_calibration **out, const char *text, facts_error *error);
void facts_calibration_destroy(facts_calibration *table);
facts_constants facts_calibration_find(const facts_calibration *table, const facts_who *who);
/* The starting values, with each constant replaced by that of the widest row for that type. */
facts_constants facts_calibration_widest(const facts_calibration *table, int32_t dtype);
/* The measured version of cuDNN ("9.28.0") that is nearest to `cudnn` (92801 is 9.28.1) on that
 * architecture: its constants are assumed for a version that was not measured. False, with out
 * empty: none was measured there. */
bool facts_calibration_nearest(char out[16], const facts_calibration *table, int32_t sm,
                               int32_t cudnn);
/* The text of the program's table. */
const char *facts_calibration_text(void);
/* facts_calibration_nearest for the program's table. */
bool facts_constants_nearest(char out[16], int32_t sm, int32_t cudnn);

#endif
