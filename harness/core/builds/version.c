#include "build_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

int facts_version_parse(const char *text, int number[4], const char **end)
{
    int count = 0;
    const char *at = text;
    number[0] = number[1] = number[2] = number[3] = 0;
    while (count < 4 && isdigit((unsigned char)*at)) {
        int value = 0;
        for (; isdigit((unsigned char)*at); at++) {
            if (value > 99999)
                return 0;
            value = value * 10 + (*at - '0');
        }
        number[count++] = value;
        if (*at != '.' || !isdigit((unsigned char)at[1]))
            break;
        at++;
    }
    if (end)
        *end = at;
    else if (*at)
        return 0;
    return count;
}

void facts_build_set_name(facts_build *build, const int number[4], int numbers)
{
    build->major = number[0];
    build->minor = number[1];
    build->patch = number[2];
    (void)snprintf(build->version, sizeof build->version, "%d.%d.%d", number[0] % 100,
                   number[1] % 1000, number[2] % 1000);
    if (numbers == 4)
        (void)snprintf(build->full_version, sizeof build->full_version, "%s.%d", build->version,
                       number[3]);
    else
        memcpy(build->full_version, build->version, sizeof build->version);
    (void)snprintf(build->name, sizeof build->name, "%s-%s-cu%d", build->version,
                   build->kind == FACTS_BUILD_JIT ? "jit" : "full", build->cuda_major % 1000);
    build->needs_nvrtc = build->major == 9 && build->minor < 21;
}

int facts_build_compare(const void *a, const void *b)
{
    const facts_build *x = a, *y = b;
    int order[] = {
        y->major - x->major,         y->minor - x->minor,           y->patch - x->patch,
        (int)x->kind - (int)y->kind, y->cuda_major - x->cuda_major, (int)x->origin - (int)y->origin,
    };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (order[i])
            return order[i];
    int longer = strcmp(y->full_version, x->full_version);
    return longer ? longer : strcmp(x->dir, y->dir);
}

bool facts_package_parse(const char *package, facts_build_kind *kind, int *cuda_major)
{
    char name[64] = "";
    size_t n = strlen(package);
    if (n >= sizeof name)
        return false;
    for (size_t i = 0; i <= n; i++)
        name[i] = package[i] == '_' ? '-' : (char)tolower((unsigned char)package[i]);
    static const char JIT[] = "nvidia-cudnn-jit-cu", FULL[] = "nvidia-cudnn-cu";
    const char *major;
    if (strncmp(name, JIT, sizeof JIT - 1) == 0) {
        *kind = FACTS_BUILD_JIT;
        major = name + sizeof JIT - 1;
    } else if (strncmp(name, FULL, sizeof FULL - 1) == 0) {
        *kind = FACTS_BUILD_FULL;
        major = name + sizeof FULL - 1;
    } else {
        return false;
    }
    int number[4];
    if (facts_version_parse(major, number, NULL) != 1)
        return false;
    *cuda_major = number[0];
    return true;
}
