/* Names of cuDNN's numbers. */
#include <string.h>

#include "cudnn/backend/abi.h"
#include "fattn/fattn.h"

typedef struct named {
    int value;
    const char *name;
} named;

#define AS_ROW(name, value) { value, #name },
static const named knobs[] = { DNN_KNOB_LIST(AS_ROW) DNN_KNOB_SINCE_9_22_LIST(AS_ROW) };
static const named numerical_notes[] = { DNN_NUMERICAL_NOTE_LIST(AS_ROW) };
static const named behavior_notes[] = { DNN_BEHAVIOR_NOTE_LIST(AS_ROW) };
#undef AS_ROW

static const char *find(const named *rows, size_t count, int value, const char *prefix)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].value == value)
            return rows[i].name + strlen(prefix);
    }
    return "?";
}

const char *fattn_knob_name(int32_t type)
{
    return find(knobs, sizeof knobs / sizeof *knobs, type, "KNOB_TYPE_");
}

const char *fattn_numerical_note_name(int32_t bit)
{
    return find(numerical_notes, sizeof numerical_notes / sizeof *numerical_notes, bit,
                "NUMERICAL_NOTE_");
}

const char *fattn_behavior_note_name(int32_t bit)
{
    return find(behavior_notes, sizeof behavior_notes / sizeof *behavior_notes, bit,
                "BEHAVIOR_NOTE_");
}
