#include "no_memory.h"

#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "case/words/worker_exit.h"

_Noreturn void facts_no_memory_for_row(void)
{
    static const char text[] = "facts-worker: out of memory\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(FACTS_WORKER_NO_MEMORY);
    _exit(FACTS_WORKER_NO_MEMORY);
}

static void *whole(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        facts_no_memory_for_row();
    return memory;
}

void facts_json_is_whole(void)
{
    json_set_alloc_funcs(whole, free);
}
