#include "judge.h"
#include "numbers/bits.h"
#include "numbers/dtype.h"
#include "numbers/fill/layout.h"

static facts_row_expects expects_of(const facts_tensor *t, const facts_row_expects *expects,
                                    int64_t i)
{
    int64_t s = i / t->dim[3] % t->dim[2], b = i / (t->dim[3] * t->dim[2] * t->dim[1]);
    return !facts_row_exists(t, b, s) ? FACTS_EXPECTS_NOTHING
           : expects                  ? expects[b * t->dim[2] + s]
                                      : FACTS_EXPECTS_VALUE;
}

static int64_t place_of(const facts_tensor *t, int64_t i)
{
    int64_t at[4];
    facts_index_of(t->dim, i, at);
    return facts_element_place(t, at);
}

int64_t facts_judge_repeat(const facts_tensor *tensor, const void *a, const void *b,
                           const facts_row_expects *expects, int64_t first[4])
{
    return facts_judge_repeat_close(tensor, a, b, expects, NULL, first);
}

static double slack_at(const facts_slack *slack, int64_t i)
{
    return slack->share * slack->bound[i] + (slack->parts ? slack->parts[i] : 0.0);
}

int64_t facts_judge_repeat_close(const facts_tensor *tensor, const void *a, const void *b,
                                 const facts_row_expects *expects, const facts_slack *slack,
                                 int64_t first[4])
{
    int64_t n = facts_elements(tensor->dim), different = 0, least = n;
#pragma omp parallel for schedule(static) reduction(+ : different) reduction(min : least)
    for (int64_t i = 0; i < n; i++) {
        facts_row_expects is = expects_of(tensor, expects, i);
        if (is != FACTS_EXPECTS_VALUE &&
            (is != FACTS_EXPECTS_NUMBER || slack)) /* outside a sample the slack is unknown */
            continue;
        int64_t place = place_of(tensor, i);
        uint32_t x = facts_load(tensor->dtype, a, place), y = facts_load(tensor->dtype, b, place);
        if (x != y && !(slack && facts_judged_close(tensor->dtype, x, y, slack_at(slack, i)))) {
            different++;
            least = i < least ? i : least;
        }
    }
    if (different && first)
        facts_index_of(tensor->dim, least, first);
    return different;
}

uint64_t facts_judge_bits(const facts_tensor *tensor, const void *storage)
{
    int64_t n = facts_elements(tensor->dim);
    uint64_t sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        if (expects_of(tensor, NULL, i) == FACTS_EXPECTS_VALUE)
            sum += facts_bits_of(i, facts_load(tensor->dtype, storage, place_of(tensor, i)));
    return sum;
}
