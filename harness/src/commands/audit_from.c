/* What backends answered: a row of a run, or rows of records (facts audit --from RECORD), where nothing is asked. */
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "case/words/case_text.h"
#include "commands.h"

void facts_audit_take(facts_audit *audit, size_t target, size_t work, const facts_line *row, facts_verdict verdict)
{
    facts_member members[16];
    size_t count = 0;
    facts_span reason = facts_line_get(row, "reason");
    if (reason.at && !facts_scan_object(reason.at, reason.length, members, 16, &count))
        count = 0;
    count = count < 16 ? count : 16;
    /* A refusal with cuDNN's status is cuDNN's; ours have none, also where they know that a version cannot say such a graph. */
    bool by_cudnn =
        facts_json_is(facts_member_find(members, count, "class"), "unsupported") && facts_member_find(members, count, "status").at;
    facts_reply *reply = &audit->replies[target * audit->session.work_count + work];
    *reply = facts_reply_join(*reply, facts_reply_of(verdict, audit->measured, by_cudnn));
}

typedef struct reading {
    facts_audit *audit;
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
    facts_json_int(facts_line_get(line, "sm"), &out->sm);
    return line->kind == FACTS_LINE_ROW && facts_json_string(facts_line_get(line, "case"), out->name, sizeof out->name) &&
           facts_json_string(facts_line_get(line, "build"), out->build, sizeof out->build) &&
           facts_json_string(facts_line_get(line, "device"), out->device, sizeof out->device) &&
           facts_json_string(facts_line_get(line, "cudnn"), out->cudnn, sizeof out->cudnn);
}

static bool add_target(facts_targets *targets, const place *p, bool measured)
{
    facts_target t = { .kind = measured ? FACTS_TARGET_GPU : FACTS_TARGET_DESCRIBED, .described.sm = (int)p->sm };
    snprintf(t.device, sizeof t.device, "%s", p->device);
    snprintf(t.build.name, sizeof t.build.name, "%s", p->build);
    snprintf(t.build.version, sizeof t.build.version, "%s", p->cudnn);
    return facts_targets_add(targets, &t);
}

static bool add_name(facts_audit *audit, const char *name)
{
    char **grown = facts_grow(audit->known, audit->known_count, sizeof *grown), *own = grown ? strdup(name) : NULL;
    audit->known = grown ? grown : audit->known;
    if (own)
        audit->known[audit->known_count++] = own;
    return own != NULL;
}

static bool collect_row(void *context, const facts_line *line)
{
    reading *r = context;
    place p;
    if (!read_place(&p, line))
        return true;
    bool measured = facts_json_is(facts_line_get(line, "grade"), "measured");
    *(measured ? &r->measured : &r->decided) += 1;
    facts_targets *targets = &r->audit->session.targets;
    const bool seen = facts_targets_find(targets, p.build, p.device) < targets->count;
    r->failed = (!seen && !add_target(targets, &p, measured)) || !add_name(r->audit, p.name);
    return !r->failed;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const facts_work *)a)->name, ((const facts_work *)b)->name);
}

static bool answer_row(void *context, const facts_line *line)
{
    facts_audit *audit = context;
    facts_session *s = &audit->session;
    place p;
    facts_verdict verdict = facts_verdict_parse(facts_line_get(line, "verdict"));
    if (!read_place(&p, line) || verdict == FACTS_VERDICT_COUNT)
        return true;
    const facts_work *found = bsearch(&(facts_work){ .name = p.name }, s->work, s->work_count, sizeof *s->work, by_name);
    size_t target = facts_targets_find(&s->targets, p.build, p.device);
    if (found && target < s->targets.count) {
        facts_tally_add(&s->tally, target, (size_t)(found - s->work), line, verdict, &(facts_expected_row){ .unexpected = false });
        facts_audit_take(audit, target, (size_t)(found - s->work), line, verdict);
    }
    return true;
}

static int collect_record(reading *r, const char *path)
{
    const size_t before = r->audit->known_count;
    uint64_t bad;
    int status = facts_read_record("facts audit", path, collect_row, r, &bad);
    if (status != FACTS_EXIT_OK)
        return status;
    if (r->failed)
        return facts_no_memory();
    if (r->audit->known_count == before)
        return facts_complain(FACTS_EXIT_NOTHING, "facts audit: %s: no row of a case", path);
    if (r->measured && r->decided)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts audit: %s: holds what ran and what was only decided; audit them one after the other", path);
    r->audit->partial |= bad > 0;
    return FACTS_EXIT_OK;
}

int facts_audit_targets_from(facts_audit *audit, const facts_options *options)
{
    reading r = { .audit = audit };
    int status = FACTS_EXIT_OK;
    for (size_t i = 0; i < options->record_count && status == FACTS_EXIT_OK; i++)
        status = collect_record(&r, options->records[i]);
    audit->measured = r.measured > 0;
    if (status == FACTS_EXIT_OK)
        qsort(audit->known, audit->known_count, sizeof *audit->known, facts_by_text);
    return status;
}

bool facts_audit_knows(const facts_audit *audit, const facts_case *c)
{
    char name[FACTS_NAME_MAX];
    const char *key = name;
    facts_error error;
    return c && facts_claim_asked(name, c, audit->measured, &error) &&
           bsearch(&key, audit->known, audit->known_count, sizeof *audit->known, facts_by_text);
}

int facts_audit_answers_from(facts_audit *audit, const facts_options *options)
{
    facts_session *s = &audit->session;
    s->sms = calloc(s->targets.count + 1, sizeof *s->sms);
    if (!s->sms || !facts_tally_init(&s->tally, s->targets.at, s->targets.count, s->work, s->work_count))
        return facts_no_memory();
    for (size_t t = 0; t < s->targets.count; t++)
        s->sms[t] = s->targets.at[t].described.sm;
    int status = FACTS_EXIT_OK;
    for (size_t i = 0; i < options->record_count && status == FACTS_EXIT_OK; i++)
        status = facts_read_record("facts audit", options->records[i], answer_row, audit, NULL);
    for (size_t i = 0, at = 0; i < options->record_count && at < sizeof s->record; i++)
        at += (size_t)snprintf(s->record + at, sizeof s->record - at, "%s%s", i ? " " : "", options->records[i]);
    return status;
}
