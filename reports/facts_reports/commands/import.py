"""`facts import` of traces: makes text of them, and starts the program's own `facts import` with it. The program calls this when it sees a trace."""

import os
import sys

from ..read import reader, text, traces
from . import asking
from .options import BAD_INPUT


def main(argv):
    found = [word for word in argv if os.path.isfile(word) and traces.is_trace(word)]
    rest = [word for word in argv if word not in found]
    try:
        if "-" in rest:
            raise reader.InputError("give a trace or standard input, not both")
        said = traces.text_of(found)
    except (reader.InputError, OSError) as error:
        print(text.line(f"facts import: {error}", 500), file=sys.stderr)
        return BAD_INPUT
    return asking.fed(said, "import", *rest, "-")
