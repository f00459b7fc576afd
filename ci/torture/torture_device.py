"""Part device: the driver of an emulated GPU fails at call N, or never returns, in one process or from then on in all; or a kernel does."""

import contextlib
import json

import torture_scenes as scenes
from torture_calls import counted
from torture_run import Fault

COLUMNS = (
    *("points", "again", "failed", "one hang", "given up", "lost", "doubled", "wrong"),
    *("unnamed", "hangs", "used", "crash", "hang", "orphan", "mute"),
)
MUST_BE_ZERO = COLUMNS[5:]
KERNELS = (
    "a kernel that faults",
    "a kernel that never ends",
    "kernels that fault from then on",
    "kernels that never end from then on",
)
NAMES = (
    *("a GPU that fails", "a GPU that hangs", "a GPU that hangs at the start"),
    *("a GPU that is gone", *KERNELS),
)
# What FACTS or cuDNN calls each error: the driver's name or its description.
WORDS_OF = {
    "700": ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access", "err 700 "),
    "719": ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure", "err 719 "),
    "999": ("CUDA_ERROR_UNKNOWN", "unknown error", "err 999 "),
}
START = 15  # calls until the worker is ready, at least


def points(scene, place):
    if scene.name in KERNELS:
        return kernel_points(scene, place)
    count = counted(scene, place, "driver")
    if scene.name == "a GPU that fails":
        calls = range(1, min(count, 200) + 1)
        return [(code, at, False, "driver") for at in calls for code in WORDS_OF]
    if scene.name == "a GPU that is gone":
        calls = [(at, "driver") for at in (1, START + 25, START + 100)]  # 1: the worker's own proof
        calls += [(at, "launch") for at in (2, 9)]
        return [(do, at, True, which) for at, which in calls for do in (*WORDS_OF, "hang")]
    hangs = range(1, START + 1) if scene.slow else range(START + 1, 51)
    return [("hang", at, False, "driver") for at in hangs if at <= count]


def kernel_points(scene, place):
    """Such a kernel is launched before a run of an engine, or before a launch of FACTS. From then on: only the latter, because the probe of a fresh
    process runs no engine."""
    do, ever = "fault" if "fault" in scene.name else "spin", "from then on" in scene.name
    found = []
    for which in ("launch",) if ever else place.some(("engine", "launch")):
        count = counted(scene, place, which)
        found += [(do, at, ever, which) for at in range(1, min(count, 50) + 1, 5 if ever else 1)]
        if found and place.few:
            break
    return found


def attempt(scene, place, point, base):
    do, at, ever, which = point
    ended = place.run_scene(scene, Fault(scene.program, which, at, do, ever))
    if do in ("fault", "spin") and not ended.fired:
        return "unfired", ended.err[-600:]
    word = judged(scene, place, ended, base, do)
    lost = ever and word in ("failed", "one hang", "given up")
    if lost and asked_on(place.path(scene.record), base) > 2:
        word = "used"  # although a fresh process had seen that it does not work
    return word, ended.err[-600:] + reasons(place.path(scene.record))


def reasons(path):
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        found = [row for row in map(json.loads, file) if "verdict" in row]
        # A right row may have the wrong device.
        found = [row for row in found if row["verdict"] != "pass"] or found
        return "".join(
            f"{row['verdict']} {row['case']} on {row.get('device')}: {json.dumps(row.get('reason'))[:300]}\n"
            for row in found[:4]
        )
    return ""


def asked_on(path, base):
    """The number of cases that a lost GPU was asked; the first one must detect the loss."""
    with open(path, encoding="utf-8") as file:
        starts = sum('"start"' in text[:10] for text in file)
    return starts - sum(row in base["rows"] for row in scenes.rows(path)[0])


def judged(scene, place, ended, base, do):
    if ended.hung:
        return "hang"
    if ended.status < 0 or ended.status >= 128:
        return "crash"
    if ended.orphans:
        return "orphan"
    now = scenes.produced(scene, place, ended)
    # Without the device: a GPU that never answered has no name but its number.
    keys = [row[:2] for row in now["rows"]]
    if len(set(keys)) < len(keys):
        return "doubled"
    if set(keys) != {row[:2] for row in base["rows"]}:
        return "lost"
    changed = [row for row in now["rows"] if row not in base["rows"]]
    verdicts = [row[-1] for row in changed]
    if set(verdicts) - {"inconclusive", "hang", "exec_fail", "crash"}:
        return "wrong"  # a call that failed was not noticed
    if verdicts.count("hang") + verdicts.count("crash") > 1:
        return "hangs"
    if not changed:
        return "again"  # asked again by a fresh worker, or nothing came of it
    if ended.status == 0 or not ended.err.strip() and not ended.out.strip():
        return "mute"
    if not named(place.path(scene.record), changed, do):
        return "unnamed"
    return "one hang" if "hang" in verdicts else "failed" if "exec_fail" in verdicts else "given up"


def named(path, changed, do):
    """Does each of the rows that the fault changed say what the first cause was?"""
    with open(path, encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if "verdict" in row]
    texts = {
        (row["case"], row["build"], row["device"]): json.dumps(row.get("reason", {}))
        for row in rows
    }
    late = ("not ready after", "timed out", "deadline", "too long", "killed", "in time", "hang")
    words = late if do in ("hang", "spin") else WORDS_OF["700" if do == "fault" else do]
    return all(
        row[-1] == "hang" or any(word in texts[row[:3]] for word in words) for row in changed
    )
