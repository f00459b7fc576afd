#include "guards.h"

#include <stdio.h>

#include "problem.h"

bool fattn__guard_refuses(const fattn_problem *problem, char *text, size_t capacity)
{
    if (problem->guards_off)
        return false;
    fattn__role role = fattn__problem_misaligned(problem);
    if (role == FATTN__ROLE_COUNT)
        return false;
    snprintf(text, capacity,
             "%s_strides: a stride is not a multiple of 16 bytes; cuDNN does not check it, and is then wrong or faults",
             fattn__role_name(role));
    return true;
}
