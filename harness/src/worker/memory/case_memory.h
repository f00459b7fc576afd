/* The memory of one case: every storage on the device with guards and poison around it, and what it is compared with. On the cpu,
 * and where the reference is computed here, that is an image of each storage here; else it stays on the GPU (memory_side.h), and is
 * fetched when somebody here looks at it. */
#ifndef FACTS_MEMORY_H
#define FACTS_MEMORY_H

#include "numbers/expect/expectation.h"
#include "numbers/fill/storage_image.h"
#include "worker/gpu/worker_gpu.h"
#include "worker/target/loaded_target.h"

/* One storage, shared by `tensors` (bit i: tensor i). */
typedef struct facts_block {
    uint32_t tensors; /* 0: not a block of its own */
    bool output;      /* written by what is run */
    facts_image image;
    unsigned char *host;   /* inputs: what was sent; outputs: what came back from the run over poison A */
    unsigned char *second; /* outputs: from the run over poison B */
    size_t lead;           /* bytes before both in their allocations, so that the storage is aligned here whatever its skew there */
    void *kept;            /* on the GPU: what `host` is; host and second are then copies of it and of the set's, or NULL */
} facts_block;

/* The case's buffers on the device. One memory may have several sets: for calls at once, or for a graph that moves from one to
 * another. */
typedef struct facts_set {
    void *device[FACTS_TENSOR_COUNT]; /* at the tensor that owns the storage */
    uint32_t borrowed;                /* bit i: device[i] belongs to the first set */
    void *array[FACTS_ARRAY_COUNT];   /* with their guards */
    uint64_t borrowed_arrays;         /* as borrowed */
    void *workspace;                  /* NULL until there is one: facts_problem.workspace_offset bytes, workspace_bytes, a guard */
    const void *mod[2];               /* what fattn_tensors.mod_tensors points to */
} facts_set;

typedef struct facts_side facts_side;

typedef struct facts_memory {
    const facts_problem *problem;
    facts_worker *worker;
    const facts_side *side;
    facts_gpu *gpu;                        /* NULL: the bytes are here */
    facts_block block[FACTS_TENSOR_COUNT]; /* at the tensor that owns the storage */
    facts_set first;
    facts_set *set;                          /* in hand: the first, or what facts_memory_use took */
    unsigned char *array[FACTS_ARRAY_COUNT]; /* what is given; of outputs, what came back over poison A and behind it over B */
    void *rows[4];                           /* on the GPU, where something is packed: start_q, start_kv, len_q, len_kv */
    unsigned char *scratch;                  /* as large as the largest storage here; on the GPU as what lies around a workspace */
    size_t workspace_bytes;
    uint64_t fetches; /* of pattern A, or B: facts_memory_fetch so far */
    void *between[2]; /* allocations that facts_memory_disturb left behind */
} facts_memory;

/* Everything but the workspace; no tensor has data yet (facts_memory_fill).
 * `here`: the bytes are here also where there is a GPU. Returns FATTN_OK, or why not (FATTN_NO_MEMORY, FATTN_DEVICE_FAULT,
 * FATTN_BAD_PROBLEM); the sentence in `error`. Destroy in any case. */
fattn_status facts_memory_create(facts_memory *out, facts_worker *worker, const facts_problem *problem, bool here,
                                 facts_error *error);
/* Writes the data of the inputs. O and Stats of a backward stay empty: facts_memory_storage, then write. Returns as create. */
fattn_status facts_memory_fill(facts_memory *memory, facts_error *error);
void facts_memory_destroy(facts_memory *memory);

/* Element 0 of the storage of a tensor, on the host; `pattern` chooses which of an output's two: B is what the last fetch brought.
 * From a GPU it is fetched at the first call after a run; NULL when that fails. */
void *facts_memory_storage(facts_memory *memory, facts_tensor_id id, facts_pattern pattern);
/* Inputs are from now on what was written into those storages. */
fattn_status facts_memory_push(facts_memory *memory);
/* The same storage where the reference reads it and answers are compared: on the GPU (memory->gpu), else on the host. */
void *facts_memory_address(facts_memory *memory, facts_tensor_id id, facts_pattern pattern);
/* Those of the tensors that this pass reads. */
facts_storages facts_memory_addresses(facts_memory *memory);

/* The size of the workspace from now on, and the first set's. Other sets are made after it. */
fattn_status facts_memory_workspace(facts_memory *memory, size_t bytes);
/* O and Stats of a backward are from now on written by what is run (its forward), not given. */
fattn_status facts_memory_produce(facts_memory *memory);
/* They are given again, as they lie in pattern A's storage. */
void facts_memory_give(facts_memory *memory);

/* Another set, with its own outputs and workspace, and on demand inputs. Destroy in any case. */
fattn_status facts_memory_add(facts_set *out, facts_memory *memory, bool own_inputs);
void facts_memory_drop(facts_set *set, facts_memory *memory);
/* What follows is about `set` (NULL: the first). */
void facts_memory_use(facts_memory *memory, facts_set *set);

/* An array of a call, here: what is given, or what came back over `pattern`. NULL: the call has none. What is written into one that
 * is given is given from the next run on. */
void *facts_memory_array(facts_memory *memory, facts_array_id id, facts_pattern pattern);

/* The same on the device, of the set in hand. */
void *facts_memory_array_address(const facts_memory *memory, facts_array_id id);

/* A tensor as it is walked over, by kernels where the bytes are on the GPU. */
facts_tensor facts_memory_seen(const facts_memory *memory, facts_tensor_id id);

/* What a call is given; valid as long as the set. */
fattn_tensors facts_memory_tensors(const facts_memory *memory);

/* Sends inputs, poisons outputs and workspace; with `garbage` other than 0 the workspace holds that noise instead. */
fattn_status facts_memory_arm(facts_memory *memory, facts_pattern pattern, uint64_t garbage);
/* The whole set, inputs too, is poison A: who reads it reads NaN. facts_memory_untouched counts the bytes that have changed since.
 */
fattn_status facts_memory_spoil(facts_memory *memory);
fattn_status facts_memory_untouched(facts_memory *memory, int64_t *changed);
/* The same, but the arrays of the call have other legal contents (facts_array_fill_other): for a call that is recorded, not run.
 * Who looks at an array finds a call that is allowed; who keeps what it found is wrong when the recording runs over the case's own.
 */
fattn_status facts_memory_mislead(facts_memory *memory);
/* Allocates, writes noise and frees, so that nothing lies where it lay, and nothing that was freed holds what it held. */
fattn_status facts_memory_disturb(facts_memory *memory, uint64_t garbage);
/* Places that are looked after: storages, the workspace, arrays. */
enum { FACTS_PLACE_WORKSPACE = FACTS_TENSOR_COUNT, FACTS_PLACE_ARRAYS, FACTS_PLACES = FACTS_PLACE_ARRAYS + FACTS_ARRAY_COUNT };
/* Fetches outputs; overrun[place] counts changed elements around the storage that a tensor owns (inputs: anywhere in it), changed
 * bytes of the others. */
fattn_status facts_memory_fetch(facts_memory *memory, facts_pattern pattern, int64_t overrun[FACTS_PLACES]);

#endif
