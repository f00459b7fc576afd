/* NVRTC, with which cuDNN below 9.21 compiles. The library maps it and keeps it mapped. So cuDNN
 * uses this NVRTC, and does not open and close one for every decision. */
#ifndef FATTN_CUDNN_NVRTC_H
#define FATTN_CUDNN_NVRTC_H

#include <limits.h>

#include "fattn/fattn.h"

typedef struct fattn__nvrtc {
    void *library; /* NULL: none was given */
    int version;   /* 13000 for 13.0; 0: none was given */
    char path[PATH_MAX], builtins[PATH_MAX];
} fattn__nvrtc;

/* Maps a libnvrtc and the builtins beside it, globally visible.
 * Returns  FATTN_OK; FATTN_ENVIRONMENT (nothing there, not NVRTC, no builtins). */
fattn_status fattn__nvrtc_map(fattn__nvrtc *out, const char *path);

/* Compiles a kernel that does nothing (20 ms). A failed compilation is cuDNN's failure only if
 * NVRTC itself works. Returns FATTN_OK; FATTN_ENVIRONMENT with NVRTC's own message. */
fattn_status fattn__nvrtc_prove(const fattn__nvrtc *nvrtc);

#endif
