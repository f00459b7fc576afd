#include "content.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "build_parts.h"
#include "digest.h"

void facts_content_text(facts_content *content, const char *what, const char *text, size_t length)
{
    content->sum += XXH3_64bits_withSeed(text, length, XXH3_64bits(what, strlen(what)));
}

void facts_content_file(facts_content *content, const char *path)
{
    facts_digest digest;
    content->unknown |= !facts_digest_file(path, &digest);
    content->sum += digest.xxh3;
}

static void add(void *to, const char *path)
{
    facts_content_file(to, path);
}

void facts_content_build(facts_content *content, const facts_build *build)
{
    char folder[FACTS_PATH];
    if (!build->dir[0])
        return;
    facts_find_paths(build->dir, "libcudnn*.so.9", add, content, NULL);
    if (!build->needs_nvrtc || !build->nvrtc[0])
        return;
    facts_content_file(content, build->nvrtc);
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(build->nvrtc, '/') - build->nvrtc),
                   build->nvrtc);
    facts_find_paths(folder, "libnvrtc-builtins.so.*", add, content, NULL);
}
