/* What a bisection came to, for people and as JSON. */
#include <string.h>

#include "bisection.h"
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

static bool has_no_part(const facts_bisection *b, size_t version)
{
    return b->result.state[version] == FACTS_BISECT_SILENT || b->result.state[version] == FACTS_BISECT_FLAKY;
}

/* What one version answered, or why it has no part. */
static const char *line_of(const facts_bisection *b, size_t version, char out[WHY_NOT])
{
    return has_no_part(b, version) ? why_not(b, version, out) : describe(said_of(b, version), out);
}

/* Every version that was asked; neighbours that say the same share a line. */
static size_t print_versions(const facts_bisection *b)
{
    char text[WHY_NOT], next[WHY_NOT], range[40];
    size_t asked = 0;
    for (size_t v = 0, end; v < b->versions; v = end) {
        end = v + 1;
        if (!b->at[v].known[0])
            continue;
        line_of(b, v, text);
        while (end < b->versions && b->at[end].known[0] && strcmp(text, line_of(b, end, next)) == 0)
            end++;
        snprintf(range, sizeof range, "%s%s%s", facts_bisection_version(b, v), end > v + 1 ? " .. " : "",
                 end > v + 1 ? facts_bisection_version(b, end - 1) : "");
        printf("  %-18s %s\n", range, text);
        asked += end - v;
    }
    return asked;
}

/* A refusal by FACTS itself says nothing about cuDNN: the command that asks cuDNN. */
static void print_guard(const facts_bisection *b, const facts_bisect_edge *edge)
{
    char name[FACTS_NAME_MAX];
    facts_error ignored;
    facts_case free_of_guards = b->c;
    for (int i = 0; i < 2; i++) {
        const size_t version = i ? edge->after : edge->before;
        const facts_said *said = said_of(b, version);
        if (said->verdict != FACTS_VERDICT_UNSUPPORTED || strcmp(said->class_word, "policy") != 0 ||
            !facts_case_set(&free_of_guards, FACTS_KEY_GUARDS, "off", &ignored))
            continue;
        printf("  a guard of FACTS refuses %s%s%s. To ask cuDNN itself:\n    facts bisect '%s' --cudnn %s..%s --device %s%s\n",
               facts_bisection_version(b, version), said->rule[0] ? ": " : "", said->rule, facts_case_name(&free_of_guards, name),
               facts_bisection_version(b, 0), facts_bisection_version(b, b->versions - 1), b->device_word,
               b->options->plan ? " --plan" : "");
        return;
    }
}

static void print_edge(const facts_bisection *b, const facts_bisect_edge *edge)
{
    char before[FACTS_SAID_VALUE], after[FACTS_SAID_VALUE], line[FACTS_NAME_MAX + 300];
    printf(edge->after > edge->before + 1 ? "%s between: %s %s, %s %s\n"
           : b->by == FACTS_BY_VERDICT    ? "%s: last %s %s, first %s %s\n"
                                          : "%s: %s up to %s, %s from %s\n",
           change_of(b, edge), side_of(b, edge, edge->before, before), facts_bisection_version(b, edge->before),
           side_of(b, edge, edge->after, after), facts_bisection_version(b, edge->after));
    print_guard(b, edge);
    printf("  again: %s\n", repeat(b, edge, line, sizeof line));
}

static void print_text(const facts_bisection *b)
{
    printf("%s\non %s, by %s, %zu versions of cuDNN from %s to %s\n\n", b->name, device_of(b), facts_by_word(b->by), b->versions,
           facts_bisection_version(b, 0), facts_bisection_version(b, b->versions - 1));
    const size_t asked = print_versions(b);
    puts("");
    for (size_t i = 0; i < b->result.edges; i++)
        print_edge(b, &b->result.edge[i]);
    if (b->result.outcome == FACTS_BISECT_EQUAL)
        printf("no edge: %s and %s answer alike%s\n", facts_bisection_version(b, b->result.first),
               facts_bisection_version(b, b->result.last),
               b->options->all ? ", and so does every version between that answered" : "; --all also asks the versions between");
    if (b->result.outcome == FACTS_BISECT_NOTHING)
        puts("no answer: fewer than two versions could be asked");
    printf("%zu of %zu versions asked%s\n", asked, b->versions,
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
    size_t asked = 0;
    for (size_t v = 0; v < b->versions; v++)
        asked += b->at[v].known[0];
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
    facts_text_member_int(&line, "asked", (int64_t)asked);
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
