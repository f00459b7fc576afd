#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_parts.h"

/* Paths that fit a pattern. Not glob(3): without memory glibc's frees twice, and it takes a folder
 * that it cannot list for an empty one. */

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

const char *facts_origin_name(facts_origin origin)
{
    static const char *const NAMES[] = {
#define FACTS_ORIGIN_TEXT(id, text) text,
        FACTS_ORIGIN_LIST(FACTS_ORIGIN_TEXT)
#undef FACTS_ORIGIN_TEXT
    };
    return (size_t)origin < FACTS_ORIGIN_COUNT ? NAMES[origin] : "?";
}

void facts_builds_free(facts_builds *builds)
{
    free(builds->at);
    *builds = (facts_builds){ 0 };
}

void facts_builds_add(facts_builds *builds, const facts_build *build)
{
    if (builds->count == builds->capacity) {
        builds->capacity = builds->capacity ? 2 * builds->capacity : 16;
        builds->at = realloc(builds->at, builds->capacity * sizeof *builds->at);
    }
    builds->at[builds->count++] = *build;
}

typedef struct search {
    facts_builds *out;
    facts_origin origin; /* of the builds that look_all finds */
    facts_error *message;
    bool failed; /* `message` says how */
} search;

/* A library is native code: if other users can change it or its folder, they decide what runs. */
static bool others_may_write(const char *path, facts_error *message)
{
    struct stat info;
    if (stat(path, &info) != 0 ||
        ((info.st_uid == geteuid() || info.st_uid == 0) && !(info.st_mode & 022)))
        return false;
    return !facts_fail(message,
                       "%s: belongs to somebody else, or others may write to it: its builds are "
                       "not used (chmod go-w)",
                       path);
}

/* A folder that cannot be identified is not a build, and is not reported. A folder that cannot be
 * read is reported, because it may be one. */
static void look(search *s, const char *folder, facts_origin origin)
{
    facts_build build;
    char library[FACTS_PATH];
    facts_error why;
    if (!facts_join(library, folder, "libcudnn.so.9") || access(library, R_OK) != 0)
        return;
    const int status = facts_build_identify(&build, folder, &why);
    if (status == 3 && !s->failed)
        s->failed = !facts_fail(s->message, "%s", why.text);
    if (status != 0)
        return;
    for (size_t i = 0; i < s->out->count; i++)
        if (strcmp(s->out->at[i].dir, build.dir) == 0)
            return;
    build.origin = origin;
    facts_builds_add(s->out, &build);
}

static void look_there(void *to, const char *folder)
{
    search *s = to;
    look(s, folder, s->origin);
}

static void look_all(search *s, const char *root, const char *pattern, facts_origin origin)
{
    facts_error why = { 0 };
    s->origin = origin;
    facts_find_paths(root, pattern, look_there, s, &why);
    if (why.text[0] && !s->failed)
        s->failed = !facts_fail(s->message, "%s", why.text);
}

static void look_in_prefix(search *s, const char *prefix)
{
    static const char *const WHERE[] = {
        "lib/python3*/site-packages/nvidia/cudnn*/lib",
        "lib64/python3*/site-packages/nvidia/cudnn*/lib",
        "lib/python3*/dist-packages/nvidia/cudnn*/lib",
        "local/lib/python3*/dist-packages/nvidia/cudnn*/lib",
        "lib/python3/dist-packages/nvidia/cudnn*/lib",
    };
    for (size_t i = 0; i < sizeof WHERE / sizeof *WHERE; i++)
        look_all(s, prefix, WHERE[i], FACTS_ORIGIN_PYTHON);
}

/* An interpreter's prefix is the folder above its own. In a virtual environment the link counts,
 * otherwise its target. */
static void look_beside_python(search *s, const char *python)
{
    char *real = realpath(python, NULL);
    const char *ways[] = { python, real };
    for (size_t i = 0; i < 2; i++) {
        char path[FACTS_PATH], prefix[FACTS_PATH];
        if (ways[i] && facts_join(path, ways[i], "") && facts_join(prefix, dirname(path), ".."))
            look_in_prefix(s, prefix);
    }
    free(real);
}

static void look_in_pythons(search *s)
{
    const char *named = getenv("FACTS_PYTHON"), *environment = getenv("VIRTUAL_ENV"),
               *home = getenv("HOME"), *search_path = getenv("PATH");
    if (named && strchr(named, '/'))
        look_beside_python(s, named);
    if (environment && *environment)
        look_in_prefix(s, environment);
    char folder[FACTS_PATH], python[FACTS_PATH];
    for (const char *at = search_path ? search_path : ""; *at; at += *at == ':') {
        size_t n = strcspn(at, ":");
        if (n > 0 && n < sizeof folder) {
            memcpy(folder, at, n);
            folder[n] = 0;
            if (facts_join(python, folder, "python3") && access(python, X_OK) == 0)
                look_beside_python(s, python);
        }
        at += n;
    }
    if (home && *home && facts_join(folder, home, ".local"))
        look_in_prefix(s, folder);
}

static void look_on_system(search *s)
{
    static const char *const TOOLKIT[] = { "lib64", "lib", FACTS_TOOLKIT_LIB };
    static const char *const SYSTEM[] = { "/usr/lib/" FACTS_MACHINE "-linux-gnu",
                                          "/lib/" FACTS_MACHINE "-linux-gnu",
                                          "/usr/lib64",
                                          "/lib64",
                                          "/usr/lib",
                                          "/usr/local/lib" };
    const char *homes[] = { getenv("CUDA_HOME"), getenv("CUDA_PATH") };
    for (size_t i = 0; i < sizeof TOOLKIT / sizeof *TOOLKIT; i++) {
        for (size_t j = 0; j < 2; j++)
            if (homes[j] && *homes[j])
                look_all(s, homes[j], TOOLKIT[i], FACTS_ORIGIN_TOOLKIT);
        char pattern[64];
        (void)snprintf(pattern, sizeof pattern, "cuda*/%s", TOOLKIT[i]);
        look_all(s, "/usr/local", pattern, FACTS_ORIGIN_TOOLKIT);
    }
    for (size_t i = 0; i < sizeof SYSTEM / sizeof *SYSTEM; i++)
        look(s, SYSTEM[i], FACTS_ORIGIN_SYSTEM);
}

static void check_one(void *to, const char *path)
{
    search *s = to;
    s->failed = s->failed || others_may_write(path, s->message);
}

/* Every library of the cache, and the folders above it. */
static void check_all(search *s, const char *root)
{
    check_one(s, root);
    static const char *const parts[] = { "*", "*/lib", "*/lib/*" };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        facts_find_paths(root, parts[i], check_one, s, NULL);
}

static void look_in_cache(search *s)
{
    char folder[FACTS_PATH];
    if (!facts_cache_path("", folder))
        return;
    s->failed = others_may_write(folder, s->message);
    if (facts_cache_path("nvrtc", folder))
        check_all(s, folder);
    if (facts_cache_path("cudnn", folder))
        check_all(s, folder);
    if (!s->failed)
        look_all(s, folder, "*/lib", FACTS_ORIGIN_CACHE);
}

int facts_builds_discover(facts_builds *out, facts_error *message)
{
    *out = (facts_builds){ 0 };
    search s = { .out = out, .message = message };
    char folder[FACTS_PATH];
    look_in_cache(&s);
    if (facts_home_path("cudnn", folder))
        look_all(&s, folder, "*/lib", FACTS_ORIGIN_BUNDLE);
    look_in_pythons(&s);
    look_on_system(&s);
    if (s.failed) {
        facts_builds_free(out);
        return 3;
    }
    if (out->count)
        qsort(out->at, out->count, sizeof *out->at, facts_build_compare);
    return 0;
}
