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

Test(worker, a_case_that_is_none_is_named)
{
    static const asked cases[] = {
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
