/* What a worker has mapped, proved: the sha256 of each library, compared with what its package says it shipped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builds/integrity.h"
#include "supervision.h"

#define MAX_LIBRARIES 32

/* Passed on to workers when set: which GPUs are ours, and how sanitizers behave. */
static const char *const passed_for_gpu[] = { "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", NULL };
static const char *const passed[] = { "HOME", "TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", NULL };

typedef struct block {
    char *entries[16];
    size_t count;
    char text[8192];
    size_t used;
} block;

static void put(block *b, const char *name, const char *value)
{
    size_t left = sizeof b->text - b->used;
    int n = snprintf(b->text + b->used, left, "%s=%s", name, value);
    if (n < 0 || (size_t)n >= left || b->count + 1 >= sizeof b->entries / sizeof b->entries[0])
        return;
    b->entries[b->count++] = b->text + b->used;
    b->entries[b->count] = NULL;
    b->used += (size_t)n + 1;
}

static void put_set(block *b, const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value)
            put(b, *names, value);
    }
}

char **facts_worker_environment(const facts_target *target, const char *links, int threads)
{
    char number[16];
    block *b = calloc(1, sizeof *b);
    if (!b)
        return NULL;
    const char *path = getenv("PATH");
    put(b, "PATH", path ? path : "/usr/bin:/bin");
    snprintf(number, sizeof number, "%d", threads);
    put(b, "OMP_NUM_THREADS", number);
    put(b, "OMP_WAIT_POLICY", "passive"); /* several workers share the cores: threads that wait must not spin */
    if (target->kind != FACTS_TARGET_CPU && (target->build.kind == FACTS_BUILD_JIT || target->build.three_libraries))
        put(b, "CUDNN_LIB_CONFIG", "GRAPH_JIT_ONLY");
    if (links[0])
        put(b, "LD_LIBRARY_PATH", links);
    put_set(b, passed);
    if (target->kind == FACTS_TARGET_GPU)
        put_set(b, passed_for_gpu);
    return b->entries; /* the block's first member */
}

typedef struct proof {
    uv_work_t work;
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
    return strncmp(name, "libcudnn", 8) == 0 || strncmp(name, "libnvrtc", 8) == 0 || strncmp(name, "libcublasLt", 11) == 0;
}

/* Targets of one build share its libraries: each file is hashed once. The lock is held while hashing, so that the second asks and
 * waits. */
static bool hash_once(facts_supervision *run, const char *path, char sha256[65])
{
    facts_hashes *known = &run->hashes;
    bool found = false;
    uv_mutex_lock(&known->lock);
    for (size_t i = 0; i < known->count && !found; i++)
        if (strcmp(known->at[i].path, path) == 0) {
            memcpy(sha256, known->at[i].sha256, 65);
            found = true;
        }
    if (!found && facts_library_sha256(path, sha256)) {
        found = true;
        if (known->count < FACTS_HASHES_MAX) {
            snprintf(known->at[known->count].path, sizeof known->at[0].path, "%s", path);
            memcpy(known->at[known->count++].sha256, sha256, 65);
        }
    }
    uv_mutex_unlock(&known->lock);
    return found;
}

static void prove_library(proof *p, facts_slice object)
{
    facts_member members[16];
    size_t count;
    char path[FACTS_PATH], sha256[65] = "";
    int64_t bytes = 0;
    bool in_build = false;
    const facts_target *target = p->run->targets[p->target].target;
    if (!facts_scan_object(object.at, object.length, members, 16, &count))
        return;
    count = count < 16 ? count : 16;
    if (!facts_slice_string(facts_member_find(members, count, "path"), path, sizeof path))
        return;
    facts_slice_int(facts_member_find(members, count, "bytes"), &bytes);
    facts_slice_bool(facts_member_find(members, count, "in_build"), &in_build);
    facts_text_puts(&p->libraries, "{");
    facts_text_member(&p->libraries, "path", path);
    facts_text_member_int(&p->libraries, "bytes", bytes);
    facts_text_format(&p->libraries, "\"in_build\":%s,", in_build ? "true" : "false");
    if (p->run->order->hash_libraries && is_proved(path) && hash_once(p->run, path, sha256)) {
        facts_text_member(&p->libraries, "sha256", sha256);
        facts_text_member(&p->libraries, "record", facts_integrity_name(facts_library_check(&target->build, path, sha256)));
    }
    facts_text_close(&p->libraries);
    facts_text_puts(&p->libraries, ",");
}

/* On a thread of the pool: hashing hundreds of megabytes must not hold up the schedule. */
static void prove(uv_work_t *work)
{
    proof *p = work->data;
    facts_member members[FACTS_ROW_MEMBERS];
    facts_slice elements[MAX_LIBRARIES];
    size_t count;
    if (!facts_scan_object(p->ready, p->length, members, FACTS_ROW_MEMBERS, &count))
        return;
    facts_slice list = facts_member_find(members, count < FACTS_ROW_MEMBERS ? count : FACTS_ROW_MEMBERS, "libraries");
    if (!list.at || !facts_scan_array(list.at, list.length, elements, MAX_LIBRARIES, &count))
        return;
    for (size_t i = 0; i < count && i < MAX_LIBRARIES; i++)
        prove_library(p, elements[i]);
    if (p->libraries.length)
        p->libraries.length--; /* the last comma */
}

static void compose(const proof *p, facts_text *out)
{
    static const char *const ours[] = { "run", "build", "device", "planned", "origin", "described_from", "libraries" };
    facts_member members[FACTS_ROW_MEMBERS];
    size_t count;
    const facts_target_state *state = &p->run->targets[p->target];
    facts_text_puts(out, "{\"target\":{");
    facts_text_member(out, "run", p->run->order->run_id);
    facts_text_member(out, "build", state->target->build.name);
    facts_text_member(out, "device", state->device);
    if (state->target->kind == FACTS_TARGET_GPU) {
        char planned[16]; /* its name in the run's targets, before it said what it is */
        snprintf(planned, sizeof planned, "gpu%d", state->target->ordinal);
        facts_text_member(out, "planned", planned);
    }
    facts_text_member(out, "origin", facts_origin_name(state->target->build.origin));
    if (state->target->kind == FACTS_TARGET_DESCRIBED)
        facts_text_member(out, "described_from", state->target->described.source);
    if (facts_scan_object(p->ready, p->length, members, FACTS_ROW_MEMBERS, &count))
        for (size_t i = 0; i < count && i < FACTS_ROW_MEMBERS; i++) {
            bool own = false;
            for (size_t k = 0; k < sizeof ours / sizeof ours[0]; k++)
                own |= members[i].key.length == strlen(ours[k]) && memcmp(members[i].key.at, ours[k], members[i].key.length) == 0;
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

static void proved(uv_work_t *work, int status)
{
    proof *p = work->data;
    facts_text line = { 0 };
    (void)status;
    compose(p, &line);
    facts_write_line(p->run, &line);
    facts_text_free(&line);
    facts_text_free(&p->libraries);
    free(p->ready);
    free(p);
}

void facts_write_target(facts_supervision *run, size_t target, facts_slice ready)
{
    proof *p = calloc(1, sizeof *p);
    char *copy = malloc(ready.length);
    if (!p || !copy) {
        free(p);
        free(copy);
        return;
    }
    memcpy(copy, ready.at, ready.length);
    *p = (proof){ .run = run, .target = target, .ready = copy, .length = ready.length };
    p->work.data = p;
    if (uv_queue_work(&run->loop, &p->work, prove, proved) != 0) {
        free(copy);
        free(p);
    }
}
