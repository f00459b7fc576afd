/* --cudnn and a cuDNN folder's METADATA: any text ends as builds or as one line. The first line is
 * the specification, the rest the METADATA and RECORD. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "builds/builds.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char root[] = "/tmp/facts-fuzz-XXXXXX", build[128];

static void put(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    if (!file || fwrite(data, 1, bytes, file) != bytes || fclose(file) != 0)
        abort();
}

static void clean_up(void)
{
    char command[256];
    (void)snprintf(command, sizeof command, "/bin/rm -rf '%s'", root);
    if (system(command) != 0) /* NOLINT: our own folder */
        (void)fputs("left behind\n", stderr);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    char lib[160], path[160];
    if (!mkdtemp(root))
        abort();
    (void)atexit(clean_up);
    (void)snprintf(path, sizeof path, "%s/facts", root);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/facts/cudnn", root);
    (void)mkdir(path, 0700);
    (void)snprintf(build, sizeof build, "%s/facts/cudnn/b", root);
    (void)mkdir(build, 0700);
    (void)snprintf(lib, sizeof lib, "%s/lib", build);
    (void)mkdir(lib, 0700);
    static const char *const NAMES[] = { "libcudnn.so.9", "libcudnn_graph.so.9",
                                         "libcudnn_engines_runtime_compiled.so.9" };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        put(lib, NAMES[i], "cudnn", 5);
    (void)setenv("XDG_CACHE_HOME", root, 1);
    (void)setenv("PATH", "/nowhere", 1);
    (void)setenv("HOME", "/nowhere", 1);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char spec[256];
    const uint8_t *line = memchr(data, '\n', bytes);
    size_t n = line ? (size_t)(line - data) : bytes;
    if (n >= sizeof spec)
        n = sizeof spec - 1;
    memcpy(spec, data, n);
    spec[n] = 0;
    if (line) {
        size_t rest = bytes - (size_t)(line + 1 - data);
        put(build, "METADATA", line + 1, rest);
        put(build, "RECORD", line + 1, rest);
    }
    facts_error note = { 0 }, message = { 0 };
    facts_build one;
    int status = facts_build_identify(&one, build, &message);
    if (status == 0 ? one.major != 9 || !one.name[0]
                    : !message.text[0] || strchr(message.text, '\n'))
        abort();
    facts_builds out;
    message = (facts_error){ 0 };
    if (strchr(spec, '/') || strcmp(spec, ".") == 0) /* a folder of this machine */
        return 0;
    status = facts_builds_resolve(&out, spec, FACTS_RESOLVE_LOCK_ONLY, &note,
                                  &message); /* what is here would make it slow and random */
    if (status == 0 ? out.count == 0 : !message.text[0] || strchr(message.text, '\n'))
        abort();
    facts_builds_free(&out);
    return 0;
}
