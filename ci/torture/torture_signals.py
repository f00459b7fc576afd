"""Part signals: SIGINT and SIGTERM, once and twice, and SIGSTOP, at 50 moments of a command; then the work is gone on with."""

import torture_kills
from torture_calls import CALLS, counted
from torture_kills import COLUMNS as COLUMNS
from torture_kills import MUST_BE_ZERO as MUST_BE_ZERO
from torture_run import Fault

NAMES = (
    *("stopped", "stopped, worker", "run of 48", "decide", "bisect", "merge, Python"),
    *("report, Python", "fuzz", "gate", "shrink of a record", "cudnn install, Python"),
)
SLOW = ("stopped, worker", "decide", "report, Python", "fuzz")  # not among a few points
MOMENTS = 50
ALONE = ("SIGTERM alone",)  # the command gets it, and not what it started
WAYS = ("SIGINT", "SIGTERM", "SIGINT twice", "SIGTERM twice")
INTERRUPTED = (130, 143, -2, -15, 3)  # or ended by the signal before anybody could take it


def points(scene, place):
    count = counted(scene, place, ",".join(CALLS))
    moments = {1 + n * (count - 1) // (MOMENTS - 1) for n in range(MOMENTS)} if count else ()
    ways = ("stop",) if scene.name.startswith("stopped") else WAYS
    ways += ALONE if scene.name.startswith("cudnn install") else ()
    return [(way, at) for at in sorted(moments) for way in ways]


def attempt(scene, place, point, base):
    do, at = point
    # Of a worker that stood too long a row is a hang: exit 1.
    stopped = (1, 3, 4) if scene.program == "facts-worker" else ()
    allowed = stopped if do == "stop" else INTERRUPTED
    fault = Fault(scene.program, ",".join(CALLS), at, do)
    return torture_kills.struck(scene, place, fault, base, allowed)
