#include "plan_seal.h"

#include <openssl/sha.h>
#include <string.h>

static const char mark[8] = { 'F', 'A', 'C', 'T', 'S', 'E', 'A', 'L' };

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool facts_seal_key(unsigned char out[FACTS_SEAL_KEY], const char *digits)
{
    if (strlen(digits) != 2 * FACTS_SEAL_KEY)
        return false;
    for (size_t i = 0; i < FACTS_SEAL_KEY; i++) {
        const int high = digit(digits[2 * i]), low = digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

/* The inner or the outer hash of RFC 2104. */
static void begin(SHA256_CTX *hash, const unsigned char key[FACTS_SEAL_KEY], unsigned char pad)
{
    unsigned char block[SHA256_CBLOCK];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (unsigned char)((i < FACTS_SEAL_KEY ? key[i] : 0) ^ pad);
    SHA256_Init(hash);
    SHA256_Update(hash, block, sizeof block);
}

void facts_seal_make(unsigned char out[FACTS_SEAL_BYTES], const unsigned char key[FACTS_SEAL_KEY],
                     const char *name, const char *bytes, size_t count)
{
    SHA256_CTX hash;
    unsigned char inner[SHA256_DIGEST_LENGTH], of_key[SHA256_DIGEST_LENGTH];
    SHA256_Init(&hash);
    SHA256_Update(&hash, key, FACTS_SEAL_KEY);
    SHA256_Final(of_key, &hash);
    begin(&hash, key, 0x36);
    SHA256_Update(&hash, name, strlen(name) + 1);
    SHA256_Update(&hash, bytes, count);
    SHA256_Final(inner, &hash);
    begin(&hash, key, 0x5c);
    SHA256_Update(&hash, inner, sizeof inner);
    memcpy(out, mark, 8);
    memcpy(out + 8, of_key, 8);
    SHA256_Final(out + 16, &hash);
}

facts_seal facts_seal_check(const unsigned char key[FACTS_SEAL_KEY], const char *name,
                            const char *bytes, size_t count)
{
    unsigned char expected[FACTS_SEAL_BYTES], differs = 0;
    if (count > 0 && (count < FACTS_SEAL_BYTES || memcmp(bytes, mark, sizeof mark) != 0))
        return FACTS_SEAL_NONE;
    if (count == 0) /* a file after a power failure */
        return FACTS_SEAL_BROKEN;
    facts_seal_make(expected, key, name, bytes + FACTS_SEAL_BYTES, count - FACTS_SEAL_BYTES);
    if (memcmp(expected, bytes, 16) != 0)
        return FACTS_SEAL_FOREIGN;
    for (size_t i = 16; i < FACTS_SEAL_BYTES;
         i++) /* every byte, even after a difference: the time reveals nothing */
        differs |= (unsigned char)(expected[i] ^ (unsigned char)bytes[i]);
    return differs ? FACTS_SEAL_BROKEN : FACTS_SEAL_OURS;
}
