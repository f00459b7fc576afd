#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case_problem.h"
#include "keys/key_values.h"
#include "keys/keys.h"
#include "language/simpler.h"
#include "rescale.h"

/* What makes a case of attention simpler (language/simpler.h). */

#define MOST_ENTRIES 64

static const facts_size sizes[] = { { FACTS_KEY_B, 1, false },
                                    { FACTS_KEY_H, 3, false },
                                    { FACTS_KEY_S, 2, true },
                                    { FACTS_KEY_D, 2, false } };

static const facts_key followers[][2] = {
    { FACTS_KEY_BIAS, FACTS_KEY_DBIAS },        { FACTS_KEY_BIAS, FACTS_KEY_BIAS_FILL },
    { FACTS_KEY_BIAS, FACTS_KEY_BIAS_DTYPE },   { FACTS_KEY_SOFTMAX, FACTS_KEY_DSINK },
    { FACTS_KEY_PASS, FACTS_KEY_DBIAS },        { FACTS_KEY_PASS, FACTS_KEY_DSINK },
    { FACTS_KEY_LENS, FACTS_KEY_LENS_SHAPE },   { FACTS_KEY_PADDING, FACTS_KEY_LENS_SHAPE },
    { FACTS_KEY_DROPOUT, FACTS_KEY_RNG },       { FACTS_KEY_DROPOUT, FACTS_KEY_DROPOUT_MASK },
    { FACTS_KEY_DROPOUT, FACTS_KEY_RNG_DTYPE }, { FACTS_KEY_PAGED, FACTS_KEY_TABLE },
    { FACTS_KEY_WINDOW, FACTS_KEY_ALIGN }
};

static const struct facts_simpler_value values[] = {
    { FACTS_KEY_DTYPE, "f16" },       { FACTS_KEY_MASK, "causal" },
    { FACTS_KEY_PADDING, "full" },    { FACTS_KEY_PADDING, "random" },
    { FACTS_KEY_BIAS, "11ss" },       { FACTS_KEY_BIAS, "1hss" },
    { FACTS_KEY_BIAS, "bhss" },       { FACTS_KEY_BIAS_FILL, "zero" },
    { FACTS_KEY_FILL, "uniform" },    { FACTS_KEY_POISON, "nan" },
    { FACTS_KEY_DETERMINISTIC, "1" }, { FACTS_KEY_EXEC, "graph" },
    { FACTS_KEY_LAYOUT, "bhsd" },     { FACTS_KEY_LAYOUT, "sbhd" },
    { FACTS_KEY_POLICY, "math" },     { FACTS_KEY_POLICY, "any" }
};

static const struct facts_joined joined[] = { { FACTS_KEY_WANT, '+' },
                                              { FACTS_KEY_STRIDE, ';' },
                                              { FACTS_KEY_STRIDE, '+' } };

static const struct facts_numbered numbered[] = {
    { FACTS_KEY_WINDOW, 1 }, /* L counts the diagonal */
    { FACTS_KEY_STRIDE, 0 },    { FACTS_KEY_LENS, 0 },   { FACTS_KEY_MOD, 0 },
    { FACTS_KEY_BIAS_FILL, 0 }, { FACTS_KEY_REPEAT, 0 }, { FACTS_KEY_PAGED, 0 },
    { FACTS_KEY_TAIL, 0 },      { FACTS_KEY_SLOTS, 0 },  { FACTS_KEY_TOTAL, 0 },
    { FACTS_KEY_RNG, 0 },       { FACTS_KEY_SEED, 0 }
};

/* A band with one bound is simpler than one with two. */
static bool open_window(const facts_case *best, bool right_side, facts_case *out, char *what)
{
    char value[64];
    facts_error ignored;
    const char *window = facts_case_get(best, FACTS_KEY_WINDOW), *right = strchr(window, ':');
    if (!right || strncmp(window, "inf:", 4) == 0 || strcmp(right, ":inf") == 0)
        return false;
    if (right_side)
        snprintf(value, sizeof value, "%.*s:inf", (int)(right - window < 40 ? right - window : 40),
                 window);
    else
        snprintf(value, sizeof value, "inf%.40s", right);
    snprintf(what, FACTS_SIMPLER_TEXT, "window.%s inf", right_side ? "right" : "left");
    *out = *best;
    return facts_case_set(out, FACTS_KEY_WINDOW, value, &ignored);
}

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

/* The case with the batch entries in `in` alone, with their lengths. */
static bool only(const facts_case *best, const facts_problem *problem, const bool *in, size_t count,
                 facts_case *out)
{
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
    *out = *best;
    return add_list(lens, sizeof lens, &used, problem->len_kv, problem->unused, in, count) &&
           facts_case_set(out, FACTS_KEY_PADDING, "none", &ignored) &&
           facts_case_set(out, FACTS_KEY_LENS, lens, &ignored) &&
           facts_case_set(out, FACTS_KEY_B, batch, &ignored);
}

/* Batch entries with lengths of their own: each alone, then without each. */
static bool fewer_entries(const facts_case *best, size_t n, facts_case *out, char *what, bool *more)
{
    facts_error ignored;
    bool found = false;
    facts_problem *problem = malloc(sizeof *problem);
    *more = false;
    if (problem && facts_problem_resolve(problem, best, &ignored) == FACTS_RESOLVED &&
        problem->has_lengths && problem->ask.batch >= 2 && problem->ask.batch <= MOST_ENTRIES) {
        const size_t count = (size_t)problem->ask.batch, entry = n % count;
        const bool alone = n < count;
        bool in[MOST_ENTRIES];
        for (size_t i = 0; i < count; i++)
            in[i] = (i == entry) == alone;
        snprintf(what, FACTS_SIMPLER_TEXT, alone ? "entry %zu alone" : "without entry %zu", entry);
        *more = n + 1 < (count > 2 ? 2 : 1) * count;
        found = n < 2 * count && only(best, problem, in, count, out);
    }
    free(problem);
    return found;
}

static bool candidate(const facts_case *best, size_t n, facts_case *out,
                      char what[FACTS_SIMPLER_TEXT], bool *more)
{
    *more = true;
    return n < 2 ? open_window(best, n == 0, out, what)
                 : fewer_entries(best, n - 2, out, what, more);
}

/* Lengths are at most the size of their dimension. */
static bool settle(facts_case *c, facts_key key)
{
    uint64_t size[2];
    char text[FACTS_CASE_TEXT];
    size_t used = 0;
    facts_error ignored;
    const char *lens = facts_case_get(c, FACTS_KEY_LENS);
    if (key != FACTS_KEY_S || strcmp(lens, "none") == 0)
        return true;
    const char *s = facts_case_get(c, FACTS_KEY_S), *keys = strchr(s, '/');
    size[0] = strtoull(s, NULL, 10);
    size[1] = keys ? strtoull(keys + 1, NULL, 10) : size[0];
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

/* Entries with lengths go one by one. */
static bool keeps(const facts_case *c, facts_key size)
{
    return size == FACTS_KEY_B && strcmp(facts_case_get(c, FACTS_KEY_LENS), "none") != 0;
}

static unsigned kernels(const facts_case *c)
{
    const char *dtype = facts_case_get(c, FACTS_KEY_DTYPE);
    const unsigned family = strcmp(dtype, "f32") == 0 ? 0
                            : *dtype == 'e'           ? 1
                            : *dtype == 'm'           ? 2
                                                      : 3;
    return 1U << (family + (strcmp(facts_case_get(c, FACTS_KEY_PASS), "bwd") == 0 ? 4 : 0));
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static const facts_simpler simpler = {
    .engine = FACTS_KEY_ENGINE,
    .sizes = sizes,
    .size_count = COUNT(sizes),
    .followers = followers,
    .follower_count = COUNT(followers),
    .values = values,
    .value_count = COUNT(values),
    .joined = joined,
    .joined_count = COUNT(joined),
    .numbered = numbered,
    .numbered_count = COUNT(numbered),
    .candidate = candidate,
    .settle = settle,
    .keeps = keeps,
    .kernels = kernels,
};

/* The multiplications of a case, about: what the reference needs its time for. */
static double work_of(const facts_problem *problem)
{
    const fattn_problem *ask = &problem->ask;
    return (double)ask->batch * (double)ask->heads_q * (double)ask->seq_q * (double)ask->seq_kv *
           (double)(ask->dim_qk + ask->dim_v) * (double)problem->repeat;
}

static bool resolves(const facts_case *c, double *work)
{
    facts_error ignored;
    facts_problem *problem = malloc(sizeof *problem);
    const bool done = problem && facts_problem_resolve(problem, c, &ignored) == FACTS_RESOLVED;
    *work = done ? work_of(problem) : 0;
    free(problem);
    return done;
}

static void unguard(facts_case *c)
{
    facts_error ignored;
    if (c->at[FACTS_KEY_GUARDS] == 0 && c->at[FACTS_KEY_POLICY] == 0)
        (void)facts_case_set(c, FACTS_KEY_GUARDS, "off", &ignored);
}

#define AS_BACKEND(symbol, value, word) word " "
const facts_language facts_attention_language = {
    .keys = facts_keys,
    .count = FACTS_KEY_COUNT,
    .always = FACTS_KEY_DTYPE + 1,
    .parts = facts_key_parts,
    .part_count = FACTS_KEY_PARTS,
    .known = true,
    .backends = FATTN_BACKEND_LIST(AS_BACKEND),
    .follows = facts_follows,
    .normalise = facts_normalise,
    .unfold = facts_unfold,
    .resolves = resolves,
    .unguard = unguard,
    .simpler = &simpler,
    .process_variable = FACTS_RESCALE,
    .process_key = FACTS_KEY_RESCALE,
};

bool facts_case_parse(facts_case *out, const char *text, facts_error *error)
{
    return facts_case_read(&facts_attention_language, out, text, error);
}
