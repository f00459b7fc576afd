/* facts-worker: asks one build on one device, one request line at a time. See harness/PROTOCOL.md.
 */
#include <stdio.h>

#include "attention_job.h"
#include "worker/answer_requests.h"

#define EXIT_BAD_INPUT 2

int main(int argc, char **argv)
{
    if (argc == 1)
        return facts_worker_run(&facts_attention_worker);
    fprintf(stderr,
            "facts-worker: takes no arguments (%s): it is started by facts and reads requests from "
            "stdin\n",
            argv[1]);
    return EXIT_BAD_INPUT;
}
