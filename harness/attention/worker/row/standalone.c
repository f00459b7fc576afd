#include "standalone.h"

#include <errno.h>
#include <fattn/descriptors.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "numbers/dtype.h"
#include "numbers/fill/places.h"
#include "numbers/judge/picture.h"
#include "row.h"
#include "words/text_file.h"
#include "worker/memory/case_reference.h"

/* Arrays as .npy files (NPY version 1.0), little-endian as the machine. */
typedef struct facts_npy {
    const char *folder; /* it must exist */
    json_t *names;      /* the files written so far */
    facts_error *error; /* filled if a file could not be written */
} facts_npy;

static bool any_wrong(const facts_marks *m)
{
    for (int64_t i = 0; i < facts_elements(m->dim); i++)
        if (m->at[i] != FACTS_RIGHT)
            return true;
    return false;
}

/* Shows the run over poison A, unless it was correct. */
static bool mark(facts_marks *out, facts_reference *reference, facts_tensor_id id)
{
    facts_answer expects;
    bool found = false;
    if (!facts_expected_on_host(&expects, reference, id))
        return false;
    for (facts_pattern pattern = FACTS_PATTERN_A; pattern <= FACTS_PATTERN_B && !found; pattern++) {
        const void *storage = facts_memory_storage(&reference->memory, id, pattern);
        facts_rule rule = facts_expectation_rule(&reference->expectation, id, pattern);
        rule.expected.want = expects.want;
        rule.expected.sigma = expects.sigma;
        rule.expected.bound = expects.bound;
        const facts_tensor tensor = facts_tensor_seen(reference->memory.problem, id);
        if (!storage || !expects.want)
            break;
        facts_judge_marks(&tensor, storage, &rule, out);
        found = any_wrong(out);
    }
    facts_expected_release(&expects, reference, id);
    return found;
}

json_t *facts_pictures(const facts_trial *trial, facts_reference *reference)
{
    json_t *out = NULL;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_judgement *j = &trial->judgement[id];
        const facts_tensor *t = &reference->memory.problem->tensor[id];
        if (!trial->judged[id] || facts_judgement_verdict(j) == FACTS_VERDICT_PASS)
            continue;
        if (j->wrong + j->not_finite + j->unwritten == 0) {
            out = out ? out : json_object();
            json_object_set_new(
                out, facts_tensor_word(id),
                json_sprintf("no single element is wrong: %s refuses all of them together\n",
                             facts_gate_words[j->gate]));
            continue;
        }
        size_t elements = (size_t)facts_elements(t->dim);
        facts_marks marks = { .at = malloc(elements + 1),
                              .keys = id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DV };
        char text[FACTS_PICTURE_TEXT];
        if (marks.at && mark(&marks, reference, id)) {
            out = out ? out : json_object();
            json_object_set_new(out, facts_tensor_word(id),
                                json_string(facts_picture(&marks, text)));
        }
        free(marks.at);
    }
    return out;
}

/* NPY version 1.0: magic, version, header length, a Python dict padded so that the data start at a
 * multiple of 64. */
static bool put_header(FILE *file, const char *descr, const int64_t *dim, int rank)
{
    char header[192], prefix[10] = "\x93NUMPY\x01\x00";
    int length = snprintf(header, sizeof header,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < rank; i++)
        length += snprintf(header + length, sizeof header - (size_t)length, "%s%" PRId64,
                           i ? ", " : "", dim[i]);
    length +=
        snprintf(header + length, sizeof header - (size_t)length, "%s), }", rank == 1 ? "," : "");
    const int padded = (length + 1 + 10 + 63) / 64 * 64 - 10;
    memset(header + length, ' ', (size_t)(padded - length));
    header[padded - 1] = '\n';
    prefix[8] = (char)(padded & 0xFF);
    prefix[9] = (char)(padded >> 8);
    return fwrite(prefix, 1, 10, file) == 10 &&
           fwrite(header, 1, (size_t)padded, file) == (size_t)padded;
}

#define MOST_PATH 4400

static void path_of(const facts_npy *d, const char *name, char out[MOST_PATH])
{
    snprintf(out, MOST_PATH, "%s/%s", d->folder, name);
}

/* Half a file must not look like a whole one. */
static void give_up(const facts_npy *d, const char *name, int number)
{
    char path[MOST_PATH];
    path_of(d, name, path);
    if (!d->error->text[0]) /* the first says most */
        facts_fail(d->error, "%.150s: %s", name, strerror(number));
    unlink(path);
}

static FILE *facts_npy_open(const facts_npy *d, const char *name)
{
    char path[MOST_PATH];
    path_of(d, name, path);
    FILE *file = facts_file_new(path);
    if (!file)
        facts_fail(d->error, "%.150s: %s", name, strerror(errno));
    return file;
}

/* The header of an array of this shape. `descr` is NumPy's: "<f4". NULL: not opened. */
static FILE *facts_npy_begin(const facts_npy *d, const char *name, const char *descr,
                             const int64_t *dim, int rank)
{
    FILE *file = facts_npy_open(d, name);
    if (!file || put_header(file, descr, dim, rank))
        return file;
    const int number = errno;
    fclose(file);
    give_up(d, name, number);
    return NULL;
}

/* Closes the file, and records its name if all was written. */
static void facts_npy_end(const facts_npy *d, FILE *file, const char *name)
{
    const bool bad = fflush(file) != 0 || ferror(file) != 0;
    const int number = errno;
    if (fclose(file) != 0 || bad)
        give_up(d, name, bad ? number : errno);
    else
        json_array_append_new(d->names, json_string(name));
}

/* Writes a whole array of one dimension. */
static void facts_npy_put(const facts_npy *d, const char *name, const char *descr, const void *from,
                          size_t size, int64_t count)
{
    FILE *file = facts_npy_begin(d, name, descr, &count, 1);
    if (!file)
        return;
    fwrite(from, size, (size_t)count, file);
    facts_npy_end(d, file, name);
}

/* Rows beyond the end of a ragged sequence are written as 0. */
static uint32_t code_at(const facts_tensor *t, const void *storage, int64_t i)
{
    int64_t at[4];
    facts_index_of(t->dim, i, at);
    return facts_row_exists(t, at[0], at[2])
               ? facts_load(t->dtype, storage, facts_element_place(t, at))
               : 0;
}

/* NumPy's type string for the bits of a type. */
static const char *facts_dump_descr(int32_t dtype)
{
    const size_t size = facts_dtype_bytes(dtype);
    return dtype == FATTN_F32 ? "<f4" : dtype == FATTN_F16 ? "<f2" : size == 2 ? "<u2" : "|u1";
}

static void put_bits(const facts_npy *d, const facts_tensor *t, const char *word,
                     const void *storage)
{
    char name[64];
    size_t size = facts_dtype_bytes(t->dtype);
    snprintf(name, sizeof name, "%s.npy", word);
    FILE *file = facts_npy_begin(d, name, facts_dump_descr(t->dtype), t->dim, 4);
    for (int64_t i = 0; file && i < facts_elements(t->dim); i++) {
        const uint32_t code = code_at(t, storage, i); /* little-endian, as the machine */
        fwrite(&code, size, 1, file);
    }
    if (file)
        facts_npy_end(d, file, name);
}

static void put_f32(const facts_npy *d, const facts_tensor *t, const char *word,
                    const void *storage)
{
    char name[64];
    snprintf(name, sizeof name, "%s_f32.npy", word);
    FILE *file = facts_npy_begin(d, name, "<f4", t->dim, 4);
    for (int64_t i = 0; file && i < facts_elements(t->dim); i++) {
        float value = (float)facts_decode(t->dtype, code_at(t, storage, i));
        fwrite(&value, sizeof value, 1, file);
    }
    if (file)
        facts_npy_end(d, file, name);
}

static void put_doubles(const facts_npy *d, const facts_tensor *t, const char *word,
                        const char *what, const double *values)
{
    char name[64];
    if (!values)
        return;
    snprintf(name, sizeof name, "%s.%s.npy", word, what);
    FILE *file = facts_npy_begin(d, name, "<f8", t->dim, 4);
    if (!file)
        return;
    fwrite(values, sizeof *values, (size_t)facts_elements(t->dim), file);
    facts_npy_end(d, file, name);
}

/* NAN in rows that are not compared. */
static double *tolerances(const facts_tensor *t, const facts_rule *rule)
{
    const facts_limits limits = facts_judge_limits(t, rule);
    double *out = malloc((size_t)(facts_elements(t->dim) + 1) * sizeof *out);
    for (int64_t i = 0; out && i < facts_elements(t->dim); i++) {
        const facts_row at_row = facts_row_of(t->dim, i / t->dim[3]);
        const facts_judged_element at = { .sigma =
                                              rule->expected.sigma ? rule->expected.sigma[i] : 0.0,
                                          .bound = rule->expected.bound[i] };
        const bool compared = facts_row_exists(t, at_row.b, at_row.s) &&
                              (!rule->expects || rule->expects[at_row.b * t->dim[2] + at_row.s] ==
                                                     FACTS_EXPECTS_VALUE);
        out[i] = compared ? facts_judged_element_tolerance(&limits, &at) : NAN;
    }
    return out;
}

static void put_expected(const facts_npy *d, facts_reference *reference, facts_tensor_id id)
{
    const char *word = facts_tensor_word(id);
    const facts_tensor t = facts_tensor_seen(reference->memory.problem, id);
    facts_answer expects;
    if (!facts_expected_on_host(&expects, reference, id)) {
        facts_fail(d->error, "%s: the expected values could not be fetched", word);
        return;
    }
    facts_rule rule = facts_expectation_rule(&reference->expectation, id, FACTS_PATTERN_A);
    rule.expected = (facts_expected){ expects.want, expects.sigma, expects.bound, NULL, NULL };
    double *tolerance = expects.want ? tolerances(&t, &rule) : NULL;
    put_doubles(d, &t, word, "want", expects.want);
    put_doubles(d, &t, word, "sigma", expects.sigma);
    put_doubles(d, &t, word, "tolerance", tolerance);
    free(tolerance);
    facts_expected_release(&expects, reference, id);
}

/* An amax: its value, the least and the most; dsink: the values, then their bounds. */
static void put_expected_array(const facts_npy *d, const facts_reference *reference,
                               facts_array_id id)
{
    const double *want = reference->expectation.array[id];
    const int64_t count = reference->memory.problem->array[id].count;
    char name[64];
    if (!want)
        return;
    const bool is_amax = id != FACTS_ARRAY_DSINK;
    const double around = is_amax ? fmax(want[2] - want[0], want[0] - want[1]) : 0.0;
    snprintf(name, sizeof name, "%s.want.npy", facts_array_words[id]);
    facts_npy_put(d, name, "<f8", want, sizeof *want, count);
    snprintf(name, sizeof name, "%s.tolerance.npy", facts_array_words[id]);
    facts_npy_put(d, name, "<f8", is_amax ? &around : want + count, sizeof *want, count);
}

/* Writes the expected values, the deviations and the tolerances that the reference has. */
static void facts_dump_expected(const facts_npy *d, facts_reference *reference)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++)
        if (reference->memory.problem->tensor[id].present)
            put_expected(d, reference, id);
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        put_expected_array(d, reference, id);
}

/* Writes a ragged tensor also as it is in memory: the tokens of all sequences, which the offsets
 * count. */
static void put_packed(const facts_npy *d, const facts_problem *p, facts_tensor_id id,
                       const void *storage)
{
    char word[64];
    const facts_tensor stored = facts_tensor_stored(p, id);
    snprintf(word, sizeof word, "%s.packed", facts_tensor_word(id));
    put_bits(d, &stored, word, storage);
}

static void put_contents(const facts_npy *d, facts_reference *reference)
{
    const facts_problem *p = reference->memory.problem;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor seen = p->tensor[id].page ? facts_tensor_stored(p, id)
                                                     : facts_tensor_seen(p, id),
                           *t = &seen;
        if (!t->present)
            continue;
        const void *storage = facts_memory_storage(&reference->memory, id, FACTS_PATTERN_A);
        put_bits(d, t, facts_tensor_word(id), storage);
        put_f32(d, t, facts_tensor_word(id), storage);
        if (t->packed != FACTS_PACKED_NOT)
            put_packed(d, p, id, storage);
    }
}

/* The dropout mask of the engine, or the caller's mask. */
static void put_kept(const facts_npy *d, const facts_reference *reference)
{
    const fattn_problem *ask = &reference->memory.problem->ask;
    const int64_t dim[4] = { ask->batch, ask->heads_q, ask->seq_q, ask->seq_kv };
    FILE *file = reference->keep.here ? facts_npy_begin(d, "keep.npy", "|u1", dim, 4) : NULL;
    if (!file)
        return;
    fwrite(reference->keep.here, 1, (size_t)facts_elements(dim), file);
    facts_npy_end(d, file, "keep.npy");
}

/* Writes ARRAY.npy and keep.npy only; `outputs`: also arrays that the call writes. */
static void facts_dump_arrays(const facts_npy *d, facts_reference *reference, bool outputs)
{
    static const char *const descr[] = { [FACTS_ARRAY_I32] = "<i4",
                                         [FACTS_ARRAY_I64] = "<i8",
                                         [FACTS_ARRAY_F32] = "<f4",
                                         [FACTS_ARRAY_U8] = "|u1" };
    char name[64];
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        const facts_array *array = &reference->memory.problem->array[id];
        if (array->count == 0 || (array->output && !outputs))
            continue;
        snprintf(name, sizeof name, "%s.npy", facts_array_words[id]);
        facts_npy_put(d, name, descr[array->type],
                      facts_memory_array(&reference->memory, id, FACTS_PATTERN_A),
                      facts_array_bytes(array) / (size_t)array->count, array->count);
    }
    put_kept(d, reference);
}

static void put_call(const facts_npy *d, const facts_problem *p, const char *text)
{
    static const char name[] = "case.json";
    json_t *problem = facts_problem_json(p, text);
    FILE *file = facts_npy_open(d, name);
    if (file && json_dumpf(problem, file, JSON_INDENT(1)) != 0)
        facts_fail(d->error, "%s: could not be written", name);
    if (file)
        facts_npy_end(d, file, name);
    json_decref(problem);
}

json_t *facts_dump(facts_reference *reference, const char *folder, const char *text,
                   facts_error *error)
{
    const facts_npy d = { folder, json_array(), error };
    put_call(&d, reference->memory.problem, text);
    put_contents(&d, reference);
    facts_dump_arrays(&d, reference, true);
    facts_dump_expected(&d, reference);
    return d.names;
}

/* ---- the problem and its graph
 * ----------------------------------------------------------------------------------------------------
 */

static void put_json(const facts_npy *out, const char *name, const json_t *value)
{
    FILE *file = facts_npy_open(out, name);
    if (file && json_dumpf(value, file, JSON_INDENT(1)) != 0)
        facts_fail(out->error, "%s: could not be written", name);
    if (file)
        facts_npy_end(out, file, name);
}

/* cuDNN's numbers of knobs, by the names that rows have. */
static json_t *knob_numbers(void)
{
    enum { MOST_KNOBS = 64 };
    json_t *out = json_object();
    for (int32_t type = 0; type < MOST_KNOBS; type++)
        if (strcmp(fattn_knob_name(type), "?") != 0)
            json_object_set_new(out, fattn_knob_name(type), json_integer(type));
    return out;
}

static bool put_problem(const facts_npy *out, const facts_worker *worker, const facts_problem *p,
                        const char *text)
{
    char *graph;
    json_error_t at;
    if (fattn_descriptors(&graph, &p->ask, worker->info.cudnn_version, worker->info.sm) != FATTN_OK)
        return facts_fail(out->error, "%.500s", fattn_last_error());
    json_t *problem = facts_problem_json(p, text);
    json_object_set_new(problem, "cudnn", json_integer(worker->info.cudnn_version));
    json_object_set_new(problem, "sm", json_integer(worker->info.sm));
    json_object_set_new(problem, "device", json_string(worker->info.device_name));
    json_object_set_new(problem, "knob_numbers", knob_numbers());
    json_object_set_new(problem, "graph", json_loads(graph, 0, &at));
    put_json(out, "case.json", problem);
    json_decref(problem);
    free(graph);
    return out->error->text[0] == '\0';
}

/* ---- the inputs of the call
 * -------------------------------------------------------------------------------------------------------
 */

static void put_tensors(const facts_npy *out, facts_reference *reference)
{
    const facts_problem *p = reference->memory.problem;
    char name[64];
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_tensor *t = &p->tensor[id];
        if (!t->present || facts_tensor_is_output(p, id) || t->shares)
            continue;
        snprintf(name, sizeof name, "%s.npy", facts_tensor_word(id));
        facts_npy_put(out, name, facts_dump_descr(t->dtype),
                      facts_memory_storage(&reference->memory, id, FACTS_PATTERN_A),
                      facts_dtype_bytes(t->dtype), t->elements);
    }
}

/* For a backward: O and Stats are the reference's. */
static fattn_status make(facts_reference *out, facts_worker *worker, const facts_problem *p,
                         facts_error *error)
{
    const facts_making making = { .worker = worker, .problem = p, .here = true };
    fattn_status status = facts_reference_create(out, &making, error);
    if (status == FATTN_OK)
        status = facts_reference_fill(out, NULL, error);
    if (status != FATTN_OK || p->ask.pass == FATTN_FORWARD)
        return status;
    facts_storages in = facts_memory_addresses(&out->memory);
    in.constants = &out->constants;
    in.keep = out->keep.here;
    if (facts_expect_inputs(
            p, &in, facts_memory_storage(&out->memory, FACTS_TENSOR_O, FACTS_PATTERN_A),
            facts_memory_storage(&out->memory, FACTS_TENSOR_STATS, FACTS_PATTERN_A)) != 0)
        return (fattn_status)facts_fail_as(
            FATTN_INTERNAL, error, "the reference does not compute O and Stats of this case");
    return FATTN_OK;
}

static bool put_data(const facts_npy *out, facts_worker *worker, const facts_problem *p,
                     bool expected)
{
    facts_reference reference;
    bool made = make(&reference, worker, p, out->error) == FATTN_OK;
    if (made && expected)
        made = facts_reference_compute(&reference, NULL, out->error) == FATTN_OK;
    if (made) {
        put_tensors(out, &reference);
        facts_dump_arrays(out, &reference, false);
        facts_dump_expected(out, &reference);
    }
    facts_reference_destroy(&reference);
    return made && out->error->text[0] == '\0';
}

/* The data needs no GPU: it is in host memory. Only the engine's own dropout mask needs one. */
static bool put_data_anywhere(const facts_npy *out, facts_worker *worker, const facts_problem *p,
                              bool expected)
{
    facts_worker other = *worker;
    const bool drops = p->ask.dropout != 0.0 && !p->ask.dropout_mask;
    if (drops && worker->device != FACTS_DEVICE_GPU)
        return facts_fail(out->error, "dropout: only a GPU can show which scores cuDNN keeps");
    if (drops)
        return put_data(out, worker, p, expected);
    fattn_context_options options = FATTN_CONTEXT_OPTIONS_INIT;
    options.device_kind = FATTN_DEVICE_CPU;
    if (fattn_context_create(&other.context, &options) != FATTN_OK)
        return facts_fail(out->error, "%.500s", fattn_last_error());
    other.device = FACTS_DEVICE_CPU;
    other.gpu = NULL;
    const bool done = put_data(out, &other, p, expected);
    fattn_context_destroy(other.context);
    return done;
}

bool facts_standalone(facts_worker *worker, const facts_problem *p, const facts_request *request,
                      facts_error *error)
{
    const facts_npy out = { request->standalone, json_array(), error };
    if (worker->device == FACTS_DEVICE_CPU)
        return facts_fail(error,
                          "a program on cuDNN needs a GPU, or a described one: --device h100-sxm");
    const bool done = put_problem(&out, worker, p, request->text) &&
                      put_data_anywhere(&out, worker, p, request->expected);
    json_decref(out.names);
    return done;
}

bool facts_standalone_decided(const fattn_decision *decision, const char *folder,
                              facts_error *error)
{
    const facts_npy out = { folder, json_array(), error };
    json_t *row = json_object();
    facts_row_decision(row, decision);
    put_json(&out, "decided.json", row);
    json_decref(row);
    json_decref(out.names);
    return error->text[0] == '\0';
}
