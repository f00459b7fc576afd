#include "build_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python.h"

static bool is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

int facts_lock_read(void (*each)(void *data, const facts_locked *line), void *data,
                    facts_error *message)
{
    char path[FACTS_PATH], text[512];
    if (!facts_home_path(FACTS_LOCK, path))
        return facts_fail_as(3, message,
                             FACTS_LOCK ": not found; set FACTS_HOME to the folder that has it");
    FILE *file = fopen(path, "re");
    if (!file)
        return facts_fail_as(3, message, "%s: %s", path, strerror(errno));
    int number = 0, status = 0;
    while (status == 0 && fgets(text, sizeof text, file)) {
        number++;
        if (text[0] == '#' || text[0] == '\n')
            continue;
        facts_locked line;
        int v[4];
        char bytes[24];
        int fields =
            sscanf(text, "%47s %23s %64s %23s", line.package, line.version, line.sha256, bytes);
        if (fields != 4 || !is_sha256(line.sha256) ||
            facts_version_parse(line.version, v, NULL) < 3) {
            facts_fail(message,
                       "%s:%d: not \"package version sha256 bytes wheel\"; restore the file with "
                       "git; ./facts cudnn lock adds versions",
                       path, number);
            status = 3;
        } else {
            line.bytes = strtoll(bytes, NULL, 10);
            each(data, &line);
        }
    }
    (void)fclose(file);
    return status;
}

static void add_build(void *data, const facts_locked *line)
{
    facts_build build = { .origin = FACTS_ORIGIN_LOCK, .three_libraries = true };
    int number[4];
    int numbers = facts_version_parse(line->version, number, NULL);
    if (!facts_package_parse(line->package, &build.kind, &build.cuda_major))
        return;
    facts_build_set_name(&build, number, numbers);
    facts_builds_add(data, &build);
}

int facts_builds_installable(facts_builds *out, facts_error *message)
{
    *out = (facts_builds){ 0 };
    int status = facts_lock_read(add_build, out, message);
    if (status)
        facts_builds_free(out);
    else if (out->count)
        qsort(out->at, out->count, sizeof *out->at, facts_build_compare);
    return status;
}

int facts_index_find(facts_build *out, const char *word, facts_error *message)
{
    char script[FACTS_PATH], line[sizeof message->text], package[48], version[24];
    int number[4];
    *out = (facts_build){ .origin = FACTS_ORIGIN_INDEX, .three_libraries = true };
    if (!facts_home_path("ci/cudnn_lock.py", script))
        return facts_fail_as(
            3, message, "ci/cudnn_lock.py: not found; set FACTS_HOME to the folder that has it");
    facts_fail(message, "%s", "");
    int status = facts_python_ask((const char *const[]){ script, "--find", word, NULL }, line,
                                  sizeof line, message);
    if (status) {
        if (line[0] || !message->text[0])
            facts_fail(message, "%s", line[0] ? line : "the package index did not answer");
        return status == 2 ? 2 : 3;
    }
    int numbers = sscanf(line, "%47s %23s", package, version) == 2
                      ? facts_version_parse(version, number, NULL)
                      : 0;
    if (numbers < 3 || !facts_package_parse(package, &out->kind, &out->cuda_major))
        return facts_fail_as(3, message, "the package index answered \"%.100s\" for %s", line,
                             word);
    facts_build_set_name(out, number, numbers);
    return 0;
}
