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

/* Control bytes of foreign text must not reach a terminal; line ends stay, with an indent. */
static void put_clean(const char *text, FILE *out)
{
    for (; *text; text++)
        if (*text == '\n')
            fprintf(out, "\n%14s", "");
        else
            fputc((unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text, out);
}

/* A value in one line: a list as [a,b], an object as key=value key=value, a nested object as
 * (key=value). */
static void put_value(const json_t *value, bool within, FILE *out)
{
    size_t i;
    const char *name, *before = "";
    json_t *part;
    if (json_is_string(value))
        put_clean(json_string_value(value), out);
    else if (json_is_integer(value))
        fprintf(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        fprintf(out, "%.6g", json_real_value(value));
    else if (json_is_boolean(value))
        fputs(json_is_true(value) ? "true" : "false", out);
    if (json_is_array(value)) {
        fputc('[', out);
        json_array_foreach(value, i, part)
        {
            fputs(i ? "," : "", out);
            put_value(part, true, out);
        }
        fputc(']', out);
    } else if (json_is_object(value)) {
        fputs(within ? "(" : "", out);
        json_object_foreach((json_t *)(uintptr_t)value, name, part)
        {
            fputs(before, out);
            put_clean(name, out);
            fputc('=', out);
            put_value(part, true, out);
            before = " ";
        }
        fputs(within ? ")" : "", out);
    }
}

/* A list of objects, or an object that contains objects: one line for each of them. */
static bool has_objects(const json_t *value)
{
    size_t i;
    const char *name;
    json_t *part;
    bool any = false;
    json_array_foreach(value, i, part) any |= json_is_object(part);
    json_object_foreach((json_t *)(uintptr_t)value, name, part) any |=
        json_is_object(part) || has_objects(part);
    return any;
}

static void put_line(const char *label, const char *name, const json_t *value, FILE *out)
{
    fprintf(out, "  %-11s ", label);
    put_clean(name, out);
    fputs(*name ? ": " : "", out);
    put_value(value, false, out);
    fputc('\n', out);
}

static void put_lines(const char *label, const char *name, const json_t *value, FILE *out)
{
    size_t i;
    json_t *part;
    if (!json_is_array(value) || !has_objects(value))
        put_line(label, name, value, out);
    else
        json_array_foreach(value, i, part) put_line(i ? "" : label, name, part, out);
}

static void put_member(const char *label, const json_t *value, FILE *out)
{
    const char *key;
    json_t *part;
    if (!json_is_object(value) || !has_objects(value)) {
        put_lines(label, "", value, out);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, part)
    {
        put_lines(label, key, part, out);
        label = "";
    }
}

static void put_nearest(const json_t *row, FILE *out)
{
    size_t i;
    json_t *change;
    const json_t *nearest = json_object_get(row, "nearest");
    json_array_foreach(nearest, i, change)
    {
        const char *name = text_of(change, "case");
        fprintf(out, "  %-11s ", i ? "" : "accepted");
        put_clean(*name ? name : text_of(change, "change"), out);
        fputc('\n', out);
    }
    if (json_is_array(nearest) && !json_array_size(nearest))
        fprintf(out, "  %-11s none of %lld similar cases\n", "accepted",
                (long long)json_integer_value(json_object_get(row, "nearest_asked")));
}

static void put_text(const char *label, const char *text, FILE *out)
{
    if (!*text)
        return;
    fprintf(out, "  %-11s ", label);
    put_clean(text, out);
    fputc('\n', out);
}

bool facts_explain_nearest(const char *text, size_t length, const char *device, FILE *out)
{
    json_t *row = json_loadb(text, length, 0, NULL);
    const json_t *forward = json_object_get(row, "forward"),
                 *reason = json_object_get(forward ? forward : row, "reason");
    const bool found = forward || json_object_get(row, "nearest");
    if (found) {
        const char *meaning = text_of(reason, "meaning"), *remedy = text_of(reason, "remedy");
        const bool its_own = json_array_size(json_object_get(reason, "chain"));
        put_clean(text_of(row, "case"), out);
        fprintf(out, "\n  %s on %s: ", text_of(row, "build"), device);
        fputs(forward ? "the backward is accepted; its forward is not" : "", out);
        put_clean(meaning, out);
        fputc('\n', out);
        put_text("forward", text_of(forward, "case"), out);
        put_text(its_own ? "cuDNN:" : "libfattn:", text_of(reason, "text"), out);
        put_text("remedy", strncmp(remedy, "fattn_explain", 13) != 0 ? remedy : "", out);
        put_nearest(row, out);
    }
    json_decref(row);
    return found;
}

void facts_explain_row(const char *text, size_t length, FILE *out)
{
    static const char *const places[] = { "case",          "cudnn", "build",   "device", "sm",
                                          "run",           "group", "attempt", "more",   "nearest",
                                          "nearest_asked", "known", "forward" };
    const char *name;
    json_t *value, *row = json_loadb(text, length, 0, NULL);
    json_object_foreach(row, name, value)
    {
        bool is_place = false;
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            is_place |= strcmp(name, places[i]) == 0;
        if (!is_place)
            put_member(name, value, out);
    }
    put_nearest(row, out);
    json_decref(row);
}
