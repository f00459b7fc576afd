/* The real worker, as the supervisor starts it, on the cpu. */
#include <signal.h>
#include <sys/wait.h>

#include "asking.h"

typedef struct answer {
    char *out;
    json_t *last; /* the last line, parsed */
    int lines, status;
} answer;

static char *worker_path(void)
{
    static char path[4200];
    const char *bin = getenv("FACTS_BIN");
    snprintf(path, sizeof path, "%s/facts-worker", bin ? bin : "bin");
    return path;
}

/* Says `input` to a new worker and reads until it ends. */
static answer say(const char *input)
{
    int in[2], out[2];
    cr_assert(pipe(in) == 0 && pipe(out) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execl(worker_path(), "facts-worker", (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    signal(SIGPIPE, SIG_IGN);
    cr_assert(write(in[1], input, strlen(input)) >= 0 || input[0] == '\0');
    close(in[1]);
    answer a = { .out = calloc(1, 1 << 20) };
    size_t used = 0;
    ssize_t n;
    while ((n = read(out[0], a.out + used, (1 << 20) - 1 - used)) > 0)
        used += (size_t)n;
    close(out[0]);
    waitpid(pid, &a.status, 0);
    for (size_t i = 0; i < used; i++)
        a.lines += a.out[i] == '\n';
    char *line = used ? memrchr(a.out, '\n', used - 1) : NULL;
    a.last = used ? json_loads(line ? line + 1 : a.out, 0, NULL) : NULL;
    return a;
}

static void leave(answer *a)
{
    json_decref(a->last);
    free(a->out);
}

#define FORWARD "pass=fwd dtype=bf16 b=1 h=2 s=96 d=64 "
#define SMALL "dtype=bf16 b=2 h=2 s=40 d=32 "

Test(worker, fills_layouts_gaps_and_lengths_pass_and_what_is_wrong_is_named)
{
    static const asked cases[] = {
        { FORWARD "want=stats", "pass" },
        { FORWARD "want=stats fill=needle mask=causal", "pass" },
        { "pass=fwd dtype=f16 b=1 h=2 s=96 d=64 want=stats fill=neglse", "pass" },
        { FORWARD "want=stats fill=stair_up", "pass" },
        { "pass=fwd dtype=f32 b=1 h=2 s=96 d=64 want=stats fill=spiky", "pass" },
        { "pass=fwd dtype=f16 b=1 h=2 s=96 d=64 want=stats fill=uniform", "pass" },
        { "pass=fwd dtype=f16 b=1 h=2 s=96 d=64 fill=stair_dn want=stats+max+sum_exp", "pass" },
        { "pass=bwd dtype=bf16 b=1 h=4/2 s=96 d=64", "pass" },
        { "pass=bwd dtype=bf16 b=1 h=2 s=64/96 d=64 fill=needle mask=causal_br", "pass" },
        { "pass=bwd dtype=f16 b=1 h=2 s=64 d=64 fill=neglse", "pass" },
        { "pass=bwd dtype=bf16 b=1 h=2 s=96 d=64 fill=stair_up repeat=3", "pass" },
        { "pass=bwd " SMALL "layout=bs3hd", "pass" },
        { "pass=bwd " SMALL "layout=sbhd_sb2hd stride=gap:8", "pass" },
        { "pass=bwd dtype=bf16 b=3 h=2 s=40 d=32 lens=40+17+0/33+0+5", "pass" },
        { "pass=fwd dtype=bf16 b=3 h=2 s=40 d=32 lens=40+17+0/33+0+5 want=stats poison=nan",
          "pass" },
        { "pass=fwd " SMALL "stride=broadcast:k.b+v.b", "pass" },
        { "pass=fwd dtype=bf16 b=2 h=2 s=1/40 d=32 mask=causal_br want=stats", "pass" },
        { "pass=fwd dtype=bf16 b=2 h=2 s=40/1 d=32 want=stats", "pass" },
        { "pass=fwd dtype=bf16 b=4096 h=1 s=1/9 d=8 padding=random layout=thd", "pass" },
        { "pass=fwd dtype=bf16 b=4097 padding=full", "unsupported", NULL, "internal", "padding" },
        { "pass=fwd dtype=bf16 h=5/2", "unsupported", NULL, "bad_problem", "h" },
    };
    CHECK_ROWS(cases);
}

Test(worker, nothing_left_of_all_configurations_is_said)
{
    answer a = say(CPU_TARGET "{\"id\":1,\"case\":\"pass=fwd dtype=bf16 "
                              "engine=all\",\"do\":\"decide\",\"from_config\":99}\n");
    cr_expect(json_is_true(json_object_get(a.last, "none")) &&
                  json_is_true(json_object_get(a.last, "last")),
              "%s", a.out);
    leave(&a);
}

Test(worker, no_requests_is_a_clean_end)
{
    answer a = say(CPU_TARGET);
    cr_expect(WIFEXITED(a.status) && WEXITSTATUS(a.status) == 0);
    cr_expect_eq(a.lines, 1);
    leave(&a);
}

Test(worker, garbage_ends_it_with_2)
{
    static const char *const bad[] = { "", "hello\n", "{\"target\":7}\n", CPU_TARGET "what?\n",
                                       CPU_TARGET "{\"id\":1}\n" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        answer a = say(bad[i]);
        cr_expect(WIFEXITED(a.status) && WEXITSTATUS(a.status) == 2, "%s: %d", bad[i], a.status);
        leave(&a);
    }
}

Test(worker, a_supervisor_that_is_gone_ends_it)
{
    answer a = say("{\"target\":{\"device\":{\"kind\":\"cpu\"},\"supervisor\":1}}\n");
    cr_expect(WIFEXITED(a.status) && WEXITSTATUS(a.status) != 0);
    cr_expect_eq(a.lines, 0);
    leave(&a);
}

Test(worker, a_build_that_is_not_there_is_the_environment)
{
    answer a = say("{\"target\":{\"cudnn_dir\":\"/nowhere\",\"device\":{\"kind\":\"gpu\"}}}\n");
    cr_expect(WIFEXITED(a.status) && WEXITSTATUS(a.status) == 3);
    json_t *failed = json_object_get(a.last, "failed");
    cr_expect_str_eq(json_string_value(json_object_get(failed, "class")), "environment");
    leave(&a);
}

Test(worker, dump_writes_what_it_names)
{
    char folder[] = "/tmp/facts-dump-XXXXXX", input[600], path[700];
    cr_assert(mkdtemp(folder));
    snprintf(input, sizeof input,
             CPU_TARGET "{\"id\":1,\"case\":\"pass=fwd dtype=bf16 b=1 h=1 s=8 "
                        "d=8\",\"do\":\"run\",\"dump\":\"%s\"}\n",
             folder);
    answer a = say(input);
    json_t *names = json_object_get(json_object_get(a.last, "row"), "dumped");
    bool has_o = false, has_want = false;
    cr_assert_geq(json_array_size(names), 11, "%s", a.out);
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        has_o = has_o || strcmp(name, "o.npy") == 0;
        has_want = has_want || strcmp(name, "o.want.npy") == 0;
        snprintf(path, sizeof path, "%s/%s", folder, name);
        FILE *file = fopen(path, "rb");
        char magic[10] = "";
        cr_assert(file && fread(magic, 1, 10, file) == 10);
        const char *begins = strcmp(name, "case.json") == 0 ? "{\n \"case\"" : "\x93NUMPY\x01";
        cr_expect_eq(memcmp(magic, begins, strlen(begins)), 0, "%s", name);
        fclose(file);
        unlink(path);
    }
    cr_expect(has_o && has_want);
    rmdir(folder);
    leave(&a);
}
