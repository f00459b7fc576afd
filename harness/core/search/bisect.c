#include "bisect.h"

#include <limits.h>

#define ATTEMPTS 2

typedef struct searcher {
    const facts_bisect_order *order;
    facts_bisect_result *result;
    int open, lookahead;
    bool waits[ATTEMPTS][FACTS_BISECT_MOST]; /* requested in this call and not yet answered */
    bool confirmed[FACTS_BISECT_MOST];
} searcher;

typedef struct span {
    size_t low, high;
} span;

static bool look(searcher *s, size_t version, int attempt, int *value)
{
    bool *waits = &s->waits[attempt - 1][version];
    if (*waits || s->open >= s->lookahead)
        return false;
    if (s->order->ask(s->order->context, version, attempt, value))
        return true;
    *waits = true;
    s->open++;
    return false;
}

/* The first answer. False: still to come. */
static bool settle(searcher *s, size_t version)
{
    facts_bisect_result *r = s->result;
    int value;
    if (r->state[version] != FACTS_BISECT_UNASKED)
        return true;
    if (!look(s, version, 1, &value))
        return false;
    r->value[version] = value;
    r->state[version] =
        value == FACTS_BISECT_NO_VALUE ? FACTS_BISECT_SILENT : FACTS_BISECT_ANSWERED;
    return true;
}

/* The second answer. False: still to come. */
static bool confirm(searcher *s, size_t version)
{
    int value;
    if (s->confirmed[version])
        return true;
    if (!look(s, version, 2, &value))
        return false;
    s->confirmed[version] = true;
    if (value != s->result->value[version])
        s->result->state[version] = FACTS_BISECT_FLAKY;
    return true;
}

static bool confirm_edge(searcher *s, facts_bisect_edge edge)
{
    bool before = confirm(s, edge.before), after = confirm(s, edge.after);
    return before && after;
}

static bool is_answered(const searcher *s, size_t version)
{
    return s->result->state[version] == FACTS_BISECT_ANSWERED;
}

/* From an end inwards to the first version that answers. False: an answer is still to come.
 * *version is the count if none answers. */
static bool find_first(searcher *s, size_t *version)
{
    for (*version = 0; *version < s->order->versions; ++*version) {
        if (!settle(s, *version))
            return false;
        if (is_answered(s, *version))
            break;
    }
    return true;
}

static bool find_last(searcher *s, size_t *version)
{
    *version = s->order->versions;
    for (size_t n = s->order->versions; n-- > 0;) {
        if (!settle(s, n))
            return false;
        *version = n;
        if (is_answered(s, n))
            break;
    }
    return true;
}

/* The version nearest to the middle of a span that may still answer. */
static bool find_middle(const searcher *s, span within, bool dear_too, size_t *out)
{
    size_t centre = within.low + (within.high - within.low) / 2;
    for (int dear = 0; dear <= (dear_too ? 1 : 0); dear++)
        for (size_t away = 0; away <= within.high - within.low; away++)
            for (int side = 0; side < (away ? 2 : 1); side++) {
                size_t v = side ? centre + away
                                : centre - away; /* below 0 it wraps around and is too large */
                bool may = v > within.low && v < within.high &&
                           (s->result->state[v] == FACTS_BISECT_UNASKED ||
                            s->result->state[v] == FACTS_BISECT_ANSWERED);
                if (may && (dear || !s->order->dear || !s->order->dear[v]))
                    return *out = v, true;
            }
    return false;
}

/* While one answer is open: requests the next questions of both outcomes, the nearest first. */
static void look_ahead(searcher *s, span within, size_t middle)
{
    span queue[64] = { { within.low, middle }, { middle, within.high } };
    size_t head = 0, tail = 2, v;
    for (; head < tail && s->open < s->lookahead; head++) {
        if (!find_middle(s, queue[head], false, &v))
            continue;
        settle(s, v);
        if (tail + 2 > sizeof queue / sizeof queue[0])
            continue;
        queue[tail++] = (span){ queue[head].low, v };
        queue[tail++] = (span){ v, queue[head].high };
    }
}

/* Is a version on the side of `low`? The sides: good and not good. If both ends are equal in that,
 * the sides are: answers as the older end, or not. */
static bool is_like_low(const searcher *s, span ends, size_t version)
{
    const facts_bisect_result *r = s->result;
    int good = s->order->good;
    bool low_good = r->value[ends.low] == good, high_good = r->value[ends.high] == good;
    if (low_good != high_good)
        return (r->value[version] == good) == low_good;
    return r->value[version] == r->value[ends.low];
}

/* Narrows a span with different ends down to an edge. False: an answer is still to come. */
static bool narrow(searcher *s, span ends, facts_bisect_edge *edge)
{
    span within = ends;
    size_t middle;
    while (find_middle(s, within, true, &middle)) {
        if (!settle(s, middle)) {
            look_ahead(s, within, middle);
            return false;
        }
        if (!is_answered(s, middle))
            continue;
        if (is_like_low(s, ends, middle))
            within.low = middle;
        else
            within.high = middle;
    }
    *edge = (facts_bisect_edge){ within.low, within.high };
    return true;
}

/* False: an answer is still to come, or there is nothing to compare. */
static bool find_ends(searcher *s, span *ends)
{
    facts_bisect_result *r = s->result;
    bool low = find_first(s, &ends->low), high = find_last(s, &ends->high);
    if (!low || !high)
        return false;
    r->outcome = FACTS_BISECT_NOTHING;
    r->first = ends->low;
    r->last = ends->high;
    return ends->low < ends->high && is_answered(s, ends->high);
}

static void search(searcher *s)
{
    facts_bisect_result *r = s->result;
    for (;;) {
        span ends;
        r->outcome = FACTS_BISECT_WAITING;
        if (!find_ends(s, &ends))
            return;
        if (r->value[ends.low] == r->value[ends.high]) {
            r->outcome = FACTS_BISECT_EQUAL;
            r->whole = ends.low == 0 && ends.high + 1 == s->order->versions;
            return;
        }
        r->outcome = FACTS_BISECT_WAITING;
        if (!narrow(s, ends, &r->edge[0]) || !confirm_edge(s, r->edge[0]))
            return;
        if (is_answered(s, r->edge[0].before) && is_answered(s, r->edge[0].after)) {
            r->outcome = FACTS_BISECT_FOUND;
            r->edges = 1;
            r->whole = ends.low == 0 && ends.high + 1 == s->order->versions &&
                       r->edge[0].after == r->edge[0].before + 1;
            return;
        }
    }
}

/* Edges between neighbouring versions that both answered. */
static void list_edges(searcher *s)
{
    facts_bisect_result *r = s->result;
    size_t before = s->order->versions;
    r->edges = 0;
    for (size_t v = 0; v < s->order->versions; v++) {
        if (!is_answered(s, v))
            continue;
        if (before < v && r->value[before] != r->value[v])
            r->edge[r->edges++] = (facts_bisect_edge){ before, v };
        before = v;
    }
}

static bool confirm_edges(searcher *s)
{
    bool done = true;
    for (size_t i = 0; i < s->result->edges; i++)
        done &= confirm_edge(s, s->result->edge[i]);
    return done;
}

static bool edges_stand(const searcher *s)
{
    for (size_t i = 0; i < s->result->edges; i++)
        if (!is_answered(s, s->result->edge[i].before) || !is_answered(s, s->result->edge[i].after))
            return false;
    return true;
}

static void search_all(searcher *s)
{
    facts_bisect_result *r = s->result;
    bool answered = true;
    span ends;
    for (size_t v = 0; v < s->order->versions; v++)
        answered &= settle(s, v);
    if (!answered)
        return;
    do {
        list_edges(s);
        if (!confirm_edges(s))
            return;
    } while (!edges_stand(s));
    if (!find_ends(s, &ends))
        return;
    r->outcome = r->edges ? FACTS_BISECT_FOUND : FACTS_BISECT_EQUAL;
    r->whole = true;
    for (size_t v = 0; v < s->order->versions; v++)
        r->whole &= is_answered(s, v);
}

void facts_bisect(facts_bisect_result *out, const facts_bisect_order *order)
{
    searcher s = { .order = order,
                   .result = out,
                   .lookahead = order->all             ? INT_MAX
                                : order->lookahead > 0 ? order->lookahead
                                                       : 1 };
    *out = (facts_bisect_result){ .outcome = FACTS_BISECT_WAITING };
    if (order->all)
        search_all(&s);
    else
        search(&s);
}
