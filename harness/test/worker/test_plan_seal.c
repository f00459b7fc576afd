#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "worker/target/own_folder.h"
#include "worker/target/plan_seal.h"

static const char digits[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
static unsigned char key[FACTS_SEAL_KEY];
static char file[FACTS_SEAL_BYTES + 5];

static void write_file(void)
{
    cr_assert(facts_seal_key(key, digits));
    facts_seal_make((unsigned char *)file, key, "a.plan", "bytes", 5);
    memcpy(file + FACTS_SEAL_BYTES, "bytes", 5);
}

TestSuite(plan_seal, .init = write_file);

/* RFC 4231 has no key of 32 bytes: this is python3's hmac.new(bytes(range(32)), b"a.plan\0bytes",
 * "sha256"). */
Test(plan_seal, is_an_hmac)
{
    static const unsigned char expects[4] = { 0xf0, 0xf8, 0xc4, 0x54 };
    cr_expect_eq(memcmp(file + 16, expects, sizeof expects), 0);
    cr_expect_eq(facts_seal_check(key, "a.plan", file, sizeof file), FACTS_SEAL_OURS);
}

Test(plan_seal, each_byte_counts)
{
    for (size_t i = 0; i < sizeof file; i++) {
        const facts_seal expects = i < 8    ? FACTS_SEAL_NONE
                                   : i < 16 ? FACTS_SEAL_FOREIGN
                                            : FACTS_SEAL_BROKEN;
        file[i] ^= 1;
        cr_expect_eq(facts_seal_check(key, "a.plan", file, sizeof file), expects, "byte %zu", i);
        file[i] ^= 1;
    }
    for (size_t count = 1; count < FACTS_SEAL_BYTES; count++)
        cr_expect_eq(facts_seal_check(key, "a.plan", file, count), FACTS_SEAL_NONE);
    cr_expect_eq(facts_seal_check(key, "a.plan", file, sizeof file - 1), FACTS_SEAL_BROKEN);
    cr_expect_eq(facts_seal_check(key, "a.plan", file, 0), FACTS_SEAL_BROKEN);
}

static size_t below(size_t n)
{
    static uint64_t x = 22;
    x = x * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(x >> 33) % n;
}

/* What a plan may become on a disk, or by somebody's hand: other bytes at a few places, an end that
 * is missing, more bytes. */
Test(plan_seal, none_of_10000_changed_plans_is_ours)
{
    enum { PLAN = 4000, MORE = 100, PLACES = 4 };
    static char whole[FACTS_SEAL_BYTES + PLAN], changed[sizeof whole + MORE];
    size_t ours = 0;
    for (size_t i = FACTS_SEAL_BYTES; i < sizeof whole; i++)
        whole[i] = (char)(i * i);
    facts_seal_make((unsigned char *)whole, key, "a.plan", whole + FACTS_SEAL_BYTES, PLAN);
    cr_assert_eq(facts_seal_check(key, "a.plan", whole, sizeof whole), FACTS_SEAL_OURS);
    for (size_t n = 0; n < 10000; n++) {
        size_t count = sizeof whole;
        memcpy(changed, whole, sizeof whole);
        const size_t way = below(3), places = 1 + below(PLACES);
        if (way == 0)
            count = below(sizeof whole);
        else if (way == 1)
            count += 1 + below(MORE);
        else
            for (size_t i = 0; i < places;
                 i++) /* one place after the other: none is changed back */
                changed[i * (sizeof whole / PLACES) + below(sizeof whole / PLACES)] ^=
                    (char)(1 + below(255));
        ours += facts_seal_check(key, "a.plan", changed, count) == FACTS_SEAL_OURS;
    }
    cr_expect_eq(ours, 0, "%zu", ours);
}

Test(plan_seal, the_name_and_the_key_count)
{
    cr_expect_eq(facts_seal_check(key, "b.plan", file, sizeof file), FACTS_SEAL_BROKEN);
    key[31] ^= 1;
    cr_expect_eq(facts_seal_check(key, "a.plan", file, sizeof file), FACTS_SEAL_FOREIGN);
}

Test(plan_seal, a_key_is_64_hexadecimal_digits)
{
    cr_expect_not(facts_seal_key(key, ""));
    cr_expect_not(facts_seal_key(key, "0001"));
    cr_expect_not(
        facts_seal_key(key, "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"));
}

/* Opened as a file is, a FIFO would wait for its writer for ever. */
Test(plan_seal, a_fifo_in_the_folder_is_no_plan, .timeout = 300)
{
    char folder[] = "/tmp/facts-test-XXXXXX", path[64], command[64];
    size_t count;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/a.plan", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    const int opened = facts_folder_open(folder);
    cr_assert_geq(opened, 0);
    cr_expect_null(facts_folder_read(opened, "a.plan", 1000, &count));
    close(opened);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}
