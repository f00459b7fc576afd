"""Part kills: SIGKILL at each system call that changes a file, before it or in its middle; then the work is gone on with."""

import collections

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
)
MUST_BE_ZERO = COLUMNS[3:]
NAMES = (
    "run of 48",
    "run of 48, worker",
    "resume",
    "decide",
    "compile",
    "bisect",
    "merge, Python",
    "report, Python",
    "fuzz",
    "gate",
    "shrink of a record",
    "cudnn install, Python",
)
SLOW = ("bisect",)  # not among a few points
CHANGES = "open,write,fsync,rename,close,mkdir"
DEAD = ("crash", "exit_crash", "hang", "inconclusive")


def points(scene, place):
    count = torture_memory.counted(scene, place, Fault(scene.program, CHANGES))
    place.clear()
    writes = torture_memory.counted(scene, place, Fault(scene.program, "write"))
    return [("kill", CHANGES, at) for at in range(1, count + 1)] + [
        ("torn", "write", at) for at in range(1, writes + 1)
    ]


def attempt(scene, place, point, base):
    do, calls, at = point
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    ended = place.run(
        scene.commands(place.folder),
        Fault(scene.program, calls, at, do),
        scene.seconds,
        **scene.environment(place.folder),
    )
    if ended.orphans:
        return "orphan", f"{ended.orphans} processes after 2 s"
    if ended.hung:
        return "hang", ended.err[-300:]
    if scene.program != "facts-worker":
        ended = place.run(
            scene.commands(place.folder, "again" if scene.again else "words"),
            timeout=scene.seconds,
            **scene.environment(place.folder),
        )
        if ended.hung or ended.status not in scene.statuses:
            return "blocked", f"the next run: {ended.status}: {ended.err[-300:]}"
    return compared(scenes.produced(scene, place, ended), base), ended.err[-300:]


def compared(now, base):
    if now == {**base, "out": now["out"], "bad": now["bad"]}:
        return "whole" if now["bad"] <= 1 else "torn"
    asked, due = (collections.Counter(row[:-1] for row in which["rows"]) for which in (now, base))
    if any(count > due[key] for key, count in asked.items() if key in due):
        return "doubled"
    if {row[:3] for row in base["rows"]} - {row[:3] for row in now["rows"]} or now["files"] != base[
        "files"
    ]:
        return "lost"
    changed = [row for row in now["rows"] if row not in base["rows"]]
    if not changed and not now["complete"]:
        return "torn"
    return "worse" if all(row[-1] in DEAD for row in changed) else "bettered"
