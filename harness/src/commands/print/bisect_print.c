/* What a bisection came to, for people and as JSON. */
#include <string.h>

#include "commands/bisection.h"
#include "record/text.h"

#define DESCRIBED (FACTS_SAID_VALUE + 400) /* room for what one version said */
#define WHY_NOT (FACTS_SAID_VALUE * 3)

const char *facts_bisection_version(const facts_bisection *b, size_t version)
{
    return b->at[version].target.build.version;
}

static const facts_said *said_of(const facts_bisection *b, size_t version)
{
    return &b->at[version].said[0];
}

static const char *device_of(const facts_bisection *b)
{
    return b->device[0] ? b->device : b->at[0].target.device;
}

/* "pass, engines 8 10"; "unsupported: SDPA only supports ..., known: LINK". */
static const char *describe(const facts_said *said, char out[DESCRIBED])
{
    size_t used = (size_t)snprintf(out, FACTS_SAID_VALUE, "%s", facts_verdict_name(said->verdict));
    if (said->backend[0] && strcmp(said->backend, "cudnn") != 0) {
        used += (size_t)snprintf(out + used, 40, ", backend %s", said->backend);
    } else if (said->verdict == FACTS_VERDICT_UNSUPPORTED || !said->engines[0]) {
        if (said->engine >= 0)
            used += (size_t)snprintf(out + used, 40, ", engine %lld", (long long)said->engine);
    } else {
        used += (size_t)snprintf(out + used, 160, ", engine%s %s", strchr(said->engines, ' ') ? "s" : "", said->engines);
    }
    if (said->verdict != FACTS_VERDICT_PASS && said->text[0])
        used += (size_t)snprintf(out + used, sizeof said->text + 4, ": %s", said->text);
    if (said->link[0])
        snprintf(out + used, sizeof said->link + 16, " (known: %s)", said->link);
    return out;
}

/* Why a version has no part in the answer. */
static const char *why_not(const facts_bisection *b, size_t version, char out[WHY_NOT])
{
    const facts_bisected *v = &b->at[version];
    char first[FACTS_SAID_VALUE], second[FACTS_SAID_VALUE];
    if (b->result.state[version] == FACTS_BISECT_FLAKY)
        snprintf(out, WHY_NOT, "is not repeatable: %s, then %s", facts_said_value(&v->said[0], b->by, first),
                 facts_said_value(&v->said[1], b->by, second));
    else if (v->said[0].verdict == FACTS_VERDICT_MISTRUSTED)
        snprintf(out, WHY_NOT, "gave an answer that its data cannot judge (mistrusted)");
    else
        snprintf(out, WHY_NOT, "could not be asked: %s",
                 v->why[0]            ? v->why
                 : v->said[0].text[0] ? v->said[0].text
                                      : "its worker gave no answer");
    return out;
}

static bool is_good(const facts_bisection *b, size_t version)
{
    return said_of(b, version)->verdict == FACTS_VERDICT_PASS;
}

static const char *change_of(const facts_bisection *b, const facts_bisect_edge *edge)
{
    bool before = is_good(b, edge->before), after = is_good(b, edge->after);
    return before == after ? "changed" : before ? "lost" : "gained";
}

/* How one side of an edge is called. */
static const char *side_of(const facts_bisection *b, const facts_bisect_edge *edge, size_t version, char out[FACTS_SAID_VALUE])
{
    if (b->by == FACTS_BY_VERDICT && is_good(b, edge->before) != is_good(b, edge->after))
        return is_good(b, version) ? "good" : "bad";
    return facts_said_value(said_of(b, version), b->by, out);
}

/* The command that asks both sides again. */
static const char *repeat(const facts_bisection *b, const facts_bisect_edge *edge, char *out, size_t capacity)
{
    static const char *const verbs[] = { [FACTS_TASK_DECIDE] = "decide", [FACTS_TASK_PLAN] = "decide", [FACTS_TASK_RUN] = "run" };
    snprintf(out, capacity, "facts %s '%s' --cudnn %s,%s --device %s%s", verbs[b->task], b->name,
             b->at[edge->before].target.build.name, b->at[edge->after].target.build.name, b->device_word,
             b->task == FACTS_TASK_PLAN ? " --plan" : "");
    return out;
}

/* The versions from..last: "9.8.0 .. 9.12.0". */
static const char *range_of(const facts_bisection *b, size_t from, size_t last, char out[40])
{
    snprintf(out, 40, "%s%s%s", facts_bisection_version(b, from), last > from ? " .. " : "",
             last > from ? facts_bisection_version(b, last) : "");
    return out;
}

static bool has_no_part(const facts_bisection *b, size_t version)
{
    return b->result.state[version] == FACTS_BISECT_SILENT || b->result.state[version] == FACTS_BISECT_FLAKY;
}

/* The last of the versions that have no part for the same reason as the first of them. */
static size_t end_of_silence(const facts_bisection *b, size_t from)
{
    char first[WHY_NOT], next[WHY_NOT];
    size_t last = from;
    why_not(b, from, first);
    while (last + 1 < b->versions && has_no_part(b, last + 1) && strcmp(first, why_not(b, last + 1, next)) == 0)
        last++;
    return last;
}

/* The last of the versions that answer as the first of them. */
static size_t end_of_stretch(const facts_bisection *b, size_t from)
{
    size_t last = from;
    while (last + 1 < b->versions && b->result.state[last + 1] == FACTS_BISECT_ANSWERED &&
           b->result.value[last + 1] == b->result.value[from])
        last++;
    return last;
}

/* What all of a stretch said; of what they did not all say, that they did not. */
static const char *describe_stretch(const facts_bisection *b, size_t from, size_t last, char out[DESCRIBED])
{
    char other[DESCRIBED];
    const facts_said *first = said_of(b, from);
    bool same_engines = true;
    describe(first, out);
    for (size_t v = from + 1; v <= last; v++) {
        same_engines &= strcmp(first->engines, said_of(b, v)->engines) == 0;
        if (strcmp(out, describe(said_of(b, v), other)) == 0)
            continue;
        facts_said_value(first, b->by, out);
        size_t used = strlen(out);
        snprintf(out + used, DESCRIBED - used, ", %s differ (--by %s)", same_engines ? "reasons" : "engines",
                 same_engines ? "reason" : "engines");
        break;
    }
    return out;
}

/* A no that is ours says nothing of cuDNN. */
static void print_guard(const facts_bisection *b, const facts_bisect_edge *edge)
{
    char name[FACTS_NAME_MAX];
    facts_error ignored;
    facts_case free_of_guards = b->c;
    for (int i = 0; i < 2; i++) {
        const facts_said *said = said_of(b, i ? edge->after : edge->before);
        if (said->verdict != FACTS_VERDICT_UNSUPPORTED || strcmp(said->class_word, "policy") != 0 ||
            !facts_case_set(&free_of_guards, FACTS_KEY_GUARDS, "off", &ignored))
            continue;
        printf("  the no of %s is a guard of ours%s%s, not cuDNN's; cuDNN itself:\n    facts bisect '%s' --cudnn %s..%s --device "
               "%s%s\n",
               facts_bisection_version(b, i ? edge->after : edge->before), said->rule[0] ? ": " : "", said->rule,
               facts_case_name(&free_of_guards, name), facts_bisection_version(b, 0), facts_bisection_version(b, b->versions - 1),
               b->device_word, b->options->plan ? " --plan" : "");
        return;
    }
}

static void print_edge(const facts_bisection *b, const facts_bisect_edge *edge)
{
    char text[WHY_NOT], before[FACTS_SAID_VALUE], after[FACTS_SAID_VALUE], range[40], line[FACTS_NAME_MAX + 300];
    bool plain = b->by == FACTS_BY_VERDICT;
    if (edge->after == edge->before + 1)
        printf(plain ? "%s: last %s %s, first %s %s\n" : "%s: %s up to %s, %s from %s\n", change_of(b, edge),
               side_of(b, edge, edge->before, before), facts_bisection_version(b, edge->before),
               side_of(b, edge, edge->after, after), facts_bisection_version(b, edge->after));
    else
        printf("%s between %s (%s) and %s (%s)\n", change_of(b, edge), facts_bisection_version(b, edge->before),
               side_of(b, edge, edge->before, before), facts_bisection_version(b, edge->after),
               side_of(b, edge, edge->after, after));
    for (size_t v = edge->before + 1; v < edge->after; v = end_of_silence(b, v) + 1)
        printf("  %s %s\n", range_of(b, v, end_of_silence(b, v), range), why_not(b, v, text));
    printf("  %-8s %s\n", facts_bisection_version(b, edge->before), describe(said_of(b, edge->before), text));
    printf("  %-8s %s\n", facts_bisection_version(b, edge->after), describe(said_of(b, edge->after), text));
    print_guard(b, edge);
    printf("  again: %s\n", repeat(b, edge, line, sizeof line));
}

/* With --all: each stretch of versions that answer alike, and what has no part in it. */
static void print_stretches(const facts_bisection *b)
{
    char text[WHY_NOT], range[40];
    size_t last;
    for (size_t v = 0; v < b->versions; v = last + 1) {
        bool silent = has_no_part(b, v);
        last = silent ? end_of_silence(b, v) : end_of_stretch(b, v);
        printf("  %-18s %s\n", range_of(b, v, last, range), silent ? why_not(b, v, text) : describe_stretch(b, v, last, text));
    }
    fputs("\n", stdout);
}

/* Of versions beside the edges that were asked and have no part in the answer. */
static void print_silent(const facts_bisection *b)
{
    char text[WHY_NOT], range[40];
    for (size_t v = 0; v < b->versions; v++) {
        bool told = b->options->all || !has_no_part(b, v);
        for (size_t i = 0; i < b->result.edges; i++)
            told |= v > b->result.edge[i].before && v < b->result.edge[i].after;
        if (told)
            continue;
        size_t last = end_of_silence(b, v);
        printf("%s %s\n", range_of(b, v, last, range), why_not(b, v, text));
        v = last;
    }
}

static void print_equal(const facts_bisection *b)
{
    char text[DESCRIBED], other[DESCRIBED];
    const char *first = facts_bisection_version(b, b->result.first), *last = facts_bisection_version(b, b->result.last);
    if (b->options->all) {
        printf("no edge: every version that answered, from %s to %s, answers alike\n", first, last);
        return;
    }
    printf("no edge between the ends: %s and %s answer alike\n", first, last);
    describe(said_of(b, b->result.first), text);
    describe(said_of(b, b->result.last), other);
    printf("  %-8s %s\n", first, text);
    if (strcmp(text, other) != 0)
        printf("  %-8s %s\n", last, other);
    puts("what was lost and regained between them, --all finds");
}

static size_t count_asked(const facts_bisection *b)
{
    size_t n = 0;
    for (size_t v = 0; v < b->versions; v++)
        n += b->at[v].known[0];
    return n;
}

static void print_text(const facts_bisection *b)
{
    printf("%s\non %s, by %s, %zu versions of cuDNN from %s to %s\n\n", b->name, device_of(b), facts_by_word(b->by), b->versions,
           facts_bisection_version(b, 0), facts_bisection_version(b, b->versions - 1));
    if (b->options->all)
        print_stretches(b);
    for (size_t i = 0; i < b->result.edges; i++)
        print_edge(b, &b->result.edge[i]);
    if (b->result.outcome == FACTS_BISECT_EQUAL)
        print_equal(b);
    if (b->result.outcome == FACTS_BISECT_NOTHING)
        puts("no answer: fewer than two versions could be asked");
    print_silent(b);
    printf("%zu of %zu versions asked%s\n", count_asked(b), b->versions,
           b->result.edges ? "; both sides of an edge twice, with the same answer" : "");
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

static void add_said(facts_text *line, const char *key, const facts_bisection *b, size_t version)
{
    const facts_said *said = said_of(b, version);
    facts_text_format(line, "\"%s\":{", key);
    facts_text_member(line, "cudnn", facts_bisection_version(b, version));
    facts_text_member(line, "build", b->at[version].target.build.name);
    facts_text_member(line, "verdict", facts_verdict_name(said->verdict));
    if (said->engine >= 0)
        facts_text_member_int(line, "engine", said->engine);
    static const char *const keys[] = { "engines", "knobs", "class", "text", "rule", "known" };
    const char *const values[] = { said->engines, said->knobs, said->class_word, said->text, said->rule, said->link };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (values[i][0])
            facts_text_member(line, keys[i], values[i]);
    facts_text_close(line);
    facts_text_puts(line, ",");
}

static void add_silent(facts_text *line, const char *key, const facts_bisection *b, size_t from, size_t to)
{
    char why[WHY_NOT];
    bool any = false;
    facts_text_format(line, "\"%s\":[", key);
    for (size_t v = from; v < to; v++) {
        if (!has_no_part(b, v))
            continue;
        facts_text_puts(line, any ? ",{" : "{");
        facts_text_member(line, "cudnn", facts_bisection_version(b, v));
        facts_text_member(line, "why", why_not(b, v, why));
        facts_text_close(line);
        any = true;
    }
    facts_text_puts(line, "],");
}

static void begin(facts_text *line, const facts_bisection *b)
{
    facts_text_puts(line, "{");
    facts_text_member(line, "case", b->name);
    facts_text_member(line, "device", device_of(b));
    facts_text_member(line, "by", facts_by_word(b->by));
}

static void end(facts_text *line)
{
    facts_text_close(line);
    if (!line->failed)
        puts(line->data);
    facts_text_free(line);
}

static void print_json(const facts_bisection *b)
{
    static const char *const outcomes[] = { "waiting", "nothing", "equal", "found" };
    char repro[FACTS_NAME_MAX + 300];
    for (size_t i = 0; i < b->result.edges; i++) {
        const facts_bisect_edge *edge = &b->result.edge[i];
        facts_text line = { 0 };
        begin(&line, b);
        facts_text_member(&line, "change", change_of(b, edge));
        add_said(&line, "before", b, edge->before);
        add_said(&line, "after", b, edge->after);
        add_silent(&line, "between", b, edge->before + 1, edge->after);
        facts_text_member(&line, "repro", repeat(b, edge, repro, sizeof repro));
        end(&line);
    }
    facts_text line = { 0 };
    begin(&line, b);
    facts_text_member(&line, "outcome", outcomes[b->result.outcome]);
    facts_text_member_int(&line, "edges", (int64_t)b->result.edges);
    facts_text_format(&line, "\"whole\":%s,", b->result.whole ? "true" : "false");
    facts_text_member(&line, "from", facts_bisection_version(b, 0));
    facts_text_member(&line, "to", facts_bisection_version(b, b->versions - 1));
    facts_text_member_int(&line, "versions", (int64_t)b->versions);
    facts_text_member_int(&line, "asked", (int64_t)count_asked(b));
    add_silent(&line, "silent", b, 0, b->versions);
    end(&line);
}

void facts_bisection_print(const facts_bisection *b)
{
    if (b->options->json)
        print_json(b);
    else
        print_text(b);
}
