/* Logs and plans become cases: real pieces, and hostile ones. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "import/import.h"
#include "words/case_text.h"

static facts_import *read_text(const char *text)
{
    facts_import *m = facts_import_create();
    cr_assert_not_null(m);
    facts_import_bytes(m, "log", text, strlen(text));
    return m;
}

static size_t unread(const facts_import *m)
{
    size_t total;
    facts_import_unread(m, 0, &total);
    return total;
}

/* A node of cudnn-frontend 1.18 with Q, K, V, O of sizes 2,H,S,64; `node`, `q` and `k` go into it.
 */
static char *frontend(const char *node, const char *q_stride, const char *k_stride)
{
    static char text[8000];
    static const char tensor[] =
        "\"%s\":{\"data_type\":null,\"dim\":[2,4,256,64],\"stride\":[%s],\"is_virtual\":false,\"is_"
        "pass_by_value\":false,"
        "\"name\":\"%s\",\"pass_by_value\":null,\"reordering_type\":\"NONE\",\"uid\":1}";
    size_t n = (size_t)snprintf(text, sizeof text,
                                "{\"context\":{\"io_data_type\":\"HALF\"},\"cudnn_backend_"
                                "version\":\"9.19.0\",\"cudnn_frontend_version\":11800,"
                                "\"nodes\":[{\"attn_scale_value\":0.125,\"inputs\":{\"Q\":\"q\","
                                "\"K\":\"k\",\"V\":\"v\"},\"outputs\":{\"O\":\"o\"},%"
                                "s\"tag\":\"SDPA_FWD\"}],\"tensors\":{",
                                node);
    const char *names[] = { "q", "k", "v", "o" };
    for (int i = 0; i < 4; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s", i ? "," : "");
        n += (size_t)snprintf(text + n, sizeof text - n, tensor, names[i],
                              i == 1 || i == 2 ? k_stride : q_stride, names[i]);
    }
    snprintf(text + n, sizeof text - n, "}}\n");
    return text;
}

#define BSHD "65536,64,256,1"

Test(import, a_node_of_the_frontend_is_its_case_and_strides_become_layouts_or_forms)
{
    static const struct {
        const char *node, *q, *k, *name; /* behind "pass=fwd dtype=f16 h=4 s=256 d=64" */
    } rows[] = {
        { "", BSHD, BSHD, "" },
        { "\"causal_mask\":true,\"right_bound\":0,", BSHD, BSHD, " mask=causal" },
        { "\"left_bound\":33,\"right_bound\":2,\"diagonal_alignment\":\"BOTTOM_RIGHT\",", BSHD,
          BSHD, " window=33:2 align=br" },
        { "\"implementation\":\"UNIFIED\",\"alibi_mask\":true,", BSHD, BSHD,
          " alibi=1 impl=unified" },
        { "", "65536,16384,64,1", "65536,16384,64,1", " layout=bhsd" },
        { "", "65536,64,256,1", "65536,16384,64,1", " layout=bshd_bhsd" },
        { "", BSHD, "0,64,256,1", " stride=broadcast:k.b+v.b" },
        { "", "69632,64,272,1", "69632,64,272,1", " stride=gap:16" },
        { "", BSHD, "64,32768,128,1", " stride=perm:k.hsbd+v.hsbd" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        facts_import *m = read_text(frontend(rows[i].node, rows[i].q, rows[i].k));
        size_t total;
        cr_assert_eq(facts_import_count(m), 1, "%s: %s", rows[i].name,
                     facts_import_unread(m, 0, &total));
        const facts_imported *p = facts_import_at(m, 0);
        cr_expect_str_eq(p->name + strlen("pass=fwd dtype=f16 h=4 s=256 d=64"), rows[i].name, "%s",
                         p->name);
        cr_expect(!p->notes.scale_missing && p->cudnn == 91900 && p->frontend == 11800);
        facts_import_destroy(m);
    }
}

Test(import, what_no_layout_has_is_said_and_not_guessed)
{
    facts_import *m = read_text(frontend("", "10,64,256,1", BSHD));
    size_t total;
    cr_expect_eq(facts_import_count(m), 0);
    cr_expect_eq(unread(m), 1);
    cr_expect_not_null(strstr(facts_import_unread(m, 0, &total), "log:1: no layout has q"));
    facts_import_destroy(m);
}

Test(import, repeated_graphs_are_counted_and_failures_stand_beside_them)
{
    char text[20000] = "";
    strcat(text, frontend("", BSHD, BSHD));
    strcat(text, frontend("", BSHD, BSHD));
    strcat(text, "[cudnn_frontend] ERROR: No engine configs \x01 at here\n[cudnn_frontend] INFO: "
                 "CUDNN_STATUS_SUCCESS\n");
    facts_import *m = read_text(text);
    cr_assert_eq(facts_import_count(m), 1);
    const facts_imported *p = facts_import_at(m, 0);
    cr_expect_eq(p->seen, 2);
    cr_assert_eq(p->log_count, 1);
    cr_expect_str_eq(p->log_text[0], "[cudnn_frontend] ERROR: No engine configs ? at here");
    facts_import_destroy(m);
}

Test(import, threads_are_told_apart)
{
#define GRAPH(n, tail)                                                                             \
    "I! CuDNN (v92000 48) function cudnnBackendFinalizeGraphVisualize() called:\ni!     apiLog: "  \
    "type=json; "                                                                                  \
    "val={\"cudnnVersion\":92000,"                                                                 \
    "\"operationGraph\":{\"tensors\":[{\"name\":\"1\",\"dataType\":\"CUDNN_DATA_BFLOAT16\","       \
    "\"dim\":[1,1," n ",64],\"stride\":[0,0,64,1]},"                                               \
    "{\"name\":\"2\",\"dataType\":\"CUDNN_DATA_BFLOAT16\",\"dim\":[1,1," n                         \
    ",64],\"stride\":[0,0,64,1]}],\"nodes\":[{\"operation\":"                                      \
    "\"CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR\",\"Q\":\"1\",\"K\":\"1\",\"V\":\"1\",\"O\":"   \
    "\"2\"}]}};\ni! Process=1; "                                                                   \
    "Thread=" tail "; GPU=NULL; Handle=NULL; StreamId=NULL.\n\n"
#define NOBODY(tail)                                                                               \
    "W! CuDNN (v92000 48) function x_support_checks() called:\nw!     Warning: No viable engine "  \
    "configs\nw!     engineConfig: "                                                               \
    "type=json; val={};\n"                                                                         \
    "w!     Warning: CUDNN_STATUS_NOT_SUPPORTED_SHAPE; Reason: of " tail                           \
    "\nw!     Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: the way out\n"                          \
    "w! Process=1; Thread=" tail "; GPU=NULL; Handle=NULL; StreamId=NULL.\n\n"
    facts_import *m = read_text(GRAPH("16", "7") GRAPH("32", "8") NOBODY("7"));
    cr_assert_eq(facts_import_count(m), 2);
    cr_expect_eq(facts_import_at(m, 1)->log_count, 0);
    cr_assert_eq(facts_import_at(m, 0)->log_count, 1,
                 "the reason alone, without what follows from it");
    cr_expect_str_eq(facts_import_at(m, 0)->log_text[0],
                     "Warning: CUDNN_STATUS_NOT_SUPPORTED_SHAPE; Reason: of 7");
    facts_import_destroy(m);
}

Test(import, a_failure_without_a_graph_is_kept_apart)
{
    facts_import *m = read_text(NOBODY("7"));
    size_t total;
    cr_expect_eq(facts_import_count(m), 0);
    cr_assert_not_null(facts_import_orphan(m, 0, &total));
    facts_import_destroy(m);
}

#define LINE_WITH_Q(q)                                                                             \
    "a line\n{\"context\":{},\"nodes\":[{\"tag\":\"SDPA_FWD\",\"inputs\":{\"Q\":\"q\"}}],"         \
    "\"tensors\":{\"q\":{" q "}}}"

Test(import, hostile_logs_are_counted_by_their_line)
{
    static const char *const hostile[] = {
        "a line\n{\"context\":{\"io_data_type\":\"HALF\"},\"nodes\":[{\"tag\":\"SDPA_FWD\",\"inp",
        "a line\n{\"context\":1,\"nodes\":[],\"tensors\":7}",
        LINE_WITH_Q("\"dim\":[1,2,99999999999999999999],\"stride\":[1]"),
        LINE_WITH_Q("\"dim\":[-1],\"stride\":[1]"),
        LINE_WITH_Q("\"dim\":[1,1,1,1],\"stride\":[1,1,1,1]"),
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        facts_import *m = read_text(hostile[i]);
        size_t total;
        cr_expect_eq(facts_import_count(m), 0);
        cr_assert_eq(unread(m), 1, "%zu", i);
        cr_expect_not_null(strstr(facts_import_unread(m, 0, &total), "log:2: "), "%s",
                           facts_import_unread(m, 0, &total));
        facts_import_destroy(m);
    }
}

Test(import, deep_json_and_huge_sizes_are_no_harm)
{
    char *deep = malloc(400000);
    cr_assert_not_null(deep);
    memset(deep, '[', 399999);
    memcpy(deep, "x\n{\"context\":", 13);
    deep[399999] = '\0';
    facts_import *m = read_text(deep);
    cr_expect_eq(unread(m), 1);
    facts_import_destroy(m);
    free(deep);
    char huge[8000];
    snprintf(
        huge, sizeof huge, "%s",
        frontend("", "70368744177664,64,256,1", "70368744177664,70368744177664,70368744177664,1"));
    m = read_text(huge);
    cr_expect_eq(facts_import_count(m) + unread(m), 1);
    facts_import_destroy(m);
}

Test(import, a_line_longer_than_any_is_skipped_and_what_follows_is_read)
{
    char path[] = "/tmp/facts-import-XXXXXX", *piece = malloc(1 << 20);
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    facts_error error = { .line = 0 };
    size_t total;
    cr_assert(piece != NULL && file != NULL);
    memset(piece, 'x', 1 << 20);
    for (int i = 0; i < 20; i++)
        fwrite(piece, 1, 1 << 20, file);
    fprintf(file, "\n%s", frontend("", BSHD, BSHD));
    fclose(file);
    facts_import *m = facts_import_create();
    cr_assert(facts_import_file(m, path, &error), "%s", error.text);
    cr_expect_eq(unread(m), 1);
    cr_expect_not_null(strstr(facts_import_unread(m, 0, &total), ":1: a line of more than 16 MB"));
    cr_assert_eq(facts_import_count(m), 1);
    cr_expect_eq(facts_import_at(m, 0)->line, 2);
    facts_import_destroy(m);
    remove(path);
    free(piece);
}
