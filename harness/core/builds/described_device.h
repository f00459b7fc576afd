/* Descriptions of GPUs: lib/devices/NAME.json, or a file given by its path. "device" is cuDNN's own
 * JSON, which cuDNN reads. "source", "read_with" and "date" say where it was read. Only a
 * description that was read from a product may have the product's name. A bare object of cuDNN is
 * accepted too; its name is then the file's name. */
#ifndef FACTS_DESCRIBED_DEVICE_H
#define FACTS_DESCRIBED_DEVICE_H

#include <stddef.h>

#include "home.h"

typedef struct facts_described_device {
    char name[64];         /* "h100-sxm" */
    char file[FACTS_PATH]; /* where that stands, when it was given by path */
    char source[256];      /* where it was read, for people */
    char products[256];    /* "B200, GB200": names that --device takes */
    char product[64];      /* what a description from specifications is shown as: the product that
                              was asked for, or the first; empty: `name` says it */
    char read_with[128];
    char date[16];
    int sm; /* 90, 100 */
    int multiprocessors;
    char json[4096]; /* the JSON that cuDNN reads, compact */
} facts_described_device;

/* Loads a description. `spec` is a name of lib/devices, a product, or a path (with a slash, or ending in
 * .json). Returns 0; 2 with one line in *message: unknown name (the line lists the known ones),
 * unreadable file, invalid JSON (with the place), missing or impossible field. */
int facts_device_load(facts_described_device *out, const char *spec, facts_error *message);

/* The names in lib/devices, sorted, joined by ", " into out; empty when there are none. */
const char *facts_device_names(char *out, size_t bytes);

#endif
