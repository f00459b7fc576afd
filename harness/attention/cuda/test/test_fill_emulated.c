/* The kernels that fill inputs, run without a GPU, against the C functions that they stand for: the
 * same bits. */
#include "emulated.h"

#include <stdio.h>

#include "../../../test/numbers/numbers.h"

static bool is_input(const facts_problem *p, facts_tensor_id id)
{
    return p->tensor[id].present && (id <= FACTS_TENSOR_V || id == FACTS_TENSOR_DO ||
                                     id == FACTS_TENSOR_BIAS || id >= FACTS_TENSOR_MOD_A);
}

static void same_fill(const facts_problem *p, const char *text)
{
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!is_input(p, id))
            continue;
        const int32_t dtype = p->tensor[id].dtype;
        const size_t elements = (size_t)p->tensor[id].elements,
                     bytes = elements * facts_dtype_bytes(dtype);
        unsigned char *here = malloc(bytes), *there = malloc(bytes);
        facts_fill_gaps(p, dtype, here, (int64_t)elements);
        cr_assert(facts_fill_tensor(p, id, here));
        cr_assert_eq(facts_gpu_gaps(gpu, p, dtype, there, (int64_t)elements), FATTN_OK);
        cr_assert_eq(facts_gpu_fill(gpu, p, id, there), FATTN_OK);
        cr_assert(memcmp(here, there, bytes) == 0, "%s: %s", text, facts_tensor_word(id));
        free(here);
        free(there);
    }
}

TestSuite(emulated, .init = open_emulated, .fini = close_emulated);

Test(emulated, a_float_as_bf16_is_what_encoding_says)
{
    for (uint32_t high = 0; high < 0x10000; high++)
        for (uint32_t n = 0; n < 6; n++) {
            static const uint32_t lows[6] = { 0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF };
            const uint32_t bits = high << 16 | lows[n];
            float x;
            memcpy(&x, &bits, sizeof x);
            if (x == x && facts_encode_bf16_of_float(x) != facts_encode(FATTN_BF16, (double)x))
                cr_assert_fail("%08x", bits);
        }
}

Test(emulated, every_fill_of_every_tensor_has_the_bits_of_the_C_one)
{
    static const char *const shapes[] = {
        "pass=bwd dtype=bf16 b=2 h=4/2 s=20/36 d=16",
        "pass=bwd dtype=f16 b=2 h=2 s=24 d=16 layout=sbhd stride=gap:q.s.8",
        "pass=bwd dtype=f32 b=1 h=2 s=20 d=32 mask=causal",
        "pass=bwd dtype=bf16 b=2 h=2 s=24 d=16 stride=broadcast:k.b",
        "pass=bwd dtype=f16 b=3 h=2 s=20/12 d=16 lens=7+20+1/12+3+5 poison=nan",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss",
        "pass=fwd dtype=bf16 b=2 h=2 s=20/12 d=16 bias=11ss bias_fill=random",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=1hss bias_fill=rows_masked",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss bias_fill=window:3:2",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss bias_fill=finite_min",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=relpos",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=document:3",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=post_scale_bias",
    };
#define AS_WORD(symbol, word) word,
    static const char *const fills[] = { FACTS_FILL_LIST(AS_WORD) };
#undef AS_WORD
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
            static facts_problem p;
            char text[300];
            snprintf(text, sizeof text, "%s fill=%s seed=%zu", shapes[s], fills[f], f + 1);
            if (resolves_to(&p, text))
                same_fill(&p, text);
            else
                cr_assert_neq(f, 0, "%s", text);
        }
}
