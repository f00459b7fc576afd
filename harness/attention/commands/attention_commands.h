/* Attention, for core/commands. */
#ifndef FACTS_ATTENTION_COMMANDS_H
#define FACTS_ATTENTION_COMMANDS_H

#include "commands/commands.h"

extern const facts_driver facts_attention;

#endif
