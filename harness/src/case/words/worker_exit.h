/* How a worker ends where it cannot go on, which says nothing of cuDNN. Known to both sides (PROTOCOL.md). */
#ifndef FACTS_WORKER_EXIT_H
#define FACTS_WORKER_EXIT_H

#define FACTS_WORKER_NO_CHANNEL 74 /* EX_IOERR: a request could not be read, or an answer not be written */
#define FACTS_WORKER_NO_MEMORY 71  /* EX_OSERR */

#endif
