#include "row.h"

#include <stdio.h>

#define ENGINES 64
#define MEMBERS 16

void facts_row_engines(const facts_line *row, char *out, size_t capacity)
{
    facts_slice elements[ENGINES];
    size_t count, used = 0;
    facts_slice engines = facts_line_get(row, "engines");
    out[0] = '\0';
    if (!engines.at || !facts_scan_array(engines.at, engines.length, elements, ENGINES, &count))
        return;
    for (size_t i = 0; i < count && i < ENGINES; i++) {
        facts_member members[MEMBERS];
        size_t n;
        int64_t index;
        if (!facts_scan_object(elements[i].at, elements[i].length, members, MEMBERS, &n))
            continue;
        n = n < MEMBERS ? n : MEMBERS;
        facts_slice mode = facts_member_find(members, n, "mode");
        if ((mode.at && !facts_slice_is(mode, "A")) || !facts_slice_int(facts_member_find(members, n, "index"), &index))
            continue;
        int wrote = snprintf(out + used, capacity - used, "%s%lld", used ? " " : "", (long long)index);
        if (wrote < 0 || (size_t)wrote >= capacity - used)
            break;
        used += (size_t)wrote;
    }
}

void facts_row_said(const facts_line *row, const char *key, char *out, size_t capacity)
{
    facts_member members[MEMBERS];
    size_t count;
    facts_slice reason = facts_line_get(row, "reason");
    out[0] = '\0';
    if (!reason.at || !facts_scan_object(reason.at, reason.length, members, MEMBERS, &count))
        return;
    facts_slice_string(facts_member_find(members, count < MEMBERS ? count : MEMBERS, key), out, capacity);
    for (char *p = out; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
}
