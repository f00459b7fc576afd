"""Help of all commands: for people, as a page, as a man page, and as completion for bash.

The program facts prints its table of commands and the options of those that are C (`facts help json`); the rest is Python's own.
"""

import json
import re

from . import asking
from . import command as command_of
from .options import OK


def _table(only=None):
    """(notes, {name: command}), in the order of `facts --help`; a command has name, rest, help, options [(left, help)] and examples. `only`: the one
    command of Python that is filled in."""
    notes, *rows = [json.loads(line) for line in asking.view("help", "json").splitlines()]
    for row in rows:
        row["options"] = list(zip(row["options"][::2], row["options"][1::2]))
    table = {row["name"]: row for row in rows}
    lent = {left: said for name in ("decide", "run") for left, said in table[name]["options"]}
    for name, row in table.items():
        if not row["examples"] and only in (None, name):
            command = command_of(name)
            row["options"] = [(o.left, o.help or lent[o.left]) for o in command.options]
            row["examples"] = command.examples
            row["summary"] = command.summary
    return notes, table


def _takes_cases(row):
    return row["rest"].lstrip("[").startswith("CASE")


def text_of(command):
    """--help of one command."""
    notes, table = _table(command.name)
    row = table[command.name]
    lines = [f"facts {row['name']} {row['rest']}", f"  {row['help']}", ""]
    for left, said in row["options"]:
        lines.append(f"  {left if left[1] != '-' else '    ' + left:24}  {said}")
    if row["summary"]:
        lines += ["", row["summary"]]
    if _takes_cases(row):
        lines += ["", notes["cases"], "`facts keys` prints the keys of a case."]
    lines += ["", "Examples:", *(f"  {example}" for example in row["examples"])]
    return "\n".join(lines) + "\n"


def _cell(said):
    return said.replace("|", "\\|")


def markdown():
    notes, table = _table()
    yield "# Commands\n"
    yield "Printed by `facts help markdown`. `facts COMMAND --help` prints the same text.\n"
    yield f"Exit codes:\n{notes['exit']}\n\n{notes['cases']}"
    for row in table.values():
        yield f"\n## facts {row['name']}\n\n    facts {row['name']} {row['rest']}\n\n{row['help']}"
        if row["options"]:
            yield "\n| option | meaning |\n|---|---|"
        for left, said in row["options"]:
            yield f"| `{_cell(left)}` | {_cell(said)} |"
        yield "\n```sh\n" + "\n".join(row["examples"]) + "\n```"


def _roff(said):
    said = said.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + said if said[:1] in (".", "'") else said


def man():
    notes, table = _table()
    yield '.TH FACTS 1 "" "FACTS"\n.SH NAME\nfacts \\- test fused attention in cuDNN'
    yield ".SH SYNOPSIS\n\\fBfacts\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR...]"
    for row in table.values():
        yield f".SH {_roff(row['name'].upper())}\n\\fBfacts {row['name']}\\fR {_roff(row['rest'])}\n.PP"
        yield _roff(row["help"])
        for left, said in row["options"]:
            yield f".TP\n\\fB{_roff(left)}\\fR\n{_roff(said)}"
        yield ".PP\n.nf\n" + "\n".join(map(_roff, row["examples"])) + "\n.fi"
    yield f".SH CASES\n{_roff(notes['cases'])}\n.SH EXIT STATUS\n{_roff(notes['exit'])}"


def bash():
    _, table = _table()
    yield "# bash completion of facts\n_facts()\n{"
    yield "    local cur=${COMP_WORDS[COMP_CWORD]} words=\n    if ((COMP_CWORD == 1)); then"
    yield f'        words="{" ".join(table)}"'
    yield "    elif ((COMP_CWORD == 2)) && [[ $cur != -* ]]; then\n        case ${COMP_WORDS[1]} in"
    for row in table.values():
        fixed = re.match(r"[a-z|]+(?= |$)", row["rest"])
        if fixed:
            yield f'        {row["name"]}) words="{fixed[0].replace("|", " ")}" ;;'
    yield "        esac\n    elif [[ $cur == -* ]]; then\n        case ${COMP_WORDS[1]} in"
    for row in table.values():
        names = " ".join(re.search(r"--[a-z-]+", left)[0] for left, _ in row["options"])
        yield f'        {row["name"]}) words="{names}" ;;'
    yield '        esac\n    fi\n    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")\n}'
    yield "complete -o default -F _facts facts"


def main(argv):
    print("\n".join({"markdown": markdown, "man": man, "bash": bash}[argv[0]]()))
    return OK
