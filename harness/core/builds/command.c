/* facts cudnn list | install V... | lock [V...] | remove V | path V */
#include "build_parts.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "print_line.h"
#include "python.h"

static const char HELP[] =
    "usage: facts cudnn list                lists installed builds and those that can be "
    "installed\n"
    "       facts cudnn install [--pinned-only] VERSION...\n"
    "                                       installs builds into the cache: 9.20.0, 9.28.1.4, "
    "9.20.0-jit-cu12,\n"
    "                                       9.12..9.14, latest; a version that ci/cudnn.lock lacks "
    "comes from the\n"
    "                                       package index (--pinned-only refuses it)\n"
    "       facts cudnn lock [VERSION...]   adds versions to ci/cudnn.lock; without VERSION all "
    "that are missing\n"
    "       facts cudnn remove VERSION...   removes builds that FACTS installed from the cache;\n"
    "                                       --all removes all of them\n"
    "       facts cudnn path VERSION        prints the folder with libcudnn.so.9\n"
    "       facts cudnn find [--install [--pinned-only]] VERSION\n"
    "                                       for scripts: name, version and folder of each build\n"
    "\nExamples:\n  facts cudnn list\n  facts cudnn install 9.27.0\n";

static int complain(int status, const facts_error *message)
{
    if (message->text[0])
        facts_print_line(stderr, "facts cudnn: %s", message->text);
    return status;
}

static void print_build(const facts_build *b)
{
    const char *nvrtc = !b->needs_nvrtc ? "built in"
                        : b->nvrtc[0]   ? b->nvrtc
                                        : "MISSING: ./facts cudnn install it";
    facts_print_line(stdout, "%-18s %-11s cu%d  %-5s %-8s %s  (NVRTC: %s)", b->name,
                     b->full_version, b->cuda_major, b->kind == FACTS_BUILD_JIT ? "jit" : "full",
                     facts_origin_name(b->origin), b->dir, nvrtc);
}

static bool here(const facts_builds *found, const facts_build *b)
{
    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->at[i].name, b->name) == 0)
            return true;
    return false;
}

static int list(void)
{
    facts_builds found = { 0 }, installable = { 0 };
    facts_error message = { 0 };
    int status = facts_builds_discover(&found, &message);
    if (status != 0)
        return complain(status, &message);
    for (size_t i = 0; i < found.count; i++)
        print_build(&found.at[i]);
    if (found.count == 0)
        (void)printf("no cuDNN 9 was found\n");
    int known = facts_builds_installable(&installable, &message);
    static const struct flavour {
        facts_build_kind kind;
        int cuda_major;
    } FLAVOURS[] = { { FACTS_BUILD_JIT, 13 },
                     { FACTS_BUILD_JIT, 12 },
                     { FACTS_BUILD_FULL, 13 },
                     { FACTS_BUILD_FULL, 12 } };
    for (size_t f = 0; known == 0 && f < sizeof FLAVOURS / sizeof *FLAVOURS; f++) {
        (void)printf("%s%-4s cu%d:", f ? "             " : "installable: ",
                     FLAVOURS[f].kind == FACTS_BUILD_JIT ? "jit" : "full", FLAVOURS[f].cuda_major);
        for (size_t i = 0; i < installable.count; i++) {
            const facts_build *b = &installable.at[i];
            if (b->kind == FLAVOURS[f].kind && b->cuda_major == FLAVOURS[f].cuda_major &&
                !here(&found, b))
                (void)printf(" %s", b->version);
        }
        (void)printf("\n");
    }
    facts_builds_free(&found);
    facts_builds_free(&installable);
    return complain(known, &message);
}

/* For scripts: name, folder, NVRTC ("-": built in), separated by tabs. */
static int print_installed(const facts_builds *wanted)
{
    facts_builds found = { 0 };
    facts_error message = { 0 };
    int status = complain(facts_builds_discover(&found, &message), &message);
    for (size_t i = 0; i < wanted->count; i++)
        for (size_t k = 0; k < found.count; k++) {
            const facts_build *b = &found.at[k];
            if (b->origin == FACTS_ORIGIN_CACHE && strcmp(b->name, wanted->at[i].name) == 0)
                (void)printf("%s\t%s\t%s\n", b->name, b->dir, b->needs_nvrtc ? b->nvrtc : "-");
        }
    facts_builds_free(&found);
    return status;
}

static int install(int argc, char **argv)
{
    char spec[2048] = "";
    unsigned flags = 0;
    for (int i = 0; i < argc; i++) {
        size_t n = strlen(spec);
        if (strcmp(argv[i], "--pinned-only") == 0) {
            flags = FACTS_RESOLVE_PINNED;
            continue;
        }
        if ((size_t)snprintf(spec + n, sizeof spec - n, "%s%s", n ? "," : "", argv[i]) >=
            sizeof spec - n) {
            (void)fprintf(stderr, "facts cudnn: more versions than can be installed at once\n");
            return 2;
        }
    }
    facts_builds wanted = { 0 };
    facts_error note = { 0 }, message = { 0 };
    int status = facts_builds_install(&wanted, spec, flags, &note, &message);
    if (status == 0 && strstr(spec, "latest"))
        facts_print_line(stderr, "facts cudnn: %s", note.text);
    status = status ? complain(status, &message) : print_installed(&wanted);
    facts_builds_free(&wanted);
    return status;
}

static int lock(int argc, char **argv)
{
    enum { MOST = 64 };
    char script[FACTS_PATH];
    const char *words[MOST + 2] = { script };
    facts_error message = { 0 };
    if (argc > MOST) {
        (void)fprintf(stderr, "facts cudnn: more versions than can be locked at once\n");
        return 2;
    }
    for (int i = 0; i < argc; i++)
        words[i + 1] = argv[i];
    if (!facts_home_path("ci/cudnn_lock.py", script)) {
        (void)fprintf(
            stderr,
            "facts cudnn: ci/cudnn_lock.py: not found; set FACTS_HOME to the folder that has it\n");
        return 3;
    }
    return complain(facts_python_run(words, &message), &message);
}

static int unlink_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info, (void)type, (void)walk;
    return remove(path);
}

/* A folder outside the cache, with only a link in the cache, was not installed by FACTS. */
static bool lies_in_cache(const char *top)
{
    char cache[FACTS_PATH];
    char *root = facts_cache_path("cudnn", cache) ? realpath(cache, NULL) : NULL,
         *real = realpath(top, NULL);
    const size_t n = root ? strlen(root) : 0;
    const bool inside =
        root && real && strncmp(real, root, n) == 0 && real[n] == '/' && !strchr(real + n + 1, '/');
    free(root);
    free(real);
    return inside;
}

/* Renamed first, so that a half-removed build is never found. */
static int remove_build(const facts_build *b)
{
    char top[FACTS_PATH], aside[FACTS_PATH];
    if (!facts_join(top, b->dir, ""))
        return 3;
    char *slash = strrchr(top, '/');
    if (!slash)
        return 3;
    *slash = 0;
    if (!lies_in_cache(top)) {
        facts_print_line(stderr,
                         "facts cudnn: %s: is linked from the cache; FACTS removes only builds "
                         "that it installed",
                         top);
        return 2;
    }
    (void)snprintf(aside, sizeof aside, "%.*s.removed.%ld", (int)(sizeof aside - 32), top,
                   (long)getpid());
    if (rename(top, aside) != 0 || nftw(aside, unlink_one, 16, FTW_DEPTH | FTW_PHYS) != 0) {
        facts_print_line(stderr, "facts cudnn: %s: %s", top, strerror(errno));
        return 3;
    }
    facts_print_line(stdout, "removed %s (%s)", b->name, top);
    return 0;
}

static int remove_builds(int argc, char **argv)
{
    facts_builds found = { 0 };
    facts_error message = { 0 };
    int status = complain(facts_builds_discover(&found, &message), &message);
    for (int a = 0; a < argc && status == 0; a++) {
        const bool all = strcmp(argv[a], "--all") == 0;
        int removed = 0;
        for (size_t i = 0; i < found.count && status == 0; i++) {
            const facts_build *b = &found.at[i];
            if (b->origin != FACTS_ORIGIN_CACHE ||
                (!all && strcmp(b->name, argv[a]) != 0 && strcmp(b->version, argv[a]) != 0 &&
                 strcmp(b->full_version, argv[a]) != 0))
                continue;
            status = remove_build(b);
            if (all && status == 2) /* a link: reported, and left */
                status = 0;
            removed++;
        }
        if (removed == 0 && !all) {
            facts_print_line(stderr,
                             "facts cudnn: %s: not in the cache; FACTS removes only builds that it "
                             "installed; see ./facts cudnn list",
                             argv[a]);
            status = 2;
        }
    }
    facts_builds_free(&found);
    return status;
}

/* For scripts: name, version and folder of each build, separated by tabs. */
static int find(int argc, char **argv)
{
    const bool installs = strcmp(argv[0], "--install") == 0,
               pinned = argc > 2 && strcmp(argv[1], "--pinned-only") == 0;
    const unsigned flags = pinned ? FACTS_RESOLVE_PINNED : 0;
    facts_builds builds = { 0 };
    facts_error note = { 0 }, message = { 0 };
    int status = installs
                     ? facts_builds_ensure(&builds, argv[argc - 1], flags, &note, &message)
                     : facts_builds_resolve(&builds, argv[argc - 1],
                                            flags | FACTS_RESOLVE_INSTALLABLE, &note, &message);
    if (note.text[0])
        facts_print_line(stderr, "facts cudnn: %s", note.text);
    for (size_t i = 0; i < builds.count; i++)
        (void)printf("%s\t%s\t%s\n", builds.at[i].name, builds.at[i].version, builds.at[i].dir);
    facts_builds_free(&builds);
    return complain(status, &message);
}

static int path(const char *spec)
{
    facts_builds builds = { 0 };
    facts_error note = { 0 }, message = { 0 };
    int status = facts_builds_resolve(&builds, spec, FACTS_RESOLVE_INDEX, &note, &message);
    if (note.text[0])
        facts_print_line(stderr, "facts cudnn: %s", note.text);
    for (size_t i = 0; i < builds.count; i++)
        facts_print_line(stdout, "%s", builds.at[i].dir);
    facts_builds_free(&builds);
    return complain(status, &message);
}

static int command(int argc, char **argv)
{
    const char *verb = argc > 0 ? argv[0] : "";
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0 ||
            strcmp(argv[i], "-?") == 0) {
            (void)fputs(HELP, stdout);
            return 0;
        }
    if (strcmp(verb, "list") == 0 && argc == 1)
        return list();
    if (strcmp(verb, "install") == 0 && argc > 1)
        return install(argc - 1, argv + 1);
    if (strcmp(verb, "lock") == 0)
        return lock(argc - 1, argv + 1);
    if (strcmp(verb, "remove") == 0 && argc > 1)
        return remove_builds(argc - 1, argv + 1);
    if (strcmp(verb, "path") == 0 && argc == 2)
        return path(argv[1]);
    if (strcmp(verb, "find") == 0 && argc > 1)
        return find(argc - 1, argv + 1);
    if (argc == 0)
        (void)fputs(HELP, stderr);
    else if (strcmp(verb, "install") == 0 || strcmp(verb, "remove") == 0 ||
             strcmp(verb, "path") == 0)
        facts_print_line(stderr, "facts cudnn %s: give %s: facts cudnn %s 9.27.0", verb,
                         strcmp(verb, "path") == 0 ? "one version" : "at least one version", verb);
    else if (strcmp(verb, "list") == 0)
        facts_print_line(stderr, "facts cudnn list: takes no \"%.60s\"", argv[1]);
    else
        facts_print_line(stderr,
                         "facts cudnn: \"%.60s\" is none of list, install, lock, remove, path "
                         "(`facts cudnn --help`)",
                         verb);
    return 2;
}

/* An incomplete output, on a full disk, is not a list. */
int facts_cudnn_command(int argc, char **argv)
{
    const int status = command(argc, argv);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    (void)fprintf(stderr, "facts cudnn: standard output: %s\n", strerror(errno));
    return status ? status : 3;
}
