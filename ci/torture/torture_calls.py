"""Part calls: every open, read, write, fsync, rename, close and mkdir of a command fails once, or does half of its work."""

import torture_scenes as scenes
from torture_run import Fault

COLUMNS = "points refused harmless crash hang leak silent blamed mute orphan lost".split()
MUST_BE_ZERO = COLUMNS[3:]
NAMES = (
    *("list", "cudnn list", "import", "run", "run, worker", "resume"),
    *("decide", "compile", "bisect", "shrink", "merge, Python", "report, Python"),
)
SLOW = ("compile",)  # not among a few points
CALLS = ("open", "read", "write", "fsync", "rename", "close", "mkdir")
ERRORS = ("ENOSPC", "EIO", "EINTR")
OURS = ("crash", "hang", "exit_crash", "wrong", "nan")  # no verdict for a fault of FACTS


def counted(scene, place, calls):
    """How many of these calls a run of the scene makes."""
    place.clear()
    scenes.prepare(scene, place)
    return place.run_scene(scene, Fault(scene.program, calls)).calls


def points(scene, place):
    found = []
    for call in place.some(CALLS):
        ways = (*ERRORS, "short") if call in ("read", "write") else ERRORS
        found += [(call, do, at) for at in range(1, counted(scene, place, call) + 1) for do in ways]
        if found and place.few:
            break
    return found


def attempt(scene, place, point, base):
    call, do, at = point
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    do, _, ever = do.partition(" ")
    ended = place.run_scene(scene, Fault(scene.program, call, at, do, bool(ever)))
    word = judged(scene, place, ended, base)
    written = scene.program == "facts" and call in ("fsync", "close") and do in ("EIO", "ENOSPC")
    if word == "harmless" and written:
        word = "silent"  # what was written may not be there tomorrow
    if word == "refused" and call != "memory" and not finishes(scene, place, base):
        word = "lost"
    return word, ended.err[-300:]


def finishes(scene, place, base, same=("rows", "files")):
    """Does the next run, without a fault, give what an unbroken one gives?"""
    if not scene.again:
        return True
    ended = place.run_scene(scene, again=True)
    now = scenes.produced(scene, place, ended)
    return ended.status in scene.statuses and all(now[what] == base[what] for what in same)


def judged(scene, place, ended, base):
    """One word of COLUMNS."""
    if ended.hung:
        return "hang"
    if "LeakSanitizer" in ended.err:
        return "leak"
    sanitized = "Sanitizer" in ended.err or "runtime error" in ended.err
    died = ended.status < 0 or ended.status == 99 or ended.status >= 128 and ended.status != 130
    if sanitized or died:
        return "crash"
    if ended.orphans:
        return "orphan"
    now = scenes.produced(scene, place, ended)
    if any(row[-1] in OURS for row in now["rows"] if row not in base["rows"]):
        return "blamed"  # cuDNN, or an engine, for what was ours
    if ended.status in scene.statuses:
        return "harmless" if now == base else "silent"
    if ended.status in (2, 3, 4) or ended.status == 1 and "python" in scene.program:
        return "refused" if ended.err.strip() or b"inconclusive" in ended.out else "mute"
    return "silent"
