/* Paths that fit a pattern. Not glob(3): without memory glibc's frees twice, and it takes a folder
 * that it cannot list for an empty one. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "build_parts.h"

typedef struct finding {
    void (*each)(void *to, const char *path);
    void *to;
    facts_error *trouble;
} finding;

bool facts_is_absent(int error)
{
    return error == ENOENT || error == ENOTDIR || error == EACCES || error == ELOOP ||
           error == ENAMETOOLONG;
}

static void find(const finding *f, const char *folder, const char *pattern);

/* An entry that fits the first part of the pattern; `rest` is what follows it. */
static void take(const finding *f, const char *folder, const char *name, const char *rest)
{
    char path[FACTS_PATH];
    if (!facts_join(path, folder, name) || access(path, F_OK) != 0)
        return;
    if (*rest)
        find(f, path, rest);
    else
        f->each(f->to, path);
}

static void find(const finding *f, const char *folder, const char *pattern)
{
    char part[256];
    struct dirent **entries;
    const size_t n = strcspn(pattern, "/");
    const char *rest = pattern + n + (pattern[n] == '/');
    if (n >= sizeof part)
        return;
    memcpy(part, pattern, n);
    part[n] = '\0';
    if (!strpbrk(part, "*?[")) {
        take(f, folder, part, rest);
        return;
    }
    const int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0 && !facts_is_absent(errno))
        facts_fail(f->trouble, "%s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.' && fnmatch(part, entries[i]->d_name, 0) == 0)
            take(f, folder, entries[i]->d_name, rest);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

void facts_find_paths(const char *folder, const char *pattern,
                      void (*each)(void *to, const char *path), void *to, facts_error *trouble)
{
    find(&(finding){ each, to, trouble }, folder, pattern);
}
