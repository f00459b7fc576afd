/* The attributes of the unified forward for 8-bit types, from 9.25. E8M0 scale factors make it
 * block-scaled. */
#include "cudnn/graph/graph_fp8.h"
#include "graph_unified.h"
#include "problem/layout.h"

#define ATTR(name) DNN_ATTR_OPERATION_SDPA_FWD_##name

typedef struct given {
    int attribute;
    fattn__auxiliary which;
} given;

static void give_numbers(const fattn__unified *u)
{
    static const given table[] = {
        { ATTR(DESCALE_QDESC), FATTN__AUXILIARY_DESCALE_Q },
        { ATTR(DESCALE_KDESC), FATTN__AUXILIARY_DESCALE_K },
        { ATTR(DESCALE_VDESC), FATTN__AUXILIARY_DESCALE_V },
        { ATTR(DESCALE_SDESC), FATTN__AUXILIARY_DESCALE_S },
        { ATTR(SCALE_SDESC), FATTN__AUXILIARY_SCALE_S },
        { ATTR(SCALE_ODESC), FATTN__AUXILIARY_SCALE_O },
        { ATTR(AMAX_SDESC), FATTN__AUXILIARY_AMAX_S },
        { ATTR(AMAX_ODESC), FATTN__AUXILIARY_AMAX_O },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        /* A scale of O is asked for even where O is not scaled. */
        const bool is_given = fattn__auxiliary_bytes(u->chain.problem, table[i].which) > 0;
        const fattn__desc number = is_given ? fattn__chain_small(&u->chain, table[i].which)
                                            : fattn__value_f32(u->chain.g, 1.0F);
        fattn__unified_give(u, table[i].attribute, number);
    }
}

/* K is not transposed here, nor are its factors. */
static void give_factors(const fattn__unified *u)
{
    static const struct {
        int attribute;
        fattn__mx_operand operand;
    } table[] = {
        { ATTR(DESCALE_QDESC), { .factors = FATTN__AUXILIARY_SF_Q, .role = FATTN__ROLE_Q } },
        { ATTR(DESCALE_KDESC), { .factors = FATTN__AUXILIARY_SF_K, .role = FATTN__ROLE_K } },
        { ATTR(DESCALE_VDESC),
          { .factors = FATTN__AUXILIARY_SF_V, .role = FATTN__ROLE_V, .along_rows = true } },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const fattn__desc factors = fattn__mx_factors(&u->chain, &table[i].operand);
        fattn__unified_give(u, table[i].attribute, factors);
    }
    fattn__unified_give(u, ATTR(AMAX_ODESC),
                        fattn__chain_small(&u->chain, FATTN__AUXILIARY_AMAX_O));
}

void fattn__unified_give_scales(const fattn__unified *u)
{
    const int32_t dtype = u->chain.problem->dtype;
    if (fattn__dtype_is_fp8(dtype))
        give_numbers(u);
    if (fattn__dtype_is_mx(dtype))
        give_factors(u);
}
