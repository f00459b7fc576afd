#include "record_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENGINES 64
#define MEMBERS 16
#define KNOBS 64

/* One element of engines[]; false: it is not of mode A. */
static bool read_engine(facts_span element, facts_member members[MEMBERS], size_t *count)
{
    if (!facts_scan_object(element.at, element.length, members, MEMBERS, count))
        return false;
    *count = *count < MEMBERS ? *count : MEMBERS;
    facts_span mode = facts_member_find(members, *count, "mode");
    return !mode.at || facts_json_is(mode, "A");
}

void facts_row_engines(const facts_line *row, char *out, size_t capacity)
{
    facts_span elements[ENGINES];
    size_t count, used = 0;
    facts_span engines = facts_line_get(row, "engines");
    out[0] = '\0';
    if (!engines.at || !facts_scan_array(engines.at, engines.length, elements, ENGINES, &count))
        return;
    for (size_t i = 0; i < count && i < ENGINES; i++) {
        facts_member members[MEMBERS];
        size_t n;
        int64_t index;
        if (!read_engine(elements[i], members, &n) ||
            !facts_json_int(facts_member_find(members, n, "index"), &index))
            continue;
        int wrote =
            snprintf(out + used, capacity - used, "%s%lld", used ? " " : "", (long long)index);
        if (wrote < 0 || (size_t)wrote >= capacity - used)
            break;
        used += (size_t)wrote;
    }
}

static int by_key(const void *a, const void *b)
{
    const facts_span *x = &((const facts_member *)a)->key, *y = &((const facts_member *)b)->key;
    int order = memcmp(x->at, y->at, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

bool facts_row_knobs(const facts_line *row, char *out, size_t capacity)
{
    facts_span elements[ENGINES], engines = facts_line_get(row, "engines"), found = { NULL, 0 };
    facts_member knobs[KNOBS];
    size_t count, used = 0;
    int64_t wanted, config;
    bool any = facts_json_int(facts_line_get(row, "config"), &wanted);
    out[0] = '\0';
    if (!engines.at || !facts_scan_array(engines.at, engines.length, elements, ENGINES, &count))
        return false;
    for (size_t i = 0; i < count && i < ENGINES && !found.at; i++) {
        facts_member members[MEMBERS];
        size_t n;
        if (read_engine(elements[i], members, &n) &&
            (!any || (facts_json_int(facts_member_find(members, n, "config"), &config) &&
                      config == wanted)))
            found = facts_member_find(members, n, "knobs");
    }
    if (!found.at || !facts_scan_object(found.at, found.length, knobs, KNOBS, &count) ||
        count > KNOBS)
        return false;
    qsort(knobs, count, sizeof *knobs, by_key);
    for (size_t i = 0; i < count && used < capacity; i++)
        used += (size_t)snprintf(out + used, capacity - used, "%s%.*s=%.*s", used ? " " : "",
                                 (int)knobs[i].key.length, knobs[i].key.at,
                                 (int)knobs[i].value.length, knobs[i].value.at);
    return true;
}

void facts_row_text(const facts_line *row, const char *key, char *out, size_t capacity)
{
    facts_member members[MEMBERS];
    size_t count;
    facts_span reason = facts_line_get(row, "reason");
    out[0] = '\0';
    if (!reason.at || !facts_scan_object(reason.at, reason.length, members, MEMBERS, &count))
        return;
    facts_json_string(facts_member_find(members, count < MEMBERS ? count : MEMBERS, key), out,
                      capacity);
    for (char *p = out; *p; p++) /* lines become one */
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = ' ';
    facts_plain(out);
}
