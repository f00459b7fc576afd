/* Identifies the cuDNN of a folder (version, kind and CUDA major) without loading it.
 *
 * First it reads the package's metadata: NAME-VERSION.dist-info two levels above lib/ (a Python
 * package), or METADATA and RECORD beside lib/ (the cache). The metadata counts only if its RECORD
 * names the engines library with the size of the file, because two packages may have written into
 * one folder.
 *
 * Otherwise it reads the engines library itself. That library refuses serialized plans of other
 * versions with the text "cudnn_version != (9 * 10000 + 20 * 100 + 0)". Its compiler options
 * contain the path of its toolkit,
 * ".../cuda-13.2/bin/ptxExtDesc.txt" or ".../r12.9/bin/.../ptxExtDesc.txt". A header beside it may
 * be of another version, so it is read last. */
#include "build_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool exists(const char *folder, const char *file)
{
    char path[FACTS_PATH];
    return facts_join(path, folder, file) && access(path, R_OK) == 0;
}

/* A file that cannot be read is not missing: `trouble` reports it, and the folder is not identified
 * as something else. */
static bool opened(bool open, const char *path, facts_error *trouble)
{
    if (!open && !facts_is_absent(errno))
        facts_fail(trouble, "%s: %s", path, strerror(errno));
    return open;
}

static FILE *open_text(const char *path, facts_error *trouble)
{
    FILE *file = fopen(path, "re");
    return opened(file != NULL, path, trouble) ? file : NULL;
}

static void close_text(FILE *file, const char *path, facts_error *trouble)
{
    if (ferror(file))
        facts_fail(trouble, "%s: %s", path, strerror(EIO));
    (void)fclose(file);
}

/* The size that a RECORD gives for the engines library; -1: not named. */
static long long recorded_bytes(const char *record, facts_error *trouble)
{
    FILE *file = open_text(record, trouble);
    if (!file)
        return -1;
    long long bytes = -1;
    char line[FACTS_PATH];
    while (bytes < 0 && fgets(line, sizeof line, file)) {
        const char *hash = strstr(line, FACTS_ENGINES ",sha256=");
        const char *size = hash ? strrchr(line, ',') : NULL;
        if (size)
            bytes = strtoll(size + 1, NULL, 10);
    }
    close_text(file, record, trouble);
    return bytes;
}

static bool record_fits(const char *record, const char *dir, facts_error *trouble)
{
    char library[FACTS_PATH];
    struct stat info;
    return facts_join(library, dir, FACTS_ENGINES) && stat(library, &info) == 0 &&
           recorded_bytes(record, trouble) == (long long)info.st_size;
}

/* "Name: nvidia-cudnn-jit-cu13" and "Version: 9.20.0.48" of a METADATA file. */
static bool metadata(const char *path, facts_build *out, int number[4], int *numbers,
                     facts_error *trouble)
{
    FILE *file = open_text(path, trouble);
    if (!file)
        return false;
    char line[512], name[64] = "", version[64] = "";
    while (fgets(line, sizeof line, file) && line[0] != '\n' && line[0] != '\r') {
        (void)sscanf(line, "Name: %63s", name);
        (void)sscanf(line, "Version: %63s", version);
    }
    close_text(file, path, trouble);
    *numbers = facts_version_parse(version, number, NULL);
    return *numbers >= 3 && facts_package_parse(name, &out->kind, &out->cuda_major);
}

static bool from_dist_info(const char *folder, const char *dir, facts_build *out, int number[4],
                           int *numbers, facts_error *trouble)
{
    char record[FACTS_PATH], meta[FACTS_PATH];
    if (!facts_join(record, folder, "RECORD") || !facts_join(meta, folder, "METADATA"))
        return false;
    if (!record_fits(record, dir, trouble) || !metadata(meta, out, number, numbers, trouble))
        return false;
    memcpy(out->record, record, sizeof record);
    return true;
}

typedef struct package {
    const char *dir;
    facts_build *out;
    int *number, *numbers;
    facts_error *trouble;
    bool known;
} package;

static void try_package(void *to, const char *folder)
{
    package *p = to;
    p->known =
        p->known || from_dist_info(folder, p->dir, p->out, p->number, p->numbers, p->trouble);
}

static bool from_package(const char *dir, facts_build *out, int number[4], int *numbers,
                         facts_error *trouble)
{
    char above[FACTS_PATH];
    package p = { dir, out, number, numbers, trouble, false };
    if (facts_join(above, dir, ".."))
        try_package(&p, above);
    if (!p.known)
        facts_find_paths(dir, "../../../nvidia_cudnn*.dist-info", try_package, &p, trouble);
    return p.known;
}

/* ".../cuda-13.2/bin/" or ".../r12.9/bin/...": the last such word before the mark. */
static int toolkit_major(const char *start, const char *mark)
{
    const char *from = mark - start > 160 ? mark - 160 : start;
    for (const char *at = mark - 1; at > from; at--) {
        bool named = (at - from >= 5 && memcmp(at - 5, "cuda-", 5) == 0) ||
                     (at - from >= 2 && memcmp(at - 2, "/r", 2) == 0);
        if (named && at[0] == '1' && at[1] >= '0' && at[1] <= '9' && at[2] == '.')
            return 10 + (at[1] - '0');
    }
    return 0;
}

/* "9 * 10000 + 20 * 100 + 0)" */
static bool version_sum(const char *text, int number[4])
{
    static const char *const AFTER[] = { " * 10000 + ", " * 100 + ", ")" };
    for (int i = 0; i < 3; i++) {
        char *end;
        long value = strtol(text, &end, 10);
        if (end == text || value < 0 || value > 9999 ||
            strncmp(end, AFTER[i], strlen(AFTER[i])) != 0)
            return false;
        number[i] = (int)value;
        text = end + strlen(AFTER[i]);
    }
    return true;
}

static bool from_library(const char *dir, facts_build *out, int number[4], int *numbers,
                         facts_error *trouble)
{
    static const char VERSION[] = "cudnn_version != (", TOOLKIT[] = "ptxExtDesc.txt";
    char path[FACTS_PATH];
    struct stat info;
    if (!facts_join(path, dir, FACTS_ENGINES))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (!opened(fd >= 0, path, trouble))
        return false;
    const bool holds = fstat(fd, &info) == 0 && info.st_size > 0;
    char *bytes =
        holds ? mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    const bool mapped = bytes != MAP_FAILED;
    if (holds && !mapped)
        facts_fail(trouble, "%s: %s", path, strerror(errno));
    (void)close(fd);
    if (!mapped)
        return false;
    size_t size = (size_t)info.st_size;
    const char *mark = memmem(bytes, size, VERSION, sizeof VERSION - 1);
    if (mark && (size_t)(bytes + size - mark) > 80) {
        char text[64];
        memcpy(text, mark + sizeof VERSION - 1, sizeof text - 1);
        text[sizeof text - 1] = 0;
        if (version_sum(text, number))
            *numbers = 3;
    }
    mark = memmem(bytes, size, TOOLKIT, sizeof TOOLKIT - 1);
    out->cuda_major = mark ? toolkit_major(bytes, mark) : 0;
    (void)munmap(bytes, size);
    return *numbers == 3;
}

static bool defines(const char *line, const char *name, int *out)
{
    char *end;
    size_t n = strlen(name);
    if (strncmp(line, name, n) != 0)
        return false;
    long value = strtol(line + n, &end, 10);
    if (end == line + n || value < 0 || value > 9999)
        return false;
    *out = (int)value;
    return true;
}

static bool from_header(const char *dir, int number[4], int *numbers, facts_error *trouble)
{
    static const char *const WHERE[] = { "../include/cudnn_version.h",
                                         "../include/cudnn_version_v9.h" };
    for (size_t i = 0; i < sizeof WHERE / sizeof *WHERE; i++) {
        char path[FACTS_PATH], line[256];
        FILE *file = facts_join(path, dir, WHERE[i]) ? open_text(path, trouble) : NULL;
        if (!file)
            continue;
        int seen = 0;
        while (fgets(line, sizeof line, file)) {
            seen |= defines(line, "#define CUDNN_MAJOR ", &number[0]) ? 1 : 0;
            seen |= defines(line, "#define CUDNN_MINOR ", &number[1]) ? 2 : 0;
            seen |= defines(line, "#define CUDNN_PATCHLEVEL ", &number[2]) ? 4 : 0;
        }
        close_text(file, path, trouble);
        if (seen == 7) {
            *numbers = 3;
            return true;
        }
    }
    return false;
}

/* The CUDA major if no file inside has it: from the toolkit that contains the folder. */
static int toolkit_folder_major(const char *dir)
{
    const char *cuda = strstr(dir, "/cuda-1");
    return cuda && cuda[7] >= '0' && cuda[7] <= '9' ? 10 + (cuda[7] - '0') : 0;
}

static bool library_folder(const char *folder, char out[FACTS_PATH])
{
    static const char *const BELOW[] = { "",
                                         "lib",
                                         "lib64",
                                         "nvidia/cudnn/lib",
                                         "nvidia/cudnn_jit/lib",
                                         ("lib/" FACTS_MACHINE "-linux-gnu") };
    char below[FACTS_PATH];
    for (size_t i = 0; i < sizeof BELOW / sizeof *BELOW; i++) {
        char *real = facts_join(below, folder, BELOW[i]) && exists(below, "libcudnn.so.9")
                         ? realpath(below, NULL)
                         : NULL;
        bool fits = real && facts_join(out, real, "");
        free(real);
        if (fits)
            return true;
    }
    return false;
}

int facts_build_identify(facts_build *out, const char *folder, facts_error *message)
{
    *out = (facts_build){ .origin = FACTS_ORIGIN_FOLDER };
    if (access(folder, R_OK | X_OK) != 0)
        return facts_fail_as(2, message, "--cudnn %s: %s; give the folder with libcudnn.so.9",
                             folder, strerror(errno));
    if (!library_folder(folder, out->dir))
        return facts_fail_as(2, message,
                             "%s: no libcudnn.so.9 here, nor in lib/, lib64/, nvidia/cudnn/lib or "
                             "nvidia/cudnn_jit/lib below it",
                             folder);
    int number[4] = { 0 }, numbers = 0;
    facts_error trouble = { 0 };
    bool precompiled = exists(out->dir, "libcudnn_engines_precompiled.so.9") ||
                       exists(out->dir, "libcudnn_heuristic.so.9");
    if (!exists(out->dir, FACTS_ENGINES) || !exists(out->dir, "libcudnn_graph.so.9"))
        return facts_fail_as(2, message,
                             "%s: libcudnn.so.9 without libcudnn_graph.so.9 and " FACTS_ENGINES
                             ": not a whole cuDNN 9",
                             out->dir);
    if (!from_package(out->dir, out, number, &numbers, &trouble)) {
        out->kind = precompiled ? FACTS_BUILD_FULL : FACTS_BUILD_JIT;
        if (!from_library(out->dir, out, number, &numbers, &trouble))
            (void)from_header(out->dir, number, &numbers, &trouble);
        if (!out->cuda_major)
            out->cuda_major = toolkit_folder_major(out->dir);
    }
    if (trouble.text[0])
        return facts_fail_as(3, message, "%s", trouble.text);
    if (numbers < 3 || number[0] != 9 || !out->cuda_major)
        return facts_fail_as(2, message,
                             "%s: %s of this cuDNN is not known: the package has no metadata, and "
                             "neither has " FACTS_ENGINES,
                             out->dir,
                             numbers < 3 || number[0] != 9 ? "the version" : "the CUDA major");
    out->three_libraries = !precompiled;
    facts_build_set_name(out, number, numbers);
    if (out->needs_nvrtc)
        (void)facts_nvrtc_find(out->cuda_major, out->dir, out->nvrtc);
    return 0;
}
