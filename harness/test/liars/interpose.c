#include "interpose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fattn/device.h"
#include "fattn/graph.h"
#include "numbers/dtype.h"
#include "numbers/fill/score_inputs.h"
#include "worker/exec/seams.h"

#define AS_ENUM(symbol, word, what, verdict) FACTS_INTERPOSED_##symbol,
typedef enum interposed {
    FACTS_INTERPOSED_NONE,
    FACTS_INTERPOSED_LIST(AS_ENUM) FACTS_INTERPOSED_COUNT
} interposed;
#undef AS_ENUM

#define AS_ROW(symbol, word, what, verdict) { word, what, FACTS_VERDICT_##verdict },
static const struct {
    const char *word, *what;
    facts_verdict verdict;
} rows[] = { { "", "", FACTS_VERDICT_PASS }, FACTS_INTERPOSED_LIST(AS_ROW) };
#undef AS_ROW

static interposed now;

bool facts_interpose_take(const char *word)
{
    for (int i = 1; i < FACTS_INTERPOSED_COUNT; i++)
        if (strcmp(rows[i].word, word) == 0) {
            now = (interposed)i;
            return true;
        }
    return false;
}

void facts_interpose_print(FILE *out)
{
    for (int i = 1; i < FACTS_INTERPOSED_COUNT; i++)
        fprintf(out, "%s\t%s\t%s\n", rows[i].word, facts_verdict_name(rows[i].verdict),
                rows[i].what);
}

/* The image of one tensor, brought here, bent and put back. */
typedef struct answer {
    const facts_tensor *tensor;
    facts_image image;
    unsigned char *bytes;
    facts_pattern pattern;
} answer;

static int64_t place(const answer *a, int64_t s, int64_t d)
{
    const facts_tensor *t = a->tensor; /* of the last head of the last batch entry */
    return t->first + (t->dim[0] - 1) * t->stride[0] + (t->dim[1] - 1) * t->stride[1] +
           s * t->stride[2] + d * t->stride[3];
}

static void *storage(const answer *a)
{
    return facts_image_storage(&a->image, a->bytes);
}

static void put(const answer *a, int64_t at, double value)
{
    facts_store(a->tensor->dtype, storage(a), at, facts_encode(a->tensor->dtype, value));
}

static double get(const answer *a, int64_t at)
{
    return facts_decode(a->tensor->dtype, facts_load(a->tensor->dtype, storage(a), at));
}

static void bend_row(const answer *a)
{
    for (int64_t d = 0; d < a->tensor->dim[3]; d++) {
        const int64_t at = place(a, a->tensor->dim[2] / 2, d);
        facts_store(a->tensor->dtype, storage(a), at,
                    facts_pattern_code(a->tensor->dtype, a->pattern, at));
    }
}

static void bend_stats(const answer *a)
{
    for (int64_t s = 0; s < a->tensor->dim[2]; s++)
        put(a, place(a, s, 0), get(a, place(a, s, 0)) + 0.001);
}

static void bend_bit(const answer *a)
{
    int64_t at = place(a, 0, 0);
    facts_store(a->tensor->dtype, storage(a), at, facts_load(a->tensor->dtype, storage(a), at) ^ 1);
}

/* The largest element of the last row: a factor shows there. */
static int64_t largest(const answer *a)
{
    int64_t best = place(a, a->tensor->dim[2] - 1, 0);
    for (int64_t d = 0; d < a->tensor->dim[3]; d++) {
        int64_t at = place(a, a->tensor->dim[2] - 1, d);
        double x = get(a, at), y = get(a, best);
        best = (x < 0 ? -x : x) > (y < 0 ? -y : y) ? at : best;
    }
    return best;
}

static void bend(const answer *a)
{
    switch (now) {
    case FACTS_INTERPOSED_ROW_UNWRITTEN:
        bend_row(a);
        break;
    case FACTS_INTERPOSED_STATS_HEAD:
        bend_stats(a);
        break;
    case FACTS_INTERPOSED_ELEMENT:
        put(a, largest(a), 1.25 * get(a, largest(a)));
        break;
    case FACTS_INTERPOSED_NAN:
        facts_store(a->tensor->dtype, storage(a), place(a, 0, 0),
                    facts_dtype_nan(a->tensor->dtype));
        break;
    case FACTS_INTERPOSED_GUARD:
        a->bytes[a->image.front - 1] ^= 0xFF;
        break;
    case FACTS_INTERPOSED_GAP: /* the last place before the next row; with gap:o.s.N nobody's */
        facts_store(a->tensor->dtype, storage(a), a->tensor->first + a->tensor->stride[2] - 1, 0);
        break;
    case FACTS_INTERPOSED_INPUT:
        a->bytes[a->image.front] ^= 1;
        break;
    default:
        bend_bit(a);
    }
}

static facts_tensor_id target(const facts_problem *p)
{
    bool backward = p->ask.pass == FATTN_BACKWARD;
    if (now == FACTS_INTERPOSED_INPUT)
        return FACTS_TENSOR_K;
    if (now == FACTS_INTERPOSED_STATS_HEAD)
        return FACTS_TENSOR_STATS;
    if (now == FACTS_INTERPOSED_SECOND_BIT && backward)
        return FACTS_TENSOR_DV; /* dQ may be summed in any order */
    return backward ? FACTS_TENSOR_DQ : FACTS_TENSOR_O;
}

/* ---- arrays
 * -------------------------------------------------------------------------------------------------------------------
 */

/* The array that a lie is about; FACTS_ARRAY_COUNT: none. */
static facts_array_id array_of(const facts_problem *p)
{
    switch (now) {
    case FACTS_INTERPOSED_SINK_DROPPED:
        return FACTS_ARRAY_SINK;
    case FACTS_INTERPOSED_PAGE_NEXT:
        return p->array[FACTS_ARRAY_PAGE_TABLE_K].count ? FACTS_ARRAY_PAGE_TABLE_K
                                                        : FACTS_ARRAY_PAGE_TABLE_V;
    case FACTS_INTERPOSED_OFFSETS_LATE:
        return FACTS_ARRAY_Q_OFFSETS;
    case FACTS_INTERPOSED_FACTOR_NEXT:
        return FACTS_ARRAY_SF_Q;
    case FACTS_INTERPOSED_SEED_OTHER:
        return FACTS_ARRAY_SEED;
    default:
        return FACTS_ARRAY_COUNT;
    }
}

static void delay(unsigned char *bytes, const facts_problem *p)
{
    const facts_array *offsets = &p->array[FACTS_ARRAY_Q_OFFSETS];
    const int64_t token = p->ask.ragged_tokens ? 1 : p->tensor[FACTS_TENSOR_Q].stride[2];
    for (int64_t b = 1; b < offsets->count; b++)
        if (offsets->type == FACTS_ARRAY_I64)
            ((int64_t *)(void *)bytes)[b] += token;
        else
            ((int32_t *)(void *)bytes)[b] += (int32_t)token;
}

static void bend_array(unsigned char *bytes, size_t size, const facts_problem *p)
{
    const float nothing = -(float)INFINITY;
    switch (now) {
    case FACTS_INTERPOSED_SINK_DROPPED:
        for (size_t at = 0; at + sizeof nothing <= size; at += sizeof nothing)
            memcpy(bytes + at, &nothing, sizeof nothing);
        break;
    case FACTS_INTERPOSED_PAGE_NEXT:
        memmove(bytes, bytes + sizeof(int32_t), size - sizeof(int32_t));
        break;
    case FACTS_INTERPOSED_FACTOR_NEXT:
        memmove(bytes, bytes + 1, size - 1);
        break;
    case FACTS_INTERPOSED_OFFSETS_LATE:
        delay(bytes, p);
        break;
    default:
        bytes[0] ^= 1;
    }
}

/* Around a run: what it is given is something else, and afterwards what it was. */
static void bend_inputs(facts_memory *m, bool lie)
{
    const facts_array_id id = array_of(m->problem);
    if (id == FACTS_ARRAY_COUNT || !m->array[id])
        return;
    const size_t size = facts_array_bytes(&m->problem->array[id]);
    unsigned char *bytes = malloc(size);
    if (!bytes)
        return;
    memcpy(bytes, m->array[id], size);
    if (lie)
        bend_array(bytes, size, m->problem);
    fattn_buffer_write(m->worker->context, facts_memory_array_address(m, id), bytes, size);
    free(bytes);
}

/* What the arrays of a call hold when its graph is recorded; NULL: no graph was. */
static unsigned char *captured[FACTS_ARRAY_COUNT];

static void keep_captured(facts_memory *m)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++) {
        const size_t size = facts_array_bytes(&m->problem->array[id]);
        free(captured[id]);
        captured[id] = size > 0 ? malloc(size) : NULL;
        if (captured[id])
            fattn_buffer_read(m->worker->context, captured[id], facts_memory_array_address(m, id),
                              size);
    }
}

/* Is this array what a replay takes from its capture? */
static bool is_captured(facts_array_id id)
{
    switch (now) {
    case FACTS_INTERPOSED_SEED_CAPTURED:
        return id == FACTS_ARRAY_SEED;
    case FACTS_INTERPOSED_LENGTHS_CAPTURED:
        return id <= FACTS_ARRAY_SEQ_LEN_KV;
    case FACTS_INTERPOSED_TABLE_CAPTURED:
        return id == FACTS_ARRAY_PAGE_TABLE_K || id == FACTS_ARRAY_PAGE_TABLE_V;
    case FACTS_INTERPOSED_SCALES_CAPTURED:
        return id == FACTS_ARRAY_ATTN_SCALE ||
               (id >= FACTS_ARRAY_DESCALE_Q && id <= FACTS_ARRAY_SCALE_DV);
    default:
        return false;
    }
}

static bool is_of_replays(void)
{
    return now >= FACTS_INTERPOSED_SEED_CAPTURED && now <= FACTS_INTERPOSED_SCALES_CAPTURED;
}

static void bend_replay(facts_memory *m, bool lie)
{
    for (facts_array_id id = 0; id < FACTS_ARRAY_COUNT; id++)
        if (is_captured(id) && captured[id] && m->array[id])
            fattn_buffer_write(m->worker->context, facts_memory_array_address(m, id),
                               lie ? captured[id] : m->array[id],
                               facts_array_bytes(&m->problem->array[id]));
}

static void scale_amax(facts_memory *m)
{
    float amax;
    void *there = facts_memory_array_address(m, FACTS_ARRAY_AMAX_O);
    if (!m->array[FACTS_ARRAY_AMAX_O] ||
        fattn_buffer_read(m->worker->context, &amax, there, sizeof amax) != FATTN_OK)
        return;
    amax *= (float)facts_array_scalar(m->problem, FACTS_ARRAY_SCALE_O);
    fattn_buffer_write(m->worker->context, there, &amax, sizeof amax);
}

/* K of the first call of this plan. */
static void keep_address(const facts_memory *m, fattn_tensors *tensors)
{
    static const facts_memory *of;
    static const void *k;
    if (m->fetches == 0 || of != m)
        k = tensors->k;
    of = m;
    tensors->k = k;
}

/* Before a run over `pattern` is fetched from the set in hand. */
static void bend_answers(facts_memory *m, facts_pattern pattern)
{
    if (array_of(m->problem) != FACTS_ARRAY_COUNT || is_of_replays() ||
        now == FACTS_INTERPOSED_ADDRESS_KEPT)
        return;
    if (now == FACTS_INTERPOSED_AMAX_LATE) {
        scale_amax(m);
        return;
    }
    fattn_context *context = m->worker->context;
    facts_tensor_id id = target(m->problem);
    const facts_tensor *t = &m->problem->tensor[id];
    int32_t owner = t->shares ? t->shares - 1 : (int32_t)id;
    if (now == FACTS_INTERPOSED_NONE || !t->present ||
        (now == FACTS_INTERPOSED_SECOND_BIT && pattern == FACTS_PATTERN_A))
        return;
    if (now == FACTS_INTERPOSED_STATS_HEAD && m->problem->ask.pass == FATTN_BACKWARD)
        return;
    if (now == FACTS_INTERPOSED_WORKSPACE) {
        const unsigned char other = 0;
        fattn_buffer_write(context, (unsigned char *)m->set->workspace + m->workspace_bytes, &other,
                           1);
        return;
    }
    answer a = { .tensor = t, .image = m->block[owner].image, .pattern = pattern };
    a.bytes = malloc(a.image.bytes);
    if (a.bytes &&
        fattn_buffer_read(context, a.bytes, m->set->device[owner], a.image.bytes) == FATTN_OK) {
        bend(&a);
        fattn_buffer_write(context, m->set->device[owner], a.bytes, a.image.bytes);
    }
    free(a.bytes);
}

/* ---- what the linker calls instead
 * --------------------------------------------------------------------------------------------
 */

fattn_status __real_facts_seam_run(facts_memory *memory, facts_call *call);
fattn_status __wrap_facts_seam_run(facts_memory *memory, facts_call *call);
fattn_status __wrap_facts_seam_run(facts_memory *memory, facts_call *call)
{
    facts_call bent = *call;
    if (now == FACTS_INTERPOSED_ADDRESS_KEPT)
        keep_address(memory, &bent.tensors);
    bend_inputs(memory, true);
    const fattn_status status = __real_facts_seam_run(memory, &bent);
    bend_inputs(memory, false);
    return status;
}

fattn_status __real_fattn_forward(const fattn_plan *plan, const fattn_tensors *tensors,
                                  struct CUstream_st *stream);
fattn_status __wrap_fattn_forward(const fattn_plan *plan, const fattn_tensors *tensors,
                                  struct CUstream_st *stream);
fattn_status __wrap_fattn_forward(const fattn_plan *plan, const fattn_tensors *tensors,
                                  struct CUstream_st *stream)
{
    return now == FACTS_INTERPOSED_MASK_FAULT && tensors->rng_dump
               ? FATTN_DEVICE_FAULT
               : __real_fattn_forward(plan, tensors, stream);
}

fattn_status __real_facts_seam_mislead(facts_memory *memory);
fattn_status __wrap_facts_seam_mislead(facts_memory *memory);
fattn_status __wrap_facts_seam_mislead(facts_memory *memory)
{
    const fattn_status status = __real_facts_seam_mislead(memory);
    keep_captured(memory);
    return status;
}

fattn_status __real_facts_seam_replay(facts_memory *memory, const fattn_graph *graph);
fattn_status __wrap_facts_seam_replay(facts_memory *memory, const fattn_graph *graph);
fattn_status __wrap_facts_seam_replay(facts_memory *memory, const fattn_graph *graph)
{
    bend_replay(memory, true);
    const fattn_status status = __real_facts_seam_replay(memory, graph);
    bend_replay(memory, false);
    return status;
}

fattn_status __real_facts_seam_fetch(facts_memory *memory, facts_pattern pattern,
                                     int64_t overrun[FACTS_PLACES]);
fattn_status __wrap_facts_seam_fetch(facts_memory *memory, facts_pattern pattern,
                                     int64_t overrun[FACTS_PLACES]);
fattn_status __wrap_facts_seam_fetch(facts_memory *memory, facts_pattern pattern,
                                     int64_t overrun[FACTS_PLACES])
{
    bend_answers(memory, pattern);
    return __real_facts_seam_fetch(memory, pattern, overrun);
}
