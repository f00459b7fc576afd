/* cuDNN handles. Two threads may not use one handle at once (cudnnSetStream and cudnnBackendExecute
 * are two steps), and making one takes milliseconds. So each call borrows a handle from its
 * context's pool, preferably one that is already set to its stream. */
#ifndef FATTN_CUDNN_HANDLES_H
#define FATTN_CUDNN_HANDLES_H

#include <pthread.h>
#include <stdbool.h>

#include "api.h"

#define FATTN__MAX_HANDLES 64

/* A finalized variant pack. Making one costs up to a fifth of a launch, and most programs repeat
 * calls with the same addresses. A pack is found by the id of its plan (not its address) and by all
 * addresses in it. */
#define FATTN__PACK_ADDRESSES                                                                      \
    48 /* the caller's addresses, with the workspace; a pack with more is made at every call */
typedef struct fattn__pack {
    fattn__desc desc;
    uint64_t plan; /* id of the plan; 0: none */
    int32_t count, reserved;
    void *addresses[FATTN__PACK_ADDRESSES];
} fattn__pack;

#define FATTN__PACKS 64 /* of one handle; a power of 2 */

typedef struct fattn__handle_slot {
    fattn__handle handle;
    void *stream;
    bool busy;
    fattn__pack packs[FATTN__PACKS]; /* used only by the borrower of the handle */
} fattn__handle_slot;

typedef struct fattn__handles {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    int count;
    fattn__handle_slot at[FATTN__MAX_HANDLES];
} fattn__handles;

/* Makes the first handle; the device's context must be current. Returns FATTN_OK or
 * FATTN_ENVIRONMENT. */
fattn_status fattn__handles_init(fattn__handles *handles, const fattn__cudnn *api);
/* Borrows a handle whose stream is `stream`. Makes one if all are in use; waits if there are
 * FATTN__MAX_HANDLES. Returns FATTN_OK; FATTN_DEVICE_FAULT. */
fattn_status fattn__handles_take(fattn__handles *handles, const fattn__cudnn *api, void *stream,
                                 fattn__handle_slot **out);
void fattn__handles_give(fattn__handles *handles, fattn__handle_slot *slot);
void fattn__handles_destroy(fattn__handles *handles, const fattn__cudnn *api);

#endif
