#include "shrink.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "case/keys/keys.h"
#include "case/problem/case_problem.h"

#define MOST_TRIED (4 * 8192) /* places; several times as many as steps */
#define MOST_OF_A_RESIDUE 10
#define MOST_ENTRIES 64

typedef struct shrinker {
    const facts_shrink_order *order;
    facts_shrink_result *result;
    facts_problem *problem; /* scratch */
    uint64_t *tried;        /* hashes of names; 0: free */
    bool computable; /* the CPU can compute the first case, so every candidate must be computable
                        too */
    int open;        /* questions without an answer */
    int round;       /* of the sweeps over all steps; from the second on most answers are known */
    bool over;       /* no more questions now */
} shrinker;

/* ---- asking ---- */

static bool is_size(facts_key key)
{
    return key == FACTS_KEY_B || key == FACTS_KEY_H || key == FACTS_KEY_S || key == FACTS_KEY_D;
}

bool facts_is_feature(facts_key key)
{
    return !is_size(key) && key != FACTS_KEY_ENGINE;
}

size_t facts_case_features(const facts_case *c)
{
    size_t n = 0;
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        n += facts_is_feature(key) && c->at[key] != 0;
    return n;
}

/* The case is written again, because a default is not always a value that can be set (v=layout). */
static bool without(facts_case *out, const facts_case *c, const bool left_out[FACTS_KEY_COUNT])
{
    char text[FACTS_NAME_MAX];
    size_t used = 0;
    facts_error ignored;
    text[0] = '\0';
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        if (left_out[key] || c->at[key] == 0)
            continue;
        int n = snprintf(text + used, sizeof text - used, "%s=%s ", facts_keys[key].word,
                         facts_case_get(c, key));
        if (n < 0 || (size_t)n >= sizeof text - used)
            return false;
        used += (size_t)n;
    }
    return facts_case_parse(out, text, &ignored);
}

/* The same case with one key at its default. */
static bool without_key(facts_case *out, const facts_case *c, facts_key key)
{
    bool left_out[FACTS_KEY_COUNT] = { false };
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

static bool resolves(shrinker *s, const facts_case *c)
{
    facts_error ignored;
    return facts_problem_resolve(s->problem, c, &ignored) == FACTS_RESOLVED;
}

/* Asks the candidate, unless it was asked before. True: it fails in the same way and is now `best`.
 */
static bool try_case(shrinker *s, const facts_case *candidate, const char *what)
{
    facts_answer answer;
    uint64_t hash = hash_of(candidate);
    uint64_t *slot = slot_of(s, hash);
    if (s->over || *slot != 0 || (s->computable && !resolves(s, candidate)))
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

/* Keys that depend on another key are reset with it. */
static const facts_key followers[][2] = {
    { FACTS_KEY_BIAS, FACTS_KEY_DBIAS },        { FACTS_KEY_BIAS, FACTS_KEY_BIAS_FILL },
    { FACTS_KEY_BIAS, FACTS_KEY_BIAS_DTYPE },   { FACTS_KEY_SOFTMAX, FACTS_KEY_DSINK },
    { FACTS_KEY_PASS, FACTS_KEY_DBIAS },        { FACTS_KEY_PASS, FACTS_KEY_DSINK },
    { FACTS_KEY_LENS, FACTS_KEY_LENS_SHAPE },   { FACTS_KEY_PADDING, FACTS_KEY_LENS_SHAPE },
    { FACTS_KEY_DROPOUT, FACTS_KEY_RNG },       { FACTS_KEY_DROPOUT, FACTS_KEY_DROPOUT_MASK },
    { FACTS_KEY_DROPOUT, FACTS_KEY_RNG_DTYPE }, { FACTS_KEY_PAGED, FACTS_KEY_TABLE },
    { FACTS_KEY_WINDOW, FACTS_KEY_ALIGN }
};

static bool drop(facts_case *out, const facts_case *c, facts_key key, bool with_followers)
{
    bool left_out[FACTS_KEY_COUNT] = { false };
    left_out[key] = true;
    for (size_t i = 0; with_followers && i < sizeof followers / sizeof *followers; i++)
        if (followers[i][0] == key)
            left_out[followers[i][1]] = true;
    return without(out, c, left_out);
}

static bool drop_all(shrinker *s)
{
    facts_case candidate;
    bool left_out[FACTS_KEY_COUNT];
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++)
        left_out[key] = facts_is_feature(key);
    return without(&candidate, &s->result->best, left_out) &&
           try_case(s, &candidate, "every key default");
}

static bool reduce_features(shrinker *s)
{
    bool any = false;
    char what[64];
    if (facts_case_features(&s->result->best) > 1)
        any = drop_all(s);
    for (facts_key key = 0; key < FACTS_KEY_COUNT && !s->over; key++) {
        facts_case candidate;
        if (!facts_is_feature(key) || s->result->best.at[key] == 0)
            continue;
        snprintf(what, sizeof what, "%s default", facts_keys[key].word);
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

/* Simpler values of a key, if its default does not fail. The first value that fails in the same way
 * is kept. */
static const struct {
    facts_key key;
    const char *value;
} simpler[] = { { FACTS_KEY_DTYPE, "f16" },       { FACTS_KEY_MASK, "causal" },
                { FACTS_KEY_PADDING, "full" },    { FACTS_KEY_PADDING, "random" },
                { FACTS_KEY_BIAS, "11ss" },       { FACTS_KEY_BIAS, "1hss" },
                { FACTS_KEY_BIAS, "bhss" },       { FACTS_KEY_BIAS_FILL, "zero" },
                { FACTS_KEY_FILL, "uniform" },    { FACTS_KEY_POISON, "nan" },
                { FACTS_KEY_DETERMINISTIC, "1" }, { FACTS_KEY_EXEC, "graph" },
                { FACTS_KEY_LAYOUT, "bhsd" },     { FACTS_KEY_LAYOUT, "sbhd" },
                { FACTS_KEY_POLICY, "math" },     { FACTS_KEY_POLICY, "any" } };

static int rank_of(facts_key key, const char *value)
{
    for (size_t i = 0; i < sizeof simpler / sizeof *simpler; i++)
        if (simpler[i].key == key && strcmp(simpler[i].value, value) == 0)
            return (int)i;
    return (int)(sizeof simpler / sizeof *simpler);
}

static bool reduce_words(shrinker *s)
{
    bool any = false;
    char what[64];
    for (size_t i = 0; i < sizeof simpler / sizeof *simpler && !s->over; i++) {
        facts_key key = simpler[i].key;
        const facts_case *best = &s->result->best;
        if (best->at[key] == 0 || rank_of(key, facts_case_get(best, key)) <= (int)i)
            continue;
        snprintf(what, sizeof what, "%s %s", facts_keys[key].word, simpler[i].value);
        any |= try_key(s, key, simpler[i].value, what);
    }
    return any;
}

/* Removes each part between separators in turn. */
static bool reduce_parts(shrinker *s, facts_key key, char joint)
{
    bool any = false;
    char what[64];
    snprintf(what, sizeof what, "%s less", facts_keys[key].word);
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

static const facts_key with_numbers[] = { FACTS_KEY_WINDOW, FACTS_KEY_STRIDE,    FACTS_KEY_LENS,
                                          FACTS_KEY_MOD,    FACTS_KEY_BIAS_FILL, FACTS_KEY_REPEAT,
                                          FACTS_KEY_PAGED,  FACTS_KEY_TAIL,      FACTS_KEY_SLOTS,
                                          FACTS_KEY_TOTAL,  FACTS_KEY_RNG,       FACTS_KEY_SEED };

static bool reduce_numbers(shrinker *s, facts_key key)
{
    bool any = false;
    number_in n = { .key = key };
    for (size_t from = 0; !s->over; from = n.at + 1) {
        const char *text = facts_case_get(&s->result->best, key);
        if (s->result->best.at[key] == 0 || from >= strlen(text) || !find_number(text, from, &n))
            break;
        uint64_t least = key == FACTS_KEY_WINDOW && n.at == 0; /* L counts the diagonal */
        any |= reduce_number(s, facts_keys[key].word, least, strtoull(text + n.at, NULL, 10),
                             make_value, &n);
    }
    return any;
}

/* A band with one bound is simpler than one with two. */
static bool open_window(shrinker *s)
{
    char value[64];
    const char *window = facts_case_get(&s->result->best, FACTS_KEY_WINDOW),
               *right = strchr(window, ':');
    if (!right || strncmp(window, "inf:", 4) == 0 || strcmp(right, ":inf") == 0)
        return false;
    snprintf(value, sizeof value, "%.*s:inf", (int)(right - window < 40 ? right - window : 40),
             window);
    if (try_key(s, FACTS_KEY_WINDOW, value, "window.right inf"))
        return true;
    snprintf(value, sizeof value, "inf%.40s", right);
    return try_key(s, FACTS_KEY_WINDOW, value, "window.left inf");
}

static bool reduce_values(shrinker *s)
{
    bool any = reduce_words(s);
    any |= open_window(s);
    any |= reduce_parts(s, FACTS_KEY_WANT, '+');
    any |= reduce_parts(s, FACTS_KEY_STRIDE, ';');
    any |= reduce_parts(s, FACTS_KEY_STRIDE, '+');
    for (size_t i = 0; i < sizeof with_numbers / sizeof *with_numbers; i++)
        any |= reduce_numbers(s, with_numbers[i]);
    return any;
}

/* ---- batch entries with lengths of their own ---- */

static bool add_list(char *text, size_t capacity, size_t *used, const int32_t *lens,
                     const bool *unused, const bool *in, size_t count)
{
    bool first = true;
    for (size_t i = 0; i < count; i++) {
        if (!in[i])
            continue;
        int n = snprintf(text + *used, capacity - *used, "%s%d", first ? "" : "+",
                         unused[i] ? -1 : (int)lens[i]);
        if (n < 0 || (size_t)n >= capacity - *used)
            return false;
        *used += (size_t)n;
        first = false;
    }
    return true;
}

/* Keeps only the entries in `in`, and writes their lengths. */
static bool only(shrinker *s, const facts_problem *problem, const bool *in, size_t count,
                 const char *what)
{
    facts_case candidate = s->result->best;
    facts_error ignored;
    char lens[FACTS_CASE_TEXT], batch[24];
    size_t used = 0, kept = 0;
    for (size_t i = 0; i < count; i++)
        kept += in[i];
    snprintf(batch, sizeof batch, "%zu", kept);
    if (!add_list(lens, sizeof lens, &used, problem->len_q, problem->unused, in, count) ||
        used + 2 >= sizeof lens)
        return false;
    lens[used++] = '/';
    return add_list(lens, sizeof lens, &used, problem->len_kv, problem->unused, in, count) &&
           facts_case_set(&candidate, FACTS_KEY_PADDING, "none", &ignored) &&
           facts_case_set(&candidate, FACTS_KEY_LENS, lens, &ignored) &&
           facts_case_set(&candidate, FACTS_KEY_B, batch, &ignored) &&
           try_case(s, &candidate, what);
}

static bool reduce_entries(shrinker *s)
{
    bool in[MOST_ENTRIES] = { false }, any = false;
    char what[48];
    facts_error ignored;
    facts_problem *problem = malloc(sizeof *problem);
    if (problem == NULL ||
        facts_problem_resolve(problem, &s->result->best, &ignored) != FACTS_RESOLVED ||
        !problem->has_lengths || problem->ask.batch < 2 || problem->ask.batch > MOST_ENTRIES) {
        free(problem);
        return false;
    }
    size_t count = (size_t)problem->ask.batch;
    for (size_t i = 0; i < count && !any && !s->over; i++) { /* each alone */
        in[i] = true;
        snprintf(what, sizeof what, "entry %zu alone", i);
        any = only(s, problem, in, count, what);
        in[i] = false;
    }
    memset(in, true, sizeof in);
    for (size_t i = 0, left = count; i < count && left > 2 && !any && !s->over;
         i++) { /* without each */
        in[i] = false;
        snprintf(what, sizeof what, "without entry %zu", i);
        if (only(s, problem, in, count, what))
            left--;
        else
            in[i] = true;
    }
    facts_error again;
    bool fewer = strcmp(facts_case_get(&s->result->best, FACTS_KEY_LENS), "none") != 0 &&
                 facts_problem_resolve(problem, &s->result->best, &again) == FACTS_RESOLVED &&
                 (size_t)problem->ask.batch < count;
    free(problem);
    return any || fewer;
}

/* ---- sizes ---- */

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

static bool reduce_key(shrinker *s, facts_key key, const char *const *names)
{
    uint64_t part[3];
    bool any = false;
    int parts = key == FACTS_KEY_H ? 3 : 2;
    int numbers = read_size(&s->result->best, key, part);
    uint64_t most = 0;
    for (int i = 0; i < parts; i++)
        most = part[i] > most ? part[i] : most;
    if (numbers == 1 || s->round == 0) /* one number for all is simpler than several */
        any |= reduce_number(s, names[0], 1, most, make_size, &(size_part){ key, -1, parts });
    numbers = read_size(&s->result->best, key, part);
    bool apart = numbers > 1 || key == FACTS_KEY_S; /* equal heads, or head dims, stay equal */
    for (int i = 0; apart && i < parts && !s->over; i++) {
        read_size(&s->result->best, key, part);
        if (numbers == 2 && i == 2)
            break;
        any |= reduce_number(s, names[1 + i], 1, part[i], make_size,
                             &(size_part){ key, i, numbers == 2 && parts == 3 ? 2 : parts });
    }
    return any;
}

static bool has_lengths(const facts_case *c)
{
    return strcmp(facts_case_get(c, FACTS_KEY_LENS), "none") != 0;
}

static bool reduce_sizes(shrinker *s)
{
    bool any = false;
    uint64_t batch = strtoull(facts_case_get(&s->result->best, FACTS_KEY_B), NULL, 10);
    if (!has_lengths(&s->result->best)) /* otherwise entries go one by one, with their lengths */
        any |= reduce_number(s, "b", 1, batch, make_size, &(size_part){ FACTS_KEY_B, -1, 1 });
    any |= reduce_key(s, FACTS_KEY_H, part_names[0]);
    any |= reduce_key(s, FACTS_KEY_S, part_names[1]);
    any |= reduce_key(s, FACTS_KEY_D, part_names[2]);
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
    const char *engine = facts_case_get(&s->result->best, FACTS_KEY_ENGINE);
    if (s->order->symptom.engine < 0) {
        if (s->result->best.at[FACTS_KEY_ENGINE] != 0 &&
            without_key(&chosen, &s->result->best, FACTS_KEY_ENGINE))
            try_case(s, &chosen, "engine auto");
        return;
    }
    if (strcmp(engine, "auto") != 0 && strcmp(engine, "all") != 0)
        return;
    snprintf(number, sizeof number, "%lld", (long long)s->order->symptom.engine);
    snprintf(what, sizeof what, "engine %s", number);
    try_key(s, FACTS_KEY_ENGINE, number, what);
}

bool facts_shrink(facts_shrink_result *out, const facts_shrink_order *order)
{
    shrinker s = { .order = order, .result = out };
    *out = (facts_shrink_result){ .best = order->start };
    s.tried = calloc(MOST_TRIED, sizeof *s.tried);
    s.problem = malloc(sizeof *s.problem);
    bool ok = s.tried != NULL && s.problem != NULL;
    if (ok) {
        s.computable = resolves(&s, &order->start);
        uint64_t hash = hash_of(&order->start);
        *slot_of(&s, hash) = hash;
        pin_engine(&s);
        bool again = true;
        while (again && !s.over) {
            again = reduce_features(&s);
            if (!order->features_alone) {
                again |= reduce_values(&s);
                again |= reduce_entries(&s);
                again |= reduce_sizes(&s);
            }
            s.round++;
        }
        facts_case chosen;
        if (without_key(&chosen, &out->best, FACTS_KEY_ENGINE))
            try_case(&s, &chosen, "engine auto");
        out->waiting = s.open > 0;
    }
    free(s.tried);
    free(s.problem);
    return ok;
}
