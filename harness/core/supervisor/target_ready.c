/* A target whose first worker is ready: what the target is called, which libraries it has mapped,
 * and its line of the record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builds/digest.h"
#include "builds/integrity.h"
#include "supervision.h"

#define MAX_LIBRARIES 32

typedef struct proof {
    uv_thread_t thread;
    uv_async_t done; /* the thread has ended */
    facts_supervision *run;
    size_t target;
    char *ready; /* the worker's object */
    size_t length;
    facts_text libraries;
} proof;

static bool is_proved(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    return strncmp(name, "libcudnn", 8) == 0 || strncmp(name, "libnvrtc", 8) == 0 ||
           strncmp(name, "libcublasLt", 11) == 0;
}

static void prove_library(proof *p, facts_span object)
{
    facts_member members[16];
    size_t count;
    char path[FACTS_PATH];
    facts_digest digest;
    int64_t bytes = 0;
    bool in_build = false;
    const facts_target *target = p->run->targets[p->target].target;
    if (!facts_scan_object(object.at, object.length, members, 16, &count))
        return;
    count = count < 16 ? count : 16;
    if (!facts_json_string(facts_member_find(members, count, "path"), path, sizeof path))
        return;
    facts_json_int(facts_member_find(members, count, "bytes"), &bytes);
    facts_json_bool(facts_member_find(members, count, "in_build"), &in_build);
    facts_text_puts(&p->libraries, "{");
    facts_text_member(&p->libraries, "path", path);
    facts_text_member_int(&p->libraries, "bytes", bytes);
    facts_text_format(&p->libraries, "\"in_build\":%s,", in_build ? "true" : "false");
    if (p->run->order->hash_libraries && is_proved(path) && facts_digest_file(path, &digest)) {
        facts_text_member(&p->libraries, "sha256", digest.sha256);
        facts_text_member(
            &p->libraries, "record",
            facts_integrity_name(facts_library_check(&target->build, path, digest.sha256)));
    }
    facts_text_close(&p->libraries);
    facts_text_puts(&p->libraries, ",");
}

static void prove(proof *p)
{
    facts_member members[FACTS_ROW_MEMBERS];
    facts_span elements[MAX_LIBRARIES];
    size_t count;
    if (!facts_scan_object(p->ready, p->length, members, FACTS_ROW_MEMBERS, &count))
        return;
    facts_span list = facts_member_find(
        members, count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS, "libraries");
    if (!list.at || !facts_scan_array(list.at, list.length, elements, MAX_LIBRARIES, &count))
        return;
    for (size_t i = 0; i < count && i < MAX_LIBRARIES; i++)
        prove_library(p, elements[i]);
    if (p->libraries.length)
        p->libraries.length--; /* the last comma */
}

static void compose(const proof *p, facts_text *out)
{
    static const char *const ours[] = { "run",       "build",  "device",
                                        "planned",   "origin", "described_from",
                                        "libraries", "gpus",   "nvrtc" };
    facts_member members[FACTS_ROW_MEMBERS];
    size_t count;
    char nvrtc[FACTS_PATH + 32];
    const facts_target_state *state = &p->run->targets[p->target];
    facts_text_puts(out, "{\"target\":{");
    facts_text_member(out, "run", p->run->order->run_id);
    facts_text_member(out, "build", state->target->build.name);
    facts_text_member(out, "device", state->device);
    if (state->target->kind == FACTS_TARGET_GPU) {
        char planned[16]; /* its name in the run's targets, before its worker has reported its
                             product */
        facts_target_planned(planned, state->target);
        facts_text_member(out, "planned", planned);
    }
    if (state->target->gpus > 1)
        facts_text_member_int(out, "gpus", state->target->gpus);
    facts_text_member(out, "origin", facts_origin_name(state->target->build.origin));
    if (state->target->kind != FACTS_TARGET_CPU) {
        facts_nvrtc_words(&state->target->build, nvrtc);
        facts_text_member(out, "nvrtc", nvrtc);
    }
    if (state->target->kind == FACTS_TARGET_DESCRIBED)
        facts_text_member(out, "described_from", state->target->described.source);
    if (facts_scan_object(p->ready, p->length, members, FACTS_ROW_MEMBERS, &count))
        for (size_t i = 0; i < count && i < FACTS_ROW_MEMBERS; i++) {
            bool own = false;
            for (size_t k = 0; k < sizeof ours / sizeof ours[0]; k++)
                own |= members[i].key.length == strlen(ours[k]) &&
                       memcmp(members[i].key.at, ours[k], members[i].key.length) == 0;
            if (own)
                continue;
            facts_text_format(out, "\"%.*s\":", (int)members[i].key.length, members[i].key.at);
            facts_text_add(out, members[i].value.at, members[i].value.length);
            facts_text_puts(out, ",");
        }
    facts_text_puts(out, "\"libraries\":[");
    facts_text_add(out, p->libraries.data ? p->libraries.data : "", p->libraries.length);
    facts_text_puts(out, "]}}");
}

static void free_proof(uv_handle_t *done)
{
    free(done->data);
}

static void proved(proof *p)
{
    facts_text line = { 0 };
    compose(p, &line);
    facts_write_line(p->run, &line);
    facts_text_free(&line);
    facts_text_free(&p->libraries);
    free(p->ready);
    uv_close((uv_handle_t *)&p->done, free_proof);
}

static void prove_on_thread(void *of)
{
    proof *p = of;
    prove(p);
    uv_async_send(&p->done);
}

static void join(uv_async_t *done)
{
    proof *p = done->data;
    uv_thread_join(&p->thread);
    proved(p);
}

/* A thread computes the hash: hundreds of megabytes must not delay the schedule. */
static void write_target(facts_supervision *run, size_t target, facts_span ready)
{
    proof *p = calloc(1, sizeof *p);
    char *copy = malloc(ready.length);
    memcpy(copy, ready.at, ready.length);
    *p = (proof){ .run = run, .target = target, .ready = copy, .length = ready.length };
    p->done.data = p;
    if (uv_async_init(&run->loop, &p->done, join) != 0) {
        facts_record_ends(run, "a target line could not be written");
        free(copy);
        free(p);
    } else if (uv_thread_create(&p->thread, prove_on_thread, p) !=
               0) { /* libuv's own pool would abort */
        prove(p);
        proved(p);
    }
}

/* The first GPU of a kind gets the plain name; with several of a kind in one run, a number
 * distinguishes them. */
static void name_device(facts_supervision *run, size_t target, const facts_line *ready)
{
    facts_target_state *state = &run->targets[target];
    char full[128], label[96];
    if (state->target->kind != FACTS_TARGET_GPU ||
        !facts_json_string(facts_line_get(ready, "device_name"), full, sizeof full))
        return;
    bool several = false;
    for (size_t i = 0; i < run->order->target_count; i++)
        several |= run->order->targets[i].kind == FACTS_TARGET_GPU &&
                   run->order->targets[i].ordinal != state->target->ordinal;
    facts_device_label(label, sizeof label, full);
    if (!label[0])
        return;
    if (several)
        snprintf(state->device, sizeof state->device, "%s#%d", label, state->target->ordinal);
    else
        snprintf(state->device, sizeof state->device, "%s", label);
}

/* The library at this path in an array of libraries: which file it is. "": it is not in the array.
 */
static void file_of(facts_span libraries, const char *path, char *out, size_t capacity)
{
    facts_span elements[MAX_LIBRARIES];
    size_t count = 0;
    out[0] = '\0';
    if (!libraries.at ||
        !facts_scan_array(libraries.at, libraries.length, elements, MAX_LIBRARIES, &count))
        return;
    for (size_t i = 0; i < count && i < MAX_LIBRARIES; i++) {
        facts_member members[16];
        size_t n;
        char other[FACTS_PATH];
        if (facts_scan_object(elements[i].at, elements[i].length, members, 16, &n) &&
            facts_json_string(facts_member_find(members, n < 16 ? n : 16, "path"), other,
                              sizeof other) &&
            strcmp(other, path) == 0)
            facts_json_string(facts_member_find(members, n < 16 ? n : 16, "file"), out, capacity);
    }
}

/* Has a later worker loaded another cuDNN than the first one? `what`: how it shows. */
static bool is_another_build(const facts_target_state *state, const facts_line *ready, char *what,
                             size_t capacity)
{
    const facts_span before = { state->libraries.data, state->libraries.length },
                     now = facts_line_get(ready, "libraries");
    facts_span elements[MAX_LIBRARIES];
    size_t count = 0;
    char version[sizeof state->version] = "";
    facts_json_string(facts_line_get(ready, "cudnn"), version, sizeof version);
    if (strcmp(version, state->version) != 0) {
        snprintf(what, capacity, "cuDNN changed during the run: from %s to %s", state->version,
                 version);
        return true;
    }
    if (!before.at || !now.at ||
        !facts_scan_array(now.at, now.length, elements, MAX_LIBRARIES, &count))
        return false;
    for (size_t i = 0; i < count && i < MAX_LIBRARIES; i++) {
        facts_member members[16];
        size_t n;
        char path[FACTS_PATH], was[96], is[96];
        if (!facts_scan_object(elements[i].at, elements[i].length, members, 16, &n) ||
            !facts_json_string(facts_member_find(members, n < 16 ? n : 16, "path"), path,
                               sizeof path))
            continue;
        file_of(before, path, was, sizeof was);
        file_of(now, path, is, sizeof is);
        if (was[0] && strcmp(was, is) != 0) {
            snprintf(what, capacity, "a library changed during the run: %.200s", path);
            return true;
        }
    }
    return false;
}

void facts_target_ready(facts_supervision *run, size_t target, facts_span ready)
{
    const facts_order *order = run->order;
    facts_target_state *state = &run->targets[target];
    facts_line *inner = run->row;
    size_t count;
    int64_t sm;
    if (!facts_scan_object(ready.at, ready.length, inner->members, FACTS_ROW_MEMBERS, &count))
        return;
    inner->count = count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS;
    if (facts_json_int(facts_line_get(inner, "sm"), &sm) && sm >= 0 && sm < 10000)
        state->sm = (int)sm;
    name_device(run, target, inner);
    const facts_span libraries = facts_line_get(inner, "libraries");
    facts_json_string(facts_line_get(inner, "cudnn"), state->version, sizeof state->version);
    facts_text_add(&state->libraries, libraries.at ? libraries.at : "",
                   libraries.at ? libraries.length : 0);
    if (order->on_ready)
        order->on_ready(order->context, target, state->device, inner);
    write_target(run, target, ready);
}

bool facts_worker_ready(facts_slot *slot, facts_span ready)
{
    facts_supervision *run = slot->run;
    const facts_target_state *state = &run->targets[slot->target];
    facts_line *inner = run->row;
    size_t count;
    int64_t bytes = 0;
    char full[128], label[96], text[320];
    if (!facts_scan_object(ready.at, ready.length, inner->members, FACTS_ROW_MEMBERS, &count))
        return true;
    inner->count = count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS;
    facts_json_int(facts_line_get(inner, "memory_free"), &bytes);
    facts_gpu_is_ready(slot, bytes);
    if (!state->failed && is_another_build(state, inner, text, sizeof text)) {
        facts_fail_target(run, slot->target, "environment", text,
                          "leave a build as it is while it is asked");
        return false;
    }
    if (state->target->gpus < 2 || state->failed ||
        !facts_json_string(facts_line_get(inner, "device_name"), full, sizeof full))
        return true;
    facts_device_label(label, sizeof label, full);
    if (strcmp(label, state->device) == 0)
        return true;
    snprintf(text, sizeof text, "--device all: the GPUs are of different kinds, GPU %d is %s",
             slot->gpu, label);
    facts_fail_target(run, slot->target, "environment", text,
                      "give numbers: --device 0,1 makes a target of each GPU");
    return false;
}
