#include "plan_file.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "error.h"

static const char magic[8] = { 'F', 'A', 'T', 'T', 'N', 'P', 'L', 'N' };
enum { FORMAT = 2 };

_Static_assert(sizeof(fattn__plan_header) ==
                   8 + 4 * 4 + 2 * 8 + 64 + 16 + 3 * 8 + sizeof(fattn_engine) + 8,
               "a header without padding");

static uint64_t hash_header(const fattn__plan_header *header)
{
    return XXH3_64bits(header, offsetof(fattn__plan_header, header_hash));
}

fattn_status fattn__plan_pack(fattn__plan_header *header, const char *payload, size_t payload_bytes,
                              char **bytes, size_t *count)
{
    *count = 0;
    *bytes = malloc(sizeof *header + payload_bytes);
    if (*bytes == NULL)
        return fattn__fail(FATTN_NO_MEMORY, "no memory for a plan of %zu bytes", payload_bytes);
    memcpy(header->magic, magic, sizeof magic);
    header->format = FORMAT;
    header->header_bytes = sizeof *header;
    header->payload_bytes = payload_bytes;
    header->payload_hash = XXH3_64bits(payload, payload_bytes);
    header->header_hash = hash_header(header);
    memcpy(*bytes, header, sizeof *header);
    memcpy(*bytes + sizeof *header, payload, payload_bytes);
    *count = sizeof *header + payload_bytes;
    return FATTN_OK;
}

fattn_status fattn__plan_unpack(fattn__plan_header *out, const char **payload, const char *bytes,
                                size_t count)
{
    *payload = NULL;
    if (bytes == NULL || count < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return fattn__fail(FATTN_BAD_PLAN, "these bytes are not a saved plan");
    if (count < sizeof *out)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is cut off: %zu bytes", count);
    memcpy(out, bytes, sizeof *out);
    if (out->format != FORMAT || out->header_bytes != sizeof *out)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan has format %u, this library reads %d",
                           (unsigned)out->format, (int)FORMAT);
    if (out->header_hash != hash_header(out))
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan's header is damaged");
    if (out->payload_bytes != count - sizeof *out)
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan holds %zu bytes of %llu",
                           count - sizeof *out, (unsigned long long)out->payload_bytes);
    if (out->payload_hash != XXH3_64bits(bytes + sizeof *out, count - sizeof *out))
        return fattn__fail(FATTN_BAD_PLAN, "the saved plan is damaged");
    *payload = bytes + sizeof *out;
    return FATTN_OK;
}
