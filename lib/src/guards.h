/* What cuDNN accepts and is known to get wrong. Asked after cuDNN has said yes, so that its own refusals stay visible. */
#ifndef FATTN_GUARDS_H
#define FATTN_GUARDS_H

#include "fattn/fattn.h"

/* Does a guard refuse this resolved problem? `text` gets the sentence. Never when the problem's guards are off. */
bool fattn__guard_refuses(const fattn_problem *problem, char *text, size_t capacity);

#define FATTN__GUARD_REMEDY "make every stride a multiple of 16 bytes, or set guards_off to ask cuDNN all the same"

#endif
