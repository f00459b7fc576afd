#include "content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "build_parts.h"

void facts_content_text(facts_content *content, const char *what, const char *text, size_t length)
{
    content->sum += XXH3_64bits_withSeed(text, length, XXH3_64bits(what, strlen(what)));
}

void facts_content_file(facts_content *content, const char *path)
{
    static char
        bytes[4 << 20]; /* reads large blocks: few calls that may fail. One thread uses it. */
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    XXH3_state_t hash;
    ssize_t n = -1;
    XXH3_INITSTATE(&hash); /* the reset below reads the old seed */
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    XXH3_64bits_reset_withSeed(&hash, XXH3_64bits(name, strlen(name)));
    while (file >= 0 && ((n = read(file, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            XXH3_64bits_update(&hash, bytes, (size_t)n);
    if (file >= 0)
        (void)close(file);
    content->unknown |= n != 0;
    content->sum += XXH3_64bits_digest(&hash);
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
