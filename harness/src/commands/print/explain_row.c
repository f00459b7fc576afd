#include "explain_row.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Control bytes of somebody's text must not reach a terminal. */
static void put_clean(const char *text, FILE *out)
{
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, out);
}

static void put_value(const json_t *value, FILE *out)
{
    if (json_is_string(value))
        put_clean(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.6g", json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "true" : "false", out);
    else
        fputs("-", out);
}

static void put_line(const char *label, const char *text, FILE *out)
{
    if (!*text)
        return;
    fprintf(out, "  %-11s", label);
    put_clean(text, out);
    fputc('\n', out);
}

static void put_knobs(const json_t *knobs, FILE *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)knobs, name, value)
    {
        fputc(' ', out);
        put_clean(name, out);
        fputc('=', out);
        put_value(value, out);
    }
}

static void put_notes(const json_t *notes, FILE *out)
{
    size_t i;
    json_t *note;
    json_array_foreach(notes, i, note)
    {
        fputs(i ? "," : "  [", out);
        put_value(note, out);
    }
    if (json_array_size(notes))
        fputc(']', out);
}

static void put_engines(const json_t *row, FILE *out)
{
    size_t i;
    json_t *engine;
    json_array_foreach(json_object_get(row, "engines"), i, engine)
    {
        fprintf(out, "  %-11smode %s engine ", i ? "" : "engines", text_of(engine, "mode"));
        put_value(json_object_get(engine, "index"), out);
        put_knobs(json_object_get(engine, "knobs"), out);
        put_notes(json_object_get(engine, "notes"), out);
        const json_t *workspace = json_object_get(engine, "workspace_bytes");
        if (workspace && json_integer_value(workspace) >= 0)
            fprintf(out, "  workspace %lld", (long long)json_integer_value(workspace));
        fputc('\n', out);
    }
}

static void put_chain(const json_t *reason, FILE *out)
{
    size_t i;
    json_t *link;
    json_array_foreach(json_object_get(reason, "chain"), i, link)
    {
        const json_t *engine = json_object_get(link, "engine");
        fputs("             ", out);
        if (engine && json_integer_value(engine) >= 0)
            fprintf(out, "engine %lld: ", (long long)json_integer_value(engine));
        put_clean(text_of(link, "status"), out);
        fputs(*text_of(link, "status") && *text_of(link, "text") ? ": " : "", out);
        put_clean(text_of(link, "text"), out);
        if (*text_of(link, "condition")) {
            fputs("  (", out);
            put_clean(text_of(link, "condition"), out);
            fputc(')', out);
        }
        fputc('\n', out);
    }
}

static void put_reason(const json_t *row, FILE *out)
{
    const json_t *reason = json_object_get(row, "reason");
    if (!json_is_object(reason) || !*text_of(reason, "text"))
        return;
    fprintf(out, "  %-11s", "why");
    if (*text_of(reason, "class")) {
        put_clean(text_of(reason, "class"), out);
        fputs(": ", out);
    }
    put_clean(text_of(reason, "text"), out);
    if (*text_of(reason, "status")) {
        fputs("  ", out);
        put_clean(text_of(reason, "status"), out);
    }
    fputc('\n', out);
    put_chain(reason, out);
    put_line("remedy", text_of(reason, "remedy"), out);
}

static void put_index(const json_t *index, FILE *out)
{
    size_t i;
    json_t *part;
    json_array_foreach(index, i, part) fprintf(out, "%s%lld", i ? "," : " at [", (long long)json_integer_value(part));
    if (json_array_size(index))
        fputc(']', out);
}

static void put_numbers(const json_t *row, FILE *out)
{
    const char *tensor;
    json_t *error;
    bool first = true;
    json_object_foreach(json_object_get(row, "errors"), tensor, error)
    {
        fprintf(out, "  %-11s%-8s ratio ", first ? "numbers" : "", tensor);
        first = false;
        put_value(json_object_get(error, "ratio"), out);
        if (*text_of(error, "gate"))
            fprintf(out, " (%s)", text_of(error, "gate"));
        put_index(json_object_get(error, "worst_index"), out);
        static const char *const parts[] = { "got", "want", "bound", "rms", "checked" };
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            if (json_object_get(error, parts[i])) {
                fprintf(out, "  %s ", parts[i]);
                put_value(json_object_get(error, parts[i]), out);
            }
        fputc('\n', out);
    }
}

static void put_pictures(const json_t *row, FILE *out)
{
    const char *tensor;
    json_t *picture;
    json_object_foreach(json_object_get(row, "pictures"), tensor, picture)
    {
        const char *text = json_string_value(picture);
        fprintf(out, "  %-11s", "wrong in");
        put_clean(tensor, out);
        fputc('\n', out);
        for (const char *line = text; line && *line;) {
            size_t length = strcspn(line, "\n");
            char shown[200];
            snprintf(shown, sizeof shown, "%.*s", (int)(length < sizeof shown ? length : sizeof shown - 1), line);
            fputs("           ", out);
            put_clean(shown, out);
            fputc('\n', out);
            line += length + (line[length] == '\n');
        }
    }
}

static void put_plan(const json_t *row, FILE *out)
{
    static const struct {
        const char *key, *label, *unit;
    } times[] = { { "decide_us", "decided in", "us" },
                  { "plan_ms", "compiled in", "ms" },
                  { "exec_us", "executed in", "us" },
                  { "workspace_bytes", "workspace", "bytes" } };
    bool first = true;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const json_t *value = json_object_get(row, times[i].key);
        if (!value || (json_is_integer(value) && json_integer_value(value) < 0))
            continue;
        fprintf(out, first ? "  %-11s" : "%s", first ? "plan" : ", ");
        fprintf(out, "%s ", times[i].label);
        put_value(value, out);
        fprintf(out, " %s", times[i].unit);
        first = false;
    }
    if (!first)
        fputc('\n', out);
}

static void put_known(const json_t *row, FILE *out)
{
    const json_t *known = json_object_get(row, "expectation");
    if (!json_is_object(known))
        return;
    fprintf(out, "  %-11s%s", "known", json_is_true(json_object_get(known, "met")) ? "yes: " : "but not so this time: ");
    put_clean(text_of(known, "verdict"), out);
    fputs("  ", out);
    put_clean(*text_of(known, "link") ? text_of(known, "link") : text_of(known, "reason"), out);
    fputc('\n', out);
}

static void put_nearest(const json_t *row, FILE *out)
{
    size_t i;
    json_t *change;
    const json_t *nearest = json_object_get(row, "nearest");
    json_array_foreach(nearest, i, change) put_line("accepted", json_string_value(change) ? json_string_value(change) : "", out);
    if (json_is_array(nearest) && !json_array_size(nearest))
        put_line("accepted", "nothing near it", out);
}

void facts_explain_nearest(const char *text, size_t length, FILE *out)
{
    json_t *row = json_loadb(text, length, 0, NULL);
    if (row && json_object_get(row, "nearest")) {
        put_clean(text_of(row, "case"), out);
        fprintf(out, "\n  %s on %s: ", text_of(row, "build"), text_of(row, "device"));
        put_clean(text_of(json_object_get(row, "reason"), "text"), out);
        fputc('\n', out);
        put_nearest(row, out);
    }
    json_decref(row);
}

void facts_explain_row(const char *text, size_t length, FILE *out)
{
    json_t *row = json_loadb(text, length, 0, NULL);
    if (!row) {
        fputs("  (the row could not be read)\n", out);
        return;
    }
    bool decided = strcmp(text_of(row, "grade"), "decided") == 0;
    bool yes = strcmp(text_of(row, "verdict"), "pass") == 0;
    bool no = strcmp(text_of(row, "verdict"), "unsupported") == 0;
    put_line("verdict",
             decided && yes  ? "accepted (decided, not executed)"
             : decided && no ? "not accepted"
                             : text_of(row, "verdict"),
             out);
    const json_t *engine = json_object_get(row, "engine");
    if (json_is_integer(engine) && json_integer_value(engine) >= 0) {
        fprintf(out, "  %-11sengine %lld", "chosen", (long long)json_integer_value(engine));
        if (json_object_get(row, "config"))
            fprintf(out, ", configuration %lld", (long long)json_integer_value(json_object_get(row, "config")));
        fprintf(out, " of %s\n", text_of(row, "backend"));
    }
    put_reason(row, out);
    put_nearest(row, out);
    put_plan(row, out);
    put_numbers(row, out);
    put_pictures(row, out);
    put_engines(row, out);
    put_line("stage", text_of(row, "stage"), out);
    put_line("stderr", text_of(row, "stderr"), out);
    put_line("note", text_of(row, "note"), out);
    put_known(row, out);
    json_decref(row);
}
