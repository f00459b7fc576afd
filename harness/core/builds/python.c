#include "python.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

#define NEEDED "%s: %s: Python 3 is needed here; set FACTS_PYTHON to it"

enum { MOST_ARGUMENTS = 64 };

/* Our environment with PYTHONPATH replaced. The block is freed by the caller; its texts are
 * environ's but the last. */
static char **environment(const char *path)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **out = calloc(n + 2, sizeof *out);
    for (size_t i = 0; i < n; i++)
        if (strncmp(environ[i], "PYTHONPATH=", 11) != 0)
            out[kept++] = environ[i];
    if (path[0])
        out[kept] = (char *)path;
    return out;
}

static void python_path(char *out, size_t bytes)
{
    char reports[FACTS_PATH];
    out[0] = 0;
    if (facts_home_path("reports", reports))
        (void)snprintf(out, bytes, "PYTHONPATH=%s", reports);
}

/* `output` is the program's standard output; -1: ours. */
static int spawn(const char *python, char *const argv[], char **env, int output, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed && output >= 0)
        failed = posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (!failed)
        failed = posix_spawnp(child, python, &actions, NULL, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static int wait_for(pid_t child, const char *python, facts_error *message)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return facts_fail_as(3, message, "%s: %s", python, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 127)
        return WEXITSTATUS(status);
    if (WIFEXITED(status))
        return facts_fail_as(3, message, "%s: cannot be run", python);
    return facts_fail_as(3, message, "%s: ended by signal %d", python, WTERMSIG(status));
}

/* Returns 0, then wait_for() has to follow; else an exit code. */
static int start(const char *const argv[], int output, const char **interpreter, pid_t *child,
                 facts_error *message)
{
    const char *named = getenv("FACTS_PYTHON"), *python = named && *named ? named : "python3";
    char *full[MOST_ARGUMENTS + 2] = { (char *)python }, path[FACTS_PATH + 16];
    int count = 0;
    for (; argv[count]; count++) {
        if (count == MOST_ARGUMENTS)
            return facts_fail_as(2, message, "more than %d arguments", MOST_ARGUMENTS);
        full[count + 1] = (char *)argv[count];
    }
    python_path(path, sizeof path);
    char **env = environment(path);
    (void)fflush(NULL); /* output of FACTS comes before the program's */
    int failed = spawn(python, full, env, output, child);
    free(env);
    *interpreter = python;
    if (failed)
        facts_fail(message, NEEDED, python, strerror(failed));
    return failed ? 3 : 0;
}

int facts_python_become(const char *argv[], facts_error *message)
{
    const char *named = getenv("FACTS_PYTHON"), *python = named && *named ? named : "python3";
    size_t count = 0;
    char path[FACTS_PATH + 16];
    while (argv[count])
        count++;
    char **full = calloc(count + 2, sizeof *full);
    full[0] = (char *)python;
    memcpy(full + 1, argv, count * sizeof *full);
    python_path(path, sizeof path);
    int empty = open("/dev/null", O_RDONLY);
    if (empty >= 0 && dup2(empty, STDIN_FILENO) >= 0) {
        (void)fflush(NULL);
        (void)execvpe(python, full, environment(path));
    }
    facts_fail(message, NEEDED, python, strerror(errno));
    free(full);
    return 3;
}

int facts_python_run(const char *const argv[], facts_error *message)
{
    pid_t child = 0;
    const char *python;
    int status = start(argv, -1, &python, &child, message);
    return status ? status : wait_for(child, python, message);
}

static void read_all(int from, char *out, size_t bytes)
{
    size_t kept = 0;
    char part[512];
    for (ssize_t n; (n = read(from, part, sizeof part)) > 0 || (n < 0 && errno == EINTR);)
        for (ssize_t i = 0; i < n && kept + 1 < bytes; i++)
            out[kept++] = part[i];
    out[kept] = '\0';
    out[strcspn(out, "\n")] = '\0';
}

int facts_python_ask(const char *const argv[], char *out, size_t bytes, facts_error *message)
{
    int ends[2];
    pid_t child = 0;
    const char *python = "";
    out[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0)
        return facts_fail_as(3, message, "a pipe: %s", strerror(errno));
    int status = start(argv, ends[1], &python, &child, message);
    (void)close(ends[1]);
    if (status == 0) {
        read_all(ends[0], out, bytes);
        status = wait_for(child, python, message);
    }
    (void)close(ends[0]);
    return status;
}
