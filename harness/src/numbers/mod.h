/* The named score modifications (mod=), once: as libfattn records them and, for the reference, in closed form.
 *
 * Order of a score: x = mod(scale * q.k) + bias, then masks. x of -inf is a key that the row does not have; a row without one is
 * dead.
 */
#ifndef FACTS_MOD_H
#define FACTS_MOD_H

#include "../case/problem.h"

/* The recording that `problem.mod` names, NULL for none. Destroy with fattn_score_mod_destroy; its tensors are MOD_A, then MOD_B.
 * Returns  what the library's own function returns. */
fattn_status facts_mod_create(fattn_score_mod **out, const facts_problem *problem);

#endif
