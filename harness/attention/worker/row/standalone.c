#include "standalone.h"

#include <fattn/descriptors.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "numbers/dtype.h"
#include "problem_json.h"
#include "row.h"
#include "worker/memory/case_reference.h"

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
