#include "build_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The request of one word. */
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
    const facts_builds
        *lists[2]; /* the order of the look-up: installed builds, then the lock, or the reverse */
    const facts_builds *installable; /* all of the lock */
    unsigned flags;
    facts_error *note, *message;
} resolver;

static int of(const facts_build *b, int i)
{
    return i == 0 ? b->major : i == 1 ? b->minor : b->patch;
}

/* The first `numbers` (at most 3) numbers of the versions: <0, 0, >0. 9.27 and 9.27.3 are equal in
 * two numbers. */
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
    return w->numbers < 4 ||
           (facts_version_parse(b->full_version, full, NULL) == 4 && full[3] == w->number[3]);
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
    static const long WEIGHT[3] = { 1000000, 1000, 1 };
    long apart = 0;
    for (int i = 0; i < 3; i++)
        apart += WEIGHT[i] * ((long)of(b, i) - w->number[i]);
    return 4 * labs(apart) + (flavour_fits(b, w) ? 0 : 1);
}

static void nearest(const facts_builds *list, const wish *w, const facts_build **best)
{
    for (size_t i = 0; i < list->count; i++)
        if (!*best || distance(&list->at[i], w) < distance(*best, w))
            *best = &list->at[i];
}

/* Where the build next to the wish stands among all versions. */
static const char *place_of(const resolver *r, const wish *w)
{
    const facts_builds *const lists[] = { r->lists[0], r->lists[1], r->installable };
    bool below = false, above = false;
    for (size_t l = 0; l < 3; l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const int side = compare(&lists[l]->at[i], w->number, w->numbers);
            below |= side < 0;
            above |= side > 0;
        }
    return !below ? "oldest" : !above ? "newest" : "nearest";
}

static bool is_locked(const resolver *r, const facts_build *build)
{
    for (size_t i = 0; i < r->installable->count; i++)
        if (strcmp(r->installable->at[i].name, build->name) == 0 &&
            strcmp(r->installable->at[i].full_version, build->full_version) == 0)
            return true;
    return false;
}

static int refuse_unpinned(resolver *r, const char *word)
{
    return facts_fail_as(3, r->message,
                         "cuDNN %s is not in ci/cudnn.lock, and --pinned-only allows no other; add "
                         "it with: ./facts cudnn lock %s",
                         word, word);
}

static int add(resolver *r, const facts_build *build)
{
    if (r->flags & FACTS_RESOLVE_PINNED && build->origin == FACTS_ORIGIN_CACHE &&
        !is_locked(r, build))
        return refuse_unpinned(r, build->name);
    for (size_t i = 0; i < r->out->count; i++)
        if (strcmp(r->out->at[i].name, build->name) == 0 &&
            strcmp(r->out->at[i].dir, build->dir) == 0)
            return 0;
    facts_builds_add(r->out, build);
    return 0;
}

/* "9.20: took 9.20.0-jit-cu13; also here: 9.20.0-jit-cu12, 9.20.0-full-cu13" */
static void note_choice(resolver *r, const facts_builds *list, const wish *w,
                        const facts_build *taken)
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
    (void)snprintf(r->note->text + n, sizeof r->note->text - n, "%s%s: took %s; also %s: %s",
                   n ? "; " : "", w->word, taken->name,
                   list->at[0].origin == FACTS_ORIGIN_LOCK ? "installable" : "here", others);
}

/* Neither installed nor in the lock. */
static int take_from_index(resolver *r, const wish *w)
{
    facts_build build;
    facts_error why = { 0 };
    int status = facts_index_find(&build, w->word, &why);
    if (status == 0)
        return add(r, &build);
    if (status == 3)
        facts_fail(
            r->message,
            "cuDNN %s is not in ci/cudnn.lock: %s; with a network, add it: ./facts cudnn lock %s",
            w->word, why.text, w->word);
    else
        facts_fail(r->message, "%s", why.text);
    return status;
}

/* Not installed. If it is known, prints how to get it. */
static int refuse(resolver *r, const wish *w)
{
    const facts_build *near = NULL;
    const facts_builds *installable = r->installable;
    for (size_t i = 0; i < installable->count; i++)
        if (fits(&installable->at[i], w))
            return facts_fail_as(
                3, r->message,
                "cuDNN %s is not installed; install it with: ./facts cudnn install %s", w->word,
                w->word);
    for (size_t l = 0; l < 2; l++)
        nearest(r->lists[l], w, &near);
    nearest(installable, w, &near);
    if (near && !w->last_numbers && w->number[0] != 9)
        return facts_fail_as(2, r->message, "cuDNN %s: FACTS asks cuDNN 9; the %s is %s", w->word,
                             place_of(r, w), near->name);
    if (!w->last_numbers && r->flags & FACTS_RESOLVE_PINNED)
        return refuse_unpinned(r, w->word);
    if (!w->last_numbers && r->flags & FACTS_RESOLVE_INDEX &&
        r->flags & (FACTS_RESOLVE_INSTALLABLE | FACTS_RESOLVE_LOCK_ONLY))
        return take_from_index(r, w);
    if (near && w->last_numbers)
        return facts_fail_as(
            2, r->message,
            "cuDNN %s is neither installed nor in ci/cudnn.lock; the nearest version is %s",
            w->word, near->name);
    if (near)
        return facts_fail_as(2, r->message,
                             "cuDNN %s is not known here; the %s is %s. If the package index has "
                             "it: ./facts cudnn install %s",
                             w->word, place_of(r, w), near->name, w->word);
    return facts_fail_as(2, r->message,
                         "cuDNN %s is not known, and there is no other; ./facts cudnn list says "
                         "what can be installed",
                         w->word);
}

static int take_one(resolver *r, const wish *w)
{
    const facts_builds *const *lists = r->lists;
    for (int round = w->numbers ? 1 : 0; round < 2;
         round++) /* "default": a jit cu13 first, then the newest */
        for (size_t l = 0; l < 2; l++)
            for (size_t i = 0; i < lists[l]->count; i++) {
                const facts_build *b = &lists[l]->at[i];
                if (!fits(b, w) ||
                    (round == 0 && (b->kind != FACTS_BUILD_JIT || b->cuda_major != 13)))
                    continue;
                if (w->numbers)
                    note_choice(r, lists[l], w, b);
                return add(r, b);
            }
    if (w->numbers)
        return refuse(r, w);
    return facts_fail_as(3, r->message,
                         "no cuDNN 9 was found; install one with: ./facts cudnn install 9.27.0");
}

static bool is_reversed(const wish *w)
{
    for (int i = 0; i < w->numbers && i < w->last_numbers; i++)
        if (w->last[i] != w->number[i])
            return w->last[i] < w->number[i];
    return false;
}

static int refuse_reversed(resolver *r, const wish *w)
{
    const char *between = strstr(w->word, "..");
    return facts_fail_as(2, r->message, "cuDNN %s: the range ends before it begins; write %s..%.*s",
                         w->word, between + 2, (int)(between - w->word), w->word);
}

/* One build for each version between the ends, oldest first. */
static int take_range(resolver *r, const wish *w)
{
    facts_builds all = { 0 };
    int status = 0;
    if (is_reversed(w))
        return refuse_reversed(r, w);
    const facts_builds *const *lists = r->lists;
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l]->count; i++) {
            const facts_build *b = &lists[l]->at[i];
            bool known = !fits(b, w);
            for (size_t k = 0; k < all.count && !known; k++)
                known = strcmp(all.at[k].version, b->version) == 0;
            if (!known)
                facts_builds_add(&all, b);
        }
    if (all.count)
        qsort(all.at, all.count, sizeof *all.at, facts_build_compare);
    for (size_t i = all.count; i-- > 0 && status == 0;)
        status = add(r, &all.at[i]);
    if (status == 0 && all.count == 0)
        status = refuse(r, w);
    facts_builds_free(&all);
    return status;
}

static void add_note(facts_error *note, const char *text)
{
    size_t n = note ? strlen(note->text) : 0;
    if (note)
        (void)snprintf(note->text + n, sizeof note->text - n, "%s%s", n ? "; " : "", text);
}

static bool is_listed(const resolver *r, const wish *w)
{
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; i < r->lists[l]->count; i++)
            if (fits(&r->lists[l]->at[i], w))
                return true;
    return false;
}

/* The newest on the package index, otherwise the newest of the lock; then as if that version had
 * been given. */
static int take_latest(resolver *r)
{
    facts_build newest = { 0 };
    bool pinned = r->flags & FACTS_RESOLVE_PINNED;
    facts_error why = { 0 };
    char name[sizeof newest.full_version + 24], text[sizeof why.text + 128];
    facts_fail(&why, "%s", pinned ? "--pinned-only" : "the package index was not asked");
    int status =
        r->flags & FACTS_RESOLVE_INDEX && !pinned ? facts_index_find(&newest, "latest", &why) : 3;
    if (status && !r->installable->count) {
        facts_fail(r->message, "latest: %s, and ci/cudnn.lock has no cuDNN; name a version",
                   why.text);
        return status;
    }
    if (status)
        newest = r->installable->at[0];
    (void)snprintf(name, sizeof name, "%s-%s-cu%d", newest.full_version,
                   newest.kind == FACTS_BUILD_JIT ? "jit" : "full", newest.cuda_major);
    if (status)
        (void)snprintf(text, sizeof text, "latest: took %s, the newest in ci/cudnn.lock (%s)",
                       newest.name, why.text);
    else
        (void)snprintf(text, sizeof text, "latest: took %s, the newest on the package index",
                       newest.name);
    add_note(r->note, text);
    wish w;
    if (!wish_parse(&w, name))
        return 2;
    if (status || is_listed(r, &w))
        return take_one(r, &w);
    if (r->flags & (FACTS_RESOLVE_INSTALLABLE | FACTS_RESOLVE_LOCK_ONLY))
        return add(r, &newest);
    return facts_fail_as(3, r->message,
                         "cuDNN %s is not installed; install it with: ./facts cudnn install %s",
                         newest.name, newest.full_version);
}

static int take(resolver *r, const char *word)
{
    facts_build folder;
    wish w;
    if (strcmp(word, "latest") == 0)
        return take_latest(r);
    if (strchr(word, '/') || strcmp(word, ".") == 0) {
        int status = facts_build_identify(&folder, word, r->message);
        return status ? status : add(r, &folder);
    }
    if (!wish_parse(&w, word))
        return facts_fail_as(2, r->message,
                             "--cudnn \"%s\": not a version (9.20.0), a build (9.20.0-jit-cu13), a "
                             "range (9.12..9.27), a folder (with a /), "
                             "default or latest",
                             word);
    return w.last_numbers ? take_range(r, &w) : take_one(r, &w);
}

static int check_nvrtc(const facts_builds *builds, facts_error *message)
{
    for (size_t i = 0; i < builds->count; i++) {
        const facts_build *b = &builds->at[i];
        if (b->needs_nvrtc && !b->nvrtc[0] && facts_nvrtc_given())
            return facts_fail_as(3, message,
                                 "--nvrtc %s: no such libnvrtc.so.%d, with its builtins beside it, "
                                 "for cuDNN %s; give the file",
                                 facts_nvrtc_given(), b->cuda_major, b->name);
        if (b->needs_nvrtc && !b->nvrtc[0])
            return facts_fail_as(3, message,
                                 "cuDNN %s needs libnvrtc.so.%d (CUDA 12.8 or newer) and none was "
                                 "found; install it with: ./facts cudnn install %s",
                                 b->name, b->cuda_major, b->name);
    }
    return 0;
}

/* The builds that FACTS installed, without the others. */
static void keep_cached(facts_builds *found)
{
    size_t kept = 0;
    for (size_t i = 0; i < found->count; i++)
        if (found->at[i].origin == FACTS_ORIGIN_CACHE)
            found->at[kept++] = found->at[i];
    found->count = kept;
}

int facts_builds_resolve(facts_builds *out, const char *spec, unsigned flags, facts_error *note,
                         facts_error *message)
{
    *out = (facts_builds){ 0 };
    facts_fail(note, "%s", "");
    facts_builds found = { 0 }, installable = { 0 }, none = { 0 };
    bool lock_only = flags & FACTS_RESOLVE_LOCK_ONLY,
         from_lock = flags & (FACTS_RESOLVE_LOCK_ONLY | FACTS_RESOLVE_INSTALLABLE);
    int status =
        lock_only && !(flags & FACTS_RESOLVE_INDEX) ? 0 : facts_builds_discover(&found, message);
    if (lock_only)
        keep_cached(&found);
    /* Without the lock file, all installed builds can still be used. */
    if (status == 0 && facts_builds_installable(&installable, from_lock ? message : NULL) != 0 &&
        from_lock)
        status = 3;
    resolver r = { out,    { &found, from_lock ? &installable : &none }, &installable, flags, note,
                   message };
    if (lock_only)
        r.lists[0] = &installable, r.lists[1] = &found;
    char *words = strdup(spec), *rest = words;
    for (char *word; status == 0 && (word = strsep(&rest, ",")) != NULL;)
        status = take(&r, word);
    if (status == 0 && !from_lock)
        status = check_nvrtc(out, message);
    free(words);
    facts_builds_free(&found);
    facts_builds_free(&installable);
    if (status)
        facts_builds_free(out);
    return status;
}
