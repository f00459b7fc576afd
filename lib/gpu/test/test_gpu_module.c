/* Copies in the order of a stream, on a driver that only pretends. */
#include <criterion/criterion.h>
#include <string.h>

#include <gpu/gpu_module.h>

static int reads_host_pages;

/* What is on its way until somebody waits. */
static struct {
    void *to;
    const void *from;
    size_t bytes;
    int waits;
} pending;

static int context_get(struct CUctx_st **out)
{
    static int here;
    *out = (struct CUctx_st *)(void *)&here;
    return 0;
}

static int context_device(int *out)
{
    *out = 0;
    return 0;
}

static int attribute(int *out, int which, int device)
{
    (void)device;
    *out = which == GPU_READS_HOST_PAGES ? reads_host_pages : 0;
    return 0;
}

static int load(struct CUmod_st **out, const void *image)
{
    (void)image;
    *out = NULL;
    return 0;
}

static int send(gpu_address to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    (void)stream;
    pending.to = (void *)(uintptr_t)to;
    pending.from = from;
    pending.bytes = bytes;
    return 0;
}

static int wait(struct CUstream_st *stream)
{
    (void)stream;
    pending.waits++;
    if (pending.bytes)
        memcpy(pending.to, pending.from, pending.bytes);
    pending.bytes = 0;
    return 0;
}

static gpu_module *pretended(void)
{
    static gpu_driver driver;
    char error[256] = "";
    gpu_module *module;
    const gpu_image image = { (const unsigned char *)"", 1, "pretended" };
    driver = (gpu_driver){ .context_get = context_get,
                           .context_device = context_device,
                           .device_attribute = attribute,
                           .module_load = load,
                           .send = send,
                           .stream_synchronize = wait };
    gpu_driver_replace(&driver);
    cr_assert_eq(gpu_module_create(&module, NULL, &image, NULL, 0, error), 0, "%s", error);
    return module;
}

/* What is sent may be changed where the GPU reads the host's pages; elsewhere nothing waits. */
Test(gpu_module, a_send_waits_only_where_the_gpu_reads_the_hosts_pages)
{
    for (reads_host_pages = 0; reads_host_pages < 2; reads_host_pages++) {
        char error[256] = "", here[] = "first", there[sizeof here] = "";
        gpu_module *module = pretended();
        pending.waits = 0;
        cr_assert_eq(gpu_send(module, there, here, sizeof here, NULL, error), 0);
        cr_expect_eq(pending.waits, reads_host_pages);
        memcpy(here, "other", sizeof here);
        wait(NULL);
        cr_expect_str_eq(there, reads_host_pages ? "first" : "other");
        gpu_module_destroy(module);
    }
}
