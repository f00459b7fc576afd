/* The memory of one case: every storage on the device, with guards and poison around it, and a copy
 * for comparisons. On the CPU, and if the reference runs on the host, the copy is an image of each
 * storage on the host. Otherwise it stays on the GPU (memory_side.h) and is fetched if code on the
 * host reads it. */
#ifndef FACTS_MEMORY_H
#define FACTS_MEMORY_H

#include "numbers/expect/expectation.h"
#include "numbers/fill/storage_image.h"
#include "worker/gpu/worker_gpu.h"
#include "worker/target/loaded_target.h"

/* One storage, shared by `tensors` (bit i: tensor i). */
typedef struct facts_block {
    uint32_t tensors; /* 0: the tensor has no block of its own */
    bool output;      /* the call writes it */
    facts_image image;
    unsigned char
        *host; /* inputs: the data that was sent; outputs: the result of the run over poison A */
    unsigned char *second; /* outputs: from the run over poison B */
    size_t
        lead; /* bytes before both in their allocations, so that the storage is aligned on the host, whatever its skew on the
                 device */
    void *kept; /* on the GPU: has the role of `host`; host and second are then copies of it and of
                   the set's storage, or NULL */
} facts_block;

/* The case's buffers on the device. A memory may have a second set: for the run at other addresses,
 * and for a graph that is updated from one set to another. */
typedef struct facts_set {
    void *device[FACTS_TENSOR_COUNT]; /* indexed by the tensor that owns the storage */
    void *array[FACTS_ARRAY_COUNT];   /* with their guards */
    void *workspace;                  /* NULL: not allocated yet. workspace_bytes and a guard */
    const void *mod[2];               /* the target of fattn_tensors.mod_tensors */
} facts_set;

typedef struct facts_side facts_side;

typedef struct facts_memory {
    const facts_problem *problem;
    facts_worker *worker;
    const facts_side *side;
    facts_gpu *gpu;                        /* NULL: the bytes are on the host */
    facts_block block[FACTS_TENSOR_COUNT]; /* indexed by the tensor that owns the storage */
    facts_set first;
    facts_set *set; /* the current set: the first, or that of facts_memory_use */
    unsigned char *array[FACTS_ARRAY_COUNT]; /* inputs: the data; outputs: the results over poison
                                                A, followed by those over B */
    unsigned char *read[FACTS_ARRAY_COUNT];  /* arrays as read back, with their guards */
    void *rows[4]; /* on the GPU, if a tensor is ragged: start_q, start_kv, len_q, len_kv */
    unsigned char *scratch; /* as large as the largest storage; on the GPU, as large as the
                               surroundings of a workspace */
    size_t workspace_bytes;
    uint64_t fetches; /* calls of facts_memory_fetch so far, for pattern A and B */
    void *between;    /* the allocation of facts_memory_disturb */
} facts_memory;

/* Allocates everything except the workspace. No tensor has data yet (facts_memory_fill). `here`:
 * also keep the bytes on the host if there is a GPU. Returns FATTN_OK, or FATTN_NO_MEMORY,
 * FATTN_DEVICE_FAULT or FATTN_BAD_PROBLEM with the message in `error`. Destroy in any case. */
fattn_status facts_memory_create(facts_memory *out, facts_worker *worker,
                                 const facts_problem *problem, bool here, facts_error *error);
/* Writes the data of the inputs, except for O and Stats of a backward: the caller writes them
 * (facts_memory_storage). Returns as facts_memory_create. */
fattn_status facts_memory_fill(facts_memory *memory, facts_error *error);
void facts_memory_destroy(facts_memory *memory);

/* Element 0 of the storage of a tensor, on the host. For an output, `pattern` chooses between the
 * results over poison A and B; B is the last fetch. With a GPU, the first call after a run fetches
 * the storage; NULL if that fails. */
void *facts_memory_storage(facts_memory *memory, facts_tensor_id id, facts_pattern pattern);
/* Makes the current contents of those storages the inputs of the next runs. */
fattn_status facts_memory_push(facts_memory *memory);
/* The same storage at the place where the reference reads it and answers are compared: on the GPU
 * (memory->gpu), else on the host. */
void *facts_memory_address(facts_memory *memory, facts_tensor_id id, facts_pattern pattern);
/* The addresses of the tensors that this pass reads. */
facts_storages facts_memory_addresses(facts_memory *memory);

/* Sets the size of the workspace and allocates that of the first set. Make other sets after it. */
fattn_status facts_memory_workspace(facts_memory *memory, size_t bytes);
/* Makes O and Stats of a backward outputs, which its forward writes, instead of inputs. */
fattn_status facts_memory_produce(facts_memory *memory);
/* Makes them inputs again, with the contents of pattern A's storage. */
void facts_memory_give(facts_memory *memory);

/* Makes another set, which shares nothing with the first. Destroy in any case. */
fattn_status facts_memory_add(facts_set *out, facts_memory *memory);
void facts_memory_drop(facts_set *set, facts_memory *memory);
/* Makes `set` the current set (NULL: the first). */
void facts_memory_use(facts_memory *memory, facts_set *set);

/* An array of a call, on the host: the input, or the output over `pattern`. NULL: the call has
 * none. A change of an input takes effect at the next run. */
void *facts_memory_array(facts_memory *memory, facts_array_id id, facts_pattern pattern);

/* The same on the device, in the current set. */
void *facts_memory_array_address(const facts_memory *memory, facts_array_id id);

/* A view of a tensor (numbers/fill/places.h), for kernels if the bytes are on the GPU. */
facts_tensor facts_memory_seen(const facts_memory *memory, facts_tensor_id id);

/* The tensors of a call, valid as long as the set. */
fattn_tensors facts_memory_tensors(const facts_memory *memory);

/* Sends the inputs, and poisons outputs and workspace. If `garbage` is not 0, the workspace gets
 * that noise instead. On a GPU in the order of the worker's stream, without a wait: a call on
 * another stream needs facts_gpu_wait first. */
fattn_status facts_memory_arm(facts_memory *memory, facts_pattern pattern, uint64_t garbage);
/* Fills the whole set, inputs too, with poison A: code that reads it reads NaN.
 * facts_memory_untouched counts the bytes that have changed since. */
fattn_status facts_memory_spoil(facts_memory *memory);
fattn_status facts_memory_untouched(facts_memory *memory, int64_t *changed);
/* The same, but the arrays of the call have other valid contents (facts_array_fill_other), for a
 * call that is recorded and not run. Code that reads an array while it records finds a valid call.
 * If it keeps the contents, its answer is wrong when the recording runs on the case's own arrays.
 */
fattn_status facts_memory_mislead(facts_memory *memory);
/* Allocates memory of another size, writes noise to it and frees that of the call before, so that
 * later allocations get other addresses and freed memory has other contents. */
fattn_status facts_memory_disturb(facts_memory *memory, uint64_t garbage);
/* The places whose guards are checked: storages, the workspace, arrays. */
enum {
    FACTS_PLACE_WORKSPACE = FACTS_TENSOR_COUNT,
    FACTS_PLACE_ARRAYS,
    FACTS_PLACES = FACTS_PLACE_ARRAYS + FACTS_ARRAY_COUNT
};
/* Fetches the outputs, on a GPU with one wait. overrun[place] counts changed elements around the
 * storage that a tensor owns (for inputs: anywhere in it), and changed bytes of the other places.
 */
fattn_status facts_memory_fetch(facts_memory *memory, facts_pattern pattern,
                                int64_t overrun[FACTS_PLACES]);

#endif
