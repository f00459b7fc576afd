/* What make_scene.c, scene_memory.c and scene_expected.c share. */
#ifndef FACTS_EMULATION_SCENE_PARTS_H
#define FACTS_EMULATION_SCENE_PARTS_H

#include "scene.h"

extern const int32_t facts_dtype_of_type[];
bool facts_type_is_narrow(fref_type type);

/* Moves Q, K, V (K, V) to ragged (paged) storage; room behind the last token. */
bool facts_scene_make_ragged(facts_scene *scene);
bool facts_scene_make_pages(facts_scene *scene);
bool facts_scene_make_huge(facts_scene *scene);
/* Allocates the outputs, and memory for their expected values. */
bool facts_scene_make_room(facts_scene *scene);
/* The reference's answers; of a backward first O and Stats as it reads them, of `forward` or (NULL)
 * of the reference. 0 or ENOMEM. */
int facts_scene_ask(facts_scene *scene, const facts_kernel *forward);

#endif
