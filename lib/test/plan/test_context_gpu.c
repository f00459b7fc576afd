/* A GPU whose driver fails one call while a context is made. The driver is a table of this file;
 * cuDNN is real, and has the null driver. */
#include "core/context.h"

#include "gpu/gpu_driver.h"
#include "support/described_h100.h"

#define UNKNOWN_ERROR 999

static int calls, fails_at;

static int step(void)
{
    return ++calls == fails_at ? UNKNOWN_ERROR : 0;
}

static int init(unsigned flags)
{
    (void)flags;
    return step();
}

static int give_number(int *out)
{
    *out = 1;
    return step();
}

static int device_get(int *out, int ordinal)
{
    *out = ordinal;
    return step();
}

static int device_name(char *out, int capacity, int device)
{
    snprintf(out, (size_t)capacity, "GPU %d", device);
    return step();
}

static int device_uuid(gpu_uuid *out, int device)
{
    memset(out, device, sizeof *out);
    return step();
}

static int device_attribute(int *out, int attribute, int device)
{
    (void)attribute;
    *out = 9 + device;
    return step();
}

static int primary_retain(struct CUctx_st **out, int device)
{
    static int context;
    (void)device;
    *out = (struct CUctx_st *)(void *)&context;
    return step();
}

static int primary_release(int device)
{
    (void)device;
    return 0;
}

static int primary_state(int device, unsigned *flags, int *active)
{
    (void)device;
    *flags = 0;
    *active = 1;
    return 0;
}

static int context_set(struct CUctx_st *context)
{
    (void)context;
    return step();
}

static int context_get(struct CUctx_st **out)
{
    *out = NULL;
    return 0;
}

static int context_id(struct CUctx_st *context, unsigned long long *out)
{
    (void)context;
    *out = 1;
    return step();
}

static int error_word(int result, const char **out)
{
    (void)result;
    *out = "an error of the test";
    return 0;
}

static const gpu_driver table = {
    .init = init,
    .driver_version = give_number,
    .error_name = error_word,
    .error_string = error_word,
    .device_get = device_get,
    .device_count = give_number,
    .device_name = device_name,
    .device_uuid = device_uuid,
    .device_attribute = device_attribute,
    .primary_retain = primary_retain,
    .primary_release = primary_release,
    .primary_state = primary_state,
    .context_set = context_set,
    .context_get = context_get,
    .context_id = context_id,
};

const gpu_driver *__real_gpu_driver_of(void *library, char error[256]);
const gpu_driver *__wrap_gpu_driver_of(void *library, char error[256]);
const gpu_driver *__wrap_gpu_driver_of(void *library, char error[256])
{
    return fails_at ? &table : __real_gpu_driver_of(library, error);
}

/* A GPU that is half known would be taken for another one. Behind these calls cuDNN itself refuses
 * the null driver. */
Test(context_gpu, a_driver_that_fails_a_call_is_refused)
{
    enum { NEEDED = 12 }; /* from init to the unique name */
    fattn_context_options options = h100_options();
    options.device_kind = FATTN_DEVICE_GPU;
    options.device_json = NULL;
    for (fails_at = 1; fails_at <= NEEDED + 1; fails_at++) {
        fattn_context *context;
        calls = 0;
        cr_expect_neq(fattn_context_create(&context, &options), FATTN_OK, "call %d", fails_at);
        const bool named = strstr(fattn_last_error(), "an error of the test") != NULL;
        cr_expect_eq(named, fails_at <= NEEDED, "call %d: %s", fails_at, fattn_last_error());
        fattn_context_destroy(context);
    }
}
