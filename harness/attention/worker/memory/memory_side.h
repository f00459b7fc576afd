/* Shared by memory*.c: the bytes of a case, on the host or on the GPU. One interface, two
 * implementations. Each function is about the block of `owner`, in the current set if it has sets.
 */
#ifndef FACTS_MEMORY_SIDE_H
#define FACTS_MEMORY_SIDE_H

#include "case_memory.h"
#include "words/fail.h"

struct facts_side {
    const char *word; /* "cpu", "gpu": the reference that computes there */
    /* Makes the image of a block, and its bytes. */
    fattn_status (*begin)(facts_memory *memory, facts_tensor_id owner, facts_error *error);
    /* Writes the data of an input. On the GPU the data is complete after facts_gpu_together_end. */
    fattn_status (*fill)(facts_memory *memory, facts_tensor_id owner);
    void (*end)(facts_memory *memory, facts_tensor_id owner);
    /* Makes an input an output. */
    fattn_status (*produce)(facts_memory *memory, facts_tensor_id owner);
    /* Element 0 of the storage, on the host; NULL: it cannot be fetched. */
    void *(*storage)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern);
    /* The same at the place where this side's reference reads it and answers are compared: on the
     * host, or on the GPU. */
    void *(*address)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern);
    /* Makes the current contents the input of the next runs. */
    fattn_status (*push)(facts_memory *memory, facts_tensor_id owner);

    fattn_status (*arm)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern);
    /* On the GPU the number is complete after facts_gpu_watch_end; that of untouched, too. */
    fattn_status (*fetch)(facts_memory *memory, facts_tensor_id owner, facts_pattern pattern,
                          int64_t *overrun);
    fattn_status (*spoil)(facts_memory *memory, facts_tensor_id owner);
    fattn_status (*untouched)(facts_memory *memory, facts_tensor_id owner, int64_t *changed);

    /* Sets the bytes of any device memory. */
    fattn_status (*set)(facts_memory *memory, void *to, size_t bytes, unsigned char byte);
    fattn_status (*noise)(facts_memory *memory, void *to, size_t bytes, uint64_t garbage);
};

extern const facts_side facts_side_host, facts_side_gpu;

/* The tensors of a block, as stored or as views (numbers/fill/places.h) at the place of the bytes;
 * and their number. */
typedef struct facts_list {
    facts_tensor tensor[FACTS_TENSOR_COUNT];
    const facts_tensor *at[FACTS_TENSOR_COUNT]; /* the tensors */
    facts_packing packed[FACTS_TENSOR_COUNT];   /* the offsets and lengths of the problem */
} facts_list;
size_t facts_memory_list(const facts_memory *memory, facts_tensor_id owner, bool stored,
                         facts_list *out);
/* Is it O or Stats of a backward? The reference gives their contents, not a fill. */
bool facts_memory_is_given(facts_tensor_id id);

#endif
