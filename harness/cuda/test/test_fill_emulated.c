/* The kernels that fill inputs, run without a GPU, against the C functions that they stand for: the
 * same bits. */
#include "emulated.h"

#include <stdio.h>

#include "../../test/numbers/numbers.h"
#include "numbers/bits.h"

static facts_problem resolved(const char *text)
{
    facts_case c;
    facts_error error = { 0 };
    facts_problem p;
    cr_assert(facts_case_parse(&c, text, &error), "%s: %s", text, error.text);
    cr_assert_eq(facts_problem_resolve(&p, &c, &error), FACTS_RESOLVED, "%s: %s", text, error.text);
    return p;
}

static bool is_input(const facts_problem *p, facts_tensor_id id)
{
    return p->tensor[id].present && (id <= FACTS_TENSOR_V || id == FACTS_TENSOR_DO ||
                                     id == FACTS_TENSOR_BIAS || id >= FACTS_TENSOR_MOD_A);
}

static void same_fill(facts_gpu *gpu, const char *text)
{
    static facts_problem p;
    p = resolved(text);
    for (facts_tensor_id id = 0; id < FACTS_TENSOR_COUNT; id++) {
        if (!is_input(&p, id))
            continue;
        size_t elements = (size_t)p.tensor[id].elements,
               bytes = elements * facts_dtype_bytes(p.tensor[id].dtype);
        unsigned char *here = malloc(bytes), *there = malloc(bytes);
        facts_fill_gaps(&p, p.tensor[id].dtype, here, (int64_t)elements);
        cr_assert(facts_fill_tensor(&p, id, here));
        cr_assert_eq(facts_gpu_gaps(gpu, &p, p.tensor[id].dtype, there, (int64_t)elements),
                     FATTN_OK);
        cr_assert_eq(facts_gpu_fill(gpu, &p, id, there), FATTN_OK);
        cr_assert(memcmp(here, there, bytes) == 0, "%s: %s", text, facts_tensor_word(id));
        free(here);
        free(there);
    }
}

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

Test(emulated, every_fill_has_the_bits_of_the_C_one)
{
    static const char *const shapes[] = {
        "dtype=bf16 b=2 h=4/2 s=20/36 d=16",
        "dtype=f16 b=2 h=2 s=24 d=16 layout=sbhd stride=gap:q.s.8",
        "dtype=f32 b=1 h=2 s=20 d=32 mask=causal",
        "dtype=bf16 b=2 h=2 s=24 d=16 stride=broadcast:k.b",
        "dtype=f16 b=3 h=2 s=16 d=16 lens=7+16+1 poison=nan"
    };
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
#define AS_WORD(symbol, word) word,
    static const char *const fills[] = { FACTS_FILL_LIST(AS_WORD) };
#undef AS_WORD
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++) {
            char text[300];
            facts_case c;
            facts_error error = { 0 };
            facts_problem p;
            snprintf(text, sizeof text, "pass=bwd %s fill=%s seed=%zu", shapes[s], fills[f], f + 1);
            if (facts_case_parse(&c, text, &error) &&
                facts_problem_resolve(&p, &c, &error) == FACTS_RESOLVED)
                same_fill(gpu, text);
        }
    close_emulated(gpu, context);
}

Test(emulated, bias_tensors_of_modifications_and_fills_that_need_something_too)
{
    static const char *const texts[] = {
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss",
        "pass=fwd dtype=bf16 b=2 h=2 s=20/12 d=16 bias=11ss bias_fill=random",
        "pass=bwd dtype=f16 b=3 h=2 s=20/12 d=16 lens=7+20+1/12+3+5 fill=amax_plant seed=5",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=1hss bias_fill=rows_masked",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss bias_fill=window:3:2",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 bias=bhss bias_fill=finite_min",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=relpos",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=document:3",
        "pass=fwd dtype=f16 b=2 h=2 s=20/12 d=16 mod=post_scale_bias",
    };
    fattn_context *context;
    facts_gpu *gpu = open_emulated(&context);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        same_fill(gpu, texts[i]);
    close_emulated(gpu, context);
}
