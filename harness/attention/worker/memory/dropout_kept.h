/* The scores that dropout keeps, found before anything is compared. They come from the caller's
 * mask, or from the engine's rng_dump for the same seed and offset. A forward writes the dump, also
 * for a backward, because both must drop the same scores. If there is no forward, the backward
 * writes it. */
#ifndef FACTS_KEPT_H
#define FACTS_KEPT_H

#include "case_memory.h"
#include "numbers/check/judge_keep.h"
#include "words/fail.h"

typedef struct facts_kept {
    uint8_t *here;       /* [batch, heads_q, seq_q, seq_kv], 0 drops; NULL: nothing is dropped */
    void *there;         /* the same on the GPU, if the case's memory is there */
    int64_t kept, of;    /* kept scores, and all scores that a row may see */
    facts_repeat repeat; /* the comparison of an engine's bits that is furthest from chance; not
                            made for a caller's mask */
    bool faulted;        /* the engine's launch for the dump was a fault of the device */
} facts_kept;

/* JUDGED: the engine dumps its bits for the next seed and the next offset too, and `repeat` says
 * how independent the bits are. */
typedef enum facts_kept_how { FACTS_KEPT_READ, FACTS_KEPT_JUDGED } facts_kept_how;

/* The backend of the plan for a problem (fattn_backend). NOT_KNOWN: the library has to be asked. */
enum { FACTS_BACKEND_NOT_KNOWN = -1 };

/* Must an engine dump the kept scores? Then facts_kept_plan makes the plan of that call, and *asked
 * is its problem: the forward of a backward, if `forward` is set. `backend` computes `problem`,
 * and it alone is asked: each has its own random bits. Returns as fattn_plan_create. */
fattn_status facts_kept_plan(fattn_plan **out, facts_problem *asked, const facts_worker *worker,
                             const facts_problem *problem, int backend, bool forward);

/* Finds the kept scores for the seed and offset in `memory`, whose problem `backend` computes.
 * Destroy in any case, before the memory. Returns FATTN_OK; FATTN_ENVIRONMENT: they cannot be
 * found, `error` says why; FATTN_NO_MEMORY; FATTN_DEVICE_FAULT. */
fattn_status facts_kept_make(facts_kept *out, facts_memory *memory, int backend, facts_kept_how how,
                             facts_error *error);
void facts_kept_destroy(facts_kept *keep, facts_memory *memory);

/* The further plans that a run of a case needs. Plans that are made ahead must include all of them.
 */
/* Makes the plans of the forward that runs before a backward, and of the call that dumps the kept
 * scores, in the folder of the current request. `backend` computes the problem. A plan that cannot
 * be made is no failure: the run finds a way without it, or reports the reason. */
void facts_further_plans(const facts_worker *worker, const facts_problem *problem,
                         fattn_backend backend);

#endif
