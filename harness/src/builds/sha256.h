/* SHA-256 (FIPS 180-4). */
#ifndef FACTS_SHA256_H
#define FACTS_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct facts_sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    uint8_t block[64];
} facts_sha256;

void facts_sha256_init(facts_sha256 *hash);
void facts_sha256_update(facts_sha256 *hash, const void *data, size_t bytes);
void facts_sha256_final(facts_sha256 *hash, uint8_t out[32]);

#endif
