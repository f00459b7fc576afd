/* One case before a kernel that works as a GPU's. */
#ifndef FACTS_TEST_PLANTED_H
#define FACTS_TEST_PLANTED_H

#include <criterion/criterion.h>
#include <string.h>

#include "self/self_case.h"

static facts_self_case planted_scene;

/* The right kernel of the type, before the case, which takes the place of the last one: its
 * reference is made. */
static inline fattn__gpu_like planted_make(facts_self_type type, const char *text)
{
    char name[FACTS_CASE_TEXT];
    facts_error error = { 0 };
    facts_self_end end;
    const fattn__gpu_like right = facts_self_begin(type);
    facts_self_case_close(&planted_scene);
    snprintf(name, sizeof name, "%s dtype=%s", text, facts_self_type_dtype(type));
    cr_assert(facts_self_case_open(&planted_scene, name, &error), "%s: %s", name, error.text);
    facts_self_case_run(&end, &planted_scene, &right, FATTN__LIAR_NONE);
    cr_expect_not(end.found, "%s: %s of %s, %g", name, end.gate, end.tensor, end.ratio);
    return right;
}

/* The fault is found, and by that gate. */
static inline void planted_expect(fattn__gpu_like like, fattn__liar fault, facts_gate gate)
{
    facts_self_end end;
    facts_self_case_run(&end, &planted_scene, &like, fault);
    cr_expect(end.found, "fault %d passes", fault);
    cr_expect(end.gates[gate] > 1.0 || strcmp(end.gate, facts_gate_words[gate]) == 0,
              "fault %d: %s is %g, %s %g of %s", fault, facts_gate_words[gate], end.gates[gate],
              end.gate, end.ratio, end.tensor);
}

#endif
