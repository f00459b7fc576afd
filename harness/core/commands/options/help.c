/* Help from the tables of commands and options: for people, and as JSON for the forms that Python
 * prints. */
#include <string.h>

#include "option_table.h"
#include "record/text.h"

#define CASES_NOTE                                                                                 \
    "CASES is a case or a pattern in quotes ('pass=fwd d=64,128 mask=causal'), a suite (`facts "   \
    "list`), or a file."
#define EXIT_NOTE                                                                                  \
    "0 as expected, 1 findings, 2 bad input, 3 not possible here, 4 incomplete, 5 nothing "        \
    "selected, 130 interrupted."

const char *const *facts_options_examples(facts_command command)
{
    return commands[command].examples[0] ? commands[command].examples : NULL;
}

static bool takes(facts_command command, const option *o)
{
    return o->commands & (1u << command);
}

static bool takes_cases(facts_command command)
{
    return strncmp(commands[command].rest + (commands[command].rest[0] == '['), "CASE", 4) == 0;
}

/* "-o, --output PATH" */
static const char *left_of(const option *o, char out[64])
{
    snprintf(out, 64, "%c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
             o->letter ? "," : " ", o->name, o->argument ? " " : "",
             o->argument ? o->argument : "");
    return out;
}

static void help_one(facts_command command, FILE *out)
{
    fprintf(out, "facts %s %s\n  %s\n\n", commands[command].name, commands[command].rest,
            commands[command].help);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[64];
        if (takes(command, &options[i]))
            fprintf(out, "  %-24s  %s\n", left_of(&options[i], left), options[i].help);
    }
    if (takes_cases(command))
        fputs("\n" CASES_NOTE "\n`facts keys` prints the keys of a case.\n", out);
    fprintf(out, "\nExamples:\n  %s\n  %s\n", commands[command].examples[0],
            commands[command].examples[1]);
}

void facts_options_help(facts_command command, FILE *out)
{
    if (command < FACTS_COMMAND_COUNT) {
        help_one(command, out);
        return;
    }
    fputs("facts: tests fused attention in cuDNN: what is supported, by which engine, and is it "
          "right?\n\n",
          out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", commands[c].name, commands[c].rest);
        fprintf(out, "  facts %-36s %s\n", left, commands[c].help);
    }
    fputs("\n`facts COMMAND --help` lists the options of a command.\nExit: " EXIT_NOTE "\n"
          "\nExamples:\n  facts decide 'pass=fwd d=256 mask=causal' --cudnn 9.27.0 --device "
          "h100-sxm\n"
          "  facts gate --baseline 9.20.0 --candidate 9.27.0\n",
          out);
}

/* Each option is two texts: "-o, --output PATH", and its help. */
static void put_command(facts_text *line, facts_command command)
{
    const command_words *w = &commands[command];
    const char *texts[2 * OPTION_COUNT];
    char lefts[OPTION_COUNT][64];
    size_t n = 0;
    facts_text_puts(line, "{");
    facts_text_member(line, "name", w->name);
    facts_text_member(line, "rest", w->rest);
    facts_text_member(line, "help", w->help);
    for (size_t i = 0; i < OPTION_COUNT && w->examples[0]; i++)
        if (takes(command, &options[i])) {
            left_of(&options[i], lefts[i]);
            texts[n++] = lefts[i] + strspn(lefts[i], " ");
            texts[n++] = options[i].help;
        }
    facts_text_strings(line, "options", texts, n);
    facts_text_strings(line, "examples", w->examples, w->examples[0] ? 2 : 0);
    facts_text_close(line);
}

void facts_options_json(FILE *out)
{
    facts_text line = { 0 };
    facts_text_puts(&line, "{");
    facts_text_member(&line, "cases", CASES_NOTE);
    facts_text_member(&line, "exit", EXIT_NOTE);
    facts_text_close(&line);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        facts_text_puts(&line, "\n");
        put_command(&line, c);
    }
    fprintf(out, "%s\n", line.data);
    facts_text_free(&line);
}
