/* The oracle on the worker's GPU, as the expectations see it: storages and arrays of O and the gradients at device addresses. */
#ifndef FACTS_ORACLE_GPU_H
#define FACTS_ORACLE_GPU_H

#include "../numbers/expect.h"
#include "gpu.h"

/* Its owner is `gpu`. ENOTSUP: this problem is nothing for it; facts_gpu_error says what. */
facts_oracle facts_oracle_on(facts_gpu *gpu);

#endif
