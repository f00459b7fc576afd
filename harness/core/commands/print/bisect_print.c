/* Passes the result of a bisection to the report package: JSON lines, the summary first, then each
 * version, oldest first. */
#include <string.h>

#include "bisection.h"
#include "commands/session/report_package.h"
#include "record/text.h"

const char *facts_bisection_version(const facts_bisection *b, size_t version)
{
    return b->at[version].target.build.version;
}

static void add_flag(facts_text *out, const char *key, bool value)
{
    facts_text_format(out, "\"%s\":%s,", key, value ? "true" : "false");
}

static void add_whole(facts_text *out, const facts_bisection *b)
{
    static const char *const outcomes[] = { "waiting", "nothing", "equal", "found" };
    facts_text_puts(out, "{");
    facts_text_member(out, "case", b->name);
    facts_text_member(out, "device", b->device[0] ? b->device : b->at[0].target.device);
    facts_text_member(out, "by", facts_by_word(b->by));
    facts_text_member(out, "outcome", outcomes[b->result.outcome]);
    facts_text_member(out, "asked_device", b->device_word);
    add_flag(out, "ran", b->task == FACTS_TASK_RUN);
    add_flag(out, "plan", b->options->plan);
    add_flag(out, "all", b->options->all);
    add_flag(out, "json", b->options->json);
    add_flag(out, "whole", b->result.whole);
    facts_text_member_int(out, "first", (int64_t)b->result.first);
    facts_text_member_int(out, "last", (int64_t)b->result.last);
    facts_text_puts(out, "\"edges\":[");
    for (size_t i = 0; i < b->result.edges; i++)
        facts_text_format(out, "%s[%zu,%zu]", i ? "," : "", b->result.edge[i].before,
                          b->result.edge[i].after);
    facts_text_puts(out, "]}\n");
}

static void add_version(facts_text *out, const facts_bisection *b, size_t version)
{
    const facts_bisected *v = &b->at[version];
    const facts_reported *reported = &v->reported[0];
    const char *const members[][2] = { { "cudnn", v->target.build.version },
                                       { "build", v->target.build.name },
                                       { "why", v->why },
                                       { "verdict", facts_verdict_name(reported->verdict) },
                                       { "backend", reported->backend },
                                       { "engines", reported->engines },
                                       { "knobs", reported->knobs },
                                       { "class", reported->class_word },
                                       { "text", reported->text },
                                       { "rule", reported->rule },
                                       { "remedy", reported->remedy },
                                       { "known", reported->known } };
    char value[FACTS_REPORTED_VALUE];
    facts_text_puts(out, "{");
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        facts_text_member(out, members[i][0], members[i][1]);
    facts_text_member(out, "value", facts_reported_value(reported, b->by, value));
    facts_text_member(out, "again", facts_reported_value(&v->reported[1], b->by, value));
    facts_text_member_int(out, "engine", reported->engine);
    add_flag(out, "asked", v->known[0]);
    add_flag(out, "silent", b->result.state[version] == FACTS_BISECT_SILENT);
    add_flag(out, "flaky", b->result.state[version] == FACTS_BISECT_FLAKY);
    facts_text_close(out);
    facts_text_puts(out, "\n");
}

static void write_all(const void *subject, FILE *file)
{
    const facts_bisection *b = subject;
    facts_text text = { 0 };
    add_whole(&text, b);
    for (size_t v = 0; v < b->versions; v++)
        add_version(&text, b, v);
    fwrite(text.data, 1, text.length, file);
    facts_text_free(&text);
}

int facts_bisection_print(const facts_bisection *b)
{
    return facts_run_view("bisect", write_all, b);
}
