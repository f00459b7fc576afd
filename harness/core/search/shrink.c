#include "shrink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "language/simpler.h"

#define MOST_TRIED (4 * 8192) /* places; several times as many as steps */
#define MOST_OF_A_RESIDUE 10

typedef struct shrinker {
    const facts_shrink_order *order;
    facts_shrink_result *result;
    const facts_language *language;
    const facts_simpler *simpler;
    uint64_t *tried; /* hashes of names; 0: free */
    bool computable; /* the CPU can compute the first case, so every candidate must be computable
                        too */
    int open;        /* questions without an answer */
    int round;       /* of the sweeps over all steps; from the second on most answers are known */
    bool over;       /* no more questions now */
} shrinker;

/* ---- asking ---- */

/* The case is written again, because a default is not always a value that can be set (v=layout). */
static bool without(facts_case *out, const facts_case *c, const bool left_out[FACTS_KEYS_MOST])
{
    char text[FACTS_NAME_MAX];
    size_t used = 0;
    facts_error ignored;
    text[0] = '\0';
    for (facts_key key = 0; key < c->language->count; key++) {
        if (left_out[key] || c->at[key] == 0)
            continue;
        int n = snprintf(text + used, sizeof text - used, "%s=%s ", c->language->keys[key].word,
                         facts_case_get(c, key));
        if (n < 0 || (size_t)n >= sizeof text - used)
            return false;
        used += (size_t)n;
    }
    return facts_case_read(c->language, out, text, &ignored);
}

/* The same case with one key at its default. */
static bool without_key(facts_case *out, const facts_case *c, facts_key key)
{
    bool left_out[FACTS_KEYS_MOST] = { false };
    left_out[key] = true;
    return without(out, c, left_out);
}

static uint64_t hash_of(const facts_case *c)
{
    char name[FACTS_NAME_MAX];
    facts_case_name(c, name);
    uint64_t hash = XXH3_64bits(name, strlen(name));
    return hash ? hash : 1;
}

static uint64_t *slot_of(const shrinker *s, uint64_t hash)
{
    size_t i = (size_t)hash & (MOST_TRIED - 1);
    while (s->tried[i] != 0 && s->tried[i] != hash)
        i = (i + 1) & (MOST_TRIED - 1);
    return &s->tried[i];
}

static bool resolves(const facts_case *c)
{
    double work;
    return c->language->resolves(c, &work);
}

/* Asks the candidate, unless it was asked before. True: it fails in the same way and is now `best`.
 */
static bool try_case(shrinker *s, const facts_case *candidate, const char *what)
{
    facts_answer answer;
    uint64_t hash = hash_of(candidate);
    uint64_t *slot = slot_of(s, hash);
    if (s->over || *slot != 0 || (s->computable && !resolves(candidate)))
        return false;
    int most = s->order->most_steps > 0 && s->order->most_steps < FACTS_SHRINK_MOST_STEPS
                   ? s->order->most_steps
                   : FACTS_SHRINK_MOST_STEPS;
    if (s->result->steps >= most) {
        s->over = true;
        s->result->out_of_steps = s->open == 0;
        return false;
    }
    bool known = s->order->ask(s->order->context, candidate, &answer);
    *slot = hash;
    if (!known) {
        s->open++;
        s->over = s->open >= (s->order->lookahead > 0 ? s->order->lookahead : 1);
    }
    if (s->open > 0)
        return false; /* an earlier answer may make this question unnecessary */
    bool same = facts_answer_find(&answer, &s->order->symptom) != NULL;
    s->result->steps++;
    if (same) {
        s->result->best = *candidate;
        s->result->kept++;
    }
    if (s->order->step)
        s->order->step(s->order->context, &(facts_shrink_step){ s->result->steps, what, candidate,
                                                                answer.verdict, same });
    return same;
}

/* The same with one key set. False also if that key cannot have the value. */
static bool try_key(shrinker *s, facts_key key, const char *value, const char *what)
{
    facts_case candidate = s->result->best;
    facts_error ignored;
    return facts_case_set(&candidate, key, value, &ignored) && try_case(s, &candidate, what);
}

/* ---- features: keys back to their defaults, all at once, then one by one ---- */

static bool drop(facts_case *out, const facts_case *c, facts_key key, bool with_followers)
{
    bool left_out[FACTS_KEYS_MOST] = { false };
    left_out[key] = true;
    for (size_t i = 0; with_followers && i < c->language->simpler->follower_count; i++)
        if (c->language->simpler->followers[i][0] == key)
            left_out[c->language->simpler->followers[i][1]] = true;
    return without(out, c, left_out);
}

static bool drop_all(shrinker *s)
{
    facts_case candidate;
    bool left_out[FACTS_KEYS_MOST] = { false };
    for (facts_key key = 0; key < s->language->count; key++)
        left_out[key] = facts_is_feature(s->language, key);
    return without(&candidate, &s->result->best, left_out) &&
           try_case(s, &candidate, "every key default");
}

static bool reduce_features(shrinker *s)
{
    bool any = false;
    char what[64];
    if (facts_case_features(&s->result->best) > 1)
        any = drop_all(s);
    for (facts_key key = 0; key < s->language->count && !s->over; key++) {
        facts_case candidate;
        if (!facts_is_feature(s->language, key) || s->result->best.at[key] == 0)
            continue;
        snprintf(what, sizeof what, "%s default", s->language->keys[key].word);
        bool kept = false;
        for (int others = 0; others < 2 && !kept; others++) {
            kept = drop(&candidate, &s->result->best, key, others > 0) &&
                   facts_case_features(&candidate) < facts_case_features(&s->result->best) &&
                   try_case(s, &candidate, what);
            any |= kept;
        }
    }
    return any;
}

/* ---- numbers: 1, powers of two, the same residue modulo powers of two, then halving the rest of
 * the way. `make` builds the candidate. ---- */

typedef bool (*make_candidate)(void *context, const facts_case *best, uint64_t number,
                               facts_case *out);

static bool try_number(shrinker *s, const char *name, uint64_t number, make_candidate make,
                       void *context)
{
    facts_case candidate = { 0 };
    char what[96];
    snprintf(what, sizeof what, "%s %" PRIu64, name, number);
    return make(context, &s->result->best, number, &candidate) && try_case(s, &candidate, what);
}

/* Between a size that passes and one that fails. Failures need not be monotonous: then the result
 * is a local minimum. */
static void bisect(shrinker *s, const char *name, uint64_t low, uint64_t high, make_candidate make,
                   void *context)
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
static uint64_t try_residues(shrinker *s, const char *name, uint64_t least, uint64_t now,
                             make_candidate make, void *context)
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
static void look_again(shrinker *s, const char *name, uint64_t least, uint64_t now,
                       make_candidate make, void *context)
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

static void look(shrinker *s, const char *name, uint64_t least, uint64_t now, make_candidate make,
                 void *context)
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

static bool reduce_number(shrinker *s, const char *name, uint64_t least, uint64_t now,
                          make_candidate make, void *context)
{
    int before = s->result->kept;
    if (now > least)
        (s->round > 0 ? look_again : look)(s, name, least, now, make, context);
    return s->result->kept > before;
}

/* ---- values: a simpler word, fewer parts, smaller numbers ---- */

/* The place of a value among the simpler ones; a value that is none of them is last. */
static size_t rank_of(const facts_simpler *simpler, facts_key key, const char *value)
{
    size_t i = 0;
    while (i < simpler->value_count &&
           (simpler->values[i].key != key || strcmp(simpler->values[i].value, value) != 0))
        i++;
    return i;
}

static bool reduce_words(shrinker *s)
{
    bool any = false;
    char what[64];
    for (size_t i = 0; i < s->simpler->value_count && !s->over; i++) {
        const facts_key key = s->simpler->values[i].key;
        const char *value = s->simpler->values[i].value;
        const facts_case *best = &s->result->best;
        if (best->at[key] == 0 || rank_of(s->simpler, key, facts_case_get(best, key)) <= i)
            continue;
        snprintf(what, sizeof what, "%s %s", s->language->keys[key].word, value);
        any |= try_key(s, key, value, what);
    }
    return any;
}

/* Removes each part between separators in turn. */
static bool reduce_parts(shrinker *s, facts_key key, char joint)
{
    bool any = false;
    char what[64];
    snprintf(what, sizeof what, "%s less", s->language->keys[key].word);
    for (size_t start = 0; !s->over;) {
        char text[FACTS_CASE_TEXT], rest[FACTS_CASE_TEXT];
        snprintf(text, sizeof text, "%s", facts_case_get(&s->result->best, key));
        if (start >= strlen(text) || (start == 0 && strchr(text, joint) == NULL))
            break;
        size_t end = start + strcspn(text + start, (char[]){ joint, '\0' });
        bool last = text[end] == '\0';
        if (last) /* the separator before it is removed too */
            snprintf(rest, sizeof rest, "%.*s", start > 0 ? (int)start - 1 : 0, text);
        else
            snprintf(rest, sizeof rest, "%.*s%s", (int)start, text, text + end + 1);
        if (rest[0] && try_key(s, key, rest, what))
            any = true; /* the next part is now at this place */
        else
            start = end + 1;
    }
    return any;
}

/* Numbers inside a value: digits that are no part of a word (th1, b11s), but the x of NxR is none.
 */
typedef struct number_in {
    facts_key key;
    size_t at, length;
} number_in;

static bool find_number(const char *text, size_t from, number_in *out)
{
    for (size_t i = from; text[i]; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        bool before =
            i > 0 && ((text[i - 1] >= '0' && text[i - 1] <= '9') ||
                      (text[i - 1] >= 'a' && text[i - 1] <= 'z' &&
                       !(text[i - 1] == 'x' && i > 1 && text[i - 2] >= '0' && text[i - 2] <= '9')));
        if (!digit || before)
            continue;
        out->at = i;
        out->length = strspn(text + i, "0123456789");
        return true;
    }
    return false;
}

static bool make_value(void *context, const facts_case *best, uint64_t number, facts_case *out)
{
    const number_in *n = context;
    const char *text = facts_case_get(best, n->key);
    char value[FACTS_CASE_TEXT];
    facts_error ignored;
    if (n->at + 1 > strlen(text))
        return false;
    size_t length = strspn(text + n->at, "0123456789");
    int used = snprintf(value, sizeof value, "%.*s%" PRIu64 "%s", (int)n->at, text, number,
                        text + n->at + length);
    *out = *best;
    return used > 0 && (size_t)used < sizeof value && facts_case_set(out, n->key, value, &ignored);
}

static bool reduce_numbers(shrinker *s, facts_key key, uint64_t first)
{
    bool any = false;
    number_in n = { .key = key };
    for (size_t from = 0; !s->over; from = n.at + 1) {
        const char *text = facts_case_get(&s->result->best, key);
        if (s->result->best.at[key] == 0 || from >= strlen(text) || !find_number(text, from, &n))
            break;
        const uint64_t least = n.at == 0 ? first : 0;
        any |= reduce_number(s, s->language->keys[key].word, least, strtoull(text + n.at, NULL, 10),
                             make_value, &n);
    }
    return any;
}

static bool reduce_values(shrinker *s)
{
    bool any = reduce_words(s);
    for (size_t i = 0; i < s->simpler->joined_count; i++)
        any |= reduce_parts(s, s->simpler->joined[i].key, s->simpler->joined[i].joint);
    for (size_t i = 0; i < s->simpler->numbered_count; i++)
        any |= reduce_numbers(s, s->simpler->numbered[i].key, s->simpler->numbered[i].least);
    return any;
}

/* Candidates that no table says. After one that fails in the same way the numbers count for the new case, which may have one fewer. */
static bool reduce_further(shrinker *s)
{
    bool any = false, more = s->simpler->candidate != NULL;
    for (size_t n = 0; more && !s->over;) {
        facts_case candidate;
        char what[FACTS_SIMPLER_TEXT];
        const bool kept = s->simpler->candidate(&s->result->best, n, &candidate, what, &more) &&
                          try_case(s, &candidate, what);
        n = !kept ? n + 1 : n > 0 ? n - 1 : 0;
        any |= kept;
    }
    return any;
}

/* ---- sizes ---- */

/* One number of a size: all its parts at once (part -1), or one of them. */
typedef struct size_part {
    const facts_size *size;
    int part, parts; /* the last of `parts` stands for those behind it too */
} size_part;

/* The numbers of a value, and how many are written; the others repeat the last. */
static int read_size(const facts_case *c, const facts_size *size, uint64_t out[FACTS_SIZE_PARTS])
{
    const char *at = facts_case_get(c, size->key);
    uint64_t number = 0;
    int written = 0;
    for (int i = 0; i < FACTS_SIZE_PARTS; i++) {
        out[i] = number = at ? strtoull(at, NULL, 10) : number;
        written += at != NULL;
        at = at && strchr(at, '/') ? strchr(at, '/') + 1 : NULL;
    }
    return written;
}

static bool make_size(void *context, const facts_case *best, uint64_t number, facts_case *out)
{
    const size_part *p = context;
    const facts_simpler *simpler = best->language->simpler;
    uint64_t part[FACTS_SIZE_PARTS];
    char text[80];
    facts_error ignored;
    int used = 0;
    *out = *best;
    read_size(best, p->size, part);
    for (int i = 0; i < FACTS_SIZE_PARTS; i++)
        if (p->part < 0 || i == p->part ||
            (i > p->part && i >= p->parts - 1 && p->part == p->parts - 1))
            part[i] = number;
    for (int i = 0; i < p->size->parts && i < FACTS_SIZE_PARTS; i++)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s%" PRIu64, i ? "/" : "", part[i]);
    return facts_case_set(out, p->size->key, text, &ignored) &&
           (!simpler->settle || simpler->settle(out, p->size->key));
}

/* The name of a part: s.kv. */
static const char *part_name(const facts_language *language, facts_key key, int part)
{
    for (size_t i = 0; i < language->part_count; i++) {
        if (language->parts[i].key == key && language->parts[i].index == part)
            return language->parts[i].word;
    }
    return language->keys[key].word;
}

static bool reduce_size(shrinker *s, const facts_size *size)
{
    uint64_t part[FACTS_SIZE_PARTS];
    bool any = false;
    int written = read_size(&s->result->best, size, part);
    uint64_t most = 0;
    for (int i = 0; i < size->parts; i++)
        most = part[i] > most ? part[i] : most;
    if (written == 1 || s->round == 0) /* one number for all is simpler than several */
        any |= reduce_number(s, s->language->keys[size->key].word, 1, most, make_size,
                             &(size_part){ size, -1, size->parts });
    written = read_size(&s->result->best, size, part);
    const bool apart = size->parts > 1 && (written > 1 || size->apart);
    for (int i = 0; apart && i < size->parts && !s->over; i++) {
        read_size(&s->result->best, size, part);
        if (written == 2 && i == 2)
            break;
        any |= reduce_number(
            s, part_name(s->language, size->key, i), 1, part[i], make_size,
            &(size_part){ size, i, written == 2 && size->parts == 3 ? 2 : size->parts });
    }
    return any;
}

static bool reduce_sizes(shrinker *s)
{
    bool any = false;
    for (size_t i = 0; i < s->simpler->size_count; i++) {
        const facts_size *size = &s->simpler->sizes[i];
        if (!s->simpler->keeps || !s->simpler->keeps(&s->result->best, size->key))
            any |= reduce_size(s, size);
    }
    return any;
}

/* ---- all steps ---- */

/* With engine=all or the heuristics' choice: sets the failing engine, so that no smaller case
 * changes to another engine. If the backend's engines have no numbers, removes the engine key
 * first. */
static void pin_engine(shrinker *s)
{
    char number[32], what[48];
    facts_case chosen;
    const char *engine = facts_case_get(&s->result->best, s->simpler->engine);
    if (s->order->symptom.engine < 0) {
        if (s->result->best.at[s->simpler->engine] != 0 &&
            without_key(&chosen, &s->result->best, s->simpler->engine))
            try_case(s, &chosen, "engine auto");
        return;
    }
    if (strcmp(engine, "auto") != 0 && strcmp(engine, "all") != 0)
        return;
    snprintf(number, sizeof number, "%lld", (long long)s->order->symptom.engine);
    snprintf(what, sizeof what, "engine %s", number);
    try_key(s, s->simpler->engine, number, what);
}

void facts_shrink(facts_shrink_result *out, const facts_shrink_order *order)
{
    shrinker s = { .order = order,
                   .result = out,
                   .language = order->start.language,
                   .simpler = order->start.language->simpler };
    *out = (facts_shrink_result){ .best = order->start };
    s.tried = calloc(MOST_TRIED, sizeof *s.tried);
    s.computable = resolves(&order->start);
    uint64_t hash = hash_of(&order->start);
    *slot_of(&s, hash) = hash;
    pin_engine(&s);
    bool again = true;
    while (again && !s.over) {
        again = reduce_features(&s);
        if (!order->features_alone) {
            again |= reduce_values(&s);
            again |= reduce_further(&s);
            again |= reduce_sizes(&s);
        }
        s.round++;
    }
    facts_case chosen;
    if (without_key(&chosen, &out->best, s.simpler->engine))
        try_case(&s, &chosen, "engine auto");
    out->waiting = s.open > 0;
    free(s.tried);
}
