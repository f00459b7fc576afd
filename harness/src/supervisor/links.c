/* libcudnn.so.9 asks the loader for libcudnn_graph.so.9.14.0, then .9.14, then .9; where the system has the same release under its
 * full version, the worker would map the system's library. These links give the build's own libraries those names first. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervision.h"

static bool is_library(const char *name)
{
    static const char ending[] = ".so.9";
    const size_t length = strlen(name), last = sizeof ending - 1;
    return strncmp(name, "libcudnn", 8) == 0 && length > last && strcmp(name + length - last, ending) == 0;
}

static bool make_link(const char *folder, const char *library, const facts_build *build)
{
    const char *rest = strchr(build->version, '.'); /* of 9.14.0: .14.0 */
    char name[FACTS_PATH], file[FACTS_PATH], link[FACTS_PATH];
    const int length = snprintf(name, sizeof name, "%s%s", library, rest ? rest : "");
    return length < (int)sizeof name && facts_join(file, build->dir, library) && facts_join(link, folder, name) &&
           symlink(file, link) == 0;
}

void facts_links_make(char out[FACTS_PATH], const facts_build *build)
{
    const char *temporary = getenv("TMPDIR");
    DIR *dir = opendir(build->dir);
    bool made = dir && facts_join(out, temporary && temporary[0] == '/' ? temporary : "/tmp", "facts-links-XXXXXX") && mkdtemp(out);
    if (!made)
        out[0] = '\0';
    for (const struct dirent *entry; made && (entry = readdir(dir)) != NULL;)
        made = !is_library(entry->d_name) || make_link(out, entry->d_name, build);
    if (dir)
        closedir(dir);
    if (!made) {
        facts_links_remove(out);
        out[0] = '\0';
    }
}

void facts_links_remove(const char *folder)
{
    DIR *dir = folder[0] ? opendir(folder) : NULL;
    if (!dir)
        return;
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(folder);
}
