/* `facts` as people start it, with the worker that misbehaves on demand, in a folder of its own;
 * and what its record says. */
#ifndef FACTS_TEST_RUNNING_H
#define FACTS_TEST_RUNNING_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/reader.h"
#include "words/verdict.h"

#define MANY "pass=fwd d=8..1600:8" /* 200 cases */
#define FEW "pass=fwd d=8..96:8"    /* 12 */

static char folder[64];

static inline void set_up(void)
{
    const char *bin = getenv("FACTS_BIN");
    char worker[1024];
    snprintf(worker, sizeof worker, "%s/facts-fake-worker", bin ? bin : "bin");
    setenv("FACTS_WORKER", worker, 1);
    unsetenv("FACTS_FAULT");
    strcpy(folder, "/tmp/facts-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    setenv("XDG_CACHE_HOME", folder, 1);
}

static inline void tear_down(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

/* A file of the folder. */
static inline void put(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs(text, file);
    fclose(file);
}

static inline void put_folder(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    cr_assert_eq(mkdir(path, 0755), 0, "%s", path);
}

/* A cuDNN in FOLDER/build, as far as the front door looks at one: 9.27.0, which brings its own
 * NVRTC. */
static inline void put_build(void)
{
    put_folder("build");
    put("build/libcudnn.so.9", "main");
    put("build/libcudnn_graph.so.9", "graph");
    put("build/libcudnn_engines_runtime_compiled.so.9",
        "\x7f"
        "ELF... cudnn_version != (9 * 10000 + 27 * 100 + 0) ... "
        "--ext-desc-file=\"/usr/local/cuda-13.1/bin/ptxExtDesc.txt\" "
        "000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000");
}

/* Starts `facts ARGS` by the shell (exec: its pid is facts'); output goes to FOLDER/out. */
static inline pid_t start(const char *format, ...)
{
    char arguments[1024], command[2560];
    va_list args;
    va_start(args, format);
    vsnprintf(arguments, sizeof arguments, format, args);
    va_end(args);
    const char *bin = getenv("FACTS_BIN");
    snprintf(command, sizeof command, "cd %s && exec %s/facts %s >>out 2>&1", folder,
             bin ? bin : "bin", arguments);
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return child;
}

static inline int finish(pid_t child)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define facts(...) finish(start(__VA_ARGS__))

typedef struct summary {
    size_t rows, names, verdicts[FACTS_VERDICT_COUNT + 1], starts, bad;
    size_t on_gpu[3]; /* starts, by the number of one of several GPUs */
    bool ended, complete;
    unsigned char seen[1601]; /* rows by head dim, which names the case here */
    char last_reason[1024];
} summary;

static inline int dim_of(const char *name)
{
    const char *d = strstr(name, " d=");
    return d ? atoi(d + 3) : 128; /* the default is not said */
}

static inline bool sum_line(void *context, const facts_line *line)
{
    summary *s = context;
    char name[1500];
    if (line->kind == FACTS_LINE_END) {
        s->ended = true;
        facts_json_bool(facts_line_get(line, "complete"), &s->complete);
    }
    int64_t gpu;
    s->starts += line->kind == FACTS_LINE_START;
    if (line->kind == FACTS_LINE_START && facts_json_int(facts_line_get(line, "gpu"), &gpu) &&
        gpu >= 0 && gpu < 3)
        s->on_gpu[gpu]++;
    if (line->kind != FACTS_LINE_ROW)
        return true;
    s->rows++;
    s->verdicts[facts_verdict_parse(facts_line_get(line, "verdict"))]++;
    cr_assert(facts_json_string(facts_line_get(line, "case"), name, sizeof name));
    int d = dim_of(name);
    if (d <= 1600)
        s->names += s->seen[d]++ == 0;
    facts_span reason = facts_line_get(line, "reason");
    facts_member members[16];
    size_t count;
    if (reason.at && facts_scan_object(reason.at, reason.length, members, 16, &count))
        facts_json_string(facts_member_find(members, count, "text"), s->last_reason,
                          sizeof s->last_reason);
    return true;
}

static inline summary sum_up(const char *record)
{
    summary s = { 0 };
    facts_read_counts counts;
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, record);
    cr_assert(facts_record_read(path, sum_line, &s, &counts), "%s", path);
    s.bad = counts.bad;
    return s;
}

static inline bool output_says(const char *words)
{
    char path[256], text[65536];
    snprintf(path, sizeof path, "%s/out", folder);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = '\0';
    fclose(file);
    return strstr(text, words) != NULL;
}

static inline void nap_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Lines of FOLDER/NAME with these words; 0 where there is no such file. */
static inline size_t lines_with(const char *name, const char *words)
{
    static char line[1 << 16];
    char path[256];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        count += strstr(line, words) != NULL;
    if (file)
        fclose(file);
    return count;
}

/* Waits until FOLDER/NAME has so many lines with these words. Without end: the suite's time-out is
 * the limit. */
static inline void until_lines(const char *name, const char *words, size_t count)
{
    while (lines_with(name, words) < count)
        nap_ms(5);
}

/* Waits until a case is in flight, so that a signal meets a run and not its start. */
static inline void until_a_case_starts(const char *record)
{
    until_lines(record, "{\"start\"", 1);
}

/* What marks of an earlier run would change: its output, and who has lived. */
static inline void forget_runs(void)
{
    char command[192];
    snprintf(command, sizeof command,
             "cd %s && rm -f out held go lost ready.* born.* met.* asked.*", folder);
    cr_assert_eq(system(command), 0);
}

/* A run with a fault: all its rows pass, but `odd` of them. */
typedef struct faulty_run {
    const char *fault, *command;
    int status;
    size_t rows, odd;
    facts_verdict verdict;           /* of the odd ones */
    const char *reason, *says, *too; /* in the record; in the output; NULL: nothing special */
} faulty_run;

static inline summary check_run(const faulty_run *x)
{
    forget_runs();
    setenv("FACTS_FAULT", x->fault, 1);
    cr_expect_eq(facts("%s --overwrite -o r", x->command), x->status, "%s", x->fault);
    summary s = sum_up("r");
    cr_expect_eq(s.rows, x->rows, "%s: %zu rows", x->fault, s.rows);
    cr_expect_eq(s.verdicts[FACTS_VERDICT_PASS], x->rows - x->odd, "%s: %zu pass", x->fault,
                 s.verdicts[FACTS_VERDICT_PASS]);
    cr_expect(!x->odd || s.verdicts[x->verdict] == x->odd, "%s: %zu", x->fault,
              s.verdicts[x->verdict]);
    cr_expect(s.bad == 0 && (s.complete || x->status == 3), "%s", x->fault);
    cr_expect(!x->reason || lines_with("r", x->reason) > 0, "%s: %s", x->fault, s.last_reason);
    cr_expect(!x->says || output_says(x->says), "%s", x->fault);
    cr_expect(!x->too || output_says(x->too), "%s", x->fault);
    return s;
}

#define CHECK_RUNS(runs)                                                                           \
    for (size_t run = 0; run < sizeof runs / sizeof *runs; run++)                                  \
    check_run(&runs[run])

#endif
