#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "key_values.h"

#define MOST_KNOBS 24

bool facts_knobs_canonical(const facts_key_row *row, facts_span value, char *out,
                           facts_value_fault *fault)
{
    (void)row;
    facts_span name[MOST_KNOBS];
    uint64_t number[MOST_KNOBS];
    size_t count = 0;
    facts_span rest = value;
    do {
        facts_span item = facts_span_cut(&rest, '+');
        facts_span left = facts_span_cut(&item, ':');
        size_t letters = 0;
        while (letters < left.length &&
               ((left.at[letters] >= 'a' && left.at[letters] <= 'z') || left.at[letters] == '_' ||
                (left.at[letters] >= '0' && left.at[letters] <= '9')))
            letters++;
        size_t at = (size_t)(left.at - value.at);
        if (count == MOST_KNOBS)
            return facts_fault(fault, at, "knob: at most %d", MOST_KNOBS);
        if (letters == 0 || letters < left.length || left.length > 40 ||
            !facts_read_integer(item, INT64_MAX, &number[count]))
            return facts_fault(fault, at,
                               "knob takes name:number joined by +, for example tile_m:2+stages:4");
        size_t place = count++;
        uint64_t own = number[place];
        for (; place > 0; place--) {
            size_t least =
                name[place - 1].length < left.length ? name[place - 1].length : left.length;
            int order = memcmp(name[place - 1].at, left.at, least);
            if (order == 0)
                order = name[place - 1].length < left.length ? -1
                                                             : name[place - 1].length > left.length;
            if (order == 0)
                return facts_fault(fault, at, "knob: %.*s is there twice", (int)left.length,
                                   left.at);
            if (order < 0)
                break;
            name[place] = name[place - 1];
            number[place] = number[place - 1];
        }
        name[place] = left;
        number[place] = own;
    } while (rest.length > 0 || (rest.at > value.at && rest.at[-1] == '+'));
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        int written = snprintf(out + used, FACTS_CASE_TEXT - used, "%s%.*s:%" PRIu64,
                               i > 0 ? "+" : "", (int)name[i].length, name[i].at, number[i]);
        if (written < 0 || (size_t)written >= FACTS_CASE_TEXT - used)
            return facts_fault(fault, 0, "knob is longer than a case may be");
        used += (size_t)written;
    }
    return true;
}
