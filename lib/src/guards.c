#include "cudnn/abi.h"
#include "fattn/fattn.h"

/* FATTN_RULE_INIT and a row of guards.inc. */
#define GUARD(number, ...) { .struct_size = sizeof(fattn_rule), .action = FATTN_DENY, .pass = FATTN_ANY, .engine = (number), __VA_ARGS__ },
static const fattn_rule guards[] = {
#include "guards.inc"
};
#undef GUARD

size_t fattn_guard_count(void)
{
    return sizeof guards / sizeof *guards;
}

const fattn_rule *fattn_guard_at(size_t i)
{
    return i < sizeof guards / sizeof *guards ? &guards[i] : NULL;
}
