/* The seal of a file in a plan folder: a mark and an HMAC-SHA256 before the bytes (PROTOCOL.md).
 * The HMAC uses the user's key. It covers the file's name, which is a hash of build, device and
 * problem, and the bytes. A plan is native code, so FACTS does not load a file without its own
 * seal. */
#ifndef FACTS_PLAN_SEAL_H
#define FACTS_PLAN_SEAL_H

#include <stdbool.h>
#include <stddef.h>

#define FACTS_SEAL_KEY 32
#define FACTS_SEAL_BYTES 48 /* mark, the first bytes of the key's hash, the HMAC: 8 + 8 + 32 */

typedef enum facts_seal {
    FACTS_SEAL_OURS,
    FACTS_SEAL_BROKEN,
    FACTS_SEAL_FOREIGN,
    FACTS_SEAL_NONE
} facts_seal;

/* Reads 64 hexadecimal digits. False: the text is not that. */
bool facts_seal_key(unsigned char out[FACTS_SEAL_KEY], const char *digits);
void facts_seal_make(unsigned char out[FACTS_SEAL_BYTES], const unsigned char key[FACTS_SEAL_KEY],
                     const char *name, const char *bytes, size_t count);
/* OURS: sealed with the user's key. BROKEN: sealed with that key, with other bytes or another name.
 * FOREIGN: sealed with another key. NONE: no seal. `count` includes the seal. */
facts_seal facts_seal_check(const unsigned char key[FACTS_SEAL_KEY], const char *name,
                            const char *bytes, size_t count);

#endif
