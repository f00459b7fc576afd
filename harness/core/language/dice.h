/* Numbers that depend on a seed alone: splitmix64. */
#ifndef FACTS_CASE_DICE_H
#define FACTS_CASE_DICE_H

#include <stdint.h>

typedef struct facts_dice {
    uint64_t state;
} facts_dice;

static inline uint64_t facts_dice_roll(facts_dice *dice)
{
    uint64_t z = dice->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t facts_dice_hash(uint64_t x)
{
    return facts_dice_roll(&(facts_dice){ x });
}

/* Dice of their own for each (seed, index, attempt). */
static inline facts_dice facts_dice_make(uint64_t seed, uint64_t index, uint64_t attempt)
{
    facts_dice dice = { seed };
    dice.state = facts_dice_roll(&dice) ^ index;
    dice.state = facts_dice_roll(&dice) ^ attempt;
    return dice;
}

/* 0 .. n-1; n at least 1. */
static inline uint64_t facts_dice_below(facts_dice *dice, uint64_t n)
{
    return facts_dice_roll(dice) % n;
}

#endif
