/* facts audit --from RECORD: what was answered elsewhere, on a GPU node for instance, judged here. Nothing is asked. */
#include <stdlib.h>
#include <string.h>

#include "audit.h"

typedef struct reading {
    facts_audit *audit;
    char **names; /* sorted; while they are collected, as they come */
    size_t count, room;
    size_t measured, decided;
    bool failed; /* out of memory */
} reading;

/* What places a row; false: none of ours. */
typedef struct place {
    char name[FACTS_NAME_MAX], build[40], device[96], cudnn[16];
    int64_t sm;
} place;

static bool read_place(place *out, const facts_line *line)
{
    out->sm = 0;
    facts_slice_int(facts_line_get(line, "sm"), &out->sm);
    return line->kind == FACTS_LINE_ROW && facts_slice_string(facts_line_get(line, "case"), out->name, sizeof out->name) &&
           facts_slice_string(facts_line_get(line, "build"), out->build, sizeof out->build) &&
           facts_slice_string(facts_line_get(line, "device"), out->device, sizeof out->device) &&
           facts_slice_string(facts_line_get(line, "cudnn"), out->cudnn, sizeof out->cudnn);
}

static size_t find_target(const facts_audit *audit, const place *p)
{
    const facts_targets *targets = &audit->session.targets;
    size_t t = 0;
    while (t < targets->count &&
           (strcmp(targets->at[t].build.name, p->build) != 0 || strcmp(targets->at[t].device, p->device) != 0))
        t++;
    return t;
}

static bool add_target(facts_audit *audit, const place *p, bool measured)
{
    facts_targets *targets = &audit->session.targets;
    facts_target *grown = realloc(targets->at, (targets->count + 1) * sizeof *grown);
    if (!grown)
        return false;
    targets->at = grown;
    facts_target *t = &grown[targets->count++];
    *t = (facts_target){ .kind = measured ? FACTS_TARGET_GPU : FACTS_TARGET_DESCRIBED, .described.sm = (int)p->sm };
    snprintf(t->device, sizeof t->device, "%s", p->device);
    snprintf(t->build.name, sizeof t->build.name, "%s", p->build);
    snprintf(t->build.version, sizeof t->build.version, "%s", p->cudnn);
    return true;
}

static bool collect_row(void *context, const facts_line *line)
{
    reading *r = context;
    place p;
    if (!read_place(&p, line))
        return true;
    bool measured = facts_slice_is(facts_line_get(line, "grade"), "measured");
    *(measured ? &r->measured : &r->decided) += 1;
    if (find_target(r->audit, &p) == r->audit->session.targets.count && !add_target(r->audit, &p, measured))
        r->failed = true;
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 256;
        char **grown = realloc(r->names, room * sizeof *grown);
        if (!grown)
            r->failed = true;
        else
            r->names = grown, r->room = room;
    }
    if (!r->failed && !(r->names[r->count++] = strdup(p.name)))
        r->failed = true;
    return !r->failed;
}

static bool answer_row(void *context, const facts_line *line)
{
    reading *r = context;
    facts_session *s = &r->audit->session;
    place p;
    facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    if (!read_place(&p, line) || verdict == FACTS_VERDICT_COUNT)
        return true;
    size_t target = find_target(r->audit, &p);
    for (size_t w = 0; w < s->work_count; w++)
        if (strcmp(s->work[w].name, p.name) == 0) {
            facts_tally_add(&s->tally, target, w, line, verdict, &(facts_expected_row){ .unexpected = false });
            facts_audit_take(r->audit, target, w, line, verdict);
        }
    return true;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_record(const char *path, bool (*each)(void *, const facts_line *), reading *r)
{
    facts_read_counts counts = { 0 };
    char why[160];
    if (!facts_record_read(path, each, r, &counts)) {
        int status = facts_record_trouble(&counts, why, sizeof why);
        fprintf(stderr, "facts audit: %s: %s\n", path, why);
        return status;
    }
    if (r->failed) {
        fputs("facts audit: out of memory\n", stderr);
        return FACTS_EXIT_ENVIRONMENT;
    }
    if (counts.bad)
        fprintf(stderr, "facts audit: %s: %llu lines could not be read\n", path, (unsigned long long)counts.bad);
    r->audit->session.counts.planned += counts.bad > 0; /* never a partial answer called whole */
    return FACTS_EXIT_OK;
}

int facts_audit_targets_from(facts_audit *audit, const char *path)
{
    reading r = { .audit = audit };
    int status = read_record(path, collect_row, &r);
    audit->known = r.names;
    audit->known_count = r.count;
    if (status != FACTS_EXIT_OK)
        return status;
    if (!r.count) {
        fprintf(stderr, "facts audit: %s: no row of a case\n", path);
        return FACTS_EXIT_NOTHING;
    }
    if (r.measured && r.decided) {
        fprintf(stderr, "facts audit: %s: holds what ran and what was only decided; audit them one after the other\n", path);
        return FACTS_EXIT_BAD_INPUT;
    }
    audit->measured = r.measured > 0;
    qsort(audit->known, audit->known_count, sizeof *audit->known, by_text);
    return FACTS_EXIT_OK;
}

bool facts_audit_knows(const facts_audit *audit, const facts_case *c)
{
    char name[FACTS_NAME_MAX];
    const char *key = name;
    facts_error error;
    return c && facts_audit_asked(name, c, audit->measured, &error) &&
           bsearch(&key, audit->known, audit->known_count, sizeof *audit->known, by_text);
}

int facts_audit_answers_from(facts_audit *audit, const char *path)
{
    facts_session *s = &audit->session;
    s->sms = calloc(s->targets.count + 1, sizeof *s->sms);
    if (!s->sms || !facts_tally_init(&s->tally, s->targets.at, s->targets.count, s->work, s->work_count)) {
        fputs("facts audit: out of memory\n", stderr);
        return FACTS_EXIT_ENVIRONMENT;
    }
    for (size_t t = 0; t < s->targets.count; t++)
        s->sms[t] = s->targets.at[t].described.sm;
    snprintf(s->record, sizeof s->record, "%s", path);
    s->counts.planned = 0; /* what could not be read is counted once */
    return read_record(path, answer_row, &(reading){ .audit = audit });
}
