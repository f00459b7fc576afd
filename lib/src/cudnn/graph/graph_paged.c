/* K and V of the forward: as they are, or gathered from the pages of a cache. */
#include "cudnn_graph.h"

/* One operation gathers the operand of the product. K comes out transposed; engines distinguish it
 * from V by that. */
static fattn__desc gathered(const fattn__chain *c, fattn__role role)
{
    const fattn_problem *p = c->problem;
    const bool is_k = role == FATTN__ROLE_K;
    const fattn__shape whole = fattn__problem_shape(p, role),
                       pool = fattn__problem_bytes_of(p, role);
    const int64_t heads = whole.dim[1], keys = whole.dim[2], dim = whole.dim[3],
                  pages = is_k ? p->table_k : p->table_v;
    const int64_t turned[4] = { p->batch, heads, dim, keys },
                  turned_strides[4] = { dim * keys * heads, dim * keys, 1, dim };
    const int type = fattn__data_type(whole.dtype);
    fattn__paged_load op = { .seq_len = c->seq_len_kv };
    fattn__traits table = { .offsets = NULL };

    table.offsets = fattn__chain_vector(
        c, is_k ? FATTN__AUXILIARY_TABLE_OFFSETS_K : FATTN__AUXILIARY_TABLE_OFFSETS_V,
        p->ragged_bits);
    op.pages =
        fattn__tensor(c->g, is_k ? FATTN__SLOT_K : FATTN__SLOT_V, type, pool.dim, pool.strides);
    op.table = fattn__tensor_with(c->g, is_k ? FATTN__SLOT_PAGE_TABLE_K : FATTN__SLOT_PAGE_TABLE_V,
                                  DNN_DATA_INT32, (int64_t[4]){ p->batch, 1, pages, 1 },
                                  (int64_t[4]){ pages, pages, 1, 1 }, &table);
    op.y = is_k ? fattn__virtual(c->g, type, turned, turned_strides)
                : fattn__virtual(c->g, type, whole.dim, NULL);
    fattn__op_paged_load(c->g, &op);
    return op.y;
}

fattn__desc fattn__chain_keys(const fattn__chain *c)
{
    return fattn__problem_page(c->problem, FATTN__ROLE_K) != 0
               ? gathered(c, FATTN__ROLE_K)
               : fattn__chain_transposed(c, FATTN__ROLE_K);
}

fattn__desc fattn__chain_values(const fattn__chain *c)
{
    return fattn__problem_page(c->problem, FATTN__ROLE_V) != 0
               ? gathered(c, FATTN__ROLE_V)
               : fattn__chain_tensor(c, FATTN__ROLE_V);
}
