/* The environment variable for rescale= of a case. cuDNN reads it once in each process. The
 * supervisor sets it for a worker that starts, and a worker starts itself again with another one.
 */
#ifndef FACTS_RESCALE_H
#define FACTS_RESCALE_H

#define FACTS_RESCALE "CUDNN_RESCALE_THRESHOLD"

#endif
