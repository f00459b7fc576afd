#include "memory.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { LINE = 64, LINE_DOUBLES = LINE / (int)sizeof(double), PAGE = 4096, LARGE = 1 << 22 };

/* Large pages where there are any: a tenth of a gradient's time went into small ones. */
static void ask_for_large_pages(char *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    char *page = memory + (PAGE - (uintptr_t)memory % PAGE) % PAGE;
    if (bytes > LARGE)
        (void)madvise(page, bytes - PAGE, MADV_HUGEPAGE);
#else
    (void)memory;
    (void)bytes;
#endif
}

/* calloc's zeros come from the system page by page, when a thread first touches one; an aligned
 * allocation's would have to be written. What calloc returned stands before the line that is handed
 * out; it is aligned for a pointer, so there is room for one. */
double *fref__allocate(int64_t doubles)
{
    size_t bytes = (size_t)doubles * sizeof(double) + LINE;
    char *whole = calloc(bytes, 1);
    if (!whole)
        return NULL;
    ask_for_large_pages(whole, bytes);
    void **line = (void **)(void *)(whole + LINE - (uintptr_t)whole % LINE);
    line[-1] = whole;
    return (double *)line;
}

void fref__release(double *memory)
{
    if (memory)
        free(((void **)memory)[-1]);
}

int64_t fref__cut(const fref__part *parts, size_t count, double *base)
{
    int64_t used = 0;
    for (size_t n = 0; n < count; n++) {
        *parts[n].out = base && parts[n].size > 0 ? base + used : NULL;
        used += (parts[n].size + LINE_DOUBLES - 1) / LINE_DOUBLES * LINE_DOUBLES;
    }
    return used;
}
