/* Any text as claims: rules that are whole and straddle their edges, or an error with a place. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/claims.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 1500) /* each pair is looked at for a thousand versions and devices */
        return 0;
    char *text = calloc(1, size + 1), reach[200];
    memcpy(text, data, size);
    facts_error error = { 0 };
    facts_claims claims = { 0 };
    if (facts_claims_read(&claims, text, "fuzz", &error)) {
        for (size_t i = 0; i < claims.count; i++) {
            const facts_claim *c = &claims.claim[i];
            facts_claim_reach(c, reach);
            if (!*c->untestable && (c->edges == 0 || c->refuse_count == 0))
                abort();
        }
    } else if (strncmp(error.text, "fuzz:", 5) != 0) {
        abort();
    }
    facts_claims_clear(&claims);
    free(text);
    return 0;
}
