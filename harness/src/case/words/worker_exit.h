/* How a worker ends that cannot go on without memory: that says nothing of cuDNN. Known to both sides (PROTOCOL.md). */
#ifndef FACTS_WORKER_EXIT_H
#define FACTS_WORKER_EXIT_H

#define FACTS_WORKER_NO_MEMORY 12 /* ENOMEM */

#endif
