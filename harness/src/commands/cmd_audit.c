/* facts audit: what others say is supported, held against what cuDNN answers on both sides of each rule. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "audit.h"
#include "case/suites/field.h"
#include "case/words/case_text.h"
#include "case/words/text_file.h"
#include "commands.h"

#define DEFAULT_DEVICES "h100-sxm,sm80-spec,sm89-spec,sm100-spec,sm120-spec"

/* ---- which rules --------------------------------------------------------------------------------------------------------------
 */

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

static int load_file(facts_audit *audit, const char *path)
{
    facts_error error = { 0 };
    char *text = facts_file_text(path, &error);
    bool ok = text && facts_claims_read(&audit->claims, text, path, &error);
    free(text);
    return ok ? FACTS_EXIT_OK : facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
}

/* cases/claims/, unless a file is named. `paths` must outlive the claims: places point at them. */
static int load(facts_audit *audit, const facts_options *o, char ***paths, size_t *count)
{
    char folder[FACTS_PATH];
    int status = FACTS_EXIT_OK;
    bool files = false;
    for (size_t i = 0; i < o->word_count && status == FACTS_EXIT_OK; i++)
        if (is_file(o->words[i])) {
            files = true;
            status = load_file(audit, o->words[i]);
        }
    if (files || status != FACTS_EXIT_OK)
        return status;
    if (!facts_home_path("cases/claims", folder) || (*count = facts_folder_files(folder, ".claims", paths)) == 0)
        return facts_complain(FACTS_EXIT_ENVIRONMENT,
                              "facts audit: no rules in cases/claims/; name a file, or set FACTS_HOME to the project's folder");
    for (size_t i = 0; i < *count && status == FACTS_EXIT_OK; i++)
        status = load_file(audit, (*paths)[i]);
    return status;
}

static int choose_by(facts_audit *audit, const char *word)
{
    const char **ids = calloc(audit->claims.count + 1, sizeof *ids);
    bool found = false;
    if (!ids)
        return facts_no_memory();
    for (size_t i = 0; i < audit->claims.count; i++) {
        ids[i] = audit->claims.claim[i].id;
        bool fits = facts_glob(facts_span_of(word), ids[i]);
        audit->chosen[i] |= fits;
        found |= fits;
    }
    if (!found)
        fprintf(stderr, "facts audit: %.80s is neither a file nor a rule (fe/H04, 'te/*'); did you mean %s?\n", word,
                facts_nearest_word(word, ids, audit->claims.count));
    free(ids);
    return found ? FACTS_EXIT_OK : FACTS_EXIT_BAD_INPUT;
}

static int choose(facts_audit *audit, const facts_options *o)
{
    bool all = true;
    int status = FACTS_EXIT_OK;
    audit->chosen = calloc(audit->claims.count + 1, sizeof *audit->chosen);
    if (!audit->chosen)
        return facts_no_memory();
    for (size_t i = 0; i < o->word_count && status == FACTS_EXIT_OK; i++)
        if (!is_file(o->words[i])) {
            all = false;
            status = choose_by(audit, o->words[i]);
        }
    for (size_t i = 0; i < audit->claims.count && all; i++)
        audit->chosen[i] = true;
    return status;
}

/* ---- which cases --------------------------------------------------------------------------------------------------------------
 */

/* A rule that refuses nothing for any version and device asked has nothing to be asked about. What a GPU is, is not known yet. */
static bool concerns(const facts_audit *audit, size_t claim)
{
    const facts_targets *targets = &audit->session.targets;
    for (size_t t = 0; t < targets->count; t++) {
        char sm[16];
        snprintf(sm, sizeof sm, "%d", targets->at[t].described.sm);
        if (facts_claim_refuses_any(&audit->claims.claim[claim], targets->at[t].build.version,
                                    targets->at[t].kind == FACTS_TARGET_DESCRIBED ? sm : NULL))
            return true;
    }
    return false;
}

static bool collect(facts_audit *audit, const facts_predicate *where)
{
    size_t most = 0;
    for (size_t i = 0; i < audit->claims.count; i++)
        most += 2 * audit->claims.claim[i].edges;
    audit->cases = calloc(most + 1, sizeof *audit->cases);
    for (size_t i = 0; audit->cases && i < audit->claims.count; i++) {
        bool asked = audit->chosen[i] && concerns(audit, i);
        for (size_t e = 0; asked && e < audit->claims.claim[i].edges; e++) {
            const facts_edge *edge = &audit->claims.claim[i].edge[e];
            if (audit->known &&
                !(facts_audit_knows(audit, &edge->refused) && (!edge->has_other || facts_audit_knows(audit, &edge->other))))
                continue; /* the record is of other rules */
            if (where && !facts_predicate_holds(where, &(facts_subject){ .c = &edge->refused }))
                continue;
            audit->cases[audit->count++] = (facts_audit_case){ .claim = i, .c = &edge->refused };
            if (edge->has_other)
                audit->cases[audit->count++] = (facts_audit_case){ .claim = i, .c = &edge->other };
        }
    }
    return audit->cases != NULL;
}

/* Every name once, sorted; each case knows its place. */
static int plan(facts_audit *audit)
{
    facts_error error = { 0 };
    char name[FACTS_NAME_MAX];
    char **names = calloc(audit->count + 1, sizeof *names);
    size_t n = 0, kept = 0;
    bool ok = names != NULL;
    for (; ok && n < audit->count; n++) {
        if (!facts_claim_asked(name, audit->cases[n].c, audit->measured, &error)) {
            fprintf(stderr, "facts audit: %s: %s\n", audit->claims.claim[audit->cases[n].claim].id, error.text);
            ok = false;
        } else if (!(names[n] = strdup(name))) {
            ok = false;
        }
    }
    int status = ok ? FACTS_EXIT_OK : error.text[0] ? FACTS_EXIT_BAD_INPUT : facts_no_memory();
    if (ok) {
        qsort(names, n, sizeof *names, facts_by_text);
        for (size_t i = 0; i < n; i++) {
            if (kept && strcmp(names[kept - 1], names[i]) == 0)
                free(names[i]);
            else
                names[kept++] = names[i];
        }
        for (size_t i = 0; i < audit->count; i++) {
            const char *key = name;
            facts_claim_asked(name, audit->cases[i].c, audit->measured, &error);
            audit->cases[i].work = (size_t)((char **)bsearch(&key, names, kept, sizeof *names, facts_by_text) - names);
        }
        status = facts_session_cases(&audit->session, (const char *const *)names, kept);
        n = kept;
    }
    for (size_t i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
    return status;
}

/* ---- asking -------------------------------------------------------------------------------------------------------------------
 */

static void on_row(facts_session *s, const facts_outcome *outcome)
{
    facts_audit_take(s->context, outcome->target, outcome->work, outcome->line, outcome->verdict);
}

/* Described devices decide, GPUs run: one record holds one or the other. */
static int kind_of_run(facts_audit *audit)
{
    const facts_targets *targets = &audit->session.targets;
    size_t described = facts_targets_of(targets, FACTS_TARGET_DESCRIBED);
    if (facts_targets_of(targets, FACTS_TARGET_CPU))
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts audit: --device cpu: rules are about cuDNN; name a GPU or a described device");
    if (described && described < targets->count)
        return facts_complain(FACTS_EXIT_BAD_INPUT,
                              "facts audit: --device: GPUs run and described devices decide; ask for them one after the other");
    audit->measured = !described;
    audit->session.task = audit->measured ? FACTS_TASK_RUN : audit->session.options->plan ? FACTS_TASK_PLAN : FACTS_TASK_DECIDE;
    return FACTS_EXIT_OK;
}

static int ask(facts_audit *audit, const facts_options *o)
{
    facts_session *s = &audit->session;
    int status = plan(audit);
    if (status != FACTS_EXIT_OK)
        return status;
    audit->replies = calloc(s->targets.count * s->work_count + 1, sizeof *audit->replies);
    if (!audit->replies)
        return facts_no_memory();
    return o->from ? facts_audit_answers_from(audit, o) : facts_session_run(s);
}

/* ---- judging ------------------------------------------------------------------------------------------------------------------
 */

static void name_sm(const facts_audit *audit, size_t target, char out[16])
{
    const facts_session *s = &audit->session;
    snprintf(out, 16, "%d", s->sms[target] ? s->sms[target] : s->targets.at[target].described.sm);
}

static bool others_refuse(const facts_audit *audit, const facts_audit_case *c, const char *cudnn, const char *sm)
{
    const facts_claims *all = &audit->claims;
    for (size_t i = 0; i < all->count; i++)
        if (i != c->claim && all->claim[i].project == all->claim[c->claim].project &&
            facts_claim_refuses(&all->claim[i], c->c, cudnn, sm))
            return true;
    return false;
}

static const char *device_of(const facts_audit *audit, size_t target)
{
    return audit->session.targets.at[target].device;
}

static bool same_kind(const facts_case *a, const facts_case *b)
{
    return strcmp(facts_case_get(a, FACTS_KEY_PASS), facts_case_get(b, FACTS_KEY_PASS)) == 0 &&
           strcmp(facts_case_get(a, FACTS_KEY_DTYPE), facts_case_get(b, FACTS_KEY_DTYPE)) == 0;
}

/* What one target says, with one reason, against a pass of a type that no rule refuses is one gap, however many edges show it: told
 * under the first rule. */
static bool told_elsewhere(facts_audit *audit, const facts_audit_case *c, size_t target)
{
    const facts_claim *claims = audit->claims.claim;
    uint32_t reason = facts_tally_cell(&audit->session.tally, target, c->work)->reason;
    for (size_t i = 0; i < audit->gap_count; i++) {
        const facts_audit_gap *g = &audit->gaps[i];
        if (g->reason == reason && g->target == target && claims[g->by->claim].project == claims[c->claim].project &&
            same_kind(g->by->c, c->c))
            return g->by->claim != c->claim;
    }
    facts_audit_gap *grown = realloc(audit->gaps, (audit->gap_count + 1) * sizeof *grown);
    if (!grown)
        return false; /* told again */
    audit->gaps = grown;
    grown[audit->gap_count++] = (facts_audit_gap){ c, target, reason };
    return false;
}

static void judge(facts_audit *audit, size_t first, size_t count, size_t target, facts_trial *trials, facts_audit_verdict *out)
{
    const facts_session *s = &audit->session;
    const char *cudnn = s->targets.at[target].build.version;
    char sm[16];
    name_sm(audit, target, sm);
    for (size_t i = 0; i < count; i++) {
        const facts_audit_case *c = &audit->cases[first + i];
        facts_trial *t = &trials[i];
        *t = (facts_trial){ .reply = audit->replies[target * s->work_count + c->work] };
        t->refused = facts_claim_refuses(&audit->claims.claim[c->claim], c->c, cudnn, sm);
        bool not_taken = t->reply == FACTS_REPLY_REFUSED || t->reply == FACTS_REPLY_UNBUILT || t->reply == FACTS_REPLY_BROKEN;
        t->others = !t->refused && not_taken && (others_refuse(audit, c, cudnn, sm) || told_elsewhere(audit, c, target));
    }
    facts_audit_judge(out, trials, count);
}

/* Targets by device, in the order of the command line, and by version. */
static size_t *order_targets(const facts_audit *audit)
{
    const facts_targets *targets = &audit->session.targets;
    size_t *order = calloc(targets->count + 1, sizeof *order), n = 0;
    for (size_t d = 0; order && d < targets->count; d++) {
        bool seen = false;
        for (size_t i = 0; i < n; i++)
            seen |= strcmp(device_of(audit, order[i]), device_of(audit, d)) == 0;
        for (size_t t = d; !seen && t < targets->count; t++) {
            if (strcmp(device_of(audit, t), device_of(audit, d)) != 0)
                continue;
            size_t at = n++;
            uint32_t a[FACTS_VERSION_PARTS], b[FACTS_VERSION_PARTS];
            facts_version_read(facts_span_of(targets->at[t].build.version), a);
            for (; at > 0 && strcmp(device_of(audit, order[at - 1]), device_of(audit, t)) == 0; at--) {
                facts_version_read(facts_span_of(targets->at[order[at - 1]].build.version), b);
                if (facts_version_compare(b, a) <= 0)
                    break;
                order[at] = order[at - 1];
            }
            order[at] = t;
        }
    }
    return order;
}

/* Versions that say the same with the same side of the rule are one row. */
static void add_row(facts_audit *audit, const facts_audit_row *row)
{
    facts_audit_row *last = audit->row_count ? &audit->rows[audit->row_count - 1] : NULL;
    bool same = last && last->claim == row->claim && strcmp(device_of(audit, last->last), device_of(audit, row->last)) == 0 &&
                memcmp(last->verdict.said, row->verdict.said, sizeof row->verdict.said) == 0 &&
                last->verdict.refuses == row->verdict.refuses;
    for (int w = 0; same && w < FACTS_AUDIT_COUNT; w++)
        same = w == FACTS_AUDIT_AGREES || !row->verdict.said[w] || last->verdict.shows[w] == row->verdict.shows[w];
    if (same)
        last->last = row->last;
    else
        audit->rows[audit->row_count++] = *row;
}

static bool refuses_at(const facts_audit *audit, size_t claim, size_t target)
{
    char sm[16];
    name_sm(audit, target, sm);
    return facts_claim_refuses_any(&audit->claims.claim[claim], audit->session.targets.at[target].build.version, sm);
}

/* A device for which the rule refuses nothing in any version asked says nothing about the rule. */
static void judge_claim(facts_audit *audit, size_t first, size_t count, const size_t *order, facts_trial *trials)
{
    size_t targets = audit->session.targets.count, claim = audit->cases[first].claim;
    for (size_t from = 0, to; from < targets; from = to) {
        bool refuses = false;
        for (to = from; to < targets && strcmp(device_of(audit, order[to]), device_of(audit, order[from])) == 0; to++)
            refuses |= refuses_at(audit, claim, order[to]);
        for (size_t t = from; refuses && t < to; t++) {
            facts_audit_row row = { claim, order[t], order[t], { .refuses = false }, first };
            judge(audit, first, count, order[t], trials, &row.verdict);
            add_row(audit, &row);
        }
    }
}

static int judge_all(facts_audit *audit)
{
    size_t targets = audit->session.targets.count, *order = order_targets(audit);
    facts_trial *trials = calloc(audit->count + 1, sizeof *trials);
    audit->rows = calloc(audit->claims.count * targets + 1, sizeof *audit->rows);
    bool ok = order && trials && audit->rows;
    for (size_t first = 0, next; ok && first < audit->count; first = next) {
        for (next = first; next < audit->count && audit->cases[next].claim == audit->cases[first].claim;)
            next++;
        judge_claim(audit, first, next - first, order, trials);
    }
    free(order);
    free(trials);
    return ok ? FACTS_EXIT_OK : facts_no_memory();
}

static int exit_of(const facts_audit *audit)
{
    const facts_session *s = &audit->session;
    bool found = false, open = false;
    for (size_t i = 0; i < audit->row_count; i++) {
        found |= audit->rows[i].verdict.said[FACTS_AUDIT_TOO_STRICT] || audit->rows[i].verdict.said[FACTS_AUDIT_TOO_LOOSE];
        open |= audit->rows[i].verdict.said[FACTS_AUDIT_UNKNOWN];
    }
    if (s->counts.interrupted)
        return FACTS_EXIT_INTERRUPTED;
    if (s->counts.record_failed || s->counts.target_failed)
        return FACTS_EXIT_ENVIRONMENT;
    if (s->counts.done < s->counts.planned || audit->partial)
        return FACTS_EXIT_INCOMPLETE;
    return found ? FACTS_EXIT_FINDINGS : open ? FACTS_EXIT_ENVIRONMENT : FACTS_EXIT_OK;
}

static int audit_chosen(facts_audit *audit, const facts_options *o)
{
    facts_error error = { 0 };
    facts_predicate *where = NULL;
    if (o->where && !facts_predicate_parse(&where, o->where, &error))
        return facts_complain(FACTS_EXIT_BAD_INPUT, "%s", error.text);
    int status = o->from ? facts_audit_targets_from(audit, o)
                         : facts_session_targets(&audit->session, o->cudnn, o->device ? o->device : DEFAULT_DEVICES);
    if (status == FACTS_EXIT_OK && !o->from)
        status = kind_of_run(audit);
    if (status == FACTS_EXIT_OK && !collect(audit, where))
        status = facts_no_memory();
    facts_predicate_destroy(where);
    if (status == FACTS_EXIT_OK && !audit->count && (o->where || o->from)) {
        fprintf(stderr, "facts audit: no case of these rules %s\n", o->where ? "satisfies --where" : "is in the record");
        status = FACTS_EXIT_NOTHING;
    }
    if (status == FACTS_EXIT_OK && audit->count)
        status = ask(audit, o);
    if (status == FACTS_EXIT_OK && audit->count)
        status = judge_all(audit);
    return status;
}

int facts_command_audit(const facts_invocation *call)
{
    const facts_options *o = call->options;
    if (o->from && (o->cudnn || o->device || o->output || o->plan))
        return facts_complain(FACTS_EXIT_BAD_INPUT, "facts audit: --from reads records: no builds, devices or -o beside it");
    facts_options quiet = *o; /* a session would print its rows, and take --where for names that are not the file's */
    quiet.json = false;
    quiet.where = NULL;
    facts_audit audit = { .session = {
                              .options = &quiet, .argc = call->argc, .argv = call->argv, .keep_record = true, .on_row = on_row } };
    audit.session.context = &audit;
    char **paths = NULL;
    size_t count = 0;
    int status = load(&audit, o, &paths, &count);
    if (status == FACTS_EXIT_OK)
        status = choose(&audit, o);
    if (status == FACTS_EXIT_OK)
        status = audit_chosen(&audit, o);
    if (status == FACTS_EXIT_OK) {
        if (o->markdown && !o->json)
            status = facts_audit_print_markdown(&audit);
        else
            (o->json ? facts_audit_print_json : facts_audit_print)(&audit, stdout);
        status = status == FACTS_EXIT_OK ? exit_of(&audit) : status;
    }
    facts_session_free(&audit.session);
    facts_claims_clear(&audit.claims);
    facts_folder_free(paths, count);
    for (size_t i = 0; i < audit.known_count; i++)
        free(audit.known[i]);
    free(audit.known);
    free(audit.chosen);
    free(audit.cases);
    free(audit.replies);
    free(audit.rows);
    free(audit.gaps);
    return status;
}
