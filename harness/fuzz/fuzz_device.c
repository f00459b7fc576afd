/* Device descriptions: any bytes end as a description or as one line. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "builds/described_device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char path[64];
    int fd = memfd_create("device", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    facts_described_device device;
    facts_error message = { 0 };
    int status = facts_device_load(&device, path, &message);
    if (status == 0 ? device.sm < 50 || !device.json[0] || !device.name[0]
                    : status != 2 || !message.text[0] || strchr(message.text, '\n'))
        abort();
    (void)close(fd);
    return 0;
}
