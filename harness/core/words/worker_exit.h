/* Exit codes of a worker that cannot continue for a reason outside cuDNN. Supervisor and worker
 * both use them (PROTOCOL.md). */
#ifndef FACTS_WORKER_EXIT_H
#define FACTS_WORKER_EXIT_H

#define FACTS_WORKER_NO_CHANNEL                                                                    \
    74 /* EX_IOERR: the worker could not read a request or write an answer */
#define FACTS_WORKER_NO_MEMORY 71 /* EX_OSERR */

#endif
