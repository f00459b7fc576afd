/* What changed from one build to the next on the same device, grouped so that a person sees features, not cases. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "case/words/case_text.h"
#include "commands/session/tally.h"

#define GROUPS_SHOWN 10
#define COMMON_MAX 256

/* Cases that changed in the same way between the same two targets. */
typedef struct group {
    size_t before, after;    /* targets */
    char change[160];        /* "no -> yes", "engines 6 8 -> 6" */
    char why[160];           /* the refusal, its numbers blanked */
    char common[COMMON_MAX]; /* what all their names have in common */
    size_t cases, example;
    uint32_t reason;         /* of the example, as it was said */
    int least_dim, most_dim; /* head dims of Q and K */
    bool engines_only;
} group;

typedef struct groups {
    group *at;
    size_t count;
    bool failed;
} groups;

/* Keeps the tokens of `common` that `name` has as well. */
static void intersect(char common[COMMON_MAX], const char *name)
{
    char kept[COMMON_MAX] = "", copy[COMMON_MAX], padded[2048];
    memcpy(copy, common, sizeof copy);
    snprintf(padded, sizeof padded, " %s ", name);
    char *rest = copy;
    for (char *token; (token = strsep(&rest, " ")) != NULL;) {
        char find[COMMON_MAX + 2];
        snprintf(find, sizeof find, " %s ", token);
        if (!*token || !strstr(padded, find))
            continue;
        if (*kept)
            strncat(kept, " ", sizeof kept - strlen(kept) - 1);
        strncat(kept, token, sizeof kept - strlen(kept) - 1);
    }
    memcpy(common, kept, sizeof kept);
}

/* The same sentence about other sizes is the same reason. */
static void blank_numbers(char out[160], const char *text)
{
    size_t n = 0;
    for (; *text && n < 158; text++) {
        if (!isdigit((unsigned char)*text))
            out[n++] = *text;
        else if (!n || out[n - 1] != '#')
            out[n++] = '#';
    }
    out[n] = '\0';
}

static group *find_group(groups *all, const group *like)
{
    for (size_t i = 0; i < all->count; i++) {
        group *g = &all->at[i];
        if (g->before == like->before && g->after == like->after && strcmp(g->change, like->change) == 0 &&
            strcmp(g->why, like->why) == 0)
            return g;
    }
    group *more = facts_grow(all->at, all->count, sizeof *more);
    if (!more) {
        all->failed = true;
        return NULL;
    }
    all->at = more;
    all->at[all->count] = *like;
    return &all->at[all->count++];
}

static const char *answer(const facts_cell *cell)
{
    return cell->verdict == FACTS_VERDICT_PASS          ? "yes"
           : cell->verdict == FACTS_VERDICT_UNSUPPORTED ? "no"
                                                        : facts_verdict_name(cell->verdict);
}

static int head_dim(const char *name)
{
    const char *d = strstr(name, " d=");
    return d ? (int)strtol(d + 3, NULL, 10) : 128;
}

static void compare(const facts_tally *tally, groups *all, size_t before, size_t after, size_t work)
{
    const facts_cell *a = facts_tally_cell(tally, before, work), *b = facts_tally_cell(tally, after, work);
    group like = { .before = before, .after = after, .example = work };
    if (a->verdict == FACTS_VERDICT_COUNT || b->verdict == FACTS_VERDICT_COUNT)
        return;
    if (a->verdict != b->verdict) {
        const facts_cell *no = a->verdict == FACTS_VERDICT_PASS ? b : a;
        snprintf(like.change, sizeof like.change, "%s -> %s", answer(a), answer(b));
        like.reason = no->reason;
        blank_numbers(like.why, facts_intern_text(tally->texts, no->reason));
    } else if (a->engines != b->engines && a->verdict == FACTS_VERDICT_PASS) {
        snprintf(like.change, sizeof like.change, "engines %.60s -> %.60s", facts_intern_text(tally->texts, a->engines),
                 facts_intern_text(tally->texts, b->engines));
        like.engines_only = true;
    } else {
        return;
    }
    group *g = find_group(all, &like);
    if (!g)
        return;
    int d = head_dim(tally->work[work].name);
    if (!g->cases++) {
        snprintf(g->common, sizeof g->common, "%s", tally->work[work].name);
        g->least_dim = g->most_dim = d;
    } else {
        intersect(g->common, tally->work[work].name);
        g->least_dim = d < g->least_dim ? d : g->least_dim;
        g->most_dim = d > g->most_dim ? d : g->most_dim;
    }
}

/* Accepted or not comes before by whom; then the larger group. */
static int by_weight(const void *a, const void *b)
{
    const group *x = a, *y = b;
    if (x->engines_only != y->engines_only)
        return x->engines_only - y->engines_only;
    return x->cases != y->cases ? (x->cases < y->cases ? 1 : -1) : (x->example > y->example) - (x->example < y->example);
}

static void print_groups(const facts_tally *tally, const groups *all, FILE *out)
{
    size_t more = 0;
    fputs("\nwhat changed between builds:\n", out);
    for (size_t i = 0; i < all->count; i++) {
        const group *g = &all->at[i];
        if (i >= GROUPS_SHOWN) {
            more += g->cases;
            continue;
        }
        fprintf(out, "  %5zu  %s -> %s on %s: %s  [%s", g->cases, tally->targets[g->before].build.version,
                tally->targets[g->after].build.version, tally->targets[g->after].device, g->change, g->common);
        if (g->least_dim != g->most_dim)
            fprintf(out, "%sd %d to %d", *g->common ? " " : "", g->least_dim, g->most_dim);
        fputs("]\n", out);
        if (*g->why)
            fprintf(out, "         why not: %.140s\n", facts_intern_text(tally->texts, g->reason));
        if (g->cases > 1)
            fprintf(out, "         for example '%s'\n", tally->work[g->example].name);
    }
    if (more)
        fprintf(out, "  and %zu more in %zu groups, in the record\n", more, all->count - GROUPS_SHOWN);
}

/* Older builds first; of one version as they were named. */
static bool is_older(const facts_target *a, const facts_target *b)
{
    const int x[] = { a->build.major, a->build.minor, a->build.patch }, y[] = { b->build.major, b->build.minor, b->build.patch };
    for (size_t i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i];
    return a < b;
}

/* The next older target on the same device, or none: then `after` itself. */
static size_t predecessor(const facts_tally *tally, size_t after)
{
    size_t best = after;
    for (size_t t = 0; t < tally->target_count; t++)
        if (strcmp(tally->targets[t].device, tally->targets[after].device) == 0 &&
            is_older(&tally->targets[t], &tally->targets[after]) &&
            (best == after || is_older(&tally->targets[best], &tally->targets[t])))
            best = t;
    return best;
}

void facts_print_flips(const facts_tally *tally, FILE *out)
{
    groups all = { 0 };
    bool compared = false;
    for (size_t after = 0; after < tally->target_count; after++) {
        size_t before = predecessor(tally, after);
        if (before == after)
            continue;
        compared = true;
        for (size_t work = 0; work < tally->work_count; work++)
            compare(tally, &all, before, after, work);
    }
    if (compared && !all.count)
        fputs("\nnothing changed between the builds\n", out);
    if (all.count) {
        qsort(all.at, all.count, sizeof *all.at, by_weight);
        print_groups(tally, &all, out);
    }
    if (all.failed)
        fputs("  (out of memory: some changes are not listed)\n", out);
    free(all.at);
}
