/* A hash of the files that decide an answer. It is of their bytes, because two files of equal name,
 * size and time may differ (digest.h). */
#ifndef FACTS_CONTENT_H
#define FACTS_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "builds.h"

/* A sum over names and bytes; the order of the files does not matter. */
typedef struct facts_content {
    uint64_t sum;
    bool unknown; /* something could not be read */
} facts_content;

void facts_content_text(facts_content *content, const char *what, const char *text, size_t length);
void facts_content_file(facts_content *content, const char *path);
/* Adds every libcudnn*.so.9 of the build's folder, and its NVRTC with the builtins. */
void facts_content_build(facts_content *content, const facts_build *build);

#endif
