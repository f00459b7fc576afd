"""Part kills: SIGKILL at each system call that changes a file, before it or in its middle; then the work is gone on with."""

import collections

import torture_scenes as scenes
from torture_calls import counted
from torture_run import Fault, rows

COLUMNS = "points whole worse lost doubled bettered orphan hang blocked torn status".split()
MUST_BE_ZERO = COLUMNS[3:]
NAMES = (
    *("run of 48", "run of 48, worker", "resume", "decide", "compile", "bisect", "merge, Python"),
    *("report, Python", "fuzz", "gate", "shrink of a record", "cudnn install, Python"),
    *("run of all", "run of all, worker", "fuzz, worker", "fuzz of all, worker", "decide of two"),
)
YESTERDAY = "-86400"
CHANGES = "open,write,fsync,rename,close,mkdir"
DEAD = ("crash", "exit_crash", "hang", "inconclusive")


def points(scene, place):
    found = []
    for do, calls in place.some((("kill", CHANGES), ("torn", "write"))):
        found += [(do, calls, at) for at in range(1, counted(scene, place, calls) + 1)]
        if found and place.few:
            break
    return found


def attempt(scene, place, point, base):
    do, calls, at = point
    return struck(scene, place, Fault(scene.program, calls, at, do), base)


def struck(scene, place, fault, base, allowed=None):
    """One run with the fault, then the next run, whose clock was set back by a day. `allowed`: how a signal may end a command; a kill ends it anyhow, and its worker's death ends none."""
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    ended = place.run_scene(scene, fault)
    if ended.orphans:
        return "orphan", f"{ended.orphans} processes are left"
    if ended.hung:
        return "hang", ended.err[-300:]
    killed = allowed is None
    if ended.status not in scene.statuses and not (killed and scene.program == "facts-worker"):
        if not killed and ended.status not in allowed:
            return "status", f"{ended.status}: {ended.err[-300:]}"
        back = {"LD_PRELOAD": place.injector, "TORTURE_CLOCK": YESTERDAY}
        ended = place.run_scene(scene, again=True, **back)
        if ended.hung or ended.status not in (scene.statuses if killed else (*scene.statuses, 1)):
            return "blocked", f"the next run: {ended.status}: {ended.err[-300:]}"
    now = scenes.produced(scene, place, ended)
    word = compared(now, base, "fuzz" in scene.name)
    if scene.record and word in ("whole", "worse") and joined(place, scene.record) != now["rows"]:
        return "bettered", "facts merge chooses other rows"
    if word == "worse" and ended.status == 0:
        return "status", "a row is worse, and the command ends with 0"
    return word, ended.err[-300:]


def joined(place, record):
    """The rows of a record that count, as the reports say."""
    out = place.path("joined.jsonl")
    place.run(["facts", "merge", "-o", out, "--overwrite", "--force", place.path(record)])
    return rows(out)[0]


def compared(now, base, searches=False):
    """`searches`: of a failure the command makes more cases."""
    if now == {**base, "out": now["out"], "bad": now["bad"]}:
        return "whole" if now["bad"] <= 1 else "torn"
    asked, due = (collections.Counter(row[:-1] for row in which["rows"]) for which in (now, base))
    if any(count > due[key] for key, count in asked.items() if key in due):
        return "doubled"
    missing = {row[:3] for row in base["rows"]} - {row[:3] for row in now["rows"]}
    if missing or now["files"] != base["files"]:
        return "lost"
    changed = [
        row for row in now["rows"] if row not in base["rows"] and (row[:-1] in due or not searches)
    ]
    if not changed and not now["complete"]:
        return "torn"
    return "worse" if all(row[-1] in DEAD for row in changed) else "bettered"
