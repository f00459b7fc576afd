"""Part valgrind: each command once under valgrind, which sees memory that is read before it was written. With cuDNN its worker is not watched."""

import shutil

import torture_scenes as scenes
from torture_calls import COLUMNS as COLUMNS
from torture_calls import MUST_BE_ZERO as MUST_BE_ZERO
from torture_calls import judged

NAMES = (
    *("list", "cudnn list", "import", "run", "run of all", "resume", "fuzz", "decide of two"),
    *("compile", "bisect", "shrink of a record"),
)
WATCH = ("valgrind", "-q", "--error-exitcode=99", "--trace-children=yes")


def points(scene, place):
    return ["once"] if shutil.which("valgrind") else []


def attempt(scene, place, point, base):
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    skipped = "*python*,*bash" + ",*facts-worker" * scene.cudnn
    watch = (*WATCH, f"--trace-children-skip={skipped}")
    ended = place.run(
        scene.commands(place.folder),
        timeout=scene.seconds,
        prefix=watch,
        **scene.environment(place.folder),
    )
    return judged(scene, place, ended, base), ended.err[-2000:]
