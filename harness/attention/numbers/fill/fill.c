#include "fill.h"

#include "mx.h"
#include "recipe.h"

bool facts_fill_tensor(const facts_problem *problem, facts_tensor_id id, void *storage)
{
    facts_recipe r;
    if (facts_mx_makes(problem, id))
        return facts_mx_fill(problem, id, storage);
    bool ok = facts_recipe_make(&r, problem, id);
    const int64_t channels = r.extent[3],
                  rows = channels > 0 ? facts_recipe_places(&r) / channels : 0;
    if (ok) {
#pragma omp parallel for schedule(static)
        for (int64_t n = 0; n < rows; n++) {
            int64_t at[4] = { 0 };
            facts_recipe_place(&r, n * channels, at);
            for (at[3] = 0; at[3] < channels; at[3]++)
                facts_recipe_store(&r, at, storage);
        }
    }
    facts_recipe_destroy(&r);
    return ok;
}

void facts_fill_gaps(const facts_problem *problem, int32_t dtype, void *storage, int64_t elements)
{
    const facts_gaps g = facts_gaps_of(problem, dtype);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < elements; i++)
        facts_store(dtype, storage, i, facts_gap_code(&g, i));
}
