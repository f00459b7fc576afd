#include "parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What one word asks for. */
typedef struct wish {
    const char *word;
    int number[4], numbers;    /* the version, or a range's lower end; numbers 0: any ("default") */
    int last[4], last_numbers; /* a range's upper end; 0: no range */
    bool any_flavour;
    facts_build_kind kind;
    int cuda_major;
} wish;

typedef struct resolver {
    facts_builds *out;
    const facts_builds *found, *lock; /* both ordered; lock may be empty */
    facts_message *note, *message;
} resolver;

static int of(const facts_build *b, int i)
{
    return i == 0 ? b->major : i == 1 ? b->minor : b->patch;
}

/* The first `numbers` (at most 3) numbers of the versions: <0, 0, >0. 9.27 and 9.27.3 are equal in two numbers. */
static int compare(const facts_build *b, const int number[4], int numbers)
{
    for (int i = 0; i < numbers && i < 3; i++)
        if (of(b, i) != number[i])
            return of(b, i) < number[i] ? -1 : 1;
    return 0;
}

static bool flavour_fits(const facts_build *b, const wish *w)
{
    return w->any_flavour || (b->kind == w->kind && b->cuda_major == w->cuda_major);
}

static bool fits(const facts_build *b, const wish *w)
{
    if (!flavour_fits(b, w))
        return false;
    if (w->last_numbers)
        return compare(b, w->number, w->numbers) >= 0 && compare(b, w->last, w->last_numbers) <= 0;
    if (compare(b, w->number, w->numbers) != 0)
        return false;
    int full[4];
    return w->numbers < 4 || (facts_version_parse(b->full_version, full, NULL) == 4 && full[3] == w->number[3]);
}

static bool wish_parse(wish *out, const char *word)
{
    *out = (wish){ .word = word, .any_flavour = true };
    const char *at;
    if (strcmp(word, "default") == 0)
        return true;
    out->numbers = facts_version_parse(word, out->number, &at);
    if (out->numbers < 2)
        return false;
    if (strncmp(at, "..", 2) == 0) {
        out->last_numbers = facts_version_parse(at + 2, out->last, &at);
        if (out->last_numbers < 2)
            return false;
    }
    if (!*at)
        return true;
    static const char JIT[] = "-jit-cu", FULL[] = "-full-cu";
    bool jit = strncmp(at, JIT, sizeof JIT - 1) == 0;
    if (!jit && strncmp(at, FULL, sizeof FULL - 1) != 0)
        return false;
    int number[4] = { 0 };
    if (facts_version_parse(at + (jit ? sizeof JIT : sizeof FULL) - 1, number, NULL) != 1)
        return false;
    out->any_flavour = false;
    out->kind = jit ? FACTS_BUILD_JIT : FACTS_BUILD_FULL;
    out->cuda_major = number[0];
    return true;
}

static long distance(const facts_build *b, const wish *w)
{
    long apart = 0;
    static const long WEIGHT[3] = { 1000000, 1000, 1 };
    for (int i = 0; i < 3; i++)
        apart += WEIGHT[i] * labs((long)of(b, i) - w->number[i]);
    return 4 * apart + (flavour_fits(b, w) ? 0 : 1);
}

static void nearest(const facts_builds *list, const wish *w, const facts_build **best)
{
    for (size_t i = 0; i < list->count; i++)
        if (!*best || distance(&list->at[i], w) < distance(*best, w))
            *best = &list->at[i];
}

static int add(resolver *r, const facts_build *build)
{
    for (size_t i = 0; i < r->out->count; i++)
        if (strcmp(r->out->at[i].name, build->name) == 0 && strcmp(r->out->at[i].dir, build->dir) == 0)
            return 0;
    if (facts_builds_add(r->out, build))
        return 0;
    facts_say(r->message, "out of memory");
    return 3;
}

/* "9.20: took 9.20.0-jit-cu13; also here: 9.20.0-jit-cu12, 9.20.0-full-cu13" */
static void note_choice(resolver *r, const facts_builds *list, const wish *w, const facts_build *taken)
{
    char others[256] = "";
    const char *last = taken->name;
    for (size_t i = 0; i < list->count; i++) {
        const facts_build *b = &list->at[i];
        if (!fits(b, w) || strcmp(b->name, taken->name) == 0 || strcmp(b->name, last) == 0)
            continue;
        size_t n = strlen(others);
        (void)snprintf(others + n, sizeof others - n, "%s%s", n ? ", " : "", b->name);
        last = b->name;
    }
    if (!others[0] || !r->note)
        return;
    size_t n = strlen(r->note->text);
    (void)snprintf(r->note->text + n, sizeof r->note->text - n, "%s%s: took %s; also %s: %s", n ? "; " : "", w->word, taken->name,
                   list == r->lock ? "installable" : "here", others);
}

/* Not here. Is it known? Then say how to get it. */
static int refuse(resolver *r, const facts_builds *installable, const wish *w)
{
    const facts_build *near = NULL;
    for (size_t i = 0; i < installable->count; i++)
        if (fits(&installable->at[i], w)) {
            facts_say(r->message, "cuDNN %s is not installed; install it with: ./facts cudnn install %s", w->word, w->word);
            return 3;
        }
    nearest(r->found, w, &near);
    nearest(installable, w, &near);
    if (near && near->origin == FACTS_ORIGIN_LOCK)
        facts_say(r->message, "cuDNN %s is not known; the nearest is %s: ./facts cudnn install %s", w->word, near->name,
                  near->name);
    else if (near)
        facts_say(r->message, "cuDNN %s is not known; the nearest is %s (%s)", w->word, near->name, near->dir);
    else
        facts_say(r->message, "cuDNN %s is not known, and there is no other; ./facts cudnn list says what can be installed",
                  w->word);
    return 2;
}

static int take_one(resolver *r, const wish *w, const facts_builds *installable)
{
    const facts_builds *lists[] = { r->found, r->lock };
    for (int round = w->numbers ? 1 : 0; round < 2; round++) /* "default": a jit cu13 first, then whatever is newest */
        for (size_t l = 0; l < 2; l++)
            for (size_t i = 0; i < lists[l]->count; i++) {
                const facts_build *b = &lists[l]->at[i];
                if (!fits(b, w) || (round == 0 && (b->kind != FACTS_BUILD_JIT || b->cuda_major != 13)))
                    continue;
                if (w->numbers)
                    note_choice(r, lists[l], w, b);
                return add(r, b);
            }
    if (w->numbers)
        return refuse(r, installable, w);
    facts_say(r->message, "no cuDNN 9 was found; install one with: ./facts cudnn install 9.27.0");
    return 3;
}

/* One build for each version between the ends, oldest first. */
static int take_range(resolver *r, const wish *w, const facts_builds *installable)
{
    facts_builds all = { 0 };
    int status = 0;
    const facts_builds *lists[] = { r->found, r->lock };
    for (size_t l = 0; l < 2 && status == 0; l++)
        for (size_t i = 0; i < lists[l]->count && status == 0; i++) {
            const facts_build *b = &lists[l]->at[i];
            bool known = !fits(b, w);
            for (size_t k = 0; k < all.count && !known; k++)
                known = strcmp(all.at[k].version, b->version) == 0;
            if (!known && !facts_builds_add(&all, b))
                status = 3;
        }
    if (status == 0 && all.count)
        qsort(all.at, all.count, sizeof *all.at, facts_build_compare);
    for (size_t i = all.count; i-- > 0 && status == 0;)
        status = add(r, &all.at[i]);
    if (status == 0 && all.count == 0)
        status = refuse(r, installable, w);
    facts_builds_free(&all);
    return status;
}

static int take(resolver *r, const char *word, const facts_builds *installable)
{
    facts_build folder;
    wish w;
    if (strchr(word, '/') || strcmp(word, ".") == 0) {
        int status = facts_build_identify(&folder, word, r->message);
        return status ? status : add(r, &folder);
    }
    if (!wish_parse(&w, word)) {
        facts_say(r->message,
                  "--cudnn \"%s\": not a version (9.20.0), a build (9.20.0-jit-cu13), a range (9.12..9.27), a folder (with a /) or "
                  "default",
                  word);
        return 2;
    }
    return w.last_numbers ? take_range(r, &w, installable) : take_one(r, &w, installable);
}

static int check_nvrtc(const facts_builds *builds, facts_message *message)
{
    for (size_t i = 0; i < builds->count; i++) {
        const facts_build *b = &builds->at[i];
        if (b->needs_nvrtc && !b->nvrtc[0]) {
            facts_say(
                message,
                "cuDNN %s needs libnvrtc.so.%d (CUDA 12.8 or newer) and none was found; install it with: ./facts cudnn install %s",
                b->name, b->cuda_major, b->name);
            return 3;
        }
    }
    return 0;
}

int facts_builds_resolve(facts_builds *out, const char *spec, unsigned flags, facts_message *note, facts_message *message)
{
    *out = (facts_builds){ 0 };
    facts_say(note, "%s", "");
    facts_builds found = { 0 }, installable = { 0 }, none = { 0 };
    bool from_lock = flags != 0; /* without the lock file everything that is here can still be used */
    int status = flags & FACTS_RESOLVE_LOCK_ONLY ? 0 : facts_builds_discover(&found);
    if (status == 0 && facts_builds_installable(&installable, from_lock ? message : NULL) != 0 && from_lock)
        status = 3;
    resolver r = { out, &found, from_lock ? &installable : &none, note, message };
    char *words = strdup(spec), *rest = words;
    if (!words)
        status = 3;
    for (char *word; status == 0 && (word = strsep(&rest, ",")) != NULL;)
        status = take(&r, word, &installable);
    if (status == 0 && !from_lock)
        status = check_nvrtc(out, message);
    free(words);
    facts_builds_free(&found);
    facts_builds_free(&installable);
    if (status)
        facts_builds_free(out);
    return status;
}
