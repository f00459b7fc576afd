/* How a worker ends where it cannot go on, which says nothing of cuDNN. Known to both sides (PROTOCOL.md). */
#ifndef FACTS_WORKER_EXIT_H
#define FACTS_WORKER_EXIT_H

#define FACTS_WORKER_NO_CHANNEL 5 /* EIO: a request could not be read, or an answer not be written */
#define FACTS_WORKER_NO_MEMORY 12 /* ENOMEM */

#endif
