/* Help in every form, from the tables of commands and options: --help, man pages, docs/commands.md,
 * shell completions. */
#include <string.h>

#include "case/language/keys.h"
#include "option_table.h"

#define CASES_NOTE                                                                                 \
    "CASES is a case or a pattern in quotes ('pass=fwd d=64,128 mask=causal'), a suite (`facts "   \
    "list`), or a file."
#define EXIT_NOTE                                                                                  \
    "0 as expected, 1 findings, 2 bad input, 3 not possible here, 4 incomplete, 5 nothing "        \
    "selected, 130 interrupted."

static const char *const examples[FACTS_COMMAND_COUNT][2] = {
    [FACTS_COMMAND_MATRIX] = { "facts matrix", "facts matrix --cudnn 9.20.0,9.27.0 --device "
                                               "h100-sxm,sm100-spec -o matrix" },
    [FACTS_COMMAND_DOCTOR] = { "facts doctor", "facts doctor --json" },
    [FACTS_COMMAND_LIST] = { "facts list", "facts list 'pass=fwd,bwd d=64,128 mask=causal'" },
    [FACTS_COMMAND_KEYS] = { "facts keys", "facts keys mask" },
    [FACTS_COMMAND_DEVICES] = { "facts devices", "facts decide smoke --device sm100-spec" },
    [FACTS_COMMAND_DECIDE] = { "facts decide 'pass=fwd d=256 mask=causal' --cudnn 9.20.0,9.27.0 "
                               "--device h100-sxm",
                               "facts decide 'pass=fwd d=100' --device h100-sxm --explain" },
    [FACTS_COMMAND_COMPILE] = { "facts compile smoke --cudnn 9.27.0 --device h100-sxm --plan-dir "
                                "plans",
                                "facts compile core --cudnn 9.27.0 --device h100-sxm --plan-dir "
                                "plans --shard 1/4" },
    [FACTS_COMMAND_RUN] = { "facts run smoke --cudnn 9.27.0 --device 0 -o r.jsonl",
                            "facts run 'pass=bwd d=64 mask=causal' --device cpu" },
    [FACTS_COMMAND_REPRO] = { "facts repro 'pass=bwd s=192 d=64 fill=neglse' --cudnn 9.20.0 "
                              "--device 0",
                              "facts repro 'pass=bwd s=192 d=64 fill=neglse' --device 0 "
                              "--standalone DIR" },
    [FACTS_COMMAND_SHRINK] = { "facts shrink 'pass=bwd b=4 h=1 s=1 mask=causal guards=off' --cudnn "
                               "9.27.0 --device h100-sxm",
                               "facts shrink 'pass=fwd h=16/4 d=100' --cudnn 9.27.0 --device "
                               "h100-sxm --by reason" },
    [FACTS_COMMAND_BENCH] = { "facts bench --cudnn 9.20.0,9.27.0 --device 0",
                              "facts bench 'pass=fwd s=4096 mask=causal' --cudnn 9.27.0 --with "
                              "engine=auto" },
    [FACTS_COMMAND_GATE] = { "facts gate --baseline 9.20.0 --candidate 9.27.0",
                             "facts gate core --baseline 9.20.0 --candidate 9.27.0 --device "
                             "h100-sxm --markdown" },
    [FACTS_COMMAND_DIFF] = { "facts diff old.jsonl new.jsonl",
                             "facts diff old.jsonl new.jsonl --where pass=bwd --json" },
    [FACTS_COMMAND_BISECT] = { "facts bisect 'pass=fwd d=512' --cudnn 9.8..9.28",
                               "facts bisect 'pass=fwd' --cudnn 9.8..9.28 --device sm120-spec --by "
                               "engines --all" },
    [FACTS_COMMAND_FUZZ] = { "facts fuzz --minutes 10 --cudnn 9.27.0 --device 0 -o fuzz.jsonl",
                             "facts fuzz --cases 300 --where pass=bwd --cudnn 9.27.0 --device "
                             "h100-sxm" },
    [FACTS_COMMAND_IMPORT] = { "facts import fe.log", "facts import fe.log --decide --cudnn "
                                                      "9.20.0,9.27.0 --device h100-sxm" },
    [FACTS_COMMAND_AUDIT] = { "facts audit --cudnn 9.20.0,9.27.0 --device h100-sxm,sm100-spec",
                              "facts audit --cudnn 9.27.0 --device h100-sxm --markdown" },
    [FACTS_COMMAND_EXPECT] = { "facts expect golden check --cudnn 9.27.0",
                               "facts expect golden add --cudnn 9.28.1" },
    [FACTS_COMMAND_KNOWN] = { "facts known list --cudnn 9.27.0",
                              "facts known check --cudnn 9.28.1 --device 0 --write" },
    [FACTS_COMMAND_MERGE] = { "facts merge a.jsonl b.jsonl -o all.jsonl",
                              "facts merge records -o all.jsonl --force" },
    [FACTS_COMMAND_SELF] = { "facts self --quick", "facts self --clean 1000 --seed 7" },
    [FACTS_COMMAND_CALIBRATE] = { "facts calibrate calibrate --cudnn 9.27.0 --device 0",
                                  "facts calibrate --from old.jsonl --from new.jsonl" },
    [FACTS_COMMAND_REPORT] = { "facts report r.jsonl -o page",
                               "facts report r.jsonl --issue 'pass=bwd s=192 d=64'" },
    [FACTS_COMMAND_CUDNN] = { "facts cudnn list", "facts cudnn install 9.27.0" },
    [FACTS_COMMAND_ADOPT] = { "facts adopt 9.28.1", "facts adopt 9.28.1 -o summary.md" },
};

const char *const *facts_options_examples(facts_command command)
{
    return examples[command];
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
    fprintf(out, "\nExamples:\n  %s\n  %s\n", examples[command][0], examples[command][1]);
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

/* ---- docs/commands.md ---- */

/* A cell of a Markdown table, with its bars escaped. */
static void put_cell(FILE *out, const char *text)
{
    for (; *text; text++)
        fprintf(out, *text == '|' ? "\\|" : "%c", *text);
}

static void markdown_options(facts_command command, FILE *out)
{
    bool first = true;
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        char left[64];
        if (!takes(command, &options[i]))
            continue;
        fputs(first ? "\n| option | meaning |\n|---|---|\n| `" : "| `", out);
        put_cell(out, left_of(&options[i], left) + strspn(left, " "));
        fputs("` | ", out);
        put_cell(out, options[i].help);
        fputs(" |\n", out);
        first = false;
    }
}

static void help_markdown(FILE *out)
{
    fputs("# Commands\n\nPrinted by `facts help markdown`; a test compares. `facts COMMAND --help` "
          "prints the same text.\n\n"
          "Exit codes:\n" EXIT_NOTE "\n\n" CASES_NOTE "\n",
          out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        fprintf(out, "\n## facts %s\n\n    facts %s %s\n\n%s\n", commands[c].name, commands[c].name,
                commands[c].rest, commands[c].help);
        markdown_options(c, out);
        fprintf(out, "\n```sh\n%s\n%s\n```\n", examples[c][0], examples[c][1]);
    }
}

/* ---- man pages ---- */

/* roff takes a leading dot or quote as a command, and a bare dash as a hyphen. */
static void put_roff(FILE *out, const char *text)
{
    for (const char *c = text; *c; c++)
        fprintf(out,
                *c == '-'                                ? "\\-"
                : *c == '\\'                             ? "\\e"
                : c == text && (*c == '.' || *c == '\'') ? "\\&%c"
                                                         : "%c",
                *c);
}

static void put_roff_line(FILE *out, const char *before, const char *text)
{
    fputs(before, out);
    put_roff(out, text);
    fputc('\n', out);
}

static void man_option(const option *o, FILE *out)
{
    fputs(".TP\n", out);
    if (o->letter)
        fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    fputs("\\fB\\-\\-", out);
    put_roff(out, o->name);
    fputs("\\fR", out);
    if (o->argument)
        fprintf(out, " \\fI%s\\fR", o->argument);
    put_roff_line(out, "\n", o->help);
}

static void man_one(facts_command command, FILE *out)
{
    const command_words *w = &commands[command];
    fprintf(out, ".TH FACTS-%s 1 \"\" \"FACTS " FACTS_VERSION "\"\n.SH NAME\nfacts\\-%s \\- ",
            w->name, w->name);
    put_roff_line(out, "", w->help);
    fprintf(out, ".SH SYNOPSIS\n\\fBfacts %s\\fR", w->name);
    put_roff_line(out, " ", w->rest);
    bool first = true;
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (takes(command, &options[i])) {
            fputs(first ? ".SH OPTIONS\n" : "", out);
            man_option(&options[i], out);
            first = false;
        }
    if (takes_cases(command))
        put_roff_line(out, ".SH CASES\n", CASES_NOTE);
    fputs(".SH EXAMPLES\n.nf\n", out);
    for (size_t i = 0; i < 2; i++)
        put_roff_line(out, "", examples[command][i]);
    fputs(".fi\n.SH EXIT STATUS\n" EXIT_NOTE "\n.SH SEE ALSO\n.BR facts (1)\n", out);
}

static void man_all(FILE *out)
{
    fputs(".TH FACTS 1 \"\" \"FACTS " FACTS_VERSION
          "\"\n.SH NAME\nfacts \\- test fused attention in cuDNN\n"
          ".SH SYNOPSIS\n\\fBfacts\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]\n.SH COMMANDS\n",
          out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        fprintf(out, ".TP\n\\fBfacts %s\\fR", commands[c].name);
        put_roff_line(out, " ", commands[c].rest);
        put_roff_line(out, "", commands[c].help);
    }
    fputs(".SH EXIT STATUS\n" EXIT_NOTE
          "\n.SH SEE ALSO\n.BR facts\\-gate (1),\n.BR facts\\-decide (1),\n.BR facts\\-run (1)\n",
          out);
}

/* ---- shell completions ---- */

static void print_names(FILE *out, const char *between)
{
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++)
        fprintf(out, "%s%s", c ? between : "", commands[c].name);
}

/* The words that may follow the command's name: "list install lock remove path" of cudnn; empty if
 * the command takes no fixed word. */
static const char *second_words(facts_command command, char out[64])
{
    const char *rest = commands[command].rest;
    size_t n = strspn(rest, "abcdefghijklmnopqrstuvwxyz|");
    snprintf(out, 64, "%.*s", rest[n] && rest[n] != ' ' ? 0 : (int)n, rest);
    for (char *bar = out; (bar = strchr(bar, '|'));)
        *bar = ' ';
    return out;
}

static void complete_bash(FILE *out)
{
    fputs("# bash completion of facts\n_facts()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} "
          "words=\n    if ((COMP_CWORD == 1)); "
          "then\n"
          "        words=\"",
          out);
    print_names(out, " ");
    fputs("\"\n    elif ((COMP_CWORD == 2)) && [[ $cur != -* ]]; then\n        case "
          "${COMP_WORDS[1]} in\n",
          out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        char words[64];
        if (*second_words(c, words))
            fprintf(out, "        %s) words=\"%s\" ;;\n", commands[c].name, words);
    }
    fputs("        esac\n    elif [[ $cur == -* ]]; then\n        case ${COMP_WORDS[1]} in\n", out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        fprintf(out, "        %s) words=\"", commands[c].name);
        for (size_t i = 0; i < OPTION_COUNT; i++)
            if (takes(c, &options[i]))
                fprintf(out, "--%s ", options[i].name);
        fputs("\" ;;\n", out);
    }
    fputs(
        "        esac\n    fi\n    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n}\n"
        "complete -o default -F _facts facts\n",
        out);
}

/* A text inside single quotes; `also` are characters that the shell's completion needs escaped. */
static void put_quoted(FILE *out, const char *text, const char *also)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fprintf(out, strchr(also, *text) ? "\\%c" : "%c", *text);
}

static void complete_zsh(FILE *out)
{
    fputs("#compdef facts\nlocal -a commands=(\n", out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        fprintf(out, "    '%s:", commands[c].name);
        put_quoted(out, commands[c].help, ":");
        fputs("'\n", out);
    }
    fputs(")\nif ((CURRENT == 2)); then\n    _describe command commands\n    return\nfi\ncase "
          "$words[2] in\n",
          out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        fprintf(out, "%s)\n    _arguments", commands[c].name);
        for (size_t i = 0; i < OPTION_COUNT; i++)
            if (takes(c, &options[i])) {
                fprintf(out, " \\\n        '--%s[", options[i].name);
                put_quoted(out, options[i].help, "[]:");
                fprintf(out, "]%s%s%s'", options[i].argument ? ":" : "",
                        options[i].argument ? options[i].argument : "",
                        options[i].argument ? ":_files" : "");
            }
        char words[64];
        if (*second_words(c, words))
            fprintf(out, " \\\n        '2:word:(%s)'", words); /* 1 is the command */
        fputs(" \\\n        '*:file:_files'\n    ;;\n", out);
    }
    fputs("esac\n", out);
}

static void complete_fish(FILE *out)
{
    fputs("function __facts_has\n    set -l words (commandline -opc)\n    test \"$words[2]\" = "
          "$argv[1]\nend\n"
          "function __facts_wants\n    __facts_has $argv[1]; and test (count (commandline -opc)) "
          "-eq 2\nend\n",
          out);
    for (facts_command c = 0; c < FACTS_COMMAND_COUNT; c++) {
        fprintf(out, "complete -c facts -n __fish_use_subcommand -a %s -d '", commands[c].name);
        put_quoted(out, commands[c].help, "");
        fputs("'\n", out);
        char words[64];
        if (*second_words(c, words))
            fprintf(out, "complete -c facts -n '__facts_wants %s' -f -a '%s'\n", commands[c].name,
                    words);
        for (size_t i = 0; i < OPTION_COUNT; i++)
            if (takes(c, &options[i])) {
                fprintf(out, "complete -c facts -n '__facts_has %s' -l %s%s -d '", commands[c].name,
                        options[i].name, options[i].argument ? " -r" : "");
                put_quoted(out, options[i].help, "");
                fputs("'\n", out);
            }
    }
}

int facts_help(int argc, char **argv, FILE *out, FILE *err)
{
    const char *form = argc ? argv[0] : "";
    bool man = strcmp(form, "man") == 0;
    if (!argc)
        facts_options_help(FACTS_COMMAND_COUNT, out);
    else if (strcmp(form, "markdown") == 0)
        help_markdown(out);
    else if (strcmp(form, "bash") == 0)
        complete_bash(out);
    else if (strcmp(form, "zsh") == 0)
        complete_zsh(out);
    else if (strcmp(form, "fish") == 0)
        complete_fish(out);
    else if (strcmp(form, "names") == 0)
        print_names(out, "\n"), fputc('\n', out);
    else if (man && argc == 1)
        man_all(out);
    else {
        facts_command command = facts_command_parse(argv[man], err);
        if (command == FACTS_COMMAND_COUNT)
            return FACTS_EXIT_BAD_INPUT;
        (man ? man_one : help_one)(command, out);
    }
    return FACTS_EXIT_OK;
}
