#include "calibration.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers/dtype.h"
#include "numbers/fill/score_inputs.h"
#include "suites/predicate.h"

#define VERSION 1
#define ANY (-2)

typedef struct row {
    facts_who who;       /* ANY if the row has no value */
    json_t *constants;   /* borrowed from the table's */
    const json_t *cudnn; /* the versions that were measured; borrowed */
    bool calibrated;
} row;

struct facts_calibration {
    json_t *text;
    row *rows;
    size_t count;
};

typedef struct word {
    const char *name;
    int32_t value;
} word;

#define AS_WORD(symbol, value, name) { name, value },
static const word backends[] = { FATTN_BACKEND_LIST(AS_WORD){ NULL, 0 } };
static const word dtypes[] = { FATTN_DTYPE_LIST(AS_WORD){ NULL, 0 } };
static const word passes[] = { FATTN_PASS_LIST(AS_WORD){ NULL, 0 } };
#undef AS_WORD

facts_constants facts_constants_start(int32_t dtype)
{
    fref_type in = FREF_F32;
    facts_oracle_type(&in, dtype);
    fref_rounding r = fref_rounding_of(in, in);
    facts_constants out = { .calibrated = false };
#define AS_COPY(field, ...) out.field = r.field;
    FACTS_CONSTANT_LIST(AS_COPY)
    FACTS_TRAIT_LIST(AS_COPY)
#undef AS_COPY
    return out;
}

bool facts_constants_agree(const facts_constants *a, const facts_constants *b)
{
    bool same = true;
#define AS_TEST(field, ...) same = same && a->field == b->field;
    FACTS_CONSTANT_LIST(AS_TEST)
    FACTS_TRAIT_LIST(AS_TEST)
#undef AS_TEST
    return same;
}

void facts_constants_rescale(facts_constants *constants, const facts_who *who, int32_t rescale)
{
    const bool read = who->backend == FATTN_BACKEND_CUDNN && who->sm / 10 == 10 &&
                      facts_dtype_bytes(who->dtype) == 1;
    if (read && rescale >= 0)
        constants->thr = rescale < FACTS_THR_MOST ? rescale : FACTS_THR_MOST;
}

void facts_constants_apply(fref_rounding *out, const facts_constants *constants)
{
#define AS_COPY(field, ...) out->field = constants->field;
    FACTS_CONSTANT_LIST(AS_COPY)
    FACTS_TRAIT_LIST(AS_COPY)
#undef AS_COPY
}

/* ---- reading
 * -------------------------------------------------------------------------------------------------------------------
 */

static bool read_word(const json_t *object, const char *key, const word *words, int32_t *out)
{
    const char *text = json_string_value(json_object_get(object, key));
    *out = ANY;
    if (!json_object_get(object, key))
        return true;
    for (; text && words->name; words++)
        if (strcmp(words->name, text) == 0) {
            *out = words->value;
            return true;
        }
    return false;
}

static bool read_number(const json_t *object, const char *key, int64_t *out)
{
    const json_t *value = json_object_get(object, key);
    *out = value ? json_integer_value(value) : ANY;
    return !value || (json_is_integer(value) && *out >= -1);
}

static bool lies_between(double x, double a, double b)
{
    return x >= fmin(a, b) && x <= fmax(a, b);
}

/* The name of an unknown constant, or of one that is out of its type's range; NULL: all are valid.
 */
static const char *wrong_of_type(json_t *constants, int32_t dtype)
{
    const facts_constants limit = facts_constants_limit(dtype);
    const char *key;
    json_t *value;
    json_object_foreach(constants, key, value)
    {
        bool fine = false;
        double x = json_number_value(value);
#define AS_TEST(field, narrowest, ...)                                                             \
    fine = fine || (strcmp(key, #field) == 0 && json_is_number(value) &&                           \
                    lies_between(x, narrowest, limit.field));
        FACTS_CONSTANT_LIST(AS_TEST)
#undef AS_TEST
#define AS_TEST(field, ...)                                                                        \
    fine = fine || (strcmp(key, #field) == 0 && json_is_boolean(value) &&                          \
                    (limit.field || json_is_false(value)));
        FACTS_TRAIT_LIST(AS_TEST)
#undef AS_TEST
        if (!fine)
            return key;
    }
    return NULL;
}

/* A row of any type stands for a row of each type. */
static const char *wrong_constant(json_t *constants, int32_t dtype)
{
    static const int32_t each[] = { FATTN_E4M3, FATTN_BF16, FATTN_F32 };
    const char *wrong = NULL;
    for (size_t i = 0; dtype == ANY && !wrong && i < sizeof each / sizeof *each; i++)
        wrong = wrong_of_type(constants, each[i]);
    return dtype == ANY ? wrong : wrong_of_type(constants, dtype);
}

/* A row is valid only if it names its source. */
static const char *missing_provenance(const json_t *object)
{
    static const char *const keys[] = { "cudnn", "device", "date", "cases", "rms", "largest" };
    for (size_t i = 0;
         json_is_true(json_object_get(object, "calibrated")) && i < sizeof keys / sizeof *keys; i++)
        if (!json_object_get(object, keys[i]))
            return keys[i];
    return NULL;
}

static const char *read_row(row *out, const json_t *object)
{
    int64_t sm, engine;
    *out = (row){ .constants = json_object_get(object, "constants"),
                  .cudnn = json_object_get(object, "cudnn"),
                  .calibrated = json_is_true(json_object_get(object, "calibrated")) };
    if (!read_word(object, "backend", backends, &out->who.backend))
        return "backend";
    if (!read_word(object, "dtype", dtypes, &out->who.dtype))
        return "dtype";
    if (!read_word(object, "pass", passes, &out->who.pass))
        return "pass";
    if (!read_number(object, "sm", &sm) || sm > 1000)
        return "sm";
    if (!read_number(object, "engine", &engine))
        return "engine";
    out->who.sm = (int32_t)sm;
    out->who.engine = engine;
    const char *wrong = wrong_constant(out->constants, out->who.dtype);
    return wrong ? wrong : missing_provenance(object);
}

bool facts_calibration_read(facts_calibration **out, const char *text, facts_error *error)
{
    json_error_t where;
    facts_calibration *table = *out = calloc(1, sizeof *table);
    if (!table)
        return facts_fail(error, "no memory");
    table->text = json_loads(text, JSON_REJECT_DUPLICATES, &where);
    const json_t *rows = json_object_get(table->text, "rows");
    if (!table->text || !json_is_array(rows) ||
        json_integer_value(json_object_get(table->text, "version")) != VERSION)
        return facts_fail(error, "calibration: %.200s",
                          table->text ? "must be {\"version\":1,\"rows\":[...]}" : where.text);
    table->rows = calloc(json_array_size(rows) + 1, sizeof *table->rows);
    for (; table->rows && table->count < json_array_size(rows); table->count++) {
        const char *wrong =
            read_row(&table->rows[table->count], json_array_get(rows, table->count));
        if (!wrong)
            continue;
        facts_fail(error, "calibration: row %zu: %.100s is missing, unknown, or out of range",
                   table->count + 1, wrong);
        table->count = 0;
        return false;
    }
    return table->rows != NULL;
}

void facts_calibration_destroy(facts_calibration *table)
{
    if (!table)
        return;
    json_decref(table->text);
    free(table->rows);
    free(table);
}

/* ---- asking
 * --------------------------------------------------------------------------------------------------------------------
 */

static bool fits(int64_t wanted, int64_t is)
{
    return wanted == ANY || wanted == is;
}

static void read_constants(facts_constants *out, const json_t *constants)
{
    const json_t *value;
#define AS_READ(field, ...)                                                                        \
    if ((value = json_object_get(constants, #field)))                                              \
        out->field = json_number_value(value);
    FACTS_CONSTANT_LIST(AS_READ)
#undef AS_READ
#define AS_READ(field, ...)                                                                        \
    if ((value = json_object_get(constants, #field)))                                              \
        out->field = json_is_true(value);
    FACTS_TRAIT_LIST(AS_READ)
#undef AS_READ
}

/* The version that a row was measured with that is nearest to `cudnn`; 0: none. */
static int32_t nearest_of(const row *r, int32_t cudnn)
{
    int32_t out = 0;
    size_t k;
    json_t *version;
    json_array_foreach(r->cudnn, k, version)
    {
        const char *text = json_string_value(version);
        const int32_t number = text ? facts_version_number(facts_span_of(text), 0) : 0;
        if (number > 0 && (out == 0 || abs(number - cudnn) < abs(out - cudnn)))
            out = number;
    }
    return out;
}

facts_constants facts_calibration_find(const facts_calibration *table, const facts_who *who)
{
    facts_constants out = facts_constants_start(who->dtype);
    for (size_t i = 0; table && i < table->count; i++) {
        const row *r = &table->rows[i];
        if (!fits(r->who.sm, who->sm) || !fits(r->who.backend, who->backend) ||
            !fits(r->who.dtype, who->dtype) || !fits(r->who.pass, who->pass) ||
            !fits(r->who.engine, who->engine))
            continue;
        read_constants(&out, r->constants);
        const int32_t nearest =
            who->backend == FATTN_BACKEND_CUDNN ? nearest_of(r, who->cudnn) : who->cudnn;
        out.calibrated = r->calibrated && nearest == who->cudnn;
        out.assumed = r->calibrated && !out.calibrated ? nearest : 0;
        break;
    }
    return out;
}

facts_constants facts_calibration_widest(const facts_calibration *table, int32_t dtype)
{
    const facts_constants start = facts_constants_start(dtype),
                          limit = facts_constants_limit(dtype);
    facts_constants out = start;
    for (size_t i = 0; table && i < table->count; i++) {
        facts_constants here = start;
        if (!fits(table->rows[i].who.dtype, dtype))
            continue;
        read_constants(&here, table->rows[i].constants);
#define AS_WIDER(field, narrowest, ...)                                                            \
    out.field = limit.field < narrowest ? fmin(out.field, here.field) : fmax(out.field, here.field);
        FACTS_CONSTANT_LIST(AS_WIDER)
#undef AS_WIDER
#define AS_WIDER(field, ...) out.field = out.field || here.field;
        FACTS_TRAIT_LIST(AS_WIDER)
#undef AS_WIDER
    }
    return out;
}

bool facts_calibration_nearest(char out[16], const facts_calibration *table, int32_t sm,
                               int32_t cudnn)
{
    int32_t best = 0;
    out[0] = '\0';
    for (size_t i = 0; table && i < table->count; i++) {
        const row *r = &table->rows[i];
        if (!r->calibrated || !fits(r->who.sm, sm) || !fits(r->who.backend, FATTN_BACKEND_CUDNN))
            continue;
        const int32_t number = nearest_of(r, cudnn);
        if (number > 0 && (best == 0 || abs(number - cudnn) < abs(best - cudnn)))
            best = number;
    }
    if (best > 0)
        snprintf(out, 16, "%d.%d.%d", best / 10000, best / 100 % 100, best % 100);
    return out[0];
}

static facts_calibration *built_in;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A table that cannot be read gives no calibration; a test ensures that the embedded table can be
 * read. */
static void read_built_in(void)
{
    if (!facts_calibration_read(&built_in, facts_calibration_text(), NULL)) {
        facts_calibration_destroy(built_in);
        built_in = NULL;
    }
}

facts_constants facts_constants_of(const facts_who *who)
{
    pthread_once(&once, read_built_in);
    return facts_calibration_find(built_in, who);
}

facts_constants facts_constants_widest(int32_t dtype)
{
    pthread_once(&once, read_built_in);
    return facts_calibration_widest(built_in, dtype);
}

bool facts_constants_nearest(char out[16], int32_t sm, int32_t cudnn)
{
    pthread_once(&once, read_built_in);
    return facts_calibration_nearest(out, built_in, sm, cudnn);
}

/* Separate from the table, which asks the reference for its starting values: a program that
 * proposes a row computes no attention. */

facts_constants facts_constants_limit(int32_t dtype)
{
    static const facts_constants limits[] = {
#define AS_8(field, narrowest, limit8, limit16, limit32) .field = limit8,
#define AS_16(field, narrowest, limit8, limit16, limit32) .field = limit16,
#define AS_32(field, narrowest, limit8, limit16, limit32) .field = limit32,
#define TRAIT_8(field, limit8, limit16, limit32) .field = limit8,
#define TRAIT_16(field, limit8, limit16, limit32) .field = limit16,
#define TRAIT_32(field, limit8, limit16, limit32) .field = limit32,
        { .calibrated = true, FACTS_CONSTANT_LIST(AS_8) FACTS_TRAIT_LIST(TRAIT_8) },
        { .calibrated = true, FACTS_CONSTANT_LIST(AS_16) FACTS_TRAIT_LIST(TRAIT_16) },
        { .calibrated = true, FACTS_CONSTANT_LIST(AS_32) FACTS_TRAIT_LIST(TRAIT_32) },
    };
    const size_t bytes = facts_dtype_bytes(dtype);
    return limits[bytes == 1 ? 0 : bytes == 2 ? 1 : 2];
}
