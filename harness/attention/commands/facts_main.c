/* facts: the command line of the supervisor. It never loads CUDA or cuDNN; the worker runs kernels. */
#include "attention_commands.h"

int main(int argc, char **argv)
{
    return facts_run(&facts_attention, argc, argv);
}
