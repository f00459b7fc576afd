/* The environment variable for rescale= of a case. cuDNN reads it once in each process. */
#ifndef FACTS_RESCALE_H
#define FACTS_RESCALE_H

#define FACTS_RESCALE "CUDNN_RESCALE_THRESHOLD"

#endif
