#include "heuristics.h"

#include <string.h>

static const int heuristic_modes[] = {
    [FATTN_MODE_A] = DNN_HEUR_MODE_A,
    [FATTN_MODE_B] = DNN_HEUR_MODE_B,
    [FATTN_MODE_FALLBACK] = DNN_HEUR_MODE_FALLBACK,
    [FATTN_MODE_INSTANT] = DNN_HEUR_MODE_INSTANT,
};

void fattn__offer_init(fattn__offer *out, const fattn__cudnn *api)
{
    memset(out, 0, offsetof(fattn__offer, configs));
    out->steps.api = api;
}

void fattn__offer_ask(fattn__offer *out, const fattn__cudnn *api, fattn__desc operation_graph,
                      fattn__desc description, fattn_mode mode)
{
    fattn__offer_init(out, api);
    fattn__steps *s = &out->steps;
    fattn__step_create(s, DNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &out->heuristics);
    fattn__step_set(s, out->heuristics, DNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                    DNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation_graph);
    fattn__step_set(s, out->heuristics, DNN_ATTR_ENGINEHEUR_MODE, DNN_TYPE_HEUR_MODE, 1,
                    &heuristic_modes[mode]);
    fattn__step_set_desc(s, out->heuristics, DNN_ATTR_ENGINEHEUR_DEVICEPROP, description);
    fattn__step_finalize(s, out->heuristics);
    if (s->status != DNN_STATUS_SUCCESS)
        return;
    int64_t count = 0;
    s->status =
        api->cudnnBackendGetAttribute(out->heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, 0, &out->candidates, NULL);
    int64_t wanted = out->candidates < FATTN__MAX_CONFIGS ? out->candidates : FATTN__MAX_CONFIGS;
    while (s->status == DNN_STATUS_SUCCESS && out->made < wanted) {
        fattn__step_create(s, DNN_BACKEND_ENGINECFG_DESCRIPTOR, &out->configs[out->made]);
        out->made += s->status == DNN_STATUS_SUCCESS;
    }
    if (s->status != DNN_STATUS_SUCCESS || out->made == 0)
        return;
    s->status =
        api->cudnnBackendGetAttribute(out->heuristics, DNN_ATTR_ENGINEHEUR_RESULTS,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, out->made, &count, out->configs);
    if (s->status == DNN_STATUS_SUCCESS)
        out->count = count < out->made ? (int)count : out->made;
}

/* ---- a pin
 * -----------------------------------------------------------------------------------------------------------------
 */

static void pin_knob(fattn__offer *out, const fattn_knob *knob)
{
    fattn__steps *s = &out->steps;
    fattn__desc *choice = &out->knobs[out->knob_count];
    fattn__step_create(s, DNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, choice);
    if (s->status != DNN_STATUS_SUCCESS)
        return;
    out->knob_count++;
    fattn__step_set(s, *choice, DNN_ATTR_KNOB_CHOICE_KNOB_TYPE, DNN_TYPE_KNOB_TYPE, 1, &knob->type);
    fattn__step_set(s, *choice, DNN_ATTR_KNOB_CHOICE_KNOB_VALUE, DNN_TYPE_INT64, 1, &knob->value);
    fattn__step_finalize(s, *choice);
}

void fattn__offer_pin(fattn__offer *out, const fattn__cudnn *api, fattn__desc operation_graph,
                      fattn__desc description, int64_t engine, const fattn_knob *knobs,
                      int knob_count)
{
    fattn__offer_init(out, api);
    fattn__steps *s = &out->steps;
    fattn__step_create(s, DNN_BACKEND_ENGINE_DESCRIPTOR, &out->engine);
    fattn__step_set(s, out->engine, DNN_ATTR_ENGINE_OPERATION_GRAPH, DNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    &operation_graph);
    fattn__step_set(s, out->engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64, 1, &engine);
    fattn__step_set_desc(s, out->engine, DNN_ATTR_ENGINE_DEVICEPROP, description);
    fattn__step_finalize(s, out->engine);
    for (int i = 0; i < knob_count && i < FATTN_MAX_KNOBS; i++)
        pin_knob(out, &knobs[i]);
    fattn__step_create(s, DNN_BACKEND_ENGINECFG_DESCRIPTOR, &out->configs[0]);
    if (s->status != DNN_STATUS_SUCCESS)
        return;
    out->made = 1;
    fattn__step_set(s, out->configs[0], DNN_ATTR_ENGINECFG_ENGINE, DNN_TYPE_BACKEND_DESCRIPTOR, 1,
                    &out->engine);
    if (out->knob_count > 0)
        fattn__step_set(s, out->configs[0], DNN_ATTR_ENGINECFG_KNOB_CHOICES,
                        DNN_TYPE_BACKEND_DESCRIPTOR, out->knob_count, out->knobs);
    fattn__step_finalize(s, out->configs[0]);
    out->candidates = 1;
    out->count = s->status == DNN_STATUS_SUCCESS ? 1 : 0;
}

void fattn__offer_release(fattn__offer *offer)
{
    const fattn__cudnn *api = offer->steps.api;
    while (offer->made > 0)
        api->cudnnBackendDestroyDescriptor(offer->configs[--offer->made]);
    while (offer->knob_count > 0)
        api->cudnnBackendDestroyDescriptor(offer->knobs[--offer->knob_count]);
    fattn__desc_destroy(api, offer->engine);
    fattn__desc_destroy(api, offer->heuristics);
    offer->engine = offer->heuristics = NULL;
    offer->count = 0;
}

/* ---- one configuration
 * -----------------------------------------------------------------------------------------------------
 */

void fattn__config_reader_init(fattn__config_reader *reader, const fattn__cudnn *api)
{
    memset(reader, 0, sizeof *reader);
    reader->api = api;
    if (api->cudnnBackendCreateDescriptor(DNN_BACKEND_ENGINE_DESCRIPTOR, &reader->engine) !=
        DNN_STATUS_SUCCESS)
        reader->engine = NULL;
    while (reader->knob_count < FATTN_MAX_KNOBS &&
           api->cudnnBackendCreateDescriptor(DNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                             &reader->knobs[reader->knob_count]) ==
               DNN_STATUS_SUCCESS)
        reader->knob_count++;
}

void fattn__config_reader_release(fattn__config_reader *reader)
{
    while (reader->knob_count > 0)
        reader->api->cudnnBackendDestroyDescriptor(reader->knobs[--reader->knob_count]);
    fattn__desc_destroy(reader->api, reader->engine);
    reader->engine = NULL;
}

/* Notes as bits; those past bit 31 are not known to any version. */
static uint32_t read_notes(const fattn__cudnn *api, fattn__desc engine, int name, int type)
{
    int notes[32];
    int64_t count = 0;
    uint32_t bits = 0;
    if (api->cudnnBackendGetAttribute(engine, name, type, 32, &count, notes) != DNN_STATUS_SUCCESS)
        return 0;
    for (int64_t i = 0; i < count && i < 32; i++) {
        if (notes[i] >= 0 && notes[i] < 32)
            bits |= 1u << notes[i];
    }
    return bits;
}

static void read_knobs(fattn__config_reader *reader, fattn__desc config, fattn_engine *out)
{
    const fattn__cudnn *api = reader->api;
    int64_t count = 0, one = 0;
    if (api->cudnnBackendGetAttribute(config, DNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, reader->knob_count, &count,
                                      reader->knobs) != DNN_STATUS_SUCCESS)
        return;
    for (int64_t i = 0; i < count && i < reader->knob_count; i++) {
        fattn_knob *knob = &out->knobs[out->knob_count];
        if (api->cudnnBackendGetAttribute(reader->knobs[i], DNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                          DNN_TYPE_KNOB_TYPE, 1, &one,
                                          &knob->type) == DNN_STATUS_SUCCESS &&
            api->cudnnBackendGetAttribute(reader->knobs[i], DNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                          DNN_TYPE_INT64, 1, &one,
                                          &knob->value) == DNN_STATUS_SUCCESS)
            out->knob_count++;
    }
}

bool fattn__config_read(fattn__config_reader *reader, fattn__desc config, fattn_engine *out)
{
    const fattn__cudnn *api = reader->api;
    int64_t count = 0;
    *out = (fattn_engine){ .index = -1, .workspace_bytes = -1 };
    if (reader->engine == NULL ||
        api->cudnnBackendGetAttribute(config, DNN_ATTR_ENGINECFG_ENGINE,
                                      DNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                      &reader->engine) != DNN_STATUS_SUCCESS ||
        api->cudnnBackendGetAttribute(reader->engine, DNN_ATTR_ENGINE_GLOBAL_INDEX, DNN_TYPE_INT64,
                                      1, &count, &out->index) != DNN_STATUS_SUCCESS)
        return false;
    out->numerical_notes =
        read_notes(api, reader->engine, DNN_ATTR_ENGINE_NUMERICAL_NOTE, DNN_TYPE_NUMERICAL_NOTE);
    out->behavior_notes =
        read_notes(api, reader->engine, DNN_ATTR_ENGINE_BEHAVIOR_NOTE, DNN_TYPE_BEHAVIOR_NOTE);
    read_knobs(reader, config, out);
    int64_t bytes = -1;
    if (api->cudnnBackendGetAttribute(config, DNN_ATTR_ENGINECFG_WORKSPACE_SIZE, DNN_TYPE_INT64, 1,
                                      &count, &bytes) == DNN_STATUS_SUCCESS &&
        count == 1)
        out->workspace_bytes = bytes;
    return true;
}
