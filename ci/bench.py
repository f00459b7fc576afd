#!/usr/bin/env python3
"""Times FACTS: ci/bench.py SUBCOMMAND [ARGUMENT...]; `ci/bench.py SUBCOMMAND --help` says what it needs.

    run       a suite with an empty folder of plans, and with a full one, beside cudnn-frontend's own test
    torch     FACTS beside PyTorch on one GPU
    frontend  ragged sequences and paged keys, in FACTS and cudnn-frontend

Exit 2 if there is no such subcommand.
"""

import importlib
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "bench"))
NAMES = ("run", "torch", "frontend")


def main(args):
    """Runs a subcommand; 2 when there is none of this name."""
    if not args or args[0] not in NAMES:
        print(__doc__, file=sys.stderr)
        return 2
    module = importlib.import_module(f"bench_{args[0]}")
    if args[1:] in (["-h"], ["--help"]):
        print(module.__doc__)
        return 0
    return module.main(args[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
