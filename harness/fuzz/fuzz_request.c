/* Any line may come in on the worker's stdin. */
#include <stdint.h>
#include <stdlib.h>

#include "driver/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    facts_request request;
    facts_target_request target;
    facts_error error = { 0 };
    char *line = malloc(size ? size : 1); /* as long as the line: a reader past the end is seen */
    if (!line)
        return 0;
    for (size_t i = 0; i < size; i++)
        line[i] = (char)data[i];
    facts_request_read(&request, line, size, &error);
    if (facts_target_request_read(&target, line, size, &error))
        facts_target_request_free(&target);
    free(line);
    return 0;
}
