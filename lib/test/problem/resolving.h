/* Problems that are resolved, and what is refused in which words. SMALL_BATCH is defined before. */
#ifndef FATTN_TEST_RESOLVING_H
#define FATTN_TEST_RESOLVING_H

#include <criterion/criterion.h>
#include <string.h>

#include "fattn/fattn.h"

static inline fattn_problem small(void)
{
    return (fattn_problem){ .struct_size = sizeof(fattn_problem),
                            .batch = SMALL_BATCH,
                            .heads_q = 8,
                            .heads_k = 4,
                            .heads_v = 2,
                            .seq_q = 96,
                            .seq_kv = 128,
                            .dim_qk = 64,
                            .dim_v = 32 };
}

static inline fattn_problem resolved(fattn_problem p)
{
    fattn_problem out;
    cr_assert_eq(fattn_problem_resolve(&p, &out), FATTN_OK, "%s", fattn_last_error());
    return out;
}

static inline void expect_bad(fattn_problem p, const char *message)
{
    fattn_problem out = { .batch = 77 };
    cr_expect_eq(fattn_problem_resolve(&p, &out), FATTN_BAD_PROBLEM, "%s", message);
    cr_expect_eq(strncmp(fattn_last_error(), message, strlen(message)), 0, "got '%s', want '%s'",
                 fattn_last_error(), message);
    cr_expect_eq(out.batch, 77, "nothing is written on failure");
}

#define SET(field, ...) memcpy(p.field, (int64_t[4]){ __VA_ARGS__ }, 32)
#define BAD(change, message)                                                                       \
    do {                                                                                           \
        fattn_problem p = small();                                                                 \
        change;                                                                                    \
        expect_bad(p, message);                                                                    \
    } while (0)

#endif
