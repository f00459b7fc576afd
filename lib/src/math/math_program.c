#include "math_program.h"

#include <string.h>

/* The kernels use the numbers of the operations. */
_Static_assert(FATTN_MOD_NEG == 1 && FATTN_MOD_FLOOR == 17 && FATTN_MOD_ADD == 18 &&
                   FATTN_MOD_OR == 33 && FATTN_MOD_NOT == 34 && FATTN_MOD_SELECT == 35 &&
                   FATTN__MOD_SCORE == 64 && FATTN__MOD_TENSOR == 68,
               "the operations of lib/cuda/math_modify.cu are those of score_mod.h");
_Static_assert((int)FATTN__PROGRAM_NODES >= (int)FATTN__MOD_MAX_NODES &&
                   (int)FATTN__PROGRAM_TENSORS == (int)FATTN_MOD_MAX_TENSORS,
               "every recording fits");

/* For each node the last one that reads it; -1: nobody. */
static void find_uses(const fattn__mod_program *program, int32_t place,
                      int last[FATTN__MOD_MAX_NODES])
{
    for (int i = 0; i < FATTN__MOD_MAX_NODES; i++)
        last[i] = -1;
    last[place] = FATTN__MOD_MAX_NODES; /* the result is never given up */
    for (int i = place; i >= 0; i--) {
        const int inputs[3] = { program->at[i].a, program->at[i].b, program->at[i].c };
        for (int k = 0; last[i] >= 0 && k < fattn__mod_inputs(program->at[i].op); k++)
            if (last[inputs[k]] < i)
                last[inputs[k]] = i;
    }
}

static int take_slot(bool taken[FATTN__PROGRAM_SLOTS])
{
    for (int slot = 0; slot < FATTN__PROGRAM_SLOTS; slot++)
        if (!taken[slot]) {
            taken[slot] = true;
            return slot;
        }
    return -1;
}

bool fattn__program_pack(fattn__program *out, const fattn__mod_program *program, int32_t place)
{
    int last[FATTN__MOD_MAX_NODES];
    uint8_t slot_of[FATTN__MOD_MAX_NODES] = { 0 };
    bool taken[FATTN__PROGRAM_SLOTS] = { false };
    memset(out, 0, sizeof *out);
    find_uses(program, place, last);
    for (int i = 0; i <= place; i++) {
        const fattn__mod_node *from = &program->at[i];
        const int count = fattn__mod_inputs(from->op), inputs[3] = { from->a, from->b, from->c };
        if (last[i] < 0)
            continue;
        /* Inputs are read before the result is written, so that it may take the place of one. */
        for (int k = 0; k < 3 && k < count; k++)
            if (last[inputs[k]] == i)
                taken[slot_of[inputs[k]]] = false;
        const int slot = take_slot(taken);
        if (slot < 0)
            return false;
        slot_of[i] = (uint8_t)slot;
        fattn__node *to = &out->node[out->count++];
        *to = (fattn__node){ .op = (uint8_t)from->op, .out = (uint8_t)slot, .a = (uint8_t)from->a };
        if (from->op == FATTN__MOD_CONSTANT)
            to->more.constant = from->constant;
        if (count > 0)
            to->a = slot_of[from->a];
        if (count > 1)
            to->b = slot_of[from->b];
        if (count > 2)
            to->more.c = slot_of[from->c];
    }
    out->result = slot_of[place];
    return true;
}
