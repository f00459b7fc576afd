#include "handles.h"

#include "core/error.h"

static fattn_status add(fattn__handles *handles, const fattn__cudnn *api)
{
    fattn__handle handle = NULL;
    int status = api->cudnnCreate(&handle);
    if (status != DNN_STATUS_SUCCESS)
        return fattn__fail(FATTN_ENVIRONMENT, "cudnnCreate: %s",
                           fattn__cudnn_status_name(api, status));
    fattn__handle_slot *slot = &handles->at[handles->count++]; /* zero from the beginning */
    slot->handle = handle;
    return FATTN_OK;
}

fattn_status fattn__handles_init(fattn__handles *handles, const fattn__cudnn *api)
{
    handles->count = 0;
    pthread_mutex_init(&handles->lock, NULL);
    pthread_cond_init(&handles->returned, NULL);
    return add(handles, api);
}

/* A free slot, by preference one that is set to `stream`. */
static fattn__handle_slot *find_free(fattn__handles *handles, const void *stream)
{
    fattn__handle_slot *best = NULL;
    for (int i = 0; i < handles->count; i++) {
        fattn__handle_slot *slot = &handles->at[i];
        if (!slot->busy && (best == NULL || slot->stream == stream))
            best = slot;
        if (best != NULL && best->stream == stream)
            break;
    }
    return best;
}

fattn_status fattn__handles_take(fattn__handles *handles, const fattn__cudnn *api, void *stream,
                                 fattn__handle_slot **out)
{
    fattn_status st = FATTN_OK;
    *out = NULL;
    pthread_mutex_lock(&handles->lock);
    while (st == FATTN_OK && (*out = find_free(handles, stream)) == NULL) {
        if (handles->count < FATTN__MAX_HANDLES)
            st = add(handles, api);
        else
            pthread_cond_wait(&handles->returned, &handles->lock);
    }
    if (*out != NULL)
        (*out)->busy = true;
    pthread_mutex_unlock(&handles->lock);
    if (st == FATTN_OK && (*out)->stream != stream) {
        int status = api->cudnnSetStream((*out)->handle, stream);
        if (status == DNN_STATUS_SUCCESS) {
            (*out)->stream = stream;
        } else {
            fattn__handles_give(handles, *out);
            *out = NULL;
            st = fattn__fail(FATTN_DEVICE_FAULT, "cudnnSetStream: %s",
                             fattn__cudnn_status_name(api, status));
        }
    }
    return st;
}

void fattn__handles_give(fattn__handles *handles, fattn__handle_slot *slot)
{
    if (slot == NULL)
        return;
    pthread_mutex_lock(&handles->lock);
    slot->busy = false;
    pthread_cond_signal(&handles->returned);
    pthread_mutex_unlock(&handles->lock);
}

void fattn__handles_destroy(fattn__handles *handles, const fattn__cudnn *api)
{
    while (handles->count > 0) {
        fattn__handle_slot *slot = &handles->at[--handles->count];
        for (int i = 0; i < FATTN__PACKS; i++)
            if (slot->packs[i].desc != NULL)
                api->cudnnBackendDestroyDescriptor(slot->packs[i].desc);
        api->cudnnDestroy(slot->handle);
    }
    pthread_cond_destroy(&handles->returned);
    pthread_mutex_destroy(&handles->lock);
}
