/* The rest of the attention surface through the real worker on the cpu: each feature is run and
 * judged, and a row tells what it has to. */
#include "asking.h"

#define SMALL "dtype=bf16 b=3 h=4/2 s=20/36 d=32 "

Test(surface, packed_paged_joined_and_8_bit_cases_pass)
{
    static const asked cases[] = {
        { "pass=fwd " SMALL "layout=thd lens=7+20+0/36+3+20 slots=+3 tail=5 want=stats", "pass",
          "o+stats" },
        { "pass=bwd " SMALL "layout=thd lens=7+20+0/36+3+20", "pass", "dq+dk+dv" },
        { "pass=fwd dtype=f16 b=3 h=2 s=20 d=32 layout=t3hd padding=random stats=ht1 offsets=i64 "
          "want=max+sum_exp",
          "pass", "o+max+sum_exp" },
        { "pass=bwd dtype=f16 b=3 h=2 s=20 d=32 layout=th3d padding=random", "pass", "dq+dk+dv" },
        { "pass=fwd " SMALL "padding=random paged=16 poison=nan", "pass", "o" },
        { "pass=fwd " SMALL "padding=random paged=v:8 table=shared", "pass", "o" },
        { "pass=fwd " SMALL "padding=random paged=8 table=packed", "pass", "o" },
        { "pass=fwd " SMALL "padding=random cu=both want=stats", "pass", "o+stats" },
        { "pass=fwd " SMALL "softmax=sink want=stats", "pass", "o+stats" },
        { "pass=bwd " SMALL "softmax=sink dsink=1", "pass", "dq+dk+dv+dsink" },
        { "pass=fwd " SMALL "softmax=off_by_one", "pass", "o" },
        { "pass=fwd " SMALL "alibi=custom bias=bool:b1ss", "pass", "o" },
        { "pass=fwd " SMALL "scale=tensor want=stats2", "pass", "o+stats" },
        { "pass=fwd dtype=bf16 b=1 h=2 s=200/300 d=32 blockmask=empty_row want=stats", "pass",
          "o+stats" },
        { "pass=fwd dtype=e4m3 b=2 h=2 s=40 d=32 scales=odd want=stats", "pass",
          "o+stats+amax_s+amax_o" },
        { "pass=fwd dtype=e5m2 out=bf16 b=2 h=2 s=40 d=32 scales=pow2", "pass", "o+amax_s" },
        { "pass=bwd dtype=e4m3 b=2 h=2 s=40 d=32 scales=odd", "pass",
          "dq+dk+dv+amax_dp+amax_dq+amax_dk+amax_dv" },
        { "pass=bwd dtype=e4m3 out=bf16 do_dtype=e5m2 grad=e5m2 b=2 h=2 s=40 d=32 scales=odd",
          "pass", "dq+dk+dv+amax_dp+amax_dq+amax_dk+amax_dv" },
        { "pass=bwd dtype=e5m2 do_dtype=e4m3 b=2 h=2 s=40 d=32 scales=odd", "pass",
          "dq+dk+dv+amax_dp" },
        { "pass=bwd dtype=mxe4m3 do_dtype=mxe5m2 b=1 h=2 s=64 d=64", "pass", "dq+dk+dv" },
        { "pass=fwd dtype=mxe4m3 b=1 h=2 s=64 d=64", "pass", "o" },
        { "pass=fwd " SMALL "rope=1 want=stats", "pass", "o+stats" },
        { "pass=bwd " SMALL "rope=16", "pass", "dq+dk+dv" },
        { "pass=bwd " SMALL "stride=broadcast:k.b+v.h+q.s;sum:dk.b+dv.h+dq.s", "pass", "dq+dk+dv" },
        { "pass=bwd " SMALL "bias=bhss dbias=1 stride=broadcast:bias.h;sum:dbias.h", "pass",
          "dbias" },
        { "pass=bwd " SMALL "mask=causal bias=bh1s dbias=1 bias_dtype=f16", "pass", "dbias" },
    };
    CHECK_ROWS(cases);
}

Test(surface, dropout_passes_and_tells_what_was_kept)
{
    static const asked cases[] = {
        { "pass=fwd " SMALL "dropout=0.2 want=rng_dump", "pass", "rng_dump" },
        { "pass=bwd " SMALL "dropout=0.2", "pass" },
        { "pass=fwd " SMALL "dropout=0.25 dropout_mask=1", "pass" },
        { "pass=fwd " SMALL "dropout=0.2 rng=7:3 rng_dtype=i32", "pass" },
    };
    int64_t kept[4];
    json_t *rows = check_rows(cases, 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *dropout = json_object_get(json_array_get(rows, i), "dropout");
        kept[i] = json_integer_value(json_object_get(dropout, "kept"));
        cr_expect_eq(json_integer_value(json_object_get(dropout, "of")), 3 * 4 * 20 * 36);
        cr_expect(kept[i] > 5000 && kept[i] < 8640);
        const json_t *repeat = json_object_get(dropout, "repeat");
        cr_expect_eq(repeat == NULL, i == 2, "%s: a caller's mask may repeat", cases[i].text);
        cr_expect(json_real_value(json_object_get(repeat, "ratio")) <= 1.0 &&
                  (!repeat || json_integer_value(json_object_get(repeat, "pairs")) > 1000));
    }
    cr_expect_eq(kept[0], kept[1], "the backward drops what its forward dropped");
    cr_expect_neq(kept[0], kept[3], "another seed");
    json_decref(rows);
}

Test(surface, what_is_drawn_depends_on_no_address_and_is_read_out_of_answers)
{
    static const asked cases[] = {
        { "pass=fwd " SMALL "dropout=0.2 stride=offset:7", "unsupported" },
        { "pass=bwd " SMALL "dropout=0.2 stride=offset:9", "unsupported" },
        { "pass=fwd " SMALL "dropout=0.2 check=keep", "pass" },
        { "pass=bwd " SMALL "dropout=0.2 check=keep mask=causal", "pass" },
        { "pass=fwd " SMALL "dropout=0.25 dropout_mask=1 check=keep padding=random", "pass" },
    };
    json_t *rows = check_rows(cases, 5);
    for (size_t i = 2; i < 5; i++) {
        const json_t *check = json_object_get(json_array_get(rows, i), "check");
        cr_expect_gt(json_integer_value(json_object_get(check, "compared")), 1000, "%s",
                     cases[i].text);
    }
    cr_expect_str_eq(text_at(json_array_get(rows, 2), "impl"), "auto", "which graph was asked for");
    json_decref(rows);
}
