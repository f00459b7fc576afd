"""`facts adopt`: ci/adopt.py, a script of a checkout."""

import runpy
import sys

from . import asking
from .options import ENVIRONMENT, Command, Option

COMMAND = Command(
    "adopt",
    (
        Option(
            "device",
            "D,D",
            "for known failures and gate; default: GPU 0, otherwise described devices",
        ),
        Option("baseline", "V", "default: the newest version of the golden matrix before VERSION"),
        Option("plan", help="gate: also compile what cuDNN accepts"),
        Option("output", "FILE", "write the summary there too", letter="o"),
    ),
    ("facts adopt 9.28.1", "facts adopt 9.28.1 -o summary.md"),
    needs="VERSION",
)


def _adopt(args):
    script = asking.home("ci/adopt.py")
    if not script.exists():
        return COMMAND.fail("ci/adopt.py: not found; run it in a checkout of FACTS", ENVIRONMENT)
    sys.argv = [str(script), *args.given("device", "baseline", "plan", "output"), *args.words]
    runpy.run_path(str(script), run_name="__main__")


def main(argv):
    return COMMAND.main(argv, _adopt)
