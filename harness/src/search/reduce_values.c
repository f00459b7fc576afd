/* Simplifies a value: a simpler word, fewer parts, smaller numbers, fewer batch entries. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reduction.h"

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

static bool reduce_words(facts_shrinker *s)
{
    bool any = false;
    char what[64];
    for (size_t i = 0; i < sizeof simpler / sizeof *simpler && !s->over; i++) {
        facts_key key = simpler[i].key;
        const facts_case *best = &s->result->best;
        if (best->at[key] == 0 || rank_of(key, facts_case_get(best, key)) <= (int)i)
            continue;
        snprintf(what, sizeof what, "%s %s", facts_keys[key].word, simpler[i].value);
        any |= facts_shrink_try_key(s, key, simpler[i].value, what);
    }
    return any;
}

/* Removes each part between separators in turn. */
static bool reduce_parts(facts_shrinker *s, facts_key key, char joint)
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
        if (rest[0] && facts_shrink_try_key(s, key, rest, what))
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

static const facts_key with_numbers[] = { FACTS_KEY_WINDOW,  FACTS_KEY_STRIDE,    FACTS_KEY_LENS,
                                          FACTS_KEY_MOD,     FACTS_KEY_BIAS_FILL, FACTS_KEY_REPEAT,
                                          FACTS_KEY_THREADS, FACTS_KEY_WORKSPACE, FACTS_KEY_PAGED,
                                          FACTS_KEY_TAIL,    FACTS_KEY_SLOTS,     FACTS_KEY_TOTAL,
                                          FACTS_KEY_RNG,     FACTS_KEY_SEED };

static bool reduce_numbers(facts_shrinker *s, facts_key key)
{
    bool any = false;
    number_in n = { .key = key };
    for (size_t from = 0; !s->over; from = n.at + 1) {
        const char *text = facts_case_get(&s->result->best, key);
        if (s->result->best.at[key] == 0 || from >= strlen(text) || !find_number(text, from, &n))
            break;
        uint64_t least = key == FACTS_KEY_WINDOW && n.at == 0; /* L counts the diagonal */
        any |= facts_reduce_number(s, facts_keys[key].word, least, strtoull(text + n.at, NULL, 10),
                                   make_value, &n);
    }
    return any;
}

/* A band with one bound is simpler than one with two. */
static bool open_window(facts_shrinker *s)
{
    char value[64];
    const char *window = facts_case_get(&s->result->best, FACTS_KEY_WINDOW),
               *right = strchr(window, ':');
    if (!right || strncmp(window, "inf:", 4) == 0 || strcmp(right, ":inf") == 0)
        return false;
    snprintf(value, sizeof value, "%.*s:inf", (int)(right - window < 40 ? right - window : 40),
             window);
    if (facts_shrink_try_key(s, FACTS_KEY_WINDOW, value, "window.right inf"))
        return true;
    snprintf(value, sizeof value, "inf%.40s", right);
    return facts_shrink_try_key(s, FACTS_KEY_WINDOW, value, "window.left inf");
}

bool facts_reduce_values(facts_shrinker *s)
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

/* ---- batch entries
 * ---------------------------------------------------------------------------------------------------------
 */

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
static bool only(facts_shrinker *s, const facts_problem *problem, const bool *in, size_t count,
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
           facts_shrink_try(s, &candidate, what);
}

#define MOST_ENTRIES 64

bool facts_reduce_entries(facts_shrinker *s)
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
