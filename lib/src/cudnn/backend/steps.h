/* Steps that make one descriptor outside of a graph. After the first failure the status stays, and
 * later steps do nothing. */
#ifndef FATTN_CUDNN_STEPS_H
#define FATTN_CUDNN_STEPS_H

#include "api.h"

typedef struct fattn__steps {
    const fattn__cudnn *api;
    int status; /* cuDNN's status; 0: no failure */
} fattn__steps;

static inline void fattn__step_create(fattn__steps *s, int type, fattn__desc *out)
{
    if (s->status == DNN_STATUS_SUCCESS)
        s->status = s->api->cudnnBackendCreateDescriptor(type, out);
}

static inline void fattn__step_set(fattn__steps *s, fattn__desc desc, int name, int type,
                                   int64_t count, const void *elements)
{
    if (s->status == DNN_STATUS_SUCCESS)
        s->status = s->api->cudnnBackendSetAttribute(desc, name, type, count, elements);
}

/* A NULL value is left out. */
static inline void fattn__step_set_desc(fattn__steps *s, fattn__desc desc, int name,
                                        fattn__desc value)
{
    if (value != NULL)
        fattn__step_set(s, desc, name, DNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static inline void fattn__step_finalize(fattn__steps *s, fattn__desc desc)
{
    if (s->status == DNN_STATUS_SUCCESS)
        s->status = s->api->cudnnBackendFinalize(desc);
}

static inline void fattn__desc_destroy(const fattn__cudnn *api, fattn__desc desc)
{
    if (desc != NULL)
        api->cudnnBackendDestroyDescriptor(desc);
}

#endif
