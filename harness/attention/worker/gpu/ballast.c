#include "ballast.h"

#include <inttypes.h>
#include <stdio.h>

#include "fattn/device.h"
#include "gpu_launch.h"

#define MIB ((int64_t)1 << 20)
#define GRANULE (2 * MIB) /* the driver's pages */
#define SLACK (64 * MIB)  /* page tables come and go with the pieces */

/* The largest piece that the driver still gives: free memory is not always one piece. */
bool facts_ballast_take(facts_ballast *out, facts_gpu *gpu, int64_t mib, char why[160])
{
    *out = (facts_ballast){ .pieces = 0 };
    if (mib < 0)
        return true;
    const int64_t leave = mib * MIB;
    int64_t piece = INT64_MAX, left = facts_gpu_free_bytes(gpu);
    while (out->pieces < FACTS_BALLAST_PIECES) {
        const int64_t over = (left - leave) / GRANULE * GRANULE;
        piece = over < piece ? over : piece;
        if (piece < GRANULE)
            break;
        if (fattn_buffer_create(&out->piece[out->pieces], gpu->context, (size_t)piece) == FATTN_OK)
            out->pieces++;
        else
            piece = piece / 2 / GRANULE * GRANULE;
        left = facts_gpu_free_bytes(gpu);
    }
    if (left >= 0 && left <= leave + SLACK)
        return true;
    snprintf(why, 160, "memory: %" PRId64 " MiB of the GPU stayed free", left / MIB);
    return false;
}

void facts_ballast_drop(facts_ballast *ballast, facts_gpu *gpu)
{
    while (ballast->pieces > 0)
        fattn_buffer_destroy(gpu->context, ballast->piece[--ballast->pieces]);
}
