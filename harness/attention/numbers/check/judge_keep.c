#include "judge_keep.h"

#include <math.h>

#include "numbers/dtype.h"
#include "numbers/fill/oracle_view.h"
#include "numbers/fill/places.h"
#include "probe_keep.h"

#define AS_WORD(symbol, word) word,
const char *const facts_rate_words[FACTS_RATES] = { FACTS_RATE_LIST(AS_WORD) };
#undef AS_WORD

static void judge_bit(facts_judgement *out, double got, double want, bool poison,
                      const int64_t at[4])
{
    out->checked++;
    if (got == want)
        return;
    out->unwritten += poison;
    out->not_finite += !poison && !isfinite(got);
    out->wrong += !poison && isfinite(got);
    if (out->ratio > 0)
        return;
    out->ratio = INFINITY;
    out->gate = poison ? FACTS_GATE_POISON : FACTS_GATE_T0;
    out->got = got;
    out->want = want;
    for (int d = 0; d < 4; d++)
        out->worst[d] = at[d];
}

/* The usual case, fast. NaN is never right. */
static bool is_row_right(const float *got, const uint8_t *bits, int64_t count)
{
    int64_t wrong = 0;
    for (int64_t j = 0; j < count; j++)
        wrong += got[j] != (bits[j] ? 1.0F : 0.0F);
    return wrong == 0;
}

facts_judgement facts_judge_keep(const facts_problem *p, const void *dump, const uint8_t *keep,
                                 facts_pattern pattern)
{
    const facts_tensor *t = &p->tensor[FACTS_TENSOR_RNG_DUMP];
    facts_judgement out = { .gate = FACTS_GATE_T0 };
    for (int64_t b = 0; b < t->dim[0]; b++)
        for (int64_t i = 0; i < facts_live_q(p, b); i++) {
            int64_t first, last;
            facts_oracle_keys_of_row(p, b, i, &first, &last);
            for (int64_t h = 0; h < t->dim[1]; h++) {
                const int64_t row =
                    t->first + b * t->stride[0] + h * t->stride[1] + i * t->stride[2];
                const uint8_t *bits =
                    keep ? keep + ((b * t->dim[1] + h) * t->dim[2] + i) * t->dim[3] : NULL;
                if (bits && t->dtype == FATTN_F32 && t->stride[3] == 1 &&
                    is_row_right((const float *)dump + row + first, bits + first, last - first)) {
                    out.checked += last - first;
                    continue;
                }
                for (int64_t j = first; j < last; j++) {
                    const int64_t at[4] = { b, h, i, j }, place = row + j * t->stride[3];
                    const uint32_t code = facts_load(t->dtype, dump, place);
                    const bool kept = !bits || bits[j] != 0;
                    judge_bit(&out, facts_decode(t->dtype, code), kept ? 1.0 : 0.0,
                              code == facts_pattern_code(t->dtype, pattern, place), at);
                }
            }
        }
    if (out.ratio > 0)
        out.gates[out.gate] = out.ratio;
    return out;
}

facts_rate facts_rate_of(double dropout, int64_t kept, int64_t of)
{
    const double sixteenths = round(dropout * 16.0) / 16.0;
    const facts_keep keep = { .seen = of, .kept = kept };
    const bool asked = facts_keep_is_likely(&keep, dropout),
               quantised = facts_keep_is_likely(&keep, sixteenths);
    if (asked && quantised)
        return FACTS_RATE_EITHER;
    return asked ? FACTS_RATE_AS_ASKED : quantised ? FACTS_RATE_QUANTISED : FACTS_RATE_NEITHER;
}
