#include "text_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_BYTES (16u << 20)

char *facts_file_text(const char *path, facts_error *error)
{
    int opened =
        open(path, O_RDONLY | O_CLOEXEC |
                       O_NONBLOCK); /* nobody writes into a fifo: it is refused, not waited for */
    FILE *file = opened >= 0 ? fdopen(opened, "rb") : NULL;
    struct stat status;
    char *text = NULL;
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        facts_fail_at(error, path, 1, 1, "cannot be read: %s", strerror(errno));
    } else if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size > MOST_BYTES) {
        facts_fail_at(error, path, 1, 1, "not a file of at most %u MiB", MOST_BYTES >> 20);
    } else if ((text = calloc(1, (size_t)status.st_size + 1)) == NULL) {
        facts_fail_at(error, path, 1, 1, "no memory");
    } else {
        size_t got = fread(text, 1, (size_t)status.st_size, file);
        const char *nul = memchr(text, '\0', got);
        if (ferror(file) || nul != NULL) {
            facts_fail_at(error, path, 1, 1, nul != NULL ? "not a text" : "cannot be read");
            free(text);
            text = NULL;
        }
    }
    if (file != NULL)
        fclose(file);
    else if (opened >= 0)
        close(opened);
    return text;
}

FILE *facts_file_new(const char *path)
{
    (void)unlink(path); /* a folder stays */
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return file >= 0 ? fdopen(file, "wb") : NULL;
}

static bool ends(const char *name, const char *suffix)
{
    size_t length = strlen(name), letters = strlen(suffix);
    return name[0] != '.' && length > letters && strcmp(name + length - letters, suffix) == 0;
}

size_t facts_folder_files(const char *folder, const char *suffix, char ***out)
{
    *out = NULL;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return 0;
    size_t count = 0;
    bool all = true;
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        if (!ends(entry->d_name, suffix))
            continue;
        char **paths = realloc(*out, (count + 1) * sizeof *paths);
        all = paths != NULL;
        *out = all ? paths : *out;
        all = all && asprintf(&paths[count], "%s/%s", folder, entry->d_name) >= 0;
        if (!all)
            break;
        count++;
    }
    closedir(entries);
    if (!all) { /* some of a folder would be another suite */
        facts_folder_free(*out, count);
        *out = NULL;
        errno = ENOMEM;
        return 0;
    }
    errno = 0;
    if (count > 0)
        qsort(*out, count, sizeof **out, facts_by_text);
    return count;
}

void facts_folder_free(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}
