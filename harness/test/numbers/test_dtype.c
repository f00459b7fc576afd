#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "numbers/dtype.h"

static void decodes_to(int32_t dtype, uint32_t code, double want)
{
    const double got = facts_decode(dtype, code);
    cr_assert(isnan(want) ? isnan(got) : memcmp(&want, &got, sizeof want) == 0,
              "dtype %d, %04x: %g, want %g", dtype, code, got, want);
}

/* A bf16 is the upper half of a float; the compiler knows f16. */
Test(dtype, every_code_of_16_bits_decodes_as_the_compiler_does)
{
    for (uint32_t code = 0; code < 65536; code++) {
        const uint32_t bits = code << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        decodes_to(FATTN_BF16, code, (double)f);
#ifdef __FLT16_MANT_DIG__
        const uint16_t half_bits = (uint16_t)code;
        _Float16 half;
        memcpy(&half, &half_bits, sizeof half);
        decodes_to(FATTN_F16, code, (double)half);
#endif
    }
}

static void survives(int32_t dtype, uint32_t codes)
{
    for (uint32_t code = 0; code < codes; code++) {
        double value = facts_decode(dtype, code);
        if (isnan(value))
            cr_assert(isnan(facts_decode(dtype, facts_encode(dtype, value))));
        else if (!(isinf(value) && dtype == FATTN_E5M2))
            cr_assert_eq(facts_encode(dtype, value), code, "dtype %d code %x became %x", dtype,
                         code, facts_encode(dtype, value));
    }
}

Test(dtype, every_code_survives_the_way_there_and_back)
{
    survives(FATTN_BF16, 65536);
    survives(FATTN_F16, 65536);
    survives(FATTN_E4M3, 256);
    survives(FATTN_E5M2, 256);
}

/* Halfway between two neighbours goes to the even code; a hair to either side goes to that side. */
static void rounds(int32_t dtype, uint32_t largest)
{
    for (uint32_t code = 0; code < largest; code++) {
        double low = facts_decode(dtype, code), high = facts_decode(dtype, code + 1),
               middle = (low + high) / 2;
        cr_assert_eq(facts_encode(dtype, middle), code + (code & 1), "dtype %d middle above %x",
                     dtype, code);
        cr_assert_eq(facts_encode(dtype, nextafter(middle, 0)), code);
        cr_assert_eq(facts_encode(dtype, nextafter(middle, INFINITY)), code + 1);
        cr_assert_eq(facts_encode(dtype, -middle) & largest, (code + (code & 1)) & largest);
    }
}

Test(dtype, rounding_is_to_nearest_even_subnormals_included)
{
    rounds(FATTN_BF16, 0x7F7F);
    rounds(FATTN_F16, 0x7BFF);
    rounds(FATTN_E4M3, 0x7E);
    rounds(FATTN_E5M2, 0x7B);
}

Test(dtype, f32_rounds_as_the_processor_does)
{
    uint64_t state = 1;
    for (int i = 0; i < 2000000; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t bits = state ^ state >> 29;
        if (i % 2) /* half of them near fp32's range, subnormals included */
            bits = (bits & ~(UINT64_C(0x7FF) << 52)) | (UINT64_C(860) + (bits >> 52) % 300) << 52;
        double value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        float want = (float)value;
        uint32_t want_bits;
        memcpy(&want_bits, &want, sizeof want_bits);
        cr_assert_eq(facts_encode(FATTN_F32, value), want_bits, "%a", value);
        cr_assert_eq(facts_decode(FATTN_F32, want_bits), (double)want);
    }
}

Test(dtype, only_the_8_bit_types_saturate)
{
    cr_expect_eq(facts_encode(FATTN_F16, 65519.9), 0x7BFF);
    cr_expect_eq(facts_encode(FATTN_F16, 65520.0), 0x7C00);
    cr_expect_eq(facts_encode(FATTN_F16, -1e300), 0xFC00);
    cr_expect_eq(facts_encode(FATTN_BF16, 3.4e38), 0x7F80);
    cr_expect_eq(facts_encode(FATTN_E4M3, 1e9), 0x7E);
    cr_expect_eq(facts_encode(FATTN_E4M3, -INFINITY), 0xFE);
    cr_expect_eq(facts_encode(FATTN_E5M2, 1e9), 0x7B);
    cr_expect_float_eq(facts_dtype_max(FATTN_E4M3), 448.0, 0);
    cr_expect_float_eq(facts_dtype_max(FATTN_E5M2), 57344.0, 0);
    cr_expect_float_eq(facts_dtype_max(FATTN_F16), 65504.0, 0);
}

Test(dtype, elements_need_no_alignment)
{
    unsigned char memory[32] = { 0 };
    facts_store(FATTN_F32, memory + 1, 3, 0x12345678);
    facts_store(FATTN_BF16, memory + 1, 0, 0xABCD);
    cr_expect_eq(facts_load(FATTN_F32, memory + 1, 3), 0x12345678);
    cr_expect_eq(facts_load(FATTN_BF16, memory + 1, 0), 0xABCD);
    cr_expect_eq(facts_dtype_bytes(99), 0);
}
