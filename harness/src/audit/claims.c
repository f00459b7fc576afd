#include "claims.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/language/pattern.h"
#include "case/suites/file_lines.h"
#include "straddle.h"

#define MOST_LETTERS 16384 /* of one line */
#define MOST_PAIRS 64      /* of one rule: each is looked at for every version and device */

#define AS_WORD(symbol, word, what) word,
static const char *const kinds[] = { FACTS_CLAIM_LIST(AS_WORD) };
#undef AS_WORD

const char *facts_claim_word(facts_claim_kind kind)
{
    return kinds[kind];
}

typedef struct reader {
    facts_claims *claims;
    facts_lines in;
    size_t first_project, first_claim;
    bool kind_said;
} reader;

static facts_claim *current(const reader *r)
{
    return r->claims->count > r->first_claim ? &r->claims->claim[r->claims->count - 1] : NULL;
}

/* Texts of one key may take several lines. */
static bool append(reader *r, char **to, const char *between, facts_span text)
{
    size_t before = strlen(*to), gap = before ? strlen(between) : 0;
    char *longer = realloc(*to, before + gap + text.length + 1);
    if (!longer)
        return facts_lines_fail(&r->in, NULL, "no memory");
    *to = longer;
    memcpy(longer + before, between, gap);
    memcpy(longer + before + gap, text.at, text.length);
    longer[before + gap + text.length] = '\0';
    return true;
}

/* ---- what a finished rule must have -------------------------------------------------------------------------------------------
 */

static bool finish(reader *r)
{
    facts_claim *claim = current(r);
    if (!claim)
        return true;
    const facts_place *at = &claim->place;
    const char *lacks = NULL;
    if (!*claim->says)
        lacks = "says: what the project says, and in which file";
    else if (!r->kind_said)
        lacks = "kind: decision, numbers or caller";
    else if (!*claim->untestable && !claim->refuse_count)
        lacks = "refuse: a predicate, or untestable: why";
    else if (!*claim->untestable && !claim->edges)
        lacks = "edge: COMMON | REFUSED | LET THROUGH, or untestable: why";
    else if (claim->kind == FACTS_CLAIM_CALLER && !*claim->untestable)
        lacks = "untestable: why; no backend answers a rule of this kind";
    if (lacks)
        return facts_fail_at(r->in.error, at->where, at->line, at->column, "the rule %.60s lacks %s", claim->id, lacks);
    if (*claim->untestable && (claim->refuse_count || claim->edges))
        return facts_fail_at(r->in.error, at->where, at->line, at->column,
                             "the rule %.60s is untestable and has a predicate or an edge", claim->id);
    return *claim->untestable || facts_claim_straddles(claim, r->in.error);
}

/* ---- lines --------------------------------------------------------------------------------------------------------------------
 */

static bool read_project(reader *r, facts_span text)
{
    facts_claims *all = r->claims;
    facts_span version = text, name = facts_span_word(&version);
    version = facts_span_trim(version);
    if (!finish(r))
        return false;
    r->first_claim = all->count;
    if (!name.length || !version.length)
        return facts_lines_fail(&r->in, text.at, "project: takes a name and a version");
    facts_project *grown = facts_grow(all->project, all->projects, sizeof *grown);
    if (!grown)
        return facts_lines_fail(&r->in, NULL, "no memory");
    all->project = grown;
    facts_project *p = &grown[all->projects++];
    *p = (facts_project){ strndup(name.at, name.length), strndup(version.at, version.length), strdup("") };
    return (p->name && p->version && p->link) || facts_lines_fail(&r->in, NULL, "no memory");
}

static bool read_rule(reader *r, facts_span id)
{
    facts_claims *all = r->claims;
    char quote[FACTS_QUOTE_MAX];
    if (!finish(r))
        return false;
    if (all->projects == r->first_project)
        return facts_lines_fail(&r->in, NULL, "belongs to a project; project: NAME VERSION opens one");
    for (size_t i = 0; i < id.length; i++)
        if (facts_is_blank(id.at[i]))
            return facts_lines_fail(&r->in, id.at, "a rule's name has no blanks");
    if (!id.length || id.length > 60)
        return facts_lines_fail(&r->in, id.at, "rule: takes a name of at most 60 letters");
    for (size_t i = 0; i < all->count; i++)
        if (facts_span_is(id, all->claim[i].id))
            return facts_lines_fail(&r->in, id.at, "%s is there already: %s:%d", facts_quote(quote, id), all->claim[i].place.where,
                                    all->claim[i].place.line);
    facts_claim *grown = facts_grow(all->claim, all->count, sizeof *grown);
    if (!grown)
        return facts_lines_fail(&r->in, NULL, "no memory");
    all->claim = grown;
    facts_claim *claim = &grown[all->count++];
    *claim = (facts_claim){ .id = strndup(id.at, id.length),
                            .says = strdup(""),
                            .note = strdup(""),
                            .untestable = strdup(""),
                            .refuses = strdup(""),
                            .project = all->projects - 1,
                            .place = { r->in.where, r->in.line, 1 } };
    r->kind_said = false;
    return (claim->id && claim->says && claim->note && claim->untestable && claim->refuses) ||
           facts_lines_fail(&r->in, NULL, "no memory");
}

static bool read_kind(reader *r, facts_span text)
{
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX];
    facts_nearest nearest = facts_nearest_start(text);
    for (int k = 0; k < FACTS_CLAIM_COUNT; k++) {
        if (facts_span_is(text, kinds[k])) {
            current(r)->kind = (facts_claim_kind)k;
            r->kind_said = true;
            return true;
        }
        facts_nearest_offer(&nearest, kinds[k], strlen(kinds[k]));
    }
    return facts_lines_fail(&r->in, text.at, "%s is not a kind; allowed: decision numbers caller%s", facts_quote(quote, text),
                            facts_nearest_hint(&nearest, hint));
}

static bool read_predicate(reader *r, facts_span text, facts_predicate ***list, size_t *count)
{
    facts_predicate **grown = facts_grow(*list, *count, sizeof(void *));
    if (!grown)
        return facts_lines_fail(&r->in, text.at, "no memory");
    *list = grown;
    if (!facts_lines_predicate(&r->in, text, "", &grown[*count]))
        return false;
    ++*count;
    return true;
}

/* The line with everything but two of its parts made blank: columns stay what they are. */
static char *only(facts_span line, facts_span a, facts_span b)
{
    char *out = strndup(line.at, line.length);
    for (size_t i = 0; out && i < line.length; i++) {
        const char *at = line.at + i;
        if (!(at >= a.at && at < a.at + a.length) && !(at >= b.at && at < b.at + b.length))
            out[i] = ' ';
    }
    return out;
}

/* The value of a key in a name, which says what does not follow from the rest; empty when it has none. */
static facts_span said(const char *name, facts_key key)
{
    facts_span rest = facts_span_of(name), token;
    while ((token = facts_span_word(&rest)).length > 0) {
        facts_span value = token, word = facts_span_cut(&value, '=');
        if (facts_span_is(word, facts_keys[key].word))
            return value;
    }
    return (facts_span){ name, 0 };
}

/* The three keys of the band count as one: mask=causal is a window too. */
static bool one_axis_apart(reader *r, const facts_case *a, const facts_case *b)
{
    int apart = 0, band = 0;
    char keys[120] = "", one[FACTS_NAME_MAX], two[FACTS_NAME_MAX];
    facts_case_name(a, one);
    facts_case_name(b, two);
    for (facts_key key = 0; key < FACTS_KEY_COUNT; key++) {
        facts_span left = said(one, key), right = said(two, key);
        size_t used = strlen(keys);
        if (left.length == right.length && memcmp(left.at, right.at, left.length) == 0)
            continue;
        snprintf(keys + used, sizeof keys - used, " %s", facts_keys[key].word);
        if (key == FACTS_KEY_MASK || key == FACTS_KEY_WINDOW || key == FACTS_KEY_ALIGN)
            band = 1;
        else
            apart++;
    }
    return apart + band == 1 ||
           facts_lines_fail(
               &r->in, NULL,
               "the two sides of an edge differ in exactly one key (mask, window and align are one); these differ in%s",
               *keys ? keys : " none");
}

static bool add_pair(reader *r, facts_pattern *refused, facts_pattern *other, uint64_t i)
{
    facts_claim *claim = current(r);
    facts_edge *grown = facts_grow(claim->edge, claim->edges, sizeof *grown);
    if (!grown)
        return facts_lines_fail(&r->in, NULL, "no memory");
    claim->edge = grown;
    facts_edge *e = &grown[claim->edges];
    *e = (facts_edge){ .has_other = other != NULL, .place = { r->in.where, r->in.line, 1 } };
    if (!facts_pattern_at(refused, i, &e->refused, r->in.error) || (other && !facts_pattern_at(other, i, &e->other, r->in.error)))
        return false;
    if (other && !one_axis_apart(r, &e->refused, &e->other))
        return false;
    claim->edges++;
    return true;
}

static bool add_pairs(reader *r, const char *refused, const char *other)
{
    const facts_place place = { r->in.where, r->in.line, 1 };
    facts_pattern *a = NULL, *b = NULL;
    bool ok = facts_pattern_read(&a, facts_span_of(refused), place, r->in.error) &&
              (!other || facts_pattern_read(&b, facts_span_of(other), place, r->in.error));
    uint64_t count = ok ? facts_pattern_count(a) : 0;
    if (ok && b && facts_pattern_count(b) != count)
        ok = facts_lines_fail(&r->in, NULL, "the two sides of an edge have as many cases each");
    if (ok && count > MOST_PAIRS - current(r)->edges)
        ok = facts_lines_fail(&r->in, NULL, "a rule has at most 64 pairs of cases");
    for (uint64_t i = 0; i < count && ok; i++)
        ok = add_pair(r, a, b, i);
    facts_pattern_destroy(a);
    facts_pattern_destroy(b);
    return ok;
}

static bool read_edge(reader *r, facts_span text)
{
    facts_span whole = { r->in.start, (size_t)(text.at + text.length - r->in.start) };
    facts_span rest = text, common = facts_span_cut(&rest, '|'), refused = facts_span_cut(&rest, '|'), other = rest;
    bool pair = common.length < text.length, both = pair && facts_span_trim(refused).length && facts_span_trim(other).length;
    if (pair && (!both || memchr(other.at, '|', other.length)))
        return facts_lines_fail(&r->in, text.at, "edge: takes COMMON | REFUSED | LET THROUGH, or COMMON alone");
    char *one = only(whole, common, pair ? refused : common), *two = pair ? only(whole, common, other) : NULL;
    bool ok = one && (!pair || two) ? add_pairs(r, one, two) : facts_lines_fail(&r->in, NULL, "no memory");
    free(one);
    free(two);
    return ok;
}

/* The words that begin a line. X(SYMBOL, "word") */
#define LINE_LIST(X)                                                                                                               \
    X(PROJECT, "project")                                                                                                          \
    X(LINK, "link")                                                                                                                \
    X(RULE, "rule")                                                                                                                \
    X(SAYS, "says")                                                                                                                \
    X(KIND, "kind") X(REFUSE, "refuse") X(UNLESS, "unless") X(EDGE, "edge") X(UNTESTABLE, "untestable") X(NOTE, "note")
#define AS_ENUM(symbol, word) LINE_##symbol,
typedef enum line_kind { LINE_LIST(AS_ENUM) LINE_COUNT } line_kind;
#undef AS_ENUM

static line_kind line_of(reader *r, facts_span word)
{
#define AS_TEXT(symbol, text) text,
    static const char *const words[] = { LINE_LIST(AS_TEXT) };
#undef AS_TEXT
    char quote[FACTS_QUOTE_MAX], hint[FACTS_QUOTE_MAX];
    facts_nearest nearest = facts_nearest_start(word);
    for (int k = 0; k < LINE_COUNT; k++) {
        if (facts_span_is(word, words[k]))
            return (line_kind)k;
        facts_nearest_offer(&nearest, words[k], strlen(words[k]));
    }
    facts_lines_fail(
        &r->in, NULL,
        "%s begins no line of claims; allowed: project: link: rule: says: kind: refuse: unless: edge: untestable: note:%s",
        facts_quote(quote, word), facts_nearest_hint(&nearest, hint));
    return LINE_COUNT;
}

static bool read_line(void *context, facts_span text)
{
    reader *r = context;
    facts_span rest = text, word = facts_span_cut(&rest, ':'), said = facts_span_trim(rest);
    line_kind kind = line_of(r, word);
    facts_claim *claim = current(r);
    if (kind == LINE_COUNT)
        return false;
    if (!said.length)
        return facts_lines_fail(&r->in, text.at + text.length, "something is due after the colon");
    if (kind == LINE_LINK && r->claims->projects == r->first_project)
        return facts_lines_fail(&r->in, NULL, "belongs to a project; project: NAME VERSION opens one");
    if (kind > LINE_RULE && !claim)
        return facts_lines_fail(&r->in, NULL, "belongs to a rule; rule: NAME opens one");
    switch (kind) {
    case LINE_PROJECT:
        return read_project(r, said);
    case LINE_LINK:
        return append(r, &r->claims->project[r->claims->projects - 1].link, " ", said);
    case LINE_RULE:
        return read_rule(r, said);
    case LINE_SAYS:
        return append(r, &claim->says, " ", said);
    case LINE_KIND:
        return read_kind(r, said);
    case LINE_REFUSE:
        return read_predicate(r, said, &claim->refuse, &claim->refuse_count) && append(r, &claim->refuses, "; or ", said);
    case LINE_UNLESS:
        return read_predicate(r, said, &claim->unless, &claim->unless_count) && append(r, &claim->refuses, "; unless ", said);
    case LINE_EDGE:
        return read_edge(r, said);
    case LINE_UNTESTABLE:
        return append(r, &claim->untestable, " ", said);
    default:
        return append(r, &claim->note, " ", said);
    }
}

bool facts_claims_read(facts_claims *claims, const char *text, const char *where, facts_error *error)
{
    reader r = { .claims = claims,
                 .in = { .where = where, .most = MOST_LETTERS, .error = error },
                 .first_project = claims->projects,
                 .first_claim = claims->count };
    if (!facts_lines_each(&r.in, text, read_line, &r))
        return false;
    if (claims->count == r.first_claim && claims->projects == r.first_project)
        return facts_fail_at(error, where, 1, 1, "no rule is in this file");
    return finish(&r);
}

bool facts_claim_refuses(const facts_claim *claim, const facts_case *c, const char *cudnn, const char *sm)
{
    const facts_subject subject = { .c = c, .cudnn = cudnn, .sm = sm };
    bool refuses = false;
    for (size_t i = 0; i < claim->refuse_count && !refuses; i++)
        refuses = facts_predicate_holds(claim->refuse[i], &subject);
    for (size_t i = 0; i < claim->unless_count && refuses; i++)
        refuses = !facts_predicate_holds(claim->unless[i], &subject);
    return refuses;
}

bool facts_claim_asked(char out[FACTS_NAME_MAX], const facts_case *c, bool measured, facts_error *error)
{
    facts_case asked;
    if (!c)
        return false;
    asked = *c;
    bool ok = facts_case_set(&asked, FACTS_KEY_GUARDS, "off", error) &&
              (!measured || strcmp(facts_case_get(c, FACTS_KEY_ENGINE), "auto") != 0 ||
               facts_case_set(&asked, FACTS_KEY_ENGINE, "all", error));
    if (ok)
        facts_case_name(&asked, out);
    return ok;
}

static void free_predicates(facts_predicate **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        facts_predicate_destroy(list[i]);
    free(list);
}

void facts_claims_clear(facts_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++) {
        facts_claim *c = &claims->claim[i];
        free(c->id);
        free(c->says);
        free(c->note);
        free(c->untestable);
        free(c->refuses);
        free_predicates(c->refuse, c->refuse_count);
        free_predicates(c->unless, c->unless_count);
        free(c->edge);
    }
    for (size_t i = 0; i < claims->projects; i++) {
        free(claims->project[i].name);
        free(claims->project[i].version);
        free(claims->project[i].link);
    }
    free(claims->claim);
    free(claims->project);
    *claims = (facts_claims){ 0 };
}
