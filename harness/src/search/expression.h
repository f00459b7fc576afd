/* The numbers in braces of a weights file (weights.h). */
#ifndef FACTS_EXPRESSION_H
#define FACTS_EXPRESSION_H

#include "case/language/case.h"
#include "case/words/case_text.h"
#include "dice.h"

typedef struct facts_choice_line {
    facts_span text; /* of the choice, without its weight */
    uint64_t weight;
} facts_choice_line;

typedef struct facts_named_number {
    facts_span name;
    facts_choice_line *choice;
    size_t count;
    uint64_t total; /* of the weights */
} facts_named_number;

typedef struct facts_expression_scope {
    const facts_named_number *numbers;
    size_t number_count;
    const facts_case *c; /* what `s.kv` is read from */
    facts_dice *dice;
    int depth;
} facts_expression_scope;

/* Letters of names: a-z and _, but not x, which multiplies. */
bool facts_expression_name_letter(char c);

/* Draws one of the choices by weight; `total` is above 0. */
const facts_choice_line *facts_choose(const facts_choice_line *choice, size_t count, uint64_t total,
                                      facts_dice *dice);

/* Draws the number. False: *wrong has the mistake and its place in the text. A result below 0
 * becomes 0. */
typedef struct facts_expression_fault {
    const char *what;
    size_t at;
} facts_expression_fault;
bool facts_expression_draw(facts_span text, facts_expression_scope *scope, int64_t *out,
                           facts_expression_fault *fault);

#endif
