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

/* X(member, arguments, what it does before it is a step) */
/* clang-format off */
#define STEP_LIST(X)                                                                               \
    X(init, (unsigned flags), (void)flags)                                                         \
    X(driver_version, (int *out), *out = 1)                                                        \
    X(device_get, (int *out, int ordinal), *out = ordinal)                                         \
    X(device_count, (int *out), *out = 1)                                                          \
    X(device_name, (char *out, int capacity, int device),                                          \
      snprintf(out, (size_t)capacity, "GPU %d", device))                                           \
    X(device_uuid, (gpu_uuid *out, int device), memset(out, device, sizeof *out))                  \
    X(device_attribute, (int *out, int attribute, int device),                                     \
      ((void)attribute, *out = 9 + device))                                                        \
    X(primary_retain, (struct CUctx_st **out, int device),                                         \
      ((void)device, *out = (struct CUctx_st *)(void *)&calls))                                    \
    X(context_set, (struct CUctx_st *context), (void)context)                                      \
    X(context_id, (struct CUctx_st *context, unsigned long long *out), ((void)context, *out = 1))

/* X(member, arguments, what it does); it never fails */
#define SURE_LIST(X)                                                                               \
    X(primary_release, (int device), (void)device)                                                 \
    X(primary_state, (int device, unsigned *flags, int *active),                                   \
      ((void)device, *flags = 0, *active = 1))                                                     \
    X(context_get, (struct CUctx_st **out), *out = NULL)                                           \
    X(error_name, (int result, const char **out), ((void)result, *out = "an error of the test"))   \
    X(error_string, (int result, const char **out), ((void)result, *out = "an error of the test"))
/* clang-format on */

#define AS_STEP(name, arguments, effect)                                                           \
    static int name arguments                                                                      \
    {                                                                                              \
        effect;                                                                                    \
        return step();                                                                             \
    }
STEP_LIST(AS_STEP)
#define AS_SURE(name, arguments, effect)                                                           \
    static int name arguments                                                                      \
    {                                                                                              \
        effect;                                                                                    \
        return 0;                                                                                  \
    }
SURE_LIST(AS_SURE)

#define AS_MEMBER(name, arguments, effect) .name = name,
static const gpu_driver table = { STEP_LIST(AS_MEMBER) SURE_LIST(AS_MEMBER) };

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
