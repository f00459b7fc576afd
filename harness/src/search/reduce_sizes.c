/* Smaller and rounder numbers: 1, powers of two, the same residue modulo powers of two, then
 * halving the rest of the way. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduction.h"

#define MOST_OF_A_RESIDUE 10

static bool try_number(facts_shrinker *s, const char *name, uint64_t number,
                       facts_make_candidate make, void *context)
{
    facts_case candidate = { 0 };
    char what[96];
    snprintf(what, sizeof what, "%s %" PRIu64, name, number);
    return make(context, &s->result->best, number, &candidate) &&
           facts_shrink_try(s, &candidate, what);
}

/* Between a size that passes and one that fails. Failures need not be monotonous: then the result
 * is a local minimum. */
static void bisect(facts_shrinker *s, const char *name, uint64_t low, uint64_t high,
                   facts_make_candidate make, void *context)
{
    while (high - low > 1 && !s->over) {
        uint64_t middle = low + (high - low) / 2;
        if (try_number(s, name, middle, make, context))
            high = middle;
        else
            low = middle;
    }
}

/* Returns 0 if none fails. */
static uint64_t try_residues(facts_shrinker *s, const char *name, uint64_t least, uint64_t now,
                             facts_make_candidate make, void *context)
{
    static const uint64_t moduli[] = { 128, 64, 16, 8 };
    for (size_t i = 0; i < sizeof moduli / sizeof *moduli; i++)
        for (uint64_t k = 0, n = now % moduli[i]; k < MOST_OF_A_RESIDUE && n < now && !s->over;
             k++, n += moduli[i])
            if (n > least && try_number(s, name, n, make, context))
                return n;
    return 0;
}

/* Is a number that was minimal still minimal, now that others are smaller? */
static void look_again(facts_shrinker *s, const char *name, uint64_t least, uint64_t now,
                       facts_make_candidate make, void *context)
{
    uint64_t power = 1;
    while (power * 2 < now)
        power *= 2;
    power = power > least && power < now ? power : least;
    if (try_number(s, name, least, make, context) ||
        (power > least && try_number(s, name, power, make, context)))
        return;
    if (now - 1 > power && try_number(s, name, now - 1, make, context))
        bisect(s, name, power, now - 1, make, context);
}

static void look(facts_shrinker *s, const char *name, uint64_t least, uint64_t now,
                 facts_make_candidate make, void *context)
{
    uint64_t low = least, high = now;
    if (try_number(s, name, least, make, context))
        return;
    for (uint64_t power = 1; power < high && !s->over; power *= 2) {
        if (power <= least)
            continue;
        if (try_number(s, name, power, make, context))
            high = power;
        else
            low = power;
    }
    uint64_t found = high == now ? try_residues(s, name, least, now, make, context) : 0;
    if (found) {
        high = found;
        low = found < low ? least : low;
    }
    bisect(s, name, low, high, make, context);
}

bool facts_reduce_number(facts_shrinker *s, const char *name, uint64_t least, uint64_t now,
                         facts_make_candidate make, void *context)
{
    int before = s->result->kept;
    if (now > least)
        (s->round > 0 ? look_again : look)(s, name, least, now, make, context);
    return s->result->kept > before;
}

/* One number of a size: all its parts at once (part -1), or one of them. */
typedef struct size_part {
    facts_key key;
    int part, parts;
} size_part;

static int split(const char *text, uint64_t out[3])
{
    int n = 0;
    out[0] = 0;
    for (const char *at = text; at != NULL && n < 3;
         at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        out[n++] = strtoull(at, NULL, 10);
    return n;
}

static int read_size(const facts_case *c, facts_key key, uint64_t out[3])
{
    int n = split(facts_case_get(c, key), out);
    for (int i = n > 1 ? n : 1; i < 3; i++)
        out[i] = out[i - 1];
    return n;
}

/* Lengths are at most the size of their dimension. */
static bool clamp_lengths(facts_case *c)
{
    uint64_t size[3];
    char text[FACTS_CASE_TEXT];
    size_t used = 0;
    facts_error ignored;
    const char *lens = facts_case_get(c, FACTS_KEY_LENS);
    if (strcmp(lens, "none") == 0)
        return true;
    read_size(c, FACTS_KEY_S, size);
    if (strchr(lens, '/') == NULL)
        size[0] = size[1] = size[0] < size[1] ? size[0] : size[1];
    uint64_t most = size[0];
    for (const char *at = lens; *at && used + 24 < sizeof text;) {
        char *end;
        bool digit = *at >= '0' && *at <= '9', count = at > lens && at[-1] == 'x';
        uint64_t number = digit ? strtoull(at, &end, 10) : 0;
        if (digit) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%" PRIu64,
                                     number > most && !count ? most : number);
            at = end;
        } else {
            most = *at == '/' ? size[1] : most;
            text[used++] = *at++;
        }
    }
    text[used] = '\0';
    return facts_case_set(c, FACTS_KEY_LENS, text, &ignored);
}

static bool make_size(void *context, const facts_case *best, uint64_t number, facts_case *out)
{
    const size_part *p = context;
    uint64_t part[3];
    char text[80];
    facts_error ignored;
    *out = *best;
    read_size(best, p->key, part);
    for (int i = 0; i < 3; i++)
        if (p->part < 0 || i == p->part ||
            (i > p->part && i >= p->parts - 1 && p->part == p->parts - 1))
            part[i] = number;
    if (p->key == FACTS_KEY_B)
        snprintf(text, sizeof text, "%" PRIu64, part[0]);
    else if (p->key == FACTS_KEY_H)
        snprintf(text, sizeof text, "%" PRIu64 "/%" PRIu64 "/%" PRIu64, part[0], part[1], part[2]);
    else
        snprintf(text, sizeof text, "%" PRIu64 "/%" PRIu64, part[0], part[1]);
    if (!facts_case_set(out, p->key, text, &ignored))
        return false;
    return p->key != FACTS_KEY_S || clamp_lengths(out);
}

static const char *const part_names[][4] = { { "h", "h.q", "h.k", "h.v" },
                                             { "s", "s.q", "s.kv", "" },
                                             { "d", "d.qk", "d.v", "" } };

static bool reduce_key(facts_shrinker *s, facts_key key, const char *const *names)
{
    uint64_t part[3];
    bool any = false;
    int parts = key == FACTS_KEY_H ? 3 : 2;
    int numbers = read_size(&s->result->best, key, part);
    uint64_t most = 0;
    for (int i = 0; i < parts; i++)
        most = part[i] > most ? part[i] : most;
    if (numbers == 1 || s->round == 0) /* one number for all is simpler than several */
        any |= facts_reduce_number(s, names[0], 1, most, make_size, &(size_part){ key, -1, parts });
    numbers = read_size(&s->result->best, key, part);
    bool apart = numbers > 1 || key == FACTS_KEY_S; /* equal heads, or head dims, stay equal */
    for (int i = 0; apart && i < parts && !s->over; i++) {
        read_size(&s->result->best, key, part);
        if (numbers == 2 && i == 2)
            break;
        any |= facts_reduce_number(s, names[1 + i], 1, part[i], make_size,
                                   &(size_part){ key, i, numbers == 2 && parts == 3 ? 2 : parts });
    }
    return any;
}

static bool has_lengths(const facts_case *c)
{
    return strcmp(facts_case_get(c, FACTS_KEY_LENS), "none") != 0;
}

bool facts_reduce_sizes(facts_shrinker *s)
{
    bool any = false;
    uint64_t batch = strtoull(facts_case_get(&s->result->best, FACTS_KEY_B), NULL, 10);
    if (!has_lengths(&s->result->best)) /* otherwise entries go one by one, with their lengths */
        any |= facts_reduce_number(s, "b", 1, batch, make_size, &(size_part){ FACTS_KEY_B, -1, 1 });
    any |= reduce_key(s, FACTS_KEY_H, part_names[0]);
    any |= reduce_key(s, FACTS_KEY_S, part_names[1]);
    any |= reduce_key(s, FACTS_KEY_D, part_names[2]);
    return any;
}
