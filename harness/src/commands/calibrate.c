#include "calibrate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "case/language/case.h"
#include "case/words/case_text.h"
#include "numbers/judge/calibration.h"

#define WILD 4.0      /* times its tolerance: no constant is that far off, a mistake is */
#define LEAST_ROWS 50 /* gauss rows of an engine before it is called calibrated */
#define LOW 0.45      /* mean (E/sigma)^2 of a kernel with the model's roundings: 0.54 */
#define HIGH 0.75
#define MISSING 0.30      /* below: a rounding of the model does not happen */
#define EXTRA 1.0         /* above: one more does */
#define STRICT (1 / 1.05) /* T1's ratio without the factor of constants that are not calibrated */

/* Tensors, and dK and dV of grouped heads apart: whether partial sums are cast shows there alone. X(SYMBOL, "key", "tensor",
 * grouped) */
#define POOL_LIST(X)                                                                                                               \
    X(O, "o", "o", false)                                                                                                          \
    X(DQ, "dq", "dq", false) X(DK, "dk", "dk", false) X(DV, "dv", "dv", false) X(DK_GROUPED, "dk_grouped", "dk", true)             \
        X(DV_GROUPED, "dv_grouped", "dv", true)
#define AS_ENUM(symbol, key, tensor, grouped) POOL_##symbol,
typedef enum pool_id { POOL_LIST(AS_ENUM) POOL_COUNT } pool_id;
#undef AS_ENUM
#define AS_ROW(symbol, key, tensor, grouped) { key, tensor, grouped },
static const struct {
    const char *key, *tensor;
    bool grouped;
} pools[POOL_COUNT] = { POOL_LIST(AS_ROW) };
#undef AS_ROW

/* The largest of something, and the case that shows it. */
typedef struct peak {
    double value, got, want, bound;
    char name[FACTS_NAME_MAX];
} peak;

typedef struct engine {
    int sm, number; /* -1: none */
    char backend[16], dtype[16], pass[8];
    char cudnn[256], device[64]; /* cudnn: words with spaces between */
    size_t rows, gauss, wild;
    struct {
        double squares, elements;
        size_t rows;
    } pool[POOL_COUNT];
    peak t1[POOL_COUNT], tl, stats_loss, sum_loss; /* stats_loss: |LSE - ln n| of unip; sum_loss: |1 - O| where V is 1 */
} engine;

struct facts_measured {
    engine *at;
    size_t count, rows;
};

facts_measured *facts_measured_create(void)
{
    return calloc(1, sizeof(facts_measured));
}

void facts_measured_destroy(facts_measured *m)
{
    if (m)
        free(m->at);
    free(m);
}

size_t facts_measured_engines(const facts_measured *m)
{
    return m->count;
}

size_t facts_measured_rows(const facts_measured *m)
{
    return m->rows;
}

/* ---- reading -------------------------------------------------------------------------------------------------------------------
 */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Numbers that are not finite are words in a record. */
static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : value ? INFINITY : 0.0;
}

static void copy_word(char *out, size_t room, const char *text)
{
    snprintf(out, room, "%s", text);
}

static void add_word(char *out, size_t room, const char *word)
{
    size_t used = strlen(out);
    if (*word && !strstr(out, word) && used + strlen(word) + 2 < room)
        snprintf(out + used, room - used, "%s%s", used ? " " : "", word);
}

static engine *engine_of(facts_measured *m, const json_t *row, const facts_case *c)
{
    const json_t *number = json_object_get(row, "engine");
    engine key = { .sm = (int)json_integer_value(json_object_get(row, "sm")),
                   .number = number ? (int)json_integer_value(number) : -1 };
    copy_word(key.backend, sizeof key.backend, text_of(row, "backend"));
    copy_word(key.dtype, sizeof key.dtype, facts_case_get(c, FACTS_KEY_DTYPE));
    copy_word(key.pass, sizeof key.pass, facts_case_get(c, FACTS_KEY_PASS));
    for (size_t i = 0; i < m->count; i++) {
        engine *e = &m->at[i];
        if (e->sm == key.sm && e->number == key.number && strcmp(e->backend, key.backend) == 0 &&
            strcmp(e->dtype, key.dtype) == 0 && strcmp(e->pass, key.pass) == 0)
            return e;
    }
    engine *more = facts_grow(m->at, m->count, sizeof *more);
    if (!more)
        return NULL;
    m->at = more;
    more[m->count] = key;
    return &more[m->count++];
}

static void note(peak *p, double value, const json_t *error, const char *name)
{
    if (!(value > p->value))
        return;
    *p = (peak){
        .value = value, .got = number_of(error, "got"), .want = number_of(error, "want"), .bound = number_of(error, "bound")
    };
    snprintf(p->name, sizeof p->name, "%s", name);
}

/* An answer that no constant explains. */
static bool is_wild(const json_t *errors)
{
    const char *tensor;
    json_t *error;
    json_object_foreach((json_t *)(uintptr_t)errors, tensor, error)
    {
        const json_t *gates = json_object_get(error, "gates");
        double t1 = number_of(gates, "t1"), tl = number_of(gates, "tl");
        if (json_object_get(error, "not_finite") || json_object_get(error, "unwritten") || json_object_get(error, "overrun") ||
            t1 > WILD || (tl > WILD && strcmp(tensor, "stats") != 0))
            return true;
    }
    return false;
}

/* LSE may be further off than that: a row sum of rounded P is 1082 tau away, and O does not move. */
static bool is_wild_stats(const json_t *stats)
{
    double off = fabs(number_of(stats, "got") - number_of(stats, "want"));
    return stats && number_of(json_object_get(stats, "gates"), "tl") > 1 && !(off < 0x1p-7);
}

static bool is_grouped(const facts_case *c)
{
    return strchr(facts_case_get(c, FACTS_KEY_H), '/') != NULL;
}

static void add_errors(engine *e, const json_t *row, const facts_case *c, const char *name)
{
    bool gauss = strcmp(facts_case_get(c, FACTS_KEY_FILL), "gauss") == 0,
         unip = strcmp(facts_case_get(c, FACTS_KEY_FILL), "unip") == 0;
    const json_t *errors = json_object_get(row, "errors"), *stats = json_object_get(errors, "stats"),
                 *check = json_object_get(row, "check");
    e->gauss += gauss;
    for (pool_id id = 0; id < POOL_COUNT; id++) {
        const json_t *error = json_object_get(errors, pools[id].tensor);
        bool other =
            strcmp(pools[id].tensor, "dk") == 0 || strcmp(pools[id].tensor, "dv") == 0 ? pools[id].grouped != is_grouped(c) : false;
        if (!error || other)
            continue;
        note(&e->t1[id], number_of(json_object_get(error, "gates"), "t1"), error, name);
        double rms = number_of(error, "rms"), checked = number_of(error, "checked");
        if (!gauss || !(rms > 0) || !isfinite(rms))
            continue;
        e->pool[id].squares += rms * rms * checked;
        e->pool[id].elements += checked;
        e->pool[id].rows++;
    }
    note(&e->tl, number_of(json_object_get(stats, "gates"), "tl"), stats, name);
    if (unip && stats)
        note(&e->stats_loss, fabs(number_of(stats, "got") - number_of(stats, "want")), stats, name);
    if (unip && strcmp(text_of(check, "tensor"), "o") == 0 && number_of(check, "want") == 1)
        note(&e->sum_loss, fabs(number_of(check, "got") - 1), check, name);
}

bool facts_measured_add(facts_measured *m, const char *text, size_t length)
{
    json_t *row = json_loadb(text, length, 0, NULL);
    facts_case c;
    facts_error wrong;
    const json_t *errors = json_object_get(row, "errors");
    const char *name = text_of(row, "case");
    bool read = row != NULL;
    if (errors && facts_case_parse(&c, name, &wrong)) {
        engine *e = engine_of(m, row, &c);
        if (e && (is_wild(errors) || is_wild_stats(json_object_get(errors, "stats")))) {
            e->wild++;
        } else if (e) {
            add_word(e->cudnn, sizeof e->cudnn, text_of(row, "cudnn"));
            copy_word(e->device, sizeof e->device, text_of(row, "device"));
            add_errors(e, row, &c, name);
            e->rows++;
            m->rows++;
        }
    }
    json_decref(row);
    return read;
}

/* ---- what it says --------------------------------------------------------------------------------------------------------------
 */

static double mean_of(const engine *e, pool_id id)
{
    return e->pool[id].elements > 0 ? e->pool[id].squares / e->pool[id].elements : 0.0;
}

static const char *meaning(double mean)
{
    if (mean < MISSING)
        return "a rounding of the model does not happen (P in fp32; partial sums in fp32)";
    if (mean < LOW)
        return "quieter than the model";
    if (mean <= HIGH)
        return "as the model says";
    return mean <= EXTRA ? "louder than the model" : "one rounding more than the model has";
}

static bool fits(double mean)
{
    return mean >= LOW && mean <= HIGH;
}

/* All that was measured lies where the model says, and enough was. */
static bool is_calibrated(const engine *e)
{
    size_t seen = 0;
    for (pool_id id = 0; id < POOL_COUNT; id++) {
        if (e->t1[id].value > STRICT || (e->pool[id].rows > 0 && !fits(mean_of(e, id))))
            return false;
        seen += e->pool[id].rows;
    }
    return seen > 0 && e->gauss >= LEAST_ROWS && e->wild == 0 && e->tl.value <= 1;
}

/* dK and dV of grouped heads far below the model, and of single heads not: partial sums stay in fp32. It makes the bound narrower.
 */
static bool has_wide_partials(const engine *e)
{
    double grouped = mean_of(e, POOL_DK_GROUPED), single = mean_of(e, POOL_DK);
    return e->pool[POOL_DK_GROUPED].rows > 0 && e->pool[POOL_DK].rows > 0 && fits(single) && grouped < LOW;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------
 */

static facts_constants limit_of(const engine *e)
{
    int32_t dtype = FATTN_F32;
#define AS_TEST(symbol, value, name)                                                                                               \
    if (strcmp(e->dtype, name) == 0)                                                                                               \
        dtype = value;
    FATTN_DTYPE_LIST(AS_TEST)
#undef AS_TEST
    return facts_constants_limit(dtype);
}

static json_t *proposal(const char *constant, double value, double limit, const peak *because)
{
    return json_pack("{s:s,s:f,s:f,s:{s:s,s:f,s:f,s:f,s:f}}", "constant", constant, "value", value, "limit", limit, "because",
                     "case", because->name, "ratio", because->value, "got", because->got, "want", because->want, "bound",
                     because->bound);
}

/* Section 10: eps_exp is the largest residual times 2, over min(1, 4 |P|_2 + 0.1), of which 1 is the most: the least eps that
 * explains it. */
static double eps_exp_of(const engine *e)
{
    return 2 * fabs(e->tl.got - e->tl.want);
}

static json_t *proposals_of(const engine *e)
{
    const facts_constants limit = limit_of(e);
    json_t *out = json_array();
    if (e->tl.value > 1)
        json_array_append_new(out, proposal("eps_exp", eps_exp_of(e), limit.eps_exp, &e->tl));
    if (e->sum_loss.value > e->sum_loss.bound)
        json_array_append_new(out, proposal("acc_pv", e->sum_loss.value, limit.acc_pv, &e->sum_loss));
    return out;
}

static json_t *words_of(const char *text)
{
    json_t *out = json_array();
    for (const char *at = text; *at;) {
        size_t length = strcspn(at, " ");
        json_array_append_new(out, json_stringn(at, length));
        at += length + (at[length] == ' ');
    }
    return out;
}

static json_t *largest_of(const engine *e)
{
    json_t *out = json_object();
    for (pool_id id = 0; id < POOL_COUNT; id++)
        if (e->t1[id].value > 0)
            json_object_set_new(out, pools[id].key, json_real(e->t1[id].value));
    if (e->tl.value > 0)
        json_object_set_new(out, "stats", json_real(e->tl.value));
    return out;
}

static json_t *row_of(const engine *e, const char *date)
{
    json_t *constants = json_object(), *rms = json_object(), *proposed = proposals_of(e);
    if (has_wide_partials(e))
        json_object_set_new(constants, "partials_cast", json_false());
    for (pool_id id = 0; id < POOL_COUNT; id++)
        if (e->pool[id].rows > 0)
            json_object_set_new(rms, pools[id].key, json_real(sqrt(mean_of(e, id))));
    json_t *out = json_pack("{s:i,s:s,s:s,s:s,s:i,s:b,s:o,s:o,s:s,s:s,s:I,s:o,s:o}", "sm", e->sm, "backend", e->backend, "dtype",
                            e->dtype, "pass", e->pass, "engine", e->number, "calibrated", is_calibrated(e), "constants", constants,
                            "cudnn", words_of(e->cudnn), "device", e->device, "date", date, "cases", (json_int_t)e->rows, "rms",
                            rms, "largest", largest_of(e));
    if (json_array_size(proposed) > 0)
        json_object_set(out, "proposed", proposed);
    json_decref(proposed);
    return out;
}

json_t *facts_measured_table(const facts_measured *m, const char *date)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < m->count; i++)
        if (m->at[i].rows > 0)
            json_array_append_new(rows, row_of(&m->at[i], date));
    return json_pack("{s:i,s:o}", "version", 1, "rows", rows);
}

/* ---- for a person
 * ---------------------------------------------------------------------------------------------------------------- */

static void print_proposal(const char *constant, double value, double limit, const peak *because, FILE *out)
{
    fprintf(out, "  proposed: %s %.3g, limit %.3g%s; the record that forces it: got %.9g, due %.9g, bound %.3g\n    %s\n", constant,
            value, limit, value > limit ? ", beyond which a liar passes: no row may have it" : "", because->got, because->want,
            because->bound, because->name);
}

static void print_peak(const char *what, const peak *p, FILE *out)
{
    fprintf(out, "  %s: got %.9g, due %.9g, bound %.3g\n    %s\n", what, p->got, p->want, p->bound, p->name);
}

static void print_engine(const engine *e, FILE *out)
{
    fprintf(out, "%s sm_%d %s %s engine %d: %zu rows%s%s\n", e->backend, e->sm, e->dtype, e->pass, e->number, e->rows,
            is_calibrated(e) ? ", calibrated" : "", e->gauss < LEAST_ROWS ? " (few: 50 of fill=gauss are wanted)" : "");
    if (e->wild)
        fprintf(out, "  %zu rows took no part: their answers are wrong, whatever the constants\n", e->wild);
    for (pool_id id = 0; id < POOL_COUNT; id++) {
        if (e->pool[id].rows > 0)
            fprintf(out, "  %-10s mean (E/sigma)^2 %.3f, largest T1 %.3f: %s\n", pools[id].key, mean_of(e, id), e->t1[id].value,
                    meaning(mean_of(e, id)));
        if (e->t1[id].value > STRICT)
            print_peak("no room for T1 without its factor of 1.05", &e->t1[id], out);
    }
    if (e->tl.value > 0)
        fprintf(out, "  %-10s largest TL %.3f\n", "stats", e->tl.value);
    if (e->stats_loss.value > 0)
        fprintf(out, "  unip: LSE - ln n is %.3g at most, bound %.3g\n", e->stats_loss.value, e->stats_loss.bound);
    if (e->sum_loss.value > 0)
        fprintf(out, "  unip, V = 1: 1 - O is %.3g at most, bound %.3g\n", e->sum_loss.value, e->sum_loss.bound);
    if (has_wide_partials(e))
        fprintf(out, "  constants: partials_cast false (dk of grouped heads %.3f, of single ones %.3f)\n",
                mean_of(e, POOL_DK_GROUPED), mean_of(e, POOL_DK));
    if (e->tl.value > 1)
        print_proposal("eps_exp", eps_exp_of(e), limit_of(e).eps_exp, &e->tl, out);
    if (e->sum_loss.value > e->sum_loss.bound)
        print_proposal("acc_pv", e->sum_loss.value, limit_of(e).acc_pv, &e->sum_loss, out);
}

void facts_measured_print(const facts_measured *m, FILE *out)
{
    for (size_t i = 0; i < m->count; i++)
        print_engine(&m->at[i], out);
}
