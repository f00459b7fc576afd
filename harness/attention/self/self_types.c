#include "self_types.h"

#include <string.h>

#include "numbers/judge/calibration.h"

enum { FP32, TABLE, HOPPER };

static const struct {
    const char *word, *dtype;
    int adds, constants;
} types[FACTS_SELF_TYPES] = {
#define AS_ROW(symbol, word, dtype, adds, constants) { word, dtype, adds, constants },
    FACTS_SELF_TYPE_LIST(AS_ROW)
#undef AS_ROW
};

static facts_self_type now;
static bool by_limits;

const char *facts_self_type_word(facts_self_type type)
{
    return types[type].word;
}

const char *facts_self_type_dtype(facts_self_type type)
{
    return types[type].dtype;
}

bool facts_self_type_is_narrow(facts_self_type type)
{
    return type >= FACTS_SELF_E4M3;
}

facts_self_type facts_self_type_find(const char *word)
{
    facts_self_type type = 0;
    while (type < FACTS_SELF_TYPES && strcmp(types[type].word, word) != 0)
        type++;
    return type;
}

bool facts_self_type_has(facts_self_type type, const fattn__fault *fault)
{
    switch (fault->types) {
    case FATTN__TYPES_CAST:
        return type != FACTS_SELF_F32;
    case FATTN__TYPES_F8:
        return facts_self_type_is_narrow(type);
    case FATTN__TYPES_F16:
        return type == FACTS_SELF_F16;
    case FATTN__TYPES_HOPPER:
        return types[type].adds == HOPPER;
    case FATTN__TYPES_FINER:
        return type == FACTS_SELF_F16 || type == FACTS_SELF_E4M3 || type == FACTS_SELF_E4M3_HOPPER;
    case FATTN__TYPES_ANY:
    default:
        return true;
    }
}

fattn__gpu_like facts_self_begin(facts_self_type type)
{
    const fattn__adder fp32 = { 0 };
    now = type;
    return (fattn__gpu_like){ .on = true,
                              .tile = 128,
                              .lazy = facts_self_type_is_narrow(type) ? 4.0F : 0.0F,
                              .adder = types[type].adds == HOPPER ? FATTN__HOPPER_8 : fp32 };
}

void facts_self_limits(bool limits)
{
    by_limits = limits;
}

/* The linker puts it in the place of facts_constants_of (--wrap): the kernel is none of the
 * table's. */
facts_constants __wrap_facts_constants_of(const facts_who *who);
facts_constants __wrap_facts_constants_of(const facts_who *who)
{
    facts_constants out = facts_constants_widest(who->dtype);
    if (types[now].constants == FP32) { /* 16 products at a time, unlike the engines of a GPU */
        out = facts_constants_start(who->dtype);
        out.ua = 0x1p-23;
        out.chunk = 16.0;
        out.cw = out.cl = 1.0;
        out.acc_pv = out.acc_run = 0.0;
    }
    if (by_limits)
        out = facts_constants_limit(who->dtype);
    out.calibrated = true;
    return out;
}
