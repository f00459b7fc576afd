"""The commands of `facts` that are Python: a module for each, named like the command, with its options and examples (COMMAND) and its run()."""

import importlib
import pathlib

_NO_COMMAND = {"__init__", "asking", "options"}
NAMES = {path.stem for path in pathlib.Path(__file__).parent.glob("*.py")} - _NO_COMMAND


def _module(name):
    return importlib.import_module(f".{name}", __package__)


def command(name):
    """The options.Command of a command that is Python."""
    return _module(name).COMMAND


def main(argv):
    """Runs a command; without the name of one, `report`."""
    name, *rest = argv if argv and argv[0] in NAMES else ("report", *argv)
    module = _module(name)
    if hasattr(module, "main"):
        return module.main(rest)
    return module.COMMAND.main(rest, module.run)
