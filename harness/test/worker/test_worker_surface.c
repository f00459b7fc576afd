/* The rest of the attention surface through the real worker on the cpu: each feature is run and
 * judged, and a row tells what it has to. */
#include "asking.h"

enum { MOST_FEATURES = 200 };
#define SMALL "dtype=bf16 b=3 h=4/2 s=20/36 d=32 "

Test(surface, every_feature_passes_and_every_tensor_is_judged)
{
    static char lines[MOST_FEATURES][200];
    static asked cases[MOST_FEATURES];
    size_t count = 0;
    char path[4096];
    snprintf(path, sizeof path, "%s/harness/test/data/surface.test", getenv("FACTS_SOURCE"));
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    while (count < MOST_FEATURES && fgets(lines[count], sizeof *lines, file)) {
        char *line = lines[count], *text = strchr(line, ' ');
        if (*line == '#' || text == NULL)
            continue;
        *text++ = '\0';
        text[strcspn(text, "\n")] = '\0';
        cases[count++] = (asked){ .text = text, .verdict = "pass", .judged = line };
    }
    fclose(file);
    cr_assert(count > 70 && count < MOST_FEATURES);
    json_decref(check_rows(cases, count));
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
