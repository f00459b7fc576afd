"""Part calls: every open, read, write, fsync, rename, close and mkdir of a command fails once, or does half of its work."""

import torture_memory
import torture_scenes as scenes
from torture_run import Fault

COLUMNS = (
    "points",
    "refused",
    "harmless",
    "crash",
    "hang",
    "leak",
    "silent",
    "blamed",
    "mute",
    "orphan",
    "lost",
)
MUST_BE_ZERO = COLUMNS[3:]
NAMES = (
    "list",
    "cudnn list",
    "import",
    "run",
    "run, worker",
    "resume",
    "decide",
    "compile",
    "bisect",
    "shrink",
    "merge, Python",
    "report, Python",
)
SLOW = ("compile", "bisect")  # not among a few points
CALLS = ("open", "read", "write", "fsync", "rename", "close", "mkdir")
ERRORS = ("ENOSPC", "EIO", "EINTR")


def points(scene, place):
    found = []
    for call in CALLS:
        place.clear()
        count = torture_memory.counted(scene, place, Fault(scene.program, call))
        ways = (*ERRORS, "short") if call in ("read", "write") else ERRORS
        found += [(call, do, at) for at in range(1, count + 1) for do in ways]
    return found


def attempt(scene, place, point, base):
    call, do, at = point
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    ended = place.run(
        scene.commands(place.folder), Fault(scene.program, call, at, do), scene.seconds
    )
    word = torture_memory.judged(scene, place, ended, base)
    if (
        word == "harmless"
        and scene.program == "facts"
        and call in ("fsync", "close")
        and do in ("EIO", "ENOSPC")
    ):
        word = "silent"  # what was written may not be there tomorrow
    if word == "refused" and scene.again and not finishes(scene, place, base):
        word = "lost"
    return word, ended.err[-300:]


def finishes(scene, place, base):
    """Does the next run, without a fault, give what an unbroken one gives?"""
    ended = place.run(scene.commands(place.folder, "again"), timeout=scene.seconds)
    now = scenes.produced(scene, place, ended)
    return ended.status in scene.statuses and (now["rows"], now["files"]) == (
        base["rows"],
        base["files"],
    )
