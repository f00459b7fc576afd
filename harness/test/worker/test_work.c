/* The work that a case is: what TFLOP/s and shares of a peak are made of. Every number here is
 * counted by hand. */
#include "../case/asked_problem.h"
#include "language/case.h"
#include "problem/case_problem.h"
#include "worker/timing/time_turn.h"

Test(work, only_keys_that_a_query_sees_count)
{
    static const struct {
        const char *text;
        double flops;
    } cases[] = {
        { "pass=fwd b=1 h=1 s=4/6 d=8", 24 * 2 * 16 },
        { "pass=fwd b=3 h=4/2 s=4/6 d=8/16", 3 * 4 * 24 * 2 * 24 },
        { "pass=fwd b=1 h=1 s=4/6 d=8 mask=causal", 10 * 2 * 16 },    /* 1 2 3 4 */
        { "pass=fwd b=1 h=1 s=4/6 d=8 mask=causal_br", 18 * 2 * 16 }, /* 3 4 5 6 */
        { "pass=fwd b=1 h=1 s=6 d=8 window=2:0", 11 * 2 * 16 },       /* 1 2 2 2 2 2 */
        { "pass=fwd b=1 h=1 s=6 d=8 window=2:1", 16 * 2 * 16 },       /* 2 3 3 3 3 2 */
        { "pass=fwd b=2 h=1 s=6 d=8 lens=6+2/4+0", 24 * 2 * 16 }, /* the second entry has no keys */
        { "pass=bwd b=1 h=1 s=4/6 d=8/16", 24 * 2 * (3 * 8 + 2 * 16) },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const facts_problem p = problem_asked(cases[i].text);
        const double found = facts_flops(&p);
        cr_expect_float_eq(found, cases[i].flops, 0.5, "%s: %.0f", cases[i].text, found);
    }
}

Test(work, bytes_are_those_of_inputs_and_outputs_once)
{
    static const struct {
        const char *text;
        double bytes;
    } cases[] = {
        { "pass=fwd dtype=bf16 b=2 h=4/2 s=8/10 d=16/24",
          2 * 2 * (8 * 4 * (16 + 24) + 10 * 2 * (16 + 24)) },
        { "pass=bwd dtype=bf16 b=1 h=4/2 s=8/10 d=16/24",
          2 * (8 * 4 * (2 * 16 + 2 * 24) + 10 * 2 * 2 * (16 + 24)) },
        { "pass=fwd dtype=e4m3 out=bf16 b=1 h=1 s=8 d=16", 8 * 16 * 3 + 2 * 8 * 16 },
        { "pass=fwd dtype=bf16 b=2 h=2 s=1/64 d=16 lens=1x2/64+10 paged=16",
          2 * 2 * 16 * (2 * 2 + 2 * 74) },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const facts_problem p = problem_asked(cases[i].text);
        const double found = facts_bytes(&p);
        cr_expect_float_eq(found, cases[i].bytes, 0.5, "%s: %.0f", cases[i].text, found);
    }
}
