/* One kernel before one scene: run over poison, judged by every gate. */
#ifndef FACTS_EMULATED_TRIAL_H
#define FACTS_EMULATED_TRIAL_H

#include "scene.h"

typedef struct facts_trial {
    facts_judgement judgement[FACTS_SLOT_COUNT]; /* of what is present */
    facts_verdict verdict;                       /* the worst */
    facts_slot_id slot;                          /* of the largest ratio */
    facts_gate gate;
    double ratio;
} facts_trial;

/* What one run wrote. */
typedef struct facts_answers {
    unsigned char *bytes[FACTS_SLOT_COUNT];   /* with guards */
    unsigned char *storage[FACTS_SLOT_COUNT]; /* element 0 */
    unsigned char *workspace;
} facts_answers;

/* Runs a kernel over poison. False without memory; destroy in any case. */
bool facts_answers_create(facts_answers *out, const facts_scene *scene, const facts_kernel *kernel,
                          facts_pattern pattern);
bool facts_answers_judge(facts_trial *out, const facts_scene *scene, const facts_answers *answers,
                         facts_pattern pattern);
void facts_answers_destroy(facts_answers *answers);

/* Both at once. Returns 0 or ENOMEM. Threads: the scene is only read. */
int facts_trial_run_over(facts_trial *out, const facts_scene *scene, const facts_kernel *kernel,
                         facts_pattern pattern);
/* Over both patterns: what differs between them is wrong too (gate poison). The second run is left
 * out where the first was caught. */
int facts_trial_run_both(facts_trial *out, const facts_scene *scene, const facts_kernel *kernel);

#endif
