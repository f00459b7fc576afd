/* Values with numbers to draw: text with {EXPRESSION} and <once for each batch entry> (weights.h).
 */
#ifndef FACTS_TEMPLATE_H
#define FACTS_TEMPLATE_H

#include "expression.h"

bool facts_template_fill(facts_span text, facts_expression_scope *scope, char out[FACTS_CASE_TEXT],
                         facts_expression_fault *fault);

#endif
