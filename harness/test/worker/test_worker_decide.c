/* What real cuDNN builds answer for described devices, case by case: harness/test/data/decide.test. */
#include "../../../lib/test/support/described_h100.h"
#include "asking.h"

enum { MOST_LINES = 400 };

typedef struct line {
    char *device, *text, *answer;
    int from; /* cuDNN's version; an older one refuses the case */
    bool compiles;
} line;

/* "DEVICE!>=9.21 CASE => ANSWER" */
static bool read_line(line *out, char *text)
{
    char *from, *first = strchr(text, ' '), *arrow = strstr(text, " => ");
    if (*text == '#' || first == NULL || arrow == NULL)
        return false;
    *first = *arrow = '\0';
    arrow[strcspn(arrow + 4, "\n") + 4] = '\0';
    *out = (line){ .device = text, .text = first + 1, .answer = arrow + 4 };
    if ((from = strstr(text, ">=")) != NULL) {
        out->from = atoi(from + 2) * 10000 + atoi(strchr(from, '.') + 1) * 100;
        *from = '\0';
    }
    out->compiles = text[strlen(text) - 1] == '!';
    text[strcspn(text, "!")] = '\0';
    return true;
}

static char *target_of(const char *build, const char *device)
{
    char folder[PATH_MAX], pattern[256];
    snprintf(pattern, sizeof pattern, "cudnn/%s/lib", build);
    if (access(in_cache(folder, pattern), R_OK) != 0)
        cr_skip_test("%s is not there: ./facts cudnn install %s", folder, build);
    if (strstr(build, "-jit-") != NULL)
        setenv("CUDNN_LIB_CONFIG", "GRAPH_JIT_ONLY", 1);
    json_t *target =
        json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s}}}", "target", "cudnn_dir", folder, "nvrtc",
                  test_nvrtc() != NULL ? test_nvrtc() : "", "driver", null_driver(), "build", build,
                  "device", "kind", "described", "name", device, "json", read_device(device));
    char *text = json_dumps(target, JSON_COMPACT);
    text = realloc(text, strlen(text) + 2);
    json_decref(target);
    return strcat(text, "\n");
}

/* The engines, each once, in order: "2,1"; or "class: text" of a refusal. */
static const char *answer_of(const json_t *row)
{
    static char text[1024];
    size_t i, length = 0;
    json_t *engine;
    bool seen[64] = { false };
    const bool yes = json_is_true(json_object_get(row, "supported"));
    snprintf(text, sizeof text, "%s: %s", reason_of(row, "class"), reason_of(row, "text"));
    json_array_foreach(json_object_get(row, "engines"), i, engine)
    {
        const json_int_t index = json_integer_value(json_object_get(engine, "index"));
        cr_assert(index >= 0 && index < 64);
        if (yes && !seen[index] && strcmp(text_at(engine, "mode"), "A") == 0)
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%lld",
                                       length > 0 ? "," : "", (long long)index);
        seen[index] = true;
    }
    return text;
}

static void check_line(const line *l, const char *got, int version)
{
    const bool yes = *got >= '0' && *got <= '9';
    if (version < l->from)
        cr_expect(!yes, "%s, cuDNN %d: %s", l->text, version, got);
    else if (yes)
        cr_expect_str_eq(got, l->answer, "%s, cuDNN %d: %s", l->text, version, got);
    else
        cr_expect(strncmp(got, l->answer, strlen(l->answer)) == 0, "%s, cuDNN %d: '%s', not '%s'",
                  l->text, version, got, l->answer);
}

/* In the night some of the plans are compiled too: each takes a second. */
static void compile_some(const char *target, const line *const lines[], size_t count, int version)
{
    asked cases[MOST_LINES];
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++)
        if (lines[i]->compiles && version >= lines[i]->from)
            cases[chosen++] = (asked){ .text = lines[i]->text, .verdict = "supported" };
    if (chosen == 0 || !night())
        return;
    json_t *rows = rows_of(target, "plan", cases, chosen);
    for (size_t i = 0; i < chosen; i++)
        check_row(&cases[i], json_array_get(rows, i));
    json_decref(rows);
}

static void check_device(const char *build, const char *device, const line lines[], size_t count)
{
    const int version = 90000 + atoi(build + 2) * 100;
    const line *mine[MOST_LINES];
    asked cases[MOST_LINES];
    size_t chosen = 0;
    char *target = target_of(build, device);
    for (size_t i = 0; i < count; i++)
        if (strcmp(lines[i].device, device) == 0)
            cases[chosen].text = lines[i].text, mine[chosen++] = &lines[i];
    json_t *rows = rows_of(target, "decide", cases, chosen);
    for (size_t i = 0; i < chosen; i++)
        check_line(mine[i], answer_of(json_array_get(rows, i)), version);
    compile_some(target, mine, chosen, version);
    json_decref(rows);
    free(target);
}

static void check_build(const char *build)
{
    static char text[MOST_LINES][320];
    line lines[MOST_LINES];
    size_t count = 0;
    char path[4096];
    snprintf(path, sizeof path, "%s/harness/test/data/decide.test", getenv("FACTS_SOURCE"));
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s", path);
    while (count < MOST_LINES && fgets(text[count], sizeof *text, file))
        count += read_line(&lines[count], text[count]);
    fclose(file);
    cr_assert(count > 200 && count < MOST_LINES);
    check_device(build, "h100-sxm", lines, count);
    check_device(build, "sm100-spec", lines, count);
    check_device(build, "sm89-spec", lines, count);
}

TestSuite(decide, .timeout = 500);

Test(decide, cudnn_9_20_answers_as_its_file_says)
{
    check_build("9.20.0-jit-cu13");
}

Test(decide, cudnn_9_27_answers_as_its_file_says)
{
    check_build("9.27.0-jit-cu13");
}

Test(decide, cudnn_9_28_answers_as_its_file_says)
{
    if (!night())
        cr_skip_test("needs a build of the night: 9.28.0-full-cu13");
    check_build("9.28.0-full-cu13");
}
