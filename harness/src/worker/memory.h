/* The memory of one case: an image of every storage here, its twin on the device, guards and poison around both. */
#ifndef FACTS_MEMORY_H
#define FACTS_MEMORY_H

#include "../numbers/expect.h"
#include "../numbers/image.h"
#include "target.h"

/* One storage, shared by `tensors` (bit i: tensor i). */
typedef struct facts_block {
    uint32_t tensors; /* 0: not a block of its own */
    bool output;
    facts_image image;
    unsigned char *host;   /* inputs: what was sent; outputs: what came back from the run over poison A */
    unsigned char *second; /* outputs: from the run over poison B */
    size_t lead;           /* bytes before both in their allocations, so that the storage is aligned here whatever its skew there */
    void *device;
} facts_block;

typedef struct facts_memory {
    const facts_problem *problem;
    facts_worker *worker;
    facts_block block[FACTS_TENSOR_COUNT]; /* at the tensor that owns the storage */
    void *len_q, *len_kv;                  /* on the device */
    unsigned char *scratch;                /* as large as the largest input */
    void *workspace;                       /* workspace_bytes and a guard */
    size_t workspace_bytes;
} facts_memory;

/* Everything but the workspace; inputs are filled, O and Stats of a backward still empty (facts_memory_storage, then write).
 * Returns FATTN_OK, or why not (FATTN_NO_MEMORY, FATTN_DEVICE_FAULT, FATTN_BAD_PROBLEM); the sentence in `error`. Destroy in any case. */
fattn_status facts_memory_create(facts_memory *out, facts_worker *worker, const facts_problem *problem, char error[256]);
void facts_memory_destroy(facts_memory *memory);

/* Element 0 of the storage of a tensor, on the host; `pattern` chooses which of an output's two. */
void *facts_memory_storage(const facts_memory *memory, facts_tensor_id id, facts_pattern pattern);
facts_storages facts_memory_storages(const facts_memory *memory);

fattn_status facts_memory_workspace(facts_memory *memory, size_t bytes);
/* What a call is given. */
fattn_tensors facts_memory_tensors(const facts_memory *memory);

/* Sends inputs, poisons outputs and workspace. */
fattn_status facts_memory_arm(facts_memory *memory, facts_pattern pattern);
/* Fetches outputs; *overrun[id] counts changed elements around the storage that id owns (inputs: anywhere in it); [COUNT]: workspace. */
fattn_status facts_memory_fetch(facts_memory *memory, facts_pattern pattern, int64_t overrun[FACTS_TENSOR_COUNT + 1]);

#endif
