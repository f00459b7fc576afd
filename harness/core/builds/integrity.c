#include "integrity.h"

#include <stdio.h>
#include <string.h>

const char *facts_integrity_name(facts_integrity integrity)
{
    switch (integrity) {
    case FACTS_INTEGRITY_OK:
        return "ok";
    case FACTS_INTEGRITY_MISMATCH:
        return "mismatch";
    case FACTS_INTEGRITY_UNKNOWN:
        break;
    }
    return "unknown";
}

/* RECORD has the digest in URL-safe base64 without padding. */
static bool base64_equals_hex(const char *base64, const char *hex)
{
    static const char ALPHABET[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned held = 0;
    int bits = 0, digits = 0;
    for (; *base64; base64++) {
        const char *at = strchr(ALPHABET, *base64);
        if (!at)
            return false;
        held = held << 6 | (unsigned)(at - ALPHABET);
        for (bits += 6; bits >= 4 && digits < 64; digits++) {
            bits -= 4;
            if (hex[digits] != "0123456789abcdef"[held >> bits & 15])
                return false;
        }
    }
    return digits == 64;
}

/* "path,sha256=BASE64,bytes": is this the line for a file of that name in a lib folder? Cuts the
 * digest out. */
static const char *digest_of(char *line, const char *name)
{
    char *hash = strstr(line, ",sha256=");
    if (!hash)
        return NULL;
    *hash = 0;
    const char *file = strrchr(line, '/');
    if (!file || strcmp(file + 1, name) != 0)
        return NULL;
    hash += strlen(",sha256=");
    hash[strcspn(hash, ",\r\n")] = 0;
    return hash;
}

facts_integrity facts_library_check(const facts_build *build, const char *path, const char *sha256)
{
    char line[FACTS_PATH];
    const char *slash = strrchr(path, '/'), *digest = NULL;
    FILE *record = build->record[0] ? fopen(build->record, "re") : NULL;
    if (!record)
        return FACTS_INTEGRITY_UNKNOWN;
    while (!digest && fgets(line, sizeof line, record))
        digest = digest_of(line, slash ? slash + 1 : path);
    (void)fclose(record);
    if (!digest)
        return FACTS_INTEGRITY_UNKNOWN;
    return base64_equals_hex(digest, sha256) ? FACTS_INTEGRITY_OK : FACTS_INTEGRITY_MISMATCH;
}
