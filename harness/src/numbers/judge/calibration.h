/* The error model's constants of an engine (docs/numerics.md sections 2 and 10), from cases/calibration.json, which the build puts
 * into the program. What the table does not name has the starting values and is not calibrated. */
#ifndef FACTS_CALIBRATION_H
#define FACTS_CALIBRATION_H

#include <fref/fref.h>
#include <stdbool.h>

#include "case/problem/case_problem.h"
#include "case/words/fail.h"

#define FACTS_THR_MOST 8
/* What may be measured of an engine: from what makes bounds narrowest (nothing is gained beyond) to the limit, what makes them
 * widest, of 8 bit types, of 16 bits, of f32. With all constants of a type at their limits every liar of docs/numerics.md section
 * 11 dies that dies by the starting values, but one (section 10): test_limits.c. X(field, narrowest, limit8, limit16, limit32) */
#define FACTS_CONSTANT_LIST(X)                                                                                                     \
    X(ua, 0x1p-24, 0x1p-13, 0x1p-22, 0x1p-23)                                                                                      \
    X(chunk, 64, 32, 16, 1)                                                                                                        \
    X(cw, 1, 4, 1, 1)                                                                                                              \
    X(cl, 1, 6, 2, 1) X(acc_pv, 0, 0x1p-13, 0x1p-17, 0x1p-17) X(acc_run, 0, 128, 0, 0) X(eps_exp, 0, 0x1p-17, 0x1p-17, 0x1p-17)    \
        X(thr, 0, 4, 0, 0)
/* And what is so or not; the limits likewise. X(field, limit8, limit16, limit32) */
#define FACTS_TRAIT_LIST(X) X(partials_cast, false, true, true) X(p_normalised, false, true, true)

typedef struct facts_constants {
#define AS_FIELD(field, ...) double field;
    FACTS_CONSTANT_LIST(AS_FIELD)
#undef AS_FIELD
#define AS_FIELD(field, ...) bool field;
    FACTS_TRAIT_LIST(AS_FIELD)
#undef AS_FIELD
    bool calibrated; /* they were measured of this engine in this version of cuDNN: T1 without its factor */
    int32_t assumed; /* not of this version: of this one (92800), the nearest that was measured. 0: none was, or it is calibrated */
} facts_constants;

/* Who computes. */
typedef struct facts_who {
    int32_t sm;      /* 0: no GPU */
    int32_t backend; /* fattn_backend */
    int32_t dtype, pass;
    int64_t engine; /* -1: none that has a number */
    int32_t cudnn;  /* 92801 is 9.28.1; 0: no cuDNN */
} facts_who;

/* fref_rounding_of's, of inputs of that type; not calibrated. */
facts_constants facts_constants_start(int32_t dtype);
/* The first row of the table that fits, over the starting values. A row fits every version of cuDNN; an engine of cuDNN is
 * calibrated in the versions that the row names. */
facts_constants facts_constants_of(const facts_who *who);
/* A case's rescale= (log2; negative: it sets none) in place of `thr`, where it is read: by cuDNN on sm_10x, of 8 bit types.
 * FACTS_THR_MOST at most. */
void facts_constants_rescale(facts_constants *constants, const facts_who *who, int32_t rescale);
/* Do the constants `a` and `b` give the same expected values? (`calibrated` only matters when answers are compared.) */
bool facts_constants_agree(const facts_constants *a, const facts_constants *b);
void facts_constants_apply(fref_rounding *out, const facts_constants *constants);
/* Each at its limit: no row for that type has wider ones. */
facts_constants facts_constants_limit(int32_t dtype);
/* The widest that the table in the program judges that type by, whoever computes. */
facts_constants facts_constants_widest(int32_t dtype);

/* ---- the table ---- */

typedef struct facts_calibration facts_calibration; /* owner; opaque */

/* Reads a table's text; false with one line in `error`: which row, what is wrong. Destroy in any case. */
bool facts_calibration_read(facts_calibration **out, const char *text, facts_error *error);
void facts_calibration_destroy(facts_calibration *table);
facts_constants facts_calibration_find(const facts_calibration *table, const facts_who *who);
/* Over the starting values, each constant where the widest row for that type has it. */
facts_constants facts_calibration_widest(const facts_calibration *table, int32_t dtype);
/* The measured version of cuDNN ("9.28.0") that is nearest to `cudnn` (92801 is 9.28.1) on that architecture: its constants are
 * assumed for a version that was not measured. False, with out empty: none was measured there. */
bool facts_calibration_nearest(char out[16], const facts_calibration *table, int32_t sm, int32_t cudnn);
/* The table that is in the program. */
const char *facts_calibration_text(void);
/* The same of the table that is in the program. */
bool facts_constants_nearest(char out[16], int32_t sm, int32_t cudnn);

#endif
