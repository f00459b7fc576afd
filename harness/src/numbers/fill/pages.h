/* Which page of a pool holds what: as a function of the case alone, so that nobody needs the table. */
#ifndef FACTS_PAGES_H
#define FACTS_PAGES_H

#include "case/problem/case_problem.h"

/* Pages that entry b's keys fill. */
int64_t facts_pages_of_entry(const facts_problem *problem, facts_tensor_id id, int64_t b);
/* The entry that wrote page n of entry b: of shared pages the first that names it. */
int64_t facts_page_owner(const facts_problem *problem, facts_tensor_id id, int64_t b, int64_t n);

#endif
