"""The command line of the commands that are Python: the same rules and messages as those of harness/core/commands/options.

An option stands here once: parser, --help, `facts help markdown`, man page and completion are made from it.
"""

import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

from ..read import predicate, reader, text

OK, FINDINGS, BAD_INPUT, ENVIRONMENT, INCOMPLETE, NOTHING, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130


@dataclass(frozen=True)
class Option:
    name: str
    argument: str = ""  # "": a flag
    help: str = ""  # "": as `facts run` or `facts decide` has it, which get the value
    letter: str = ""
    many: bool = False  # may be given several times
    read: object = None  # makes the value of the text; ValueError says what is allowed

    @property
    def left(self):
        short = f"-{self.letter}, " if self.letter else ""
        return short + f"--{self.name} {self.argument}".rstrip()

    @property
    def key(self):
        return self.name.replace("-", "_")


def options(lines, many=(), **read):
    """Options as --help shows them, one a line with two blanks before its help, which may go on in the next line. A line of
    names: options that the command gives to `facts run` or `facts decide`. `read`: makes the value of an option's text."""
    out = []
    for line in lines.strip("\n").split("\n"):
        name, _, said = line.strip().partition("  ")
        if not name.startswith("-") and line.startswith(" " * 8):
            out[-1] = replace(out[-1], help=f"{out[-1].help} {line.strip()}")
        elif not name.startswith("-"):
            out += [PASSED[one] for one in name.split()]
        else:
            letter, _, name = name.rpartition("--")
            name, _, argument = name.partition(" ")
            reader = read.get(name.replace("-", "_"))
            letter = letter.strip("-, ")
            out.append(Option(name, argument, said.strip(), letter, name in many, reader))
    return tuple(out)


PASSED = {  # without their help: `facts run` and `facts decide` have it
    option.name: option
    for option in options(
        """
    --cudnn V,V
    --device D,D
    --where EXPR
    --with KEY=VALUE
    -o, --output PATH
    --plan
    -j, --jobs N
    --resume
    --overwrite
    --timeout S
    --twice
    --rounds N
    --plan-dir DIR
    --pinned-only
    """
    )
}
HELP = Option("help", help="print this text", letter="h")


class UsageError(Exception):
    """One line for people: a bad command line."""


class Failed(Exception):
    """(exit code, ...): the reason is on standard error already."""


class Words(SimpleNamespace):
    """The parsed command line: `words`, and an attribute for each option (None or False: not given)."""

    def given(self, *names):
        """These options as they were given, to pass them on."""
        out = []
        for name in names:
            value = getattr(self, name.replace("-", "_"))
            if value:
                out += [f"--{name}"] if value is True else [f"--{name}", value]
        return out


class Command:
    """A command that is Python: its options, two examples, and whether it can be given without a word."""

    def __init__(self, name, options, examples, needs="", summary=""):
        self.name, self.options, self.examples = name, (*options, HELP), examples
        self.needs, self.summary = needs, summary

    def fail(self, what, code=BAD_INPUT):
        print(f"facts {self.name}: {text.line(str(what), 2000)}", file=sys.stderr)
        return code

    def _find(self, word):
        """(option, value or None) of --name, --name=value or -x."""
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            found = [option for option in self.options if option.name == name]
            value = value if equals else None
        else:
            found = [option for option in self.options if option.letter == word[1]]
            value = word[2:] or None
        if not found:
            name = word.lstrip("-").partition("=")[0]
            names = [option.name for option in self.options]
            near = predicate.nearest(name, names)
            hint = f"; did you mean --{near}?" if predicate.distance(name, near) <= 2 else ""
            hint += f" (`facts {self.name} --help` lists them)"
            raise UsageError(f'no option "{word[:60]}"{hint}')
        return found[0], value

    def _set(self, out, option, value, rest):
        if not option.argument:
            if value is not None:
                raise UsageError(f"--{option.name} takes no value")
            setattr(out, option.key, True)
            return
        more = option.argument.count(" ")  # "A B": two values
        if (value is None) + more > len(rest):
            raise UsageError(f"--{option.name} needs {option.argument}")
        value = rest.pop(0) if value is None else value
        if more:
            setattr(out, option.key, [value, *(rest.pop(0) for _ in range(more))])
            return
        before = getattr(out, option.key)
        if before is not None and not option.many:
            listed = f"write --{option.name} {before},{value}"
            hint = listed if "," in option.argument else "give it once"
            raise UsageError(f"--{option.name} is given twice; {hint}")
        if not value:
            raise UsageError(f'--{option.name} "": allowed is something that is not empty')
        try:
            value = option.read(value) if option.read else value
        except ValueError as error:
            raise UsageError(f'--{option.name} "{value[:80]}": {error}') from None
        setattr(out, option.key, [*(before or []), value] if option.many else value)

    def parse(self, argv):
        out = Words(words=[])
        for option in self.options:
            setattr(out, option.key, None if option.argument else False)
        rest = list(argv)
        while rest:
            word = rest.pop(0)
            if word == "--":
                out.words += rest
                break
            if word.startswith("-") and word != "-":
                self._set(out, *self._find(word), rest)
            else:
                out.words.append(word)
        if out.help:
            return out
        for name in ("resume", "overwrite"):
            if getattr(out, name, False) and not out.output:
                raise UsageError(f"--{name} needs the record: -o FILE")
        if getattr(out, "resume", False) and out.overwrite:
            raise UsageError("--resume and --overwrite exclude each other")
        if self.needs and not out.words:
            raise UsageError(f"{self.needs} is missing")
        return out

    def main(self, argv, run):
        """Parses, prints help or runs. Returns an exit code."""
        try:
            args = self.parse(argv)
            if args.help:
                from . import help  # asks the program facts

                print(help.text_of(self), end="")
                return OK
            return run(args)
        except UsageError as error:
            return self.fail(error)
        except Failed as failed:
            return failed.args[0]
        except reader.InputError as error:
            return self.fail(error)
        except predicate.PredicateError as error:
            return self.fail(f"--where: {error}")
        except OSError as error:
            if error.filename is None:
                raise
            return self.fail(f"{error.filename}: {error.strerror or error}", ENVIRONMENT)
        except ModuleNotFoundError as error:
            return self.fail(
                f"the Python package '{error.name}' is missing; install it (Debian: python3-jinja2)",
                ENVIRONMENT,
            )


def number(least, most=None):
    """Reads a number above `least`."""

    def read(word):
        try:
            value = float(word)
        except ValueError:
            value = least
        if not value > least or value > (most or value):
            raise ValueError(
                f"allowed is a number above {least}" + (f", at most {most}" if most else "")
            )
        return value

    return read


def folder(word):
    """A folder that is there or can be made."""
    from pathlib import Path

    if Path(word).exists() and not Path(word).is_dir():
        raise ValueError("is no folder; give a folder")
    return word
