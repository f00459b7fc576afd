/* ci/cudnn_install.py installs: it fetches with pip, which knows the user's index, proxy and
 * certificates. */
#include "build_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python.h"

enum { MOST = 128 };

typedef struct order {
    char packages[MOST][96]; /* "nvidia-cudnn-jit-cu13==9.20.0.48", or with --unpinned= before it */
    int count;
} order;

static void want(order *o, const char *option, const char *package, const char *version)
{
    char text[96];
    (void)snprintf(text, sizeof text, "%s%s==%s", option, package, version);
    for (int i = 0; i < o->count; i++)
        if (strcmp(o->packages[i], text) == 0)
            return;
    if (o->count < MOST)
        memcpy(o->packages[o->count++], text, sizeof text);
}

typedef struct nvrtc_wish {
    order *o;
    const char *package;
} nvrtc_wish;

static void want_nvrtc(void *data, const facts_locked *line)
{
    nvrtc_wish *wish = data;
    if (strcmp(line->package, wish->package) == 0)
        want(wish->o, "", line->package, line->version);
}

static int run(const order *o, facts_error *message)
{
    char script[FACTS_PATH], cache[FACTS_PATH];
    if (!facts_home_path("ci/cudnn_install.py", script))
        return facts_fail_as(
            3, message, "ci/cudnn_install.py: not found; set FACTS_HOME to the folder that has it");
    if (!facts_cache_path("", cache))
        return facts_fail_as(
            3, message,
            "neither XDG_CACHE_HOME nor HOME is set: there is no folder to install into");
    const char *argv[MOST + 4] = { script, "--cache", cache };
    for (int i = 0; i < o->count; i++)
        argv[3 + i] = o->packages[i];
    int status = facts_python_run(argv, message);
    return status == 0 || status == 2 || status == 130 ? status : 3;
}

/* Is the very package already in the cache? */
static bool installed(const facts_builds *found, const facts_build *b)
{
    for (size_t i = 0; i < found->count; i++) {
        const facts_build *f = &found->at[i];
        if (f->origin == FACTS_ORIGIN_CACHE && strcmp(f->name, b->name) == 0 &&
            strcmp(f->full_version, b->full_version) == 0)
            return true;
    }
    return false;
}

static int order_builds(order *o, const facts_builds *wanted, const facts_builds *found,
                        facts_error *message)
{
    int status = 0;
    for (size_t i = 0; i < wanted->count && status == 0; i++) {
        const facts_build *b = &wanted->at[i];
        char package[48], path[FACTS_PATH];
        (void)snprintf(package, sizeof package, "nvidia-cudnn-%scu%d",
                       b->kind == FACTS_BUILD_JIT ? "jit-" : "", b->cuda_major);
        if (!b->dir[0] && !installed(found, b))
            want(o, b->origin == FACTS_ORIGIN_INDEX ? "--unpinned=" : "", package, b->full_version);
        if (b->needs_nvrtc && !facts_nvrtc_given() &&
            !facts_nvrtc_find(b->cuda_major, b->dir[0] ? b->dir : NULL, path)) {
            nvrtc_wish wish = { o, b->cuda_major == 12 ? "nvidia-cuda-nvrtc-cu12"
                                                       : "nvidia-cuda-nvrtc" };
            status = facts_lock_read(want_nvrtc, &wish, message);
        }
    }
    return status;
}

static int install(const facts_builds *wanted, facts_error *message)
{
    facts_builds found = { 0 };
    order o = { 0 };
    int status = facts_builds_discover(&found, message);
    if (status == 0)
        status = order_builds(&o, wanted, &found, message);
    facts_builds_free(&found);
    return status || o.count == 0 ? status : run(&o, message);
}

int facts_builds_install(facts_builds *out, const char *spec, unsigned flags, facts_error *note,
                         facts_error *message)
{
    facts_fail(message, "%s", "");
    int status = facts_builds_resolve(
        out, spec, FACTS_RESOLVE_LOCK_ONLY | FACTS_RESOLVE_INDEX | flags, note, message);
    if (status == 0)
        status = install(out, message);
    if (status)
        facts_builds_free(out);
    return status;
}

/* The same builds by their names (a folder by its path), after the installation. */
static int resolve_again(facts_builds *out, unsigned flags, facts_error *message)
{
    size_t bytes = out->count * (FACTS_PATH + 1) + 1;
    char *spec = calloc(bytes, 1);
    for (size_t i = 0; i < out->count; i++) {
        const facts_build *b = &out->at[i];
        size_t n = strlen(spec);
        (void)snprintf(spec + n, bytes - n, "%s%s", n ? "," : "",
                       b->origin == FACTS_ORIGIN_FOLDER ? b->dir : b->name);
    }
    facts_builds_free(out);
    int status = facts_builds_resolve(out, spec, flags, NULL, message);
    free(spec);
    return status;
}

int facts_builds_ensure(facts_builds *out, const char *spec, unsigned flags, facts_error *note,
                        facts_error *message)
{
    int status = facts_builds_resolve(
        out, spec, FACTS_RESOLVE_INSTALLABLE | FACTS_RESOLVE_INDEX | flags, note, message);
    bool ready = true;
    for (size_t i = 0; i < out->count; i++)
        ready = ready && out->at[i].dir[0] && (!out->at[i].needs_nvrtc || out->at[i].nvrtc[0]);
    if (status || ready)
        return status;
    facts_fail(message, "%s", "");
    status = install(out, message);
    if (status == 0)
        return resolve_again(out, flags, message);
    facts_builds_free(out);
    return status;
}
