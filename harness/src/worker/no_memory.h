/* The end of a worker that has no memory for what it has to say. A row that lacks a member would be another row. */
#ifndef FACTS_NO_MEMORY_H
#define FACTS_NO_MEMORY_H

_Noreturn void facts_no_memory_for_row(void);
/* From now on everything that jansson makes is whole, or the worker ends. */
void facts_json_is_whole(void);

#endif
