/* paged=, table=: K and V as pools of pages. */
#include <string.h>

#include "resolution.h"

/* Pages of the pool: as many as the tables can name; where their order is free, an eighth and one
 * more that nobody names. */
static int64_t pages_of(const facts_problem *p, int64_t table)
{
    int64_t named = p->ask.batch * table;
    bool fixed = p->table == FACTS_TABLE_IDENTITY || p->table == FACTS_TABLE_LINSPACE;
    return fixed ? named : named + named / 8 + 1;
}

facts_resolve_status facts_resolve_paged(facts_resolution *r)
{
    static const facts_key of_pages[] = { FACTS_KEY_TABLE };
    facts_problem *out = r->out;
    fattn_problem *ask = &out->ask;
    facts_span number = facts_span_of(facts_case_get(r->c, FACTS_KEY_PAGED));
    uint64_t page = 0;
    bool one = number.length > 1 && number.at[1] == ':', k = !one || number.at[0] == 'k',
         v = !one || number.at[0] == 'v';
    if (one)
        facts_span_cut(&number, ':');
    if (!facts_read_integer(number, INT32_MAX, &page))
        return facts_resolve_bad(r, FACTS_KEY_PAGED, "a page has at most 2^31 - 1 rows");
    if (page == 0)
        return facts_resolve_idle(r, of_pages, 1, "there are no pages: give paged=N");
    if (ask->pass == FATTN_BACKWARD)
        return facts_resolve_bad(r, FACTS_KEY_PAGED,
                                 "a backward has no paged keys; pages are for forward");
    out->table = (facts_table)facts_key_place(r->c, FACTS_KEY_TABLE);
    const int64_t table = (ask->seq_kv + (int64_t)page - 1) / (int64_t)page,
                  pages = pages_of(out, table);
    if (pages > INT32_MAX)
        return facts_resolve_bad(r, FACTS_KEY_PAGED, "more pages than a table can name");
    ask->page_size_k = k ? (int64_t)page : 0;
    ask->page_size_v = v ? (int64_t)page : 0;
    ask->table_k = k ? table : 0;
    ask->table_v = v ? table : 0;
    ask->pages_k = k ? pages : 0;
    ask->pages_v = v ? pages : 0;
    ask->packed_table = out->table == FACTS_TABLE_PACKED;
    return FACTS_RESOLVED;
}
