/* The text of a scanned JSON string. The scan has proved it valid; this only resolves escapes. */
#include <string.h>

#include "scan.h"

static unsigned hex(const char *p)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++) {
        unsigned char d = (unsigned char)p[i];
        unsigned digit = d <= '9' ? (unsigned)(d - '0') : (unsigned)((d | 0x20) - 'a') + 10u;
        code = code * 16u + digit;
    }
    return code;
}

static size_t encode(unsigned code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | (code >> 6));
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | (code >> 12));
        out[1] = (char)(0x80 | ((code >> 6) & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | (code >> 18));
    out[1] = (char)(0x80 | ((code >> 12) & 0x3F));
    out[2] = (char)(0x80 | ((code >> 6) & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

/* One character at p (an escape or plain bytes): its bytes in out, how much was read as the result.
 */
static size_t character(const char *p, size_t left, char out[4], size_t *bytes)
{
    if (*p != '\\') {
        *bytes = facts_utf8_length(p, left);
        memcpy(out, p, *bytes);
        return *bytes;
    }
    if (p[1] == 'u') {
        unsigned code = hex(p + 2);
        bool pair = code >= 0xD800 && code <= 0xDBFF;
        if (pair)
            code = 0x10000u + ((code - 0xD800u) << 10) + (hex(p + 8) - 0xDC00u);
        *bytes = encode(code, out);
        return pair ? 12 : 6;
    }
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    const char *known = strchr(from, p[1]);
    out[0] = known ? to[known - from] : p[1];
    *bytes = 1;
    return 2;
}

bool facts_json_string(facts_span value, char *out, size_t capacity)
{
    if (!value.at || value.length < 2 || value.at[0] != '"' || !capacity)
        return false;
    size_t used = 0;
    for (size_t i = 1; i < value.length - 1;) {
        char bytes[4];
        size_t n;
        size_t read = character(value.at + i, value.length - 1 - i, bytes, &n);
        if (used + n >= capacity)
            break;
        memcpy(out + used, bytes, n);
        used += n;
        i += read;
    }
    out[used] = '\0';
    return true;
}
