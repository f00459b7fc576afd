#include "libraries.h"

#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "context.h"
#include "error.h"

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Is the file the folder's own libcudnn_X.so.9, perhaps under a longer version in its name? */
static bool is_same_file(const char *path, const char *dir)
{
    static const char ending[] = ".so.9";
    struct stat file, own_file;
    char own[PATH_MAX];
    const char *name = base_name(path), *end = strstr(name, ending);
    if (end == NULL)
        return false;
    const int n =
        snprintf(own, sizeof own, "%s/%.*s", dir, (int)(end - name) + (int)sizeof ending - 1, name);
    return n < (int)sizeof own && stat(path, &file) == 0 && stat(own, &own_file) == 0 &&
           file.st_dev == own_file.st_dev && file.st_ino == own_file.st_ino;
}

/* Is the file directly in `dir` (a real path)? A symbolic link counts as being where the link is. A
 * link from elsewhere to the folder's libcudnn_X.so.9 counts too: `facts` gives its workers such
 * links (libcudnn_X.so.9.14.0). */
static bool fattn__in_folder(const char *path, const char *dir)
{
    char folder[PATH_MAX], real[PATH_MAX];
    size_t n = (size_t)(base_name(path) - path);
    if (n == 0 || n >= sizeof folder)
        return false;
    memcpy(folder, path, n);
    folder[n] = '\0';
    return (realpath(folder, real) != NULL && strcmp(real, dir) == 0) || is_same_file(path, dir);
}

/* ---- strangers
 * -------------------------------------------------------------------------------------------------------------
 */

typedef struct search {
    const char *dir;  /* libcudnn* must lie here */
    const char *file; /* libnvrtc.so* must be this */
    char *out;
    size_t capacity;
} search;

static int is_foreign(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    const search *s = user;
    const char *name = base_name(info->dlpi_name);
    bool foreign = false;
    if (s->dir != NULL && starts_with(name, "libcudnn"))
        foreign = !fattn__in_folder(info->dlpi_name, s->dir);
    if (s->file != NULL && starts_with(name, "libnvrtc.so")) {
        char real[PATH_MAX];
        foreign = realpath(info->dlpi_name, real) == NULL || strcmp(real, s->file) != 0;
    }
    if (foreign)
        snprintf(s->out, s->capacity, "%s", info->dlpi_name);
    return foreign;
}

bool fattn__foreign_cudnn(const char *dir, char *out, size_t capacity)
{
    search s = { .dir = dir, .out = out, .capacity = capacity };
    return dl_iterate_phdr(is_foreign, &s) != 0;
}

/* The first mapped libnvrtc.so* that is not the file `path` (real path); false when there is none.
 */
static bool fattn__foreign_nvrtc(const char *path, char *out, size_t capacity)
{
    search s = { .file = path, .out = out, .capacity = capacity };
    return dl_iterate_phdr(is_foreign, &s) != 0;
}

typedef struct mapped {
    const char *prefix;
    char *out; /* PATH_MAX */
} mapped;

static int is_mapped(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    const mapped *m = user;
    return starts_with(base_name(info->dlpi_name), m->prefix) &&
           snprintf(m->out, PATH_MAX, "%s", info->dlpi_name) < PATH_MAX;
}

bool fattn__mapped_library(const char *prefix, char out[PATH_MAX])
{
    return dl_iterate_phdr(is_mapped, &(mapped){ prefix, out }) != 0;
}

fattn_status fattn__fail_mixed(const char *foreign, const char *dir)
{
    return fattn__fail(
        FATTN_ENVIRONMENT,
        "two cuDNN builds are mixed: the loader mapped %s, but cuDNN's libraries must come from %s",
        foreign, dir);
}

/* cuDNN says yes with an older one, and then compiles nothing. */
static int oldest_nvrtc(int sm)
{
    return sm < 100 ? 0 : sm == 100 || sm == 120 ? 12080 : 12090;
}

fattn_status fattn_context_verify(fattn_context *context)
{
    NEED(context);
    char path[PATH_MAX];
    if (context->api == NULL)
        return FATTN_OK;
    if (fattn__foreign_cudnn(context->api->dir, path, sizeof path))
        return fattn__fail_mixed(path, context->api->dir);
    /* From 9.21 on NVRTC is linked into cuDNN, so another mapped NVRTC does not matter. */
    if (context->api->version < FATTN__NVRTC_INSIDE) {
        if (context->nvrtc == NULL)
            return fattn__fail(FATTN_ENVIRONMENT, "cuDNN %d needs NVRTC and none was given",
                               context->api->version);
        const int oldest = oldest_nvrtc(context->info.sm), version = context->api->nvrtc.version;
        if (version < oldest)
            return fattn__fail(FATTN_ENVIRONMENT,
                               "NVRTC %d.%d cannot compile for sm_%d: NVRTC %d.%d or newer can",
                               version / 1000, version / 10 % 100, context->info.sm, oldest / 1000,
                               oldest / 10 % 100);
        if (fattn__foreign_nvrtc(context->nvrtc, path, sizeof path))
            return fattn__fail(FATTN_ENVIRONMENT,
                               "mixed NVRTC libraries: %s is mapped, %s was given", path,
                               context->nvrtc);
    }
    return FATTN_OK;
}

/* ---- the list
 * --------------------------------------------------------------------------------------------------------------
 */

typedef struct listing {
    fattn_context *context;
    fattn_library *out;
    size_t capacity;
    size_t count;
} listing;

/* The context's own copy of a path; it lives as long as the context. */
static const char *keep_path(fattn_context *context, const char *path)
{
    for (size_t i = 0; i < context->path_count; i++) {
        if (strcmp(context->paths[i], path) == 0)
            return context->paths[i];
    }
    char **paths = realloc(context->paths, (context->path_count + 1) * sizeof *paths);
    if (paths == NULL)
        return "";
    context->paths = paths;
    char *copy = strdup(path);
    if (copy == NULL)
        return "";
    return context->paths[context->path_count++] = copy;
}

static int list_one(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    listing *l = user;
    const char *name = base_name(info->dlpi_name);
    if (!starts_with(name, "libcudnn") && !starts_with(name, "libnvrtc") &&
        !starts_with(name, "libcublasLt") && !starts_with(name, "libcuda.so"))
        return 0;
    if (l->count < l->capacity) {
        struct stat st;
        char real[PATH_MAX];
        const char *path = realpath(info->dlpi_name, real) != NULL ? real : info->dlpi_name;
        l->out[l->count] = (fattn_library){
            .path = keep_path(l->context, path),
            .bytes = stat(path, &st) == 0 ? st.st_size : -1,
            .in_build =
                l->context->api != NULL && fattn__in_folder(info->dlpi_name, l->context->api->dir),
        };
    }
    l->count++;
    return 0;
}

size_t fattn_context_libraries(fattn_context *context, fattn_library *out, size_t capacity)
{
    listing l = { .context = context, .out = out, .capacity = out != NULL ? capacity : 0 };
    if (context == NULL)
        return 0;
    pthread_mutex_lock(&context->lock);
    dl_iterate_phdr(list_one, &l);
    pthread_mutex_unlock(&context->lock);
    return l.count;
}
