#include "golden.h"

int facts_golden(const facts_invocation *call)
{
    (void)call;
    return FACTS_EXIT_BAD_INPUT;
}
