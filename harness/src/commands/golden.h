/* The golden support matrix: case group x version range x device, from real answers, as a text that is reviewed. */
#ifndef FACTS_GOLDEN_H
#define FACTS_GOLDEN_H

#include "commands.h"

/* `facts expect golden`: asks --cudnn for --device about suite golden and prints (-o FILE: writes) the matrix, or with `check` compares what it got
 * with cases/golden/support.txt, or with `add` adds versions to that file. Returns an exit code. */
int facts_golden(const facts_invocation *call);

#endif
