/* For any machine. */
#define WIDTH 4
#define TALL 6
#define WIDE 2
#define KERNELS fattn__kernels_base
#include "cpu_kernels_body.h"
