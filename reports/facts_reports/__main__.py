import contextlib
import os
import sqlite3
import sys

from .read import text


class _Plain:
    """A stream on which nothing is printed that a terminal would obey, whoever wrote it: records, names of files, words of the command line."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, said):
        return self.stream.write(text.clean(said, len(said)))

    def __getattr__(self, name):
        return getattr(self.stream, name)


def _drop_output():
    """What could not be printed is not tried again at the end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


sys.stdout, sys.stderr = _Plain(sys.stdout), _Plain(sys.stderr)
INTERRUPTED = 130
command = sys.argv[1] if sys.argv[1:] and sys.argv[1].isalpha() else "report"
try:
    from . import commands  # here: it takes long enough to be interrupted

    code = commands.main(sys.argv[1:])
    print(end="", flush=True)
except BrokenPipeError:  # the reader of our output has seen enough
    _drop_output()
    code = 0
except KeyboardInterrupt:
    _drop_output()
    code = INTERRUPTED
except (
    OSError,
    MemoryError,
    sqlite3.Error,
) as error:  # a full disk, no memory: nothing that the records say
    _drop_output()
    code = 3
    with contextlib.suppress(OSError):
        print(f"facts {command}: {str(error) or 'out of memory'}", file=sys.stderr, flush=True)
sys.exit(code)
