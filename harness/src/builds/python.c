#include "python.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { MOST_ARGUMENTS = 512 };

/* Our environment with PYTHONPATH replaced. The block is freed by the caller; its texts are environ's but the last. */
static char **environment(const char *path)
{
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    char **out = calloc(n + 2, sizeof *out);
    for (size_t i = 0; out && i < n; i++)
        if (strncmp(environ[i], "PYTHONPATH=", 11) != 0)
            out[kept++] = environ[i];
    if (out && path[0])
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

static int spawn(const char *python, char *const argv[], char **env, pid_t *child)
{
    posix_spawn_file_actions_t actions;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed)
        return failed;
    failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failed)
        failed = posix_spawnp(child, python, &actions, NULL, argv, env);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed;
}

static int wait_for(pid_t child, const char *python, facts_message *message)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) {
            facts_say(message, "%s: %s", python, strerror(errno));
            return 3;
        }
    if (WIFEXITED(status) && WEXITSTATUS(status) != 127)
        return WEXITSTATUS(status);
    if (WIFEXITED(status))
        facts_say(message, "%s: cannot be run", python);
    else
        facts_say(message, "%s: ended by signal %d", python, WTERMSIG(status));
    return 3;
}

int facts_python_run(const char *const argv[], facts_message *message)
{
    const char *named = getenv("FACTS_PYTHON"), *python = named && *named ? named : "python3";
    char *full[MOST_ARGUMENTS + 2] = { (char *)python }, path[FACTS_PATH + 16];
    int count = 0;
    for (; argv[count]; count++) {
        if (count == MOST_ARGUMENTS) {
            facts_say(message, "more than %d arguments", MOST_ARGUMENTS);
            return 2;
        }
        full[count + 1] = (char *)argv[count];
    }
    python_path(path, sizeof path);
    char **env = environment(path);
    if (!env) {
        facts_say(message, "out of memory");
        return 3;
    }
    pid_t child = 0;
    (void)fflush(NULL); /* what we printed comes before what it prints */
    int failed = spawn(python, full, env, &child);
    free(env);
    if (failed) {
        facts_say(message, "%s: %s: Python 3 is needed here; set FACTS_PYTHON to it", python, strerror(failed));
        return 3;
    }
    return wait_for(child, python, message);
}
