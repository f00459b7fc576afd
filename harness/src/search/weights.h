/* The distribution that a fuzzer draws from, as data (cases/fuzz.weights): for each key of the case language its values with
 * weights, and numbers near tile edges. Pure: text in, cases out.
 *
 *   number edge: 3 64x1..6, 2 64x1..6-1, 1 128x0..3+63..65     a named number: weight and expression
 *   s: 3 {edge}/{edge}, 1 1/{1..600*}                          a key: weight and value; {…} is an expression, drawn each time
 *   window when mask=none: 6 default, 2 {1..s.kv}:0            of the lines of a key, the first whose predicate holds
 *   lens: 9 default, 1 <{0..s.q}>/<{0..s.kv}>                  <…> once for each batch entry, joined by +
 *   work 50000000                                              at most: b * h.q * s.q * s.kv * (d.qk + d.v) * repeat
 *   where !(exec=aot & pass=bwd)                               only cases for which this holds
 *   ordinary s.q<4096 & s.kv<4096                              cases that many users have: their findings come first
 *
 * Expressions are sums of products of atoms. An atom is a whole number, A..B (evenly distributed), A..B* (every magnitude equally
 * likely), a named number, or a number of the case (b h.q s.kv d.qk …). Keys are drawn in the order of their lines. A value is
 * drawn again if no program can compute the case, or if it is not implemented. */
#ifndef FACTS_WEIGHTS_H
#define FACTS_WEIGHTS_H

#include "case/language/case.h"
#include "case/suites/predicate.h"

typedef struct facts_weights facts_weights; /* owner; opaque */

/* `name` is for errors. The text is copied. */
bool facts_weights_read(facts_weights **out, const char *text, const char *name,
                        facts_error *error);
void facts_weights_destroy(facts_weights *weights);

/* What is wanted beside the weights. Zero: nothing. */
typedef struct facts_draw_choice {
    const facts_predicate *where;
    const char *with; /* "engine=all repeat=2": every case gets these */
} facts_draw_choice;

/* Draws case `index` of a seed, the same on every machine. False if `where` and `work` reject every
 * try. Call facts_draw_check first: it says whether `with` can be set. */
bool facts_weights_draw(const facts_weights *weights, uint64_t seed, uint64_t index,
                        const facts_draw_choice *choice, facts_case *out);
/* Is the case ordinary: do all lines `ordinary` hold? Without such a line no case is. */
bool facts_weights_ordinary(const facts_weights *weights, const facts_case *c);
bool facts_draw_check(const facts_draw_choice *choice, facts_error *error);

#endif
