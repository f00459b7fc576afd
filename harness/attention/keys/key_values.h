/* The values of attention's keys that templates do not spell: lengths, knobs, layouts, strides. Each function reads one and
 * writes its one spelling (language.h). */
#ifndef FACTS_KEY_VALUES_H
#define FACTS_KEY_VALUES_H

#include "language/case.h"
#include "language/draft.h"
#include "words/case_text.h"

#define FACTS_MAX_LENGTHS 4096 /* lengths in one list */

/* Lengths of one side: "256+0x3". Returns how many, 0 when the text is none or has more than `most`. */
size_t facts_lengths_read(facts_span text, int32_t *out, size_t most);

/* The forms of `stride=`, read into numbers. A plain value; the canonical text is written from it.
 *
 *   gap:q.s.4+k.h.8   that many elements after each index of that tensor and dimension; plain gap:N after each token of Q, K, V, O
 *                     and their gradients
 *   broadcast:k.b+v.b stride 0
 *   sum:dk.b          the gradient of a broadcast input is summed over that dimension: stride 0 there, and extent 1
 *   perm:q.hsbd       the tensor's memory order, outermost first; plain perm:hsbd for Q, K and V
 *   offset:q.8        the first element lies that many elements into the storage; plain: Q, K and V
 *   misaligned:q.2    the storage starts that many bytes past a 16-byte boundary; plain: Q, K and V
 *   size1:wild        dimensions of extent 1 get large strides
 */
/* clang-format off */
#define FACTS_STRIDE_TENSORS(X)                                                           \
    X(Q, "q")                                                                             \
    X(K, "k")                                                                             \
    X(V, "v") X(O, "o") X(DO, "do") X(DQ, "dq") X(DK, "dk") X(DV, "dv") X(STATS, "stats") \
    X(BIAS, "bias") X(DBIAS, "dbias")
/* clang-format on */
#define AS_ENUM(symbol, word) FACTS_STRIDE_##symbol,
typedef enum facts_stride_tensor {
    FACTS_STRIDE_TENSORS(AS_ENUM) FACTS_STRIDE_COUNT,
    FACTS_STRIDE_ALL = FACTS_STRIDE_COUNT
} facts_stride_tensor;
#undef AS_ENUM

/* The forms for one tensor; index FACTS_STRIDE_ALL holds the plain forms. Dimensions in the order
 * b,h,s,d. */
typedef struct facts_stride_form {
    int64_t gap[4]; /* of FACTS_STRIDE_ALL only [2], the token */
    bool broadcast[4];
    bool sum[4];  /* of gradients only */
    char perm[5]; /* empty: as the layout says */
    int64_t offset, misaligned;
} facts_stride_form;

typedef struct facts_stride {
    facts_stride_form of[FACTS_STRIDE_COUNT + 1];
    bool wild;
} facts_stride;

/* `dense`, or forms joined by `;`. */
bool facts_stride_read(facts_span text, facts_stride *out, facts_value_fault *fault);

/* Words for memory orders. A word names the axes from the outermost to the innermost; 3 is the axis
 * of packed Q, K, V, 2 that of packed K, V; t stands for the tokens of all sequences one after
 * another. */
typedef struct facts_layout {
    facts_span q, k, v;
} facts_layout;

/* Splits a layout: one word for all three, or Q's and K/V's joined by _ (a third part must repeat
 * the second). False: not a layout.
 */
bool facts_layout_read(facts_span text, facts_layout *out);
/* The layout that has these words for Q and for K and V; false when there is none. */
bool facts_layout_write(facts_span q, facts_span kv, char out[24]);

/* How many tensors share one storage: 1, 2 or 3. */
int facts_layout_packs(facts_span word);
bool facts_layout_ragged(facts_span word);

/* One spelling for each setting of attention (language.h says when each is called). */
const char *facts_follows(facts_key key, const char *value);
const char *facts_normalise(facts_draft *draft, facts_key *at);
void facts_unfold(facts_draft *draft, const facts_case *c, facts_key key);

#endif
