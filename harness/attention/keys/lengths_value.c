#include <stdio.h>
#include <string.h>

#include "key_values.h"

size_t facts_lengths_read(facts_span text, int32_t *out, size_t most)
{
    size_t count = 0;
    if (text.length == 0)
        return 0;
    bool more = true;
    while (more) {
        more = memchr(text.at, '+', text.length) != NULL;
        facts_span item = facts_span_cut(&text, '+');
        facts_span length = facts_span_cut(&item, 'x');
        uint64_t value = 0, times = 1;
        bool repeated = length.at + length.length < item.at + item.length ||
                        item.at > length.at + length.length;
        const bool unused = facts_span_is(length, "-1");
        if ((!unused && !facts_read_integer(length, INT32_MAX, &value)) ||
            (repeated && !facts_read_integer(item, most, &times)) || times == 0 ||
            times > most - count)
            return 0;
        for (uint64_t i = 0; i < times; i++)
            out[count++] = unused ? -1 : (int32_t)value;
        if (more && text.length == 0)
            return 0;
    }
    return count;
}

/* Appends lengths with repeats counted; false when there is no room. */
static bool lengths_write(char *out, size_t *used, const int32_t *lengths, size_t count)
{
    for (size_t i = 0; i < count;) {
        size_t run = 1;
        while (i + run < count && lengths[i + run] == lengths[i])
            run++;
        char item[40];
        int written =
            run > 1 ? snprintf(item, sizeof item, "%s%dx%zu", i > 0 ? "+" : "", lengths[i], run)
                    : snprintf(item, sizeof item, "%s%d", i > 0 ? "+" : "", lengths[i]);
        if (*used + (size_t)written >= FACTS_CASE_TEXT)
            return false;
        memcpy(out + *used, item, (size_t)written + 1);
        *used += (size_t)written;
        i += run;
    }
    return true;
}

bool facts_lengths_canonical(const facts_key_row *row, facts_span value, char *out,
                             facts_value_fault *fault)
{
    int32_t side[2][FACTS_MAX_LENGTHS];
    facts_span rest = value;
    facts_span queries = facts_span_cut(&rest, '/');
    bool two = queries.length < value.length;
    size_t count[2] = { facts_lengths_read(queries, side[0], FACTS_MAX_LENGTHS), 0 };
    if (count[0] == 0)
        return facts_fault(fault, 0, "%s takes %s, or lengths: 256+0x3/256+1x3 (at most %d)",
                           row->word, row->allowed, FACTS_MAX_LENGTHS);
    if (two && (count[1] = facts_lengths_read(rest, side[1], FACTS_MAX_LENGTHS)) == 0)
        return facts_fault(fault, (size_t)(rest.at - value.at),
                           "%s: lengths of the keys, for example 256+1x3, belong after the /",
                           row->word);
    bool same =
        two && count[0] == count[1] && memcmp(side[0], side[1], count[0] * sizeof side[0][0]) == 0;
    size_t used = 0;
    bool fits = lengths_write(out, &used, side[0], count[0]);
    if (fits && two && !same) {
        fits = used + 1 < FACTS_CASE_TEXT;
        if (fits) {
            out[used++] = '/';
            fits = lengths_write(out, &used, side[1], count[1]);
        }
    }
    return fits || facts_fault(fault, 0, "%s is longer than a case may be", row->word);
}
