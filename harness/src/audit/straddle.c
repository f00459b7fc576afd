#include "straddle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Releases from 9.0 on, three patches of each, up to the next ones; what no rule tells apart costs nothing but time. */
#define MINORS 31
#define PATCHES 3
static const char *const sms[] = { "75", "80", "86", "89", "90", "100", "103", "107", "110", "120", "121" };
#define SMS (sizeof sms / sizeof *sms)

typedef struct version {
    char text[16];
} version;

static version release(int i)
{
    version v;
    snprintf(v.text, sizeof v.text, "9.%d.%d", i / PATCHES, i % PATCHES);
    return v;
}

static bool straddles(const facts_claim *claim, const facts_edge *e, const char **what)
{
    bool refused = false, let = false, edge = false;
    /* A rule that does not speak of versions, or of devices, is the same for all. */
    int versions = strstr(claim->refuses, "cudnn") ? MINORS * PATCHES : 1;
    size_t devices = strstr(claim->refuses, "sm") ? SMS : 1;
    for (int v = 0; v < versions; v++)
        for (size_t s = 0; s < devices; s++) {
            version cudnn = release(v);
            bool one = facts_claim_refuses(claim, &e->refused, cudnn.text, sms[s]);
            bool two = e->has_other && facts_claim_refuses(claim, &e->other, cudnn.text, sms[s]);
            *what = "is refused on the side that the rule is said to let through";
            if (two && !one)
                return false;
            refused |= one;
            let |= !one;
            edge |= one && !two;
        }
    *what = !refused       ? "is never refused by the rule"
            : e->has_other ? "is refused on both sides"
                           : "is refused by every version for every device";
    return e->has_other ? edge : refused && let;
}

bool facts_claim_straddles(const facts_claim *claim, facts_error *error)
{
    for (size_t i = 0; i < claim->edges; i++) {
        const facts_edge *e = &claim->edge[i];
        const char *what;
        char name[FACTS_NAME_MAX];
        if (!straddles(claim, e, &what))
            return facts_fail_at(error, e->place.where, e->place.line, e->place.column, "%.60s has no edge here: %.200s %s",
                                 claim->id, facts_case_name(&e->refused, name), what);
    }
    return true;
}

bool facts_claim_refuses_any(const facts_claim *claim, const char *cudnn, const char *sm)
{
    for (size_t s = 0; sm == NULL && s < SMS; s++)
        if (facts_claim_refuses_any(claim, cudnn, sms[s]))
            return true;
    for (size_t i = 0; sm != NULL && i < claim->edges; i++)
        if (facts_claim_refuses(claim, &claim->edge[i].refused, cudnn, sm))
            return true;
    return false;
}

/* "9.0.0..9.5.2, " and the like: runs of an array of flags. */
static void add_run(char out[200], size_t *used, const char *first, const char *last)
{
    int n = snprintf(out + *used, 200 - *used, "%s%s%s%s", *used ? ", " : "", first, strcmp(first, last) ? ".." : "",
                     strcmp(first, last) ? last : "");
    if (n > 0 && (size_t)n < 200 - *used)
        *used += (size_t)n;
    else
        out[*used] = '\0';
}

const char *facts_claim_reach(const facts_claim *claim, char out[200])
{
    bool by_version[MINORS * PATCHES] = { false }, by_sm[SMS] = { false };
    char versions[200] = "", devices[200] = "";
    size_t used = 0, letters = 0;
    for (int v = 0; v < MINORS * PATCHES; v++)
        for (size_t s = 0; s < SMS; s++)
            if (facts_claim_refuses_any(claim, release(v).text, sms[s]))
                by_version[v] = by_sm[s] = true;
    for (int v = 0, from = 0; v < MINORS * PATCHES; v++) {
        if (!by_version[v])
            from = v + 1;
        else if (v + 1 == MINORS * PATCHES || !by_version[v + 1])
            add_run(versions, &used, release(from).text, v + 1 == MINORS * PATCHES ? "" : release(v).text);
    }
    for (size_t s = 0; s < SMS; s++)
        if (by_sm[s])
            add_run(devices, &letters, sms[s], sms[s]);
    snprintf(out, 200, "cudnn %.90s, sm %.90s", versions, devices);
    return out;
}
