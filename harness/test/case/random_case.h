/* Random cases for the tests of the case language: every key, every template, numbers where numbers
 * go. */
#ifndef FACTS_TEST_CASE_RANDOM_H
#define FACTS_TEST_CASE_RANDOM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/keys/keys.h"
#include "case/language/case.h"
#include "case/problem/case_problem.h"

static uint64_t random_state = 1;

static inline uint64_t random_below(uint64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

/* One template of a key, chosen at random, with numbers put in. */
static inline void random_value(facts_key key, char out[128])
{
    char copy[600];
    snprintf(copy, sizeof copy, "%s", facts_keys[key].allowed);
    const char *templates[64];
    size_t count = 0;
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        templates[count++] = word;
    const char *template = templates[random_below(count)];
    size_t used = 0;
    for (; *template != '\0'; template ++) {
        if (*template == 'P' || *template == 'X')
            used += (size_t)sprintf(out + used, "0.%d", (int)random_below(1000));
        else if (*template == 'L' && random_below(3) == 0)
            used += (size_t)sprintf(out + used, "inf");
        else if (*template >= 'A' && *template <= 'Z')
            used += (size_t)sprintf(out + used, "%d", 1 + (int)random_below(600));
        else
            out[used++] = *template;
    }
    out[used] = '\0';
}

static const char *const random_specials[][2] = { { "stride", "gap:q.s.8+k.h.16;broadcast:v.b" },
                                                  { "stride", "size1:wild;gap:4" },
                                                  { "stride", "perm:hbsd;offset:8;misaligned:q.2" },
                                                  { "stride",
                                                    "sum:dv.b+dk.b;broadcast:bias.h+k.b+v.b" },
                                                  { "lens", "256+0+0/12+1+1" },
                                                  { "lens", "7x4" },
                                                  { "want", "sum_exp+stats" },
                                                  { "layout", "bshd_bs2hd" },
                                                  { "layout", "thd_bshd" },
                                                  { "knob", "tile_n:2+tile_m:1" },
                                                  { "slots", "300+400" },
                                                  { "dqkv", "sbhd_sbh2d" },
                                                  { "mask", "causal" } };

/* A text of `most` tokens at most, each key once. */
static inline void random_case_text(char out[2048], size_t most)
{
    bool taken[FACTS_KEY_COUNT] = { false };
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < most; i++) {
        char value[128];
        facts_key key = (facts_key)random_below(FACTS_KEY_COUNT);
        if (random_below(4) == 0) {
            size_t n = random_below(sizeof random_specials / sizeof *random_specials);
            key = facts_key_find(&facts_attention_language, random_specials[n][0],
                                 strlen(random_specials[n][0]));
            snprintf(value, sizeof value, "%s", random_specials[n][1]);
        } else {
            random_value(key, value);
        }
        if (taken[key])
            continue;
        taken[key] = true;
        used += (size_t)sprintf(out + used, "%s=%s ", facts_keys[key].word, value);
    }
}

#endif
