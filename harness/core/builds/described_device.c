#include "described_device.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static bool suffix(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static int is_description(const struct dirent *entry)
{
    return suffix(entry->d_name, ".json") && entry->d_name[0] != '.';
}

const char *facts_device_names(char *out, size_t bytes)
{
    char folder[FACTS_PATH];
    struct dirent **entries = NULL;
    out[0] = 0;
    int count = facts_home_path("devices", folder)
                    ? scandir(folder, &entries, is_description, alphasort)
                    : 0;
    for (int i = 0; i < count; i++) {
        size_t n = strlen(out);
        (void)snprintf(out + n, bytes - n, "%s%.*s", n ? ", " : "",
                       (int)(strlen(entries[i]->d_name) - 5), entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return out;
}

/* "NVIDIA GeForce RTX 5090", "rtx-5090" and "RTX5090 Laptop" are one product; RTX 509 is another. */
static bool is_product(const char *a, const char *product)
{
    static const char BETWEEN[] = " -_";
    a += strncasecmp(a, "nvidia ", 7) == 0 ? 7 : 0;
    a += strncasecmp(a, "geforce ", 8) == 0 ? 8 : 0;
    for (;; a++, product++) {
        const bool ended = !isalnum((unsigned char)*a);
        a += strspn(a, BETWEEN);
        product += strspn(product, BETWEEN);
        if (!*product)
            return ended;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*product))
            return false;
    }
}

/* The path of the first description of a product or an architecture ("sm_90"). */
static bool find_product(const char *spec, const char *names, char out[FACTS_PATH])
{
    char list[512], part[128], *rest = NULL;
    char *end;
    const bool architecture = strncmp(spec, "sm", 2) == 0;
    const long sm = strtol(architecture ? spec + 2 + (spec[2] == '_') : spec, &end, 10);
    bool found = false;
    (void)snprintf(list, sizeof list, "%s", names);
    for (char *name = strtok_r(list, ", ", &rest); name && !found;
         name = strtok_r(NULL, ", ", &rest)) {
        size_t i;
        json_t *product;
        (void)snprintf(part, sizeof part, "devices/%.60s.json", name);
        json_t *file = facts_home_path(part, out) ? json_load_file(out, 0, NULL) : NULL;
        found = architecture && !*end &&
                json_integer_value(json_object_get(json_object_get(file, "device"), "deviceVer")) ==
                    10 * sm;
        json_array_foreach(json_object_get(file, "products"), i, product) found |=
            json_is_string(product) && is_product(spec, json_string_value(product));
        json_decref(file);
    }
    return found;
}

/* The path of the description with that name. Returns false, with a line, if there is none. */
static bool find(const char *spec, char out[FACTS_PATH], facts_error *message)
{
    if (strchr(spec, '/') || suffix(spec, ".json")) {
        if (facts_join(out, spec, ""))
            return true;
        return facts_fail(message, "the path of the device description is too long");
    }
    char part[128], names[512];
    if (spec[0] && spec[0] != '.' &&
        (size_t)snprintf(part, sizeof part, "devices/%s.json", spec) < sizeof part &&
        facts_home_path(part, out))
        return true;
    facts_device_names(names, sizeof names);
    if (find_product(spec, names, out))
        return true;
    if (*names)
        return facts_fail(
            message,
            "--device \"%.64s\": not a GPU's number, cpu, a JSON file, a product, or one of: %s "
            "(`facts devices` lists the products)",
            spec, names);
    return facts_fail(message,
                      "--device \"%.64s\": no descriptions were found; set FACTS_HOME to the "
                      "folder that has devices/",
                      spec);
}

/* A field's text, made harmless for a terminal; absent or no text: empty. */
static void text_field(const json_t *file, const char *key, char *out, size_t bytes)
{
    const char *text = json_string_value(json_object_get(file, key));
    (void)snprintf(out, bytes, "%s", text ? text : "");
    facts_plain(out);
}

static bool whole_number(const json_t *device, const char *key, long long least, long long most,
                         long long *out, const char *path, facts_error *message)
{
    const json_t *value = json_object_get(device, key);
    *out = json_integer_value(value);
    if (json_is_integer(value) && *out >= least && *out <= most)
        return true;
    return facts_fail(message, "%s: \"%s\" must be a whole number from %lld to %lld", path, key,
                      least, most);
}

/* The fields that every cuDNN needs. If a version needs more, its answer says so. */
static bool read_device(facts_described_device *out, const json_t *device, const char *path,
                        facts_error *message)
{
    long long version, processors;
    if (!json_is_object(device))
        return facts_fail(message,
                          "%s: \"device\" must be the object with the properties that cuDNN reads",
                          path);
    if (!whole_number(device, "deviceVer", 500, 9990, &version, path, message) ||
        !whole_number(device, "multiProcessorCount", 1, 100000, &processors, path, message))
        return false;
    if (version % 10)
        return facts_fail(
            message, "%s: \"deviceVer\" is the compute capability times 100 (9.0 is 900), not %lld",
            path, version);
    char *json = json_dumps(device, JSON_COMPACT);
    bool fits = json && strlen(json) < sizeof out->json;
    if (fits)
        memcpy(out->json, json, strlen(json) + 1);
    else
        facts_fail(message, "%s: \"device\" is longer than %zu bytes", path, sizeof out->json - 1);
    free(json);
    out->sm = (int)(version / 10);
    out->multiprocessors = (int)processors;
    return fits;
}

static void name_of_file(const char *path, char *out, size_t bytes)
{
    const char *slash = strrchr(path, '/');
    (void)snprintf(out, bytes, "%.*s", (int)bytes - 1, slash ? slash + 1 : path);
    if (suffix(out, ".json"))
        out[strlen(out) - 5] = 0;
}

int facts_device_load(facts_described_device *out, const char *spec, facts_error *message)
{
    char path[FACTS_PATH];
    json_error_t error;
    *out = (facts_described_device){ 0 };
    if (!find(spec, path, message))
        return 2;
    struct stat info;
    if (stat(path, &info) != 0 || access(path, R_OK) != 0)
        return facts_fail_as(
            2, message, "--device %s: %s; give a JSON file, or a name that `facts devices` lists",
            path, strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size > 1 << 20)
        return facts_fail_as(2, message, "%s: not a file of at most 1 MiB", path);
    json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(file)) {
        facts_fail(message, "%s:%d:%d: %s", path, file ? 1 : error.line, file ? 1 : error.column,
                   file ? "a JSON object was expected" : error.text);
        json_decref(file);
        return 2;
    }
    const json_t *device = json_object_get(file, "device");
    text_field(file, "name", out->name, sizeof out->name);
    text_field(file, "source", out->source, sizeof out->source);
    size_t i;
    json_t *product;
    json_array_foreach(json_object_get(file, "products"), i, product)
    {
        const size_t n = strlen(out->products);
        const char *said = json_is_string(product) ? json_string_value(product) : "?";
        (void)snprintf(out->products + n, sizeof out->products - n, "%s%s", n ? ", " : "", said);
        if (strncmp(out->name, "sm", 2) == 0 && (n == 0 || is_product(spec, said)))
            (void)snprintf(out->product, sizeof out->product, "%s", said);
    }
    facts_plain(out->products);
    facts_plain(out->product);
    text_field(file, "read_with", out->read_with, sizeof out->read_with);
    text_field(file, "date", out->date, sizeof out->date);
    if (!out->name[0])
        name_of_file(path, out->name, sizeof out->name);
    if (strchr(spec, '/') || suffix(spec, ".json"))
        (void)facts_join(out->file, spec, "");
    bool good = read_device(out, device ? device : file, path, message);
    json_decref(file);
    return good ? 0 : 2;
}
