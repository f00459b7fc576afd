/* What core/worker calls for a case of attention (driver/driver.h). */
#ifndef FACTS_ATTENTION_JOB_H
#define FACTS_ATTENTION_JOB_H

#include "driver/driver.h"

extern const facts_worker_driver facts_attention_worker;

#endif
