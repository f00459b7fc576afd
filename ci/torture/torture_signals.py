"""Part signals: SIGINT and SIGTERM, once and twice, and SIGSTOP, at 50 moments of a command; then the work is gone on with."""

import torture_kills
import torture_memory
import torture_scenes as scenes
from torture_run import Fault

COLUMNS = (
    "points",
    "whole",
    "worse",
    "lost",
    "doubled",
    "bettered",
    "orphan",
    "hang",
    "blocked",
    "torn",
    "status",
)
MUST_BE_ZERO = COLUMNS[3:]
NAMES = (
    "stopped",
    "stopped, worker",
    "run of 48",
    "decide",
    "bisect",
    "merge, Python",
    "report, Python",
    "fuzz",
    "gate",
    "shrink of a record",
    "cudnn install, Python",
)
SLOW = ("stopped, worker", "decide", "bisect", "report, Python", "fuzz")  # not among a few points
MOMENTS = 50
CALLS = "open,read,write,fsync,rename,close,mkdir"
WAYS = ("SIGINT", "SIGTERM", "SIGINT twice", "SIGTERM twice")


def points(scene, place):
    count = torture_memory.counted(scene, place, Fault(scene.program, CALLS))
    moments = (
        sorted({1 + n * (count - 1) // (MOMENTS - 1) for n in range(MOMENTS)}) if count else []
    )
    return [
        (way, at)
        for at in moments
        for way in (("stop",) if scene.name.startswith("stopped") else WAYS)
    ]


def attempt(scene, place, point, base):
    do, at = point
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    more = scene.environment(place.folder)
    ended = place.run(
        scene.commands(place.folder), Fault(scene.program, CALLS, at, do), scene.seconds, **more
    )
    if ended.orphans:
        return "orphan", f"{ended.orphans} processes after 2 s"
    if ended.hung:
        return "hang", ended.err[-300:]
    if ended.status not in (*scene.statuses, *expected(do, scene)):
        return "status", f"{ended.status}: {ended.err[-300:]}"
    if ended.status not in scene.statuses:
        ended = place.run(
            scene.commands(place.folder, "again" if scene.again else "words"),
            timeout=scene.seconds,
            **more,
        )
        if ended.hung or ended.status not in (*scene.statuses, 1):
            return "blocked", f"the next run: {ended.status}: {ended.err[-300:]}"
    return torture_kills.compared(scenes.produced(scene, place, ended), base), ended.err[-300:]


def expected(do, scene):
    """Interrupted, or ended by the signal itself before anybody was there to take it. Of a worker that stood too long a row is a hang: exit 1."""
    return (
        (1, 3, 4)
        if do == "stop" and scene.program == "facts-worker"
        else ()
        if do == "stop"
        else (130, 143, -2, -15, 3)
    )
