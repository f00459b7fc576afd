/* What decides an answer, by its bytes: two files of one name, size and time may differ. */
#ifndef FACTS_CONTENT_H
#define FACTS_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "builds.h"

/* A sum over names and bytes: an order of files does not matter. */
typedef struct facts_content {
    uint64_t sum;
    bool unknown; /* something could not be read */
} facts_content;

void facts_content_text(facts_content *content, const char *what, const char *text, size_t length);
void facts_content_file(facts_content *content, const char *path);
/* Every libcudnn*.so.9 of its folder, and its NVRTC with the builtins. 0.2 s for a gigabyte that is in memory. */
void facts_content_build(facts_content *content, const facts_build *build);

#endif
