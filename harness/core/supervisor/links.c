/* libcudnn.so.9 asks the loader for libcudnn_graph.so.9.14.0, then .9.14, then .9. If the system
 * has the same release under its full version, the worker would load the system's library. These
 * links give the build's own libraries the full names, so that the loader finds them first. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "supervision.h"

#define PREFIX "facts-links-"

static bool is_library(const char *name)
{
    static const char ending[] = ".so.9";
    const size_t length = strlen(name), last = sizeof ending - 1;
    return strncmp(name, "libcudnn", 8) == 0 && length > last &&
           strcmp(name + length - last, ending) == 0;
}

static bool make_link(const char *folder, const char *library, const facts_build *build)
{
    const char *rest = strchr(build->version, '.'); /* of 9.14.0: .14.0 */
    char name[FACTS_PATH], file[FACTS_PATH], link[FACTS_PATH];
    const int length = snprintf(name, sizeof name, "%s%s", library, rest ? rest : "");
    return length < (int)sizeof name && facts_join(file, build->dir, library) &&
           facts_join(link, folder, name) && symlink(file, link) == 0;
}

/* The lock on the folder shows that its owner is running; the folder of a killed process has no
 * lock. */
static int lock_folder(const char *path)
{
    int lock = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0) {
        close(lock);
        lock = -1;
    }
    return lock;
}

static void remove_folder(const char *path, int lock)
{
    DIR *dir = opendir(path);
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        unlinkat(lock, entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
    close(lock);
}

/* Folders of runs that were killed. */
static void sweep(const char *temporary)
{
    DIR *dir = opendir(temporary);
    char path[FACTS_PATH];
    for (const struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0 ||
            !facts_join(path, temporary, entry->d_name))
            continue;
        int lock = lock_folder(path);
        if (lock >= 0)
            remove_folder(path, lock);
    }
    if (dir)
        closedir(dir);
}

void facts_links_make(facts_links *out, const facts_build *build)
{
    const char *given = getenv("TMPDIR"), *temporary = given && given[0] == '/' ? given : "/tmp";
    DIR *dir = opendir(build->dir);
    *out = (facts_links){ .lock = -1 };
    sweep(temporary);
    if (dir && facts_join(out->folder, temporary, PREFIX "XXXXXX") && mkdtemp(out->folder))
        out->lock = lock_folder(out->folder);
    bool made = dir && out->lock >= 0;
    for (const struct dirent *entry; made && (entry = readdir(dir)) != NULL;)
        made = !is_library(entry->d_name) || make_link(out->folder, entry->d_name, build);
    if (dir)
        closedir(dir);
    if (!made)
        facts_links_remove(out);
}

void facts_links_remove(facts_links *links)
{
    if (links->folder[0] && links->lock >= 0)
        remove_folder(links->folder, links->lock);
    *links = (facts_links){ .lock = -1 };
}
