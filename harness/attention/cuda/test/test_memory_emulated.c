/* The kernels that poison, guard, copy and compare memory, run without a GPU, against the C
 * functions that they stand for. */
#include "emulated.h"

#include "../../../test/numbers/numbers.h"
#include "../calls.h"

TestSuite(emulated, .init = open_emulated, .fini = close_emulated);

Test(emulated, poison_and_guards_are_the_same_bytes)
{
    static const int32_t dtypes[] = { FATTN_BF16, FATTN_F16, FATTN_F32, FATTN_E4M3, FATTN_E5M2 };
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        for (facts_pattern pattern = FACTS_PATTERN_A; pattern <= FACTS_PATTERN_B; pattern++)
            for (int64_t skew = 0; skew < 4; skew++) {
                facts_tensor t = gappy(dtypes[i], skew);
                const facts_tensor *list[] = { &t };
                facts_image image;
                cr_assert(facts_image_create(&image, list, 1));
                unsigned char *here = calloc(image.bytes, 1), *there = calloc(image.bytes, 1);
                facts_image_poison(&image, pattern, here);
                cr_expect_eq(facts_gpu_poison(gpu, &image, pattern, there), FATTN_OK);
                cr_expect(memcmp(here, there, image.bytes) == 0);
                memset(here, 1, image.bytes);
                memset(there, 1, image.bytes);
                facts_image_guard(&image, pattern, here);
                cr_expect_eq(facts_gpu_guard(gpu, &image, pattern, there), FATTN_OK);
                cr_expect(memcmp(here, there, image.bytes) == 0);
                facts_image_destroy(&image);
                free(here);
                free(there);
            }
}

Test(emulated, every_changed_byte_outside_the_tensors_is_found)
{
    facts_tensor t = gappy(FATTN_F16, 1);
    const facts_tensor *list[] = { &t };
    facts_image image;
    cr_assert(facts_image_create(&image, list, 1));
    unsigned char *bytes = malloc(image.bytes);
    int64_t changed;
    for (size_t at = 0; at < image.bytes;
         at += at < image.front || at + 1100 > image.bytes ? 97 : 1) {
        facts_image_poison(&image, FACTS_PATTERN_B, bytes);
        bytes[at] ^= 1;
        bytes[image.front + 2 * 12] = 77; /* of the tensor itself */
        cr_assert_eq(facts_gpu_watch_begin(gpu), FATTN_OK);
        cr_assert_eq(facts_gpu_overrun(gpu, &image, list, 1, FACTS_PATTERN_B, bytes, &changed),
                     FATTN_OK);
        cr_assert_eq(facts_gpu_watch_end(gpu), FATTN_OK);
        cr_assert_eq(changed, facts_image_overrun(&image, FACTS_PATTERN_B, bytes), "byte %zu: %ld",
                     at, (long)changed);
    }
    facts_image_destroy(&image);
    free(bytes);
}

Test(emulated, copies_noise_and_differences)
{
    enum { BYTES = 1003 };
    _Alignas(16) unsigned char a[BYTES + 1], b[BYTES + 1] = { 0 };
    int64_t differ;
    a[BYTES] = b[BYTES] = 9;
    cr_expect_eq(facts_gpu_noise(gpu, a, 7, BYTES), FATTN_OK);
    cr_expect_eq(facts_gpu_copy(gpu, b, a, BYTES), FATTN_OK);
    cr_expect(memcmp(a, b, BYTES) == 0 && a[BYTES] == 9 && b[BYTES] == 9);
    b[0] ^= 1, b[500] ^= 1, b[501] ^= 1, b[1002] ^= 1;
    cr_expect_eq(facts_gpu_watch_begin(gpu), FATTN_OK);
    cr_expect_eq(facts_gpu_differ(gpu, a, b, BYTES, &differ), FATTN_OK);
    cr_expect_eq(facts_gpu_watch_end(gpu), FATTN_OK);
    cr_expect_eq(differ, 4);
    cr_expect_eq(facts_gpu_set(gpu, a, 0x3C, BYTES), FATTN_OK);
    cr_expect(a[0] == 0x3C && a[1002] == 0x3C && a[BYTES] == 9);
}

Test(emulated, what_is_put_off_is_done_at_the_end_however_much_it_is)
{
    enum { MANY = 2 * FACTS_PLACES_TOGETHER + 3, BYTES = 64 };
    static _Alignas(16) unsigned char from[MANY][BYTES], to[MANY][BYTES];
    int64_t differ[MANY], none = 0;
    memset(from, 5, sizeof from);
    facts_gpu_together_begin(gpu);
    cr_assert_eq(facts_gpu_copy(gpu, to[0], from[0], BYTES), FATTN_OK);
    cr_expect_eq(to[0][0], 0);
    for (int n = 1; n < MANY; n++)
        cr_assert_eq(facts_gpu_copy(gpu, to[n], from[n], BYTES), FATTN_OK);
    cr_assert_eq(facts_gpu_together_end(gpu), FATTN_OK);
    cr_expect(memcmp(to, from, sizeof to) == 0);
    to[MANY - 1][3] = 6;
    cr_assert_eq(facts_gpu_watch_begin(gpu), FATTN_OK);
    for (int n = 0; n < MANY; n++)
        cr_assert_eq(facts_gpu_differ(gpu, to[n], from[n], BYTES, &differ[n]), FATTN_OK);
    cr_assert_eq(facts_gpu_watch_end(gpu), FATTN_OK);
    for (int n = 0; n < MANY - 1; n++)
        none += differ[n];
    cr_expect(none == 0 && differ[MANY - 1] == 1);
}

/* Two small blocks, one that fits exactly behind them, and one for which there is no room. They
 * start anywhere: the bytes behind a workspace do. */
Test(emulated, what_is_collected_is_there_at_the_end_however_much_it_is)
{
    enum { ROOM = 64 << 10, SMALL = 37, FITS = ROOM - 2 * 48 };
    static const size_t bytes[] = { SMALL, SMALL, FITS, 1 };
    static _Alignas(16) unsigned char from[4][ROOM + 16], to[4][ROOM];
    int64_t differ;
    for (int n = 0; n < 4; n++)
        for (size_t i = 0; i < sizeof from[n]; i++)
            from[n][i] = (unsigned char)(n + 3 * i);
    for (int round = 0; round < 2; round++) {
        memset(to, 0, sizeof to);
        cr_assert_eq(facts_gpu_watch_begin(gpu), FATTN_OK);
        cr_assert_eq(facts_gpu_differ(gpu, from[0], from[1], 100, &differ), FATTN_OK);
        for (int n = 0; n < 4; n++)
            cr_assert_eq(facts_gpu_collect(gpu, to[n], from[n] + n, bytes[n]), FATTN_OK);
        cr_assert_eq(facts_gpu_watch_end(gpu), FATTN_OK);
        cr_expect_eq(differ, 100);
        for (int n = 0; n < 4; n++)
            cr_expect(memcmp(to[n], from[n] + n, bytes[n]) == 0 && to[n][bytes[n]] == 0, "block %d",
                      n);
    }
}
