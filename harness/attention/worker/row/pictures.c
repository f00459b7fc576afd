#include "pictures.h"

#include <stdlib.h>

#include "numbers/fill/seen.h"
#include "numbers/judge/picture.h"
#include "worker/memory/expected_transfer.h"

static bool any_wrong(const facts_marks *m)
{
    for (int64_t i = 0; i < m->dim[0] * m->dim[1] * m->dim[2] * m->dim[3]; i++)
        if (m->at[i] != FACTS_RIGHT)
            return true;
    return false;
}

/* Shows the run over poison A, unless it was correct. */
static bool mark(facts_marks *out, facts_reference *reference, facts_tensor_id id)
{
    facts_answer expects;
    bool found = false;
    if (!facts_expected_on_host(&expects, reference, id))
        return false;
    for (facts_pattern pattern = FACTS_PATTERN_A; pattern <= FACTS_PATTERN_B && !found; pattern++) {
        const void *storage = facts_memory_storage(&reference->memory, id, pattern);
        facts_rule rule = facts_expectation_rule(&reference->expectation, id, pattern);
        rule.expected.want = expects.want;
        rule.expected.sigma = expects.sigma;
        rule.expected.bound = expects.bound;
        const facts_tensor tensor = facts_tensor_seen(reference->memory.problem, id);
        if (!storage || !expects.want)
            break;
        facts_judge_marks(&tensor, storage, &rule, out);
        found = any_wrong(out);
    }
    facts_expected_release(&expects, reference, id);
    return found;
}

json_t *facts_pictures(const facts_trial *trial, facts_reference *reference)
{
    json_t *out = NULL;
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        const facts_judgement *j = &trial->judgement[id];
        const facts_tensor *t = &reference->memory.problem->tensor[id];
        if (!trial->judged[id] || facts_judgement_verdict(j) == FACTS_VERDICT_PASS)
            continue;
        if (j->wrong + j->not_finite + j->unwritten == 0) {
            out = out ? out : json_object();
            json_object_set_new(
                out, facts_tensor_word(id),
                json_sprintf("no single element is wrong: %s refuses all of them together\n",
                             facts_gate_words[j->gate]));
            continue;
        }
        size_t elements = (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
        facts_marks marks = { .at = malloc(elements + 1),
                              .keys = id == FACTS_TENSOR_DK || id == FACTS_TENSOR_DV };
        char text[FACTS_PICTURE_TEXT];
        if (marks.at && mark(&marks, reference, id)) {
            out = out ? out : json_object();
            json_object_set_new(out, facts_tensor_word(id),
                                json_string(facts_picture(&marks, text)));
        }
        free(marks.at);
    }
    return out;
}
