/* facts-worker-liars: facts-worker over a library that lies on demand. For tests, never shipped.
 *
 *   --liars | --interposed   lists the lies of the library (lib/src/liars), or those between engine and judge (interpose.h)
 *   --liar WORD              tells that lie from then on, and answers requests */
#include "liars/lies.h"

#include <stdlib.h>
#include <string.h>

#include "interpose.h"
#include "worker/answer_requests.h"
#include "worker/attention_job.h"

#define EXIT_BAD_INPUT 2

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--liars") == 0) {
        fattn__liar_print(stdout);
        return EXIT_SUCCESS;
    }
    if (argc == 2 && strcmp(argv[1], "--interposed") == 0) {
        facts_interpose_print(stdout);
        return EXIT_SUCCESS;
    }
    if (argc == 1 || (argc == 3 && strcmp(argv[1], "--liar") == 0 &&
                      (fattn__liar_take(argv[2]) || facts_interpose_take(argv[2]))))
        return facts_worker_run(&facts_attention_worker);
    fprintf(stderr,
            "facts-worker-liars: --liars, --interposed, or --liar and one of their words\n");
    return EXIT_BAD_INPUT;
}
