/* Inside memory*.c: where the bytes of a case are, here or on the GPU. One interface, two implementations.
 * Each function is about the block of `owner`, of the set in hand where it says so. */
#ifndef FACTS_MEMORY_SIDE_H
#define FACTS_MEMORY_SIDE_H

#include "case/words/fail.h"
#include "case_memory.h"

struct facts_side {
    const char *word; /* "cpu", "gpu": who computes the reference results there */
    /* Its image and its own bytes. */
    fattn_status (*begin)(facts_memory *memory, facts_tensor_id owner, facts_error *error);
    /* The data of an input. On the GPU the data is there after facts_gpu_together_end. */
    fattn_status (*fill)(facts_memory *memory, facts_tensor_id owner);
    void (*end)(facts_memory *memory, facts_tensor_id owner);
    /* An input becomes an output. */
    fattn_status (*produce)(facts_memory *memory, facts_tensor_id owner);
    /* Element 0 of the storage, on the host; NULL: it cannot be had. */
    void *(*storage)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern);
    /* The same where the reference of this side reads it and answers are compared: on the host, or on the GPU. */
    void *(*address)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern);
    /* What was written there is the input from now on. */
    fattn_status (*push)(facts_memory *memory, facts_tensor_id owner);

    fattn_status (*arm)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern);
    /* On the GPU the number is there after facts_gpu_watch_end; of untouched, too. */
    fattn_status (*fetch)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern, int64_t *overrun);
    fattn_status (*spoil)(facts_memory *memory, facts_tensor_id owner);
    fattn_status (*untouched)(facts_memory *memory, facts_tensor_id owner, int64_t *changed);

    /* Any device memory. */
    fattn_status (*set)(facts_memory *memory, void *to, size_t bytes, unsigned char byte);
    fattn_status (*noise)(facts_memory *memory, void *to, size_t bytes, uint64_t garbage);
};

extern const facts_side facts_side_host, facts_side_gpu;

/* Memory on the device for a set. The first set's may be what an earlier case gave back. */
fattn_status facts_memory_make(void **out, facts_memory *memory, const facts_set *set, size_t bytes);
void facts_memory_release(const facts_memory *memory, void *buffer);

/* The tensors of a block, as they are stored, or as they are walked over where the bytes are (numbers/fill/seen.h); how many. */
typedef struct facts_list {
    facts_tensor tensor[FACTS_TENSOR_COUNT];
    const facts_tensor *at[FACTS_TENSOR_COUNT]; /* each of them */
    facts_packing packed[FACTS_TENSOR_COUNT];   /* as the problem says */
} facts_list;
size_t facts_memory_list(const facts_memory *memory, facts_tensor_id owner, bool stored, facts_list *out);
/* O and Stats of a backward: the reference's, no fill's. */
bool facts_memory_is_given(facts_tensor_id id);

#endif
