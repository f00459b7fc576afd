/* Any bytes as a saved plan: refused without harm. What was packed comes back, and with one bit
 * changed or an end cut off it does not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fattn__plan_header header, packed = { .cudnn_version = 92000, .sm = 90 };
    const char *payload;
    if (fattn__plan_unpack(&header, &payload, (const char *)data, size) == FATTN_OK)
        check(payload == (const char *)data + sizeof header &&
              header.payload_bytes == size - sizeof header);
    if (size < 4)
        return 0;
    uint32_t place;
    memcpy(&place, data, sizeof place);
    char *bytes;
    size_t count;
    if (fattn__plan_pack(&packed, (const char *)data, size, &bytes, &count) != FATTN_OK)
        return 0;
    check(fattn__plan_unpack(&header, &payload, bytes, count) == FATTN_OK);
    check(header.sm == 90 && header.payload_bytes == size && memcmp(payload, data, size) == 0);
    check(fattn__plan_unpack(&header, &payload, bytes, place % count) != FATTN_OK &&
          payload == NULL);
    bytes[place / 8 % count] ^= (char)(1 << place % 8);
    check(fattn__plan_unpack(&header, &payload, bytes, count) != FATTN_OK && payload == NULL);
    free(bytes);
    return 0;
}
