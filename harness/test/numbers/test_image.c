#include <criterion/criterion.h>

#include "numbers.h"

static facts_tensor gapped(int32_t dtype)
{
    facts_tensor t;
    set_tensor(&t, dtype, BSHD, 2, 3, 5, 8, 4);
    t.first = 8;
    t.elements += 8;
    return t;
}

Test(image, poison_is_what_section_8_says)
{
    cr_expect_eq(facts_pattern_code(FATTN_BF16, FACTS_PATTERN_A, 0), 0x7FA5);
    cr_expect_eq(facts_pattern_code(FATTN_F16, FACTS_PATTERN_A, 9), 0x7FA5);
    cr_expect_eq(facts_pattern_code(FATTN_F32, FACTS_PATTERN_A, -3), 0x7FA5A5A5);
    cr_expect_eq(facts_pattern_code(FATTN_E5M2, FACTS_PATTERN_A, 0), 0x7F);
    cr_expect(isnan(facts_decode(FATTN_F16, 0x7FA5)) && isnan(facts_decode(FATTN_BF16, 0x7FA5)));
    cr_expect_float_eq(facts_decode(FATTN_F32, facts_pattern_code(FATTN_F32, FACTS_PATTERN_B, 13)),
                       1030.0, 0);
    cr_expect_float_eq(facts_decode(FATTN_F32, facts_pattern_code(FATTN_F32, FACTS_PATTERN_B, -1)),
                       1030.0, 0);
    cr_expect_float_eq(facts_decode(FATTN_E4M3, facts_pattern_code(FATTN_E4M3, FACTS_PATTERN_B, 0)),
                       64.0, 0);
}

Test(image, guards_are_512_elements_and_1_KiB_at_least)
{
    for (int32_t dtype = FATTN_BF16; dtype <= FATTN_E5M2; dtype++) {
        facts_tensor t = gapped(dtype);
        const facts_tensor *list[] = { &t };
        facts_image image;
        cr_assert(facts_image_create(&image, list, 1));
        cr_expect_geq(image.front, 1024);
        cr_expect_geq(image.front / facts_dtype_bytes(dtype), 512);
        cr_expect_eq(image.front % 256, 0, "the storage keeps the alignment of the buffer");
        cr_expect_eq(image.bytes, 2 * image.front + (size_t)t.elements * facts_dtype_bytes(dtype));
        facts_image_destroy(&image);
    }
}

/* Every byte outside the tensor's elements, one at a time. */
static void every_byte_is_watched(int32_t dtype, int64_t skew)
{
    facts_tensor t = gapped(dtype);
    t.skew_bytes = skew;
    const facts_tensor *list[] = { &t };
    facts_image image;
    cr_assert(facts_image_create(&image, list, 1));
    unsigned char *bytes = malloc(image.bytes);
    size_t watched = 0;
    for (facts_pattern pattern = FACTS_PATTERN_A; pattern <= FACTS_PATTERN_B; pattern++) {
        facts_image_poison(&image, pattern, bytes);
        cr_assert_eq(facts_image_overrun(&image, pattern, bytes), 0);
        watched = 0;
        for (size_t i = 0; i < image.bytes; i++) {
            bytes[i] ^= 0x10;
            watched += facts_image_overrun(&image, pattern, bytes) == 1;
            bytes[i] ^= 0x10;
        }
    }
    size_t live = 2 * 3 * 5 * 8 * facts_dtype_bytes(dtype);
    cr_expect_eq(watched, image.bytes - live, "%zu of %zu", watched, image.bytes - live);
    free(bytes);
    facts_image_destroy(&image);
}

Test(image, every_byte_of_guards_and_gaps_is_watched)
{
    every_byte_is_watched(FATTN_BF16, 0);
    every_byte_is_watched(FATTN_F32, 4);
    every_byte_is_watched(FATTN_F16, 3);
}

Test(image, tensors_that_share_a_storage_own_it_together)
{
    facts_tensor k, v; /* k and v interleaved: [b,s,2,h,d] */
    set_tensor(&k, FATTN_BF16, BSHD, 1, 2, 4, 8, 0);
    k.stride[2] = 32;
    k.stride[0] = 128;
    k.elements = 128;
    v = k;
    v.first = 16;
    const facts_tensor *both[] = { &k, &v };
    facts_image image;
    cr_assert(facts_image_create(&image, both, 2));
    cr_expect_eq(image.owned[0] & image.owned[1], UINT64_MAX);
    facts_image_destroy(&image);
    cr_assert(facts_image_create(&image, both, 1));
    cr_expect_eq(image.owned[0] >> 16 & 1, 0, "alone, the place of v is a gap");
    facts_image_destroy(&image);
}

Test(image, a_tensor_that_leaves_its_storage_is_refused)
{
    facts_tensor t = gapped(FATTN_BF16);
    t.elements = 100;
    const facts_tensor *list[] = { &t };
    facts_image image;
    cr_expect_not(facts_image_create(&image, list, 1));
    facts_image_destroy(&image);
}
