/* Copies of rows, keys and heads round alike: what T1 makes of their sums. */
#include <math.h>
#include <stdio.h>

#include "checking.h"
#include "numbers/expect/expect_whole.h"

/* "dq dk": the answers that are judged by their bounds alone. */
static void expect_coherent(const char *text, const char *want)
{
    char got[64] = "";
    facts_problem p = problem_asked(text);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (facts_tensor_is_output(&p, id) && facts_expect_coherent(&p, id)) {
            strcat(got, got[0] ? " " : "");
            strcat(got, facts_tensor_word(id));
        }
    cr_expect_str_eq(got, want, "%s: \"%s\"", text, got);
}

Test(copies, of_rows_are_summed_by_dk_and_dv)
{
    expect_coherent("pass=bwd h=2 s=130 d=64 fill=needle", "");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:do.s fill=needle", "dk dv");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:do.s", "");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:q.s+do.s", "dk dv");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:do.s scale=0", "dk dv");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:do.b+do.h fill=needle", "");
    expect_coherent("pass=bwd h=2 s=130 d=64 bias=11ss dbias=1 stride=broadcast:do.s fill=needle",
                    "dk dv");
    expect_coherent("pass=bwd h=2 s=130 d=64 bias=bhss dbias=1 "
                    "stride=broadcast:bias.s+do.s;sum:dbias.s fill=needle",
                    "dk dv dbias");
}

/* P is 1 in every row, which rounds it as every other does. That shows where dO has a mean, and
 * where 1/(1-p) is far from a number of the type: 1.111 becomes 1 in e5m2, 1.125 in e4m3. */
Test(copies, of_rows_are_made_by_one_key)
{
    expect_coherent("pass=bwd dtype=e4m3 h=2 s=130/1 d=64 fill=offset_v", "dv");
    expect_coherent("pass=bwd dtype=e4m3 b=2 h=2 s=130 d=64 lens=130+130/130+1 fill=offset_v",
                    "dv");
    expect_coherent("pass=bwd dtype=e4m3 h=2 s=130/2 d=64 fill=offset_v", "");
    expect_coherent("pass=bwd dtype=e4m3 h=2 s=130/1 d=64", "");
    expect_coherent("pass=bwd dtype=e5m2 h=2 s=130/1 d=64 dropout=0.1", "dv");
    expect_coherent("pass=bwd dtype=e4m3 h=2 s=130/1 d=64 dropout=0.1", "");
    expect_coherent("pass=bwd dtype=e5m2 h=2 s=130/2 d=64 dropout=0.1", "");
    facts_problem one = problem_asked("pass=fwd dtype=e5m2 h=2 s=130/1 d=64 dropout=0.1");
    cr_expect_not(facts_expect_dense(&one));
}

Test(copies, of_keys_are_summed_by_o_and_dq)
{
    expect_coherent("pass=fwd h=2 s=130 d=64 fill=needle", "");
    expect_coherent("pass=fwd h=2 s=130 d=64 stride=broadcast:v.s fill=needle", "o");
    expect_coherent("pass=fwd h=2 s=130 d=64 stride=broadcast:k.s+v.s", "o");
    expect_coherent("pass=fwd h=2 s=130 d=64 stride=broadcast:k.s", "");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:k.s+v.s", "dq");
}

Test(copies, of_heads_and_entries_are_summed_by_groups_sums_and_dbias)
{
    expect_coherent("pass=bwd h=8/2 s=130 d=64 stride=broadcast:q.h+do.h", "dk dv");
    expect_coherent("pass=bwd h=8/2 s=130 d=64 stride=broadcast:q.h", "");
    expect_coherent("pass=bwd h=8/2 s=130 d=64 stride=broadcast:do.h fill=needle", "dk dv");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:do.h fill=needle", "");
    expect_coherent("pass=bwd h=8/2 s=130 d=64 bias=11ss dbias=1 stride=broadcast:do.h fill=needle",
                    "dk dv dbias");
    expect_coherent("pass=bwd h=2 s=130 d=64 bias=11ss dbias=1 stride=broadcast:do.b fill=needle",
                    "");
    expect_coherent(
        "pass=bwd h=2 s=130 d=64 bias=11ss dbias=1 stride=broadcast:do.b+v.b fill=needle", "dbias");
    expect_coherent("pass=bwd h=2 s=130 d=64 bias=11ss dbias=1 stride=broadcast:q.b+k.b+v.b", "");
    expect_coherent(
        "pass=bwd h=2 s=130 d=64 bias=b1ss dbias=1 stride=broadcast:do.b+v.b fill=needle", "");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:q.b+k.b+v.b;sum:dq.b+dk.b+dv.b", "");
    expect_coherent("pass=bwd h=2 s=130 d=64 stride=broadcast:q.b+k.b+v.b+do.b;sum:dq.b+dk.b+dv.b",
                    "dq dk dv");
}
