"""Part memory: each allocation of a command fails once, and from there on for ever."""

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
)
MUST_BE_ZERO = COLUMNS[3:]
NAMES = (
    "list",
    "known",
    "cudnn list",
    "import",
    "run",
    "run, worker",
    "resume",
    "decide",
    "bisect",
    "shrink",
    "merge",
)
SLOW = ("bisect",)  # not among a few points


def points(scene, place):
    calls = counted(scene, place, Fault(scene.program, "memory"))
    return [(ever, at) for ever in (False, True) for at in range(1, calls + 1)]


def counted(scene, place, fault):
    scenes.prepare(scene, place)
    return place.run(
        scene.commands(place.folder), fault, scene.seconds, **scene.environment(place.folder)
    ).calls


def attempt(scene, place, point, base):
    ever, at = point
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    ended = place.run(
        scene.commands(place.folder), Fault(scene.program, "memory", at, ever=ever), scene.seconds
    )
    return judged(scene, place, ended, base), ended.err[-300:]


def judged(scene, place, ended, base):
    """One word of COLUMNS."""
    if ended.hung:
        return "hang"
    if "LeakSanitizer" in ended.err:
        return "leak"
    if (
        ended.status < 0
        or ended.status >= 128
        and ended.status != 130
        or ended.status == 99
        or "Sanitizer" in ended.err
        or "runtime error" in ended.err
    ):
        return "crash"
    if ended.orphans:
        return "orphan"
    now = scenes.produced(scene, place, ended)
    if any(
        row[-1] in ("crash", "hang", "exit_crash", "wrong", "nan")
        for row in now["rows"]
        if row not in base["rows"]
    ):
        return "blamed"  # cuDNN, or an engine, for what was ours
    if ended.status in scene.statuses:
        return "harmless" if now == base else "silent"
    if ended.status in (2, 3, 4) or ended.status == 1 and "python" in scene.program:
        return "refused" if ended.err.strip() or b"inconclusive" in ended.out else "mute"
    return "silent"
