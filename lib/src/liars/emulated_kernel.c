/* CUDA graphs without a GPU: the driver's functions record calls of the cpu backend. So capture,
 * replay and update can be tested anywhere. */
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "core/plan.h"
#include "fattn/score_mod.h"
#include "lies.h"

#define MOST_NODES 8

typedef struct node {
    fattn_plan *plan; /* a reference, as from cuDNN 9.28 on */
    fattn_tensors tensors;
    const void *mod[FATTN_MOD_MAX_TENSORS];
} node;

typedef struct nodes {
    size_t count;
    node at[MOST_NODES];
} nodes;

struct CUgraph_st {
    nodes nodes;
};
struct CUgraphExec_st {
    nodes nodes;
};

static _Thread_local struct CUgraph_st *capturing;
static _Atomic int alive;
static int calls_to_failure, failure;

static int enter(void)
{
    return failure != 0 && calls_to_failure-- == 0 ? failure : 0;
}

void fattn__emulator_fail(int calls, int result)
{
    calls_to_failure = calls;
    failure = result;
}

int fattn__emulator_alive(void)
{
    return alive;
}

static void keep(node *out, const fattn_plan *plan, const fattn_tensors *tensors)
{
    *out = (node){ .plan = fattn__plan_retain((fattn_plan *)(uintptr_t)plan), .tensors = *tensors };
    size_t count =
        plan->problem.score_mod != NULL ? fattn_score_mod_tensor_count(plan->problem.score_mod) : 0;
    for (size_t i = 0; i < count && tensors->mod_tensors != NULL; i++)
        out->mod[i] = tensors->mod_tensors[i];
}

static void copy(nodes *to, const nodes *from)
{
    to->count = from->count;
    for (size_t i = 0; i < from->count; i++) {
        to->at[i] = from->at[i];
        fattn__plan_retain(to->at[i].plan);
    }
}

static void clear(nodes *list)
{
    for (size_t i = 0; i < list->count; i++)
        fattn_plan_destroy(list->at[i].plan);
    list->count = 0;
}

bool fattn__emulator_records(const fattn_plan *plan, const fattn_tensors *tensors)
{
    if (capturing == NULL || plan->context->cuda != NULL)
        return false;
    if (capturing->nodes.count < MOST_NODES)
        keep(&capturing->nodes.at[capturing->nodes.count++], plan, tensors);
    return true;
}

/* ---- the functions, by the driver's numbers
 * -------------------------------------------------------------------------------- */

enum { OUT_OF_MEMORY = 2, ILLEGAL_STATE = 401, UPDATE_FAILURE = 910 };

static int create(struct CUgraph_st **out, unsigned flags)
{
    (void)flags;
    int result = enter();
    *out = result == 0 ? calloc(1, sizeof **out) : NULL;
    alive += *out != NULL;
    return result != 0 ? result : *out != NULL ? 0 : OUT_OF_MEMORY;
}

static int destroy(struct CUgraph_st *graph)
{
    clear(&graph->nodes);
    free(graph);
    alive--;
    return 0;
}

static int capture_begin(struct CUstream_st *stream, int mode)
{
    (void)stream;
    (void)mode;
    return capturing != NULL ? ILLEGAL_STATE : create(&capturing, 0);
}

static int capture_end(struct CUstream_st *stream, struct CUgraph_st **out)
{
    (void)stream;
    int result = capturing == NULL ? ILLEGAL_STATE : enter();
    *out = NULL;
    if (result != 0 && capturing != NULL)
        destroy(capturing);
    else
        *out = capturing;
    capturing = NULL;
    return result;
}

static int count_nodes(struct CUgraph_st *graph, void **out, size_t *count)
{
    (void)out;
    *count = graph->nodes.count;
    return 0;
}

static int instantiate(struct CUgraphExec_st **out, struct CUgraph_st *graph,
                       unsigned long long flags)
{
    (void)flags;
    int result = enter();
    *out = result == 0 ? calloc(1, sizeof **out) : NULL;
    if (*out == NULL)
        return result != 0 ? result : OUT_OF_MEMORY;
    alive++;
    copy(&(*out)->nodes, &graph->nodes);
    return 0;
}

static int update(struct CUgraphExec_st *executable, struct CUgraph_st *graph,
                  gpu_graph_update *out)
{
    (void)out;
    int result = enter();
    if (result != 0)
        return result;
    if (executable->nodes.count != graph->nodes.count)
        return UPDATE_FAILURE;
    clear(&executable->nodes);
    copy(&executable->nodes, &graph->nodes);
    return 0;
}

static int launch(struct CUgraphExec_st *executable, struct CUstream_st *stream)
{
    int result = enter();
    for (size_t i = 0; result == 0 && i < executable->nodes.count; i++) {
        const node *n = &executable->nodes.at[i];
        fattn_tensors tensors = n->tensors;
        if (tensors.mod_tensors != NULL)
            tensors.mod_tensors = n->mod;
        if (n->plan->engine->run(n->plan, &tensors, stream) != FATTN_OK)
            result = 719;
    }
    return result;
}

static int executable_destroy(struct CUgraphExec_st *executable)
{
    clear(&executable->nodes);
    free(executable);
    alive--;
    return 0;
}

const gpu_driver *fattn__emulator_functions(void)
{
    static const gpu_driver functions = {
        .capture_begin = capture_begin,
        .capture_end = capture_end,
        .graph_create = create,
        .graph_destroy = destroy,
        .graph_nodes = count_nodes,
        .graph_instantiate = instantiate,
        .graph_update = update,
        .graph_launch = launch,
        .executable_destroy = executable_destroy,
    };
    return &functions;
}
