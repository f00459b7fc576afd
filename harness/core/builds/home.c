#include "home.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool facts_join(char out[FACTS_PATH], const char *folder, const char *name)
{
    char joined[FACTS_PATH];
    int n = snprintf(joined, sizeof joined, "%s%s%s", folder, *folder && *name ? "/" : "", name);
    if (n < 0 || n >= FACTS_PATH) {
        out[0] = 0;
        return false;
    }
    memcpy(out, joined, (size_t)n + 1);
    return true;
}

const char *facts_program_dir(char out[FACTS_PATH])
{
    ssize_t n = readlink("/proc/self/exe", out, FACTS_PATH - 1);
    if (n <= 0 || n >= FACTS_PATH - 1)
        return NULL;
    out[n] = 0;
    char *slash = strrchr(out, '/');
    if (!slash)
        return NULL;
    *slash = 0;
    return out;
}

/* Parts with another place in the sources than in a bundle. */
static const struct alias {
    const char *part, *source;
} ALIASES[] = {
    { "devices", "lib/devices" },
    { "nulldriver", "bin/nulldriver" },
    { "repro", "harness/attention/repro" },
};

static bool readable(const char *root, const char *part, char out[FACTS_PATH])
{
    if (facts_join(out, root, part) && access(out, R_OK) == 0)
        return true;
    for (size_t i = 0; i < sizeof ALIASES / sizeof *ALIASES; i++) {
        size_t n = strlen(ALIASES[i].part);
        if (strncmp(part, ALIASES[i].part, n) != 0 || (part[n] && part[n] != '/'))
            continue;
        char below[FACTS_PATH];
        if (facts_join(below, root, ALIASES[i].source) &&
            facts_join(out, below, part[n] ? part + n + 1 : "") && access(out, R_OK) == 0)
            return true;
    }
    return false;
}

const char *facts_home_path(const char *part, char out[FACTS_PATH])
{
    const char *home = getenv("FACTS_HOME");
    if (home && *home && readable(home, part, out))
        return out;
    char program[FACTS_PATH], root[FACTS_PATH], folder[PATH_MAX];
    if (!facts_program_dir(program))
        return NULL;
    static const char *const UP[] = { "..", "../../.." };
    for (size_t i = 0; i < sizeof UP / sizeof *UP; i++)
        if (facts_join(root, program, UP[i]) && realpath(root, folder) &&
            strlen(folder) < FACTS_PATH && readable(folder, part, out))
            return out;
    return NULL;
}

const char *facts_made_path(const char *folder, char out[FACTS_PATH])
{
    char program[FACTS_PATH], name[64], beside[64];
    snprintf(name, sizeof name, "cases/%s/%s.jsonl", folder, folder);
    snprintf(beside, sizeof beside, "../%s/%s.jsonl", folder, folder);
    if (facts_home_path(name, out))
        return out;
    *strrchr(name, '/') = '\0';
    bool made = facts_home_path(name, out) && facts_program_dir(program) &&
                facts_join(out, program, beside) && access(out, R_OK) == 0;
    return made ? out : NULL;
}

const char *facts_cache_path(const char *part, char out[FACTS_PATH])
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char root[FACTS_PATH];
    bool known = false;
    if (xdg && xdg[0] == '/') /* the specification: a relative path is to be ignored */
        known = facts_join(root, xdg, "facts");
    else if (home && home[0] == '/')
        known = facts_join(root, home, ".cache/facts");
    return known && facts_join(out, root, part) ? out : NULL;
}

bool facts_make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        bool ok = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!ok)
            return false;
    }
    return true;
}
