/* Descriptions of GPUs: lib/devices/NAME.json, or a file given by path.
 *
 * A file says what cuDNN is told ("device", cuDNN's own JSON) and where that was read ("source", "read_with", "date"). A product's
 * name may only be carried by a description that was read off that product. A bare object of cuDNN's is accepted too: then its name
 * is its file's.
 */
#ifndef FACTS_DESCRIBED_DEVICE_H
#define FACTS_DESCRIBED_DEVICE_H

#include <stddef.h>

#include "home.h"

typedef struct facts_device {
    char name[64];         /* "h100-sxm" */
    char file[FACTS_PATH]; /* where that stands, when it was given by path */
    char source[256];      /* where it was read, for people */
    char read_with[128];
    char date[16];
    int sm; /* 90, 100 */
    int multiprocessors;
    char json[4096]; /* what cuDNN is told, compact */
} facts_device;

/* `spec`: a name of lib/devices, or a path (it has a slash or ends in .json). Returns 0; 2 with one line in *message: unknown name
 * (the known ones are listed), unreadable file, broken JSON (with its place), missing or impossible field. */
int facts_device_load(facts_device *out, const char *spec, facts_error *message);

/* The names in lib/devices, sorted, joined by ", " into out; empty when there are none. */
const char *facts_device_names(char *out, size_t bytes);

#endif
