/* The rest of the attention surface through the real worker on the cpu: each feature is run and
 * judged, and a row tells what it has to. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "dtype=bf16 b=3 h=4/2 s=20/36 d=32 "

/* The rows of these cases, asked of one worker; a JSON array. */
static json_t *run(const char *const names[], size_t count)
{
    char path[4200], line[1 << 16], inputs[] = "/tmp/facts-surface-XXXXXX";
    const char *bin = getenv("FACTS_BIN");
    json_t *rows = json_array();
    int file = mkstemp(inputs);
    FILE *in = fdopen(file, "w");
    cr_assert(in);
    fprintf(in, "{\"target\":{\"device\":{\"kind\":\"cpu\"},\"threads\":2}}\n");
    for (size_t i = 0; i < count; i++)
        fprintf(in, "{\"id\":%zu,\"case\":\"%s\",\"do\":\"run\"}\n", i + 1, names[i]);
    fclose(in);
    snprintf(path, sizeof path, "%s/facts-worker < %s", bin ? bin : "bin", inputs);
    FILE *out = popen(path, "r");
    cr_assert(out);
    while (fgets(line, sizeof line, out)) {
        json_t *reply = json_loads(line, 0, NULL), *row = json_object_get(reply, "row");
        if (row)
            json_array_append(rows, row);
        json_decref(reply);
    }
    cr_assert_eq(pclose(out), 0);
    remove(inputs);
    cr_assert_eq(json_array_size(rows), count);
    return rows;
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* All pass, and each has judged what is named beside it (words joined by +). */
static void expect_pass(const char *const names[], const char *const judged[], size_t count)
{
    json_t *rows = run(names, count);
    for (size_t i = 0; i < count; i++) {
        const json_t *row = json_array_get(rows, i), *errors = json_object_get(row, "errors");
        char words[100], *rest = words, *word;
        cr_expect_str_eq(text_at(row, "verdict"), "pass", "%s: %s", names[i],
                         text_at(json_object_get(row, "reason"), "text"));
        snprintf(words, sizeof words, "%s", judged[i]);
        while ((word = strsep(&rest, "+")) && *word)
            cr_expect(
                json_integer_value(json_object_get(json_object_get(errors, word), "checked")) > 0,
                "%s: %s", names[i], word);
    }
    json_decref(rows);
}

#define EXPECT_PASS(cases)                                                                         \
    do {                                                                                           \
        const char *names[sizeof cases / sizeof *cases], *judged[sizeof cases / sizeof *cases];    \
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)                                  \
            names[i] = cases[i][0], judged[i] = cases[i][1];                                       \
        expect_pass(names, judged, sizeof cases / sizeof *cases);                                  \
    } while (0)

Test(surface, packed_and_paged_sequences_pass)
{
    static const char *const cases[][2] = {
        { "pass=fwd " SMALL "layout=thd lens=7+20+0/36+3+20 slots=+3 tail=5 want=stats",
          "o+stats" },
        { "pass=bwd " SMALL "layout=thd lens=7+20+0/36+3+20", "dq+dk+dv" },
        { "pass=fwd dtype=f16 b=3 h=2 s=20 d=32 layout=t3hd padding=random stats=ht1 offsets=i64 "
          "want=max+sum_exp",
          "o+max+sum_exp" },
        { "pass=bwd dtype=f16 b=3 h=2 s=20 d=32 layout=th3d padding=random", "dq+dk+dv" },
        { "pass=fwd " SMALL "padding=random paged=16 poison=nan", "o" },
        { "pass=fwd " SMALL "padding=random paged=v:8 table=shared", "o" },
        { "pass=fwd " SMALL "padding=random paged=8 table=packed", "o" },
        { "pass=fwd " SMALL "padding=random cu=both want=stats", "o+stats" },
    };
    EXPECT_PASS(cases);
}

Test(surface, what_joins_the_softmax_passes)
{
    static const char *const cases[][2] = {
        { "pass=fwd " SMALL "softmax=sink want=stats", "o+stats" },
        { "pass=bwd " SMALL "softmax=sink dsink=1", "dq+dk+dv+dsink" },
        { "pass=fwd " SMALL "softmax=off_by_one", "o" },
        { "pass=fwd " SMALL "alibi=custom bias=bool:b1ss", "o" },
        { "pass=fwd " SMALL "scale=tensor want=stats2", "o+stats" },
        { "pass=fwd dtype=bf16 b=1 h=2 s=200/300 d=32 blockmask=empty_row want=stats", "o+stats" },
    };
    EXPECT_PASS(cases);
}

Test(surface, eight_bit_types_pass_with_their_largest_magnitudes)
{
    static const char *const cases[][2] = {
        { "pass=fwd dtype=e4m3 b=2 h=2 s=40 d=32 scales=odd want=stats", "o+stats+amax_s+amax_o" },
        { "pass=fwd dtype=e5m2 out=bf16 b=2 h=2 s=40 d=32 scales=pow2", "o+amax_s" },
        { "pass=bwd dtype=e4m3 b=2 h=2 s=40 d=32 scales=odd",
          "dq+dk+dv+amax_dp+amax_dq+amax_dk+amax_dv" },
        { "pass=bwd dtype=e4m3 out=bf16 do_dtype=e5m2 grad=e5m2 b=2 h=2 s=40 d=32 scales=odd",
          "dq+dk+dv+amax_dp+amax_dq+amax_dk+amax_dv" },
        { "pass=bwd dtype=e5m2 do_dtype=e4m3 b=2 h=2 s=40 d=32 scales=odd", "dq+dk+dv+amax_dp" },
        { "pass=bwd dtype=mxe4m3 do_dtype=mxe5m2 b=1 h=2 s=64 d=64", "dq+dk+dv" },
        { "pass=fwd dtype=mxe4m3 b=1 h=2 s=64 d=64", "o" },
    };
    EXPECT_PASS(cases);
}

Test(surface, dropout_passes_and_tells_what_was_kept)
{
    static const char *const names[] = { "pass=fwd " SMALL "dropout=0.2 want=rng_dump",
                                         "pass=bwd " SMALL "dropout=0.2",
                                         "pass=fwd " SMALL "dropout=0.25 dropout_mask=1",
                                         "pass=fwd " SMALL "dropout=0.2 rng=7:3 rng_dtype=i32" };
    int64_t kept[4];
    json_t *rows = run(names, 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i), *dropout = json_object_get(row, "dropout");
        cr_expect_str_eq(text_at(row, "verdict"), "pass", "%s: %s", names[i],
                         text_at(json_object_get(row, "reason"), "text"));
        kept[i] = json_integer_value(json_object_get(dropout, "kept"));
        cr_expect_eq(json_integer_value(json_object_get(dropout, "of")), 3 * 4 * 20 * 36);
        cr_expect(kept[i] > 5000 && kept[i] < 8640);
        const json_t *repeat = json_object_get(dropout, "repeat");
        cr_expect_eq(repeat == NULL, i == 2, "%s: a caller's mask may repeat", names[i]);
        cr_expect(json_real_value(json_object_get(repeat, "ratio")) <= 1.0 &&
                  (!repeat || json_integer_value(json_object_get(repeat, "pairs")) > 1000));
    }
    cr_expect_eq(kept[0], kept[1], "the backward drops what its forward dropped");
    cr_expect_neq(kept[0], kept[3], "another seed");
    cr_expect(json_object_get(json_object_get(json_array_get(rows, 0), "errors"), "rng_dump"));
    json_decref(rows);
}

Test(surface, dropout_does_not_hide_why_an_address_is_refused)
{
    static const char *const names[] = { "pass=fwd " SMALL "dropout=0.2 stride=offset:7",
                                         "pass=bwd " SMALL "dropout=0.2 stride=offset:9" };
    json_t *rows = run(names, 2);
    for (size_t i = 0; i < 2; i++)
        cr_expect_str_eq(text_at(json_array_get(rows, i), "verdict"), "unsupported",
                         "%s: what is drawn depends on no address", names[i]);
    json_decref(rows);
}

Test(surface, what_dropout_kept_is_read_out_of_answers)
{
    static const char *const names[] = { "pass=fwd " SMALL "dropout=0.2 check=keep",
                                         "pass=bwd " SMALL "dropout=0.2 check=keep mask=causal",
                                         "pass=fwd " SMALL
                                         "dropout=0.25 dropout_mask=1 check=keep padding=random" };
    json_t *rows = run(names, 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *row = json_array_get(rows, i), *check = json_object_get(row, "check");
        cr_expect_str_eq(text_at(row, "verdict"), "pass", "%s: %s", names[i],
                         text_at(json_object_get(row, "reason"), "text"));
        cr_expect(json_integer_value(json_object_get(check, "compared")) > 1000, "%s", names[i]);
    }
    json_decref(rows);
}

Test(surface, a_row_says_which_graph_was_asked_for)
{
    static const char *const names[] = { "pass=fwd " SMALL, "pass=fwd " SMALL "impl=composite" };
    json_t *rows = run(names, 2);
    cr_expect_str_eq(text_at(json_array_get(rows, 0), "impl"), "auto");
    json_decref(rows);
}
