"""Injects faults into FACTS, one at each step, and prints what became of each. ci/torture.sh starts it; README.md says what each part does."""

import argparse
import concurrent.futures
import hashlib
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import torture_scenes as scenes
from torture_run import SOURCE, Place, adopt_orphans

PARTS = {
    "memory": "each allocation of a run fails once, and from there on for ever",
    "calls": "each system call on files fails once, or does half of its work",
    "kills": "SIGKILL at each system call that changes a file, then the next run",
    "surroundings": "full disks, closed files, limits, strange paths",
    "signals": "SIGINT, SIGTERM, both twice, SIGSTOP, then the next run",
    "device": "a call of the GPU's driver or a kernel fails, or never returns",
    "valgrind": "memory that is read before it was written",
    "gpu": "a call of the GPU's driver or a kernel fails, or never returns, on a real GPU",
}
BUILT = os.path.join(SOURCE, "build")


def arguments():
    parser = argparse.ArgumentParser(prog="ci/torture.sh", description=__doc__)
    add = parser.add_argument
    add("--part", action="append", choices=sorted(PARTS), help="only this part; again for more")
    add("--scene", action="append", help="only this scene: list, run, decide ...")
    add("--points", type=int, default=0, help="at most so many of a scene, by --seed; 0: all")
    add("--seed", type=int, default=1)
    add("--jobs", type=int, default=2)
    add("--programs", default=f"{BUILT}/release/bin", help="folder of facts and facts-worker")
    add("--injector", default=f"{BUILT}/torture/inject.so")
    add("--state", default=f"{BUILT}/torture/state", help="what was done is not done again")
    add("--gpu", metavar="BUILD", help="part gpu too: on GPU 0, with this build of cuDNN")
    add("--fresh", action="store_true", help="forgets what was done")
    add("--done", action="store_true", help="only prints what was done before")
    add("--table", help="writes the table here too")
    add("--show", type=int, default=3, help="so many examples of each fault of ours")
    return parser.parse_args()


def build_of(programs):
    """The programs' content: another build is tortured from the start."""
    whole = hashlib.sha256()
    for name in ("facts", "facts-worker"):
        with open(os.path.join(programs, name), "rb") as file:
            whole.update(file.read())
    return whole.hexdigest()[:16]


class Ledger:
    """The points that were done, one line each."""

    def __init__(self, folder, build, fresh):
        os.makedirs(folder, exist_ok=True)
        self.path, self.done = os.path.join(folder, build + ".jsonl"), {}
        if fresh and os.path.exists(self.path):
            os.unlink(self.path)
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                for text in file:
                    try:
                        line = json.loads(text)
                        self.done[line["key"]] = line
                    except (ValueError, KeyError):
                        continue
        self.file = open(self.path, "a", encoding="utf-8")

    def add(self, key, word, text):
        self.done[key] = {"key": key, "word": word, "text": text}
        self.file.write(json.dumps(self.done[key]) + "\n")
        self.file.flush()


def module_of(part):
    return importlib.import_module("torture_" + part)


def is_few(options):
    """A test of the day: one fault of each command, and no command that is slow."""
    return 0 < options.points < 8


def own_place(options):
    """An empty folder of this process."""
    folder = os.path.join(options.scratch, str(os.getpid()))
    place = Place(folder, options.programs, options.injector)
    place.clear()
    return place


def work(options, part, scene, point, base):
    """Runs in a process of its own. Returns the result's word and the end of the output."""
    return module_of(part).attempt(scene, own_place(options), point, base)


def drawn(points, options, salt):
    if not options.points or len(points) <= options.points:
        return points
    return sorted(random.Random(f"{options.seed} {salt}").sample(points, options.points))


def unbroken(options, part, scene):
    """In a process of its own: what the scene gives without a fault, and the points at which there can be one. None: it does not run here."""
    place = own_place(options)
    if is_few(options):
        place.few = f"{options.seed} {scene.name}"
    if not scenes.prepare(scene, place):
        return None
    ended = place.run_scene(scene)
    if ended.status not in scene.statuses:
        said = f"without a fault it ends with {ended.status}: {ended.err[-500:]}"
        print(f"{part}, {scene.name}: {said}", file=sys.stderr)
        return None
    base = scenes.produced(scene, place, ended)
    place.clear()
    return base, module_of(part).points(scene, place)


def torture(options, pool, ledger, part, scene):
    module = module_of(part)
    base, points = None, []
    if not options.done:
        found = pool.submit(unbroken, options, part, scene).result()
        if found is None:
            return None
        base, points = found[0], drawn(found[1], options, scene.name)
    count = dict.fromkeys(module.COLUMNS, 0)
    running, prefix = {}, json.dumps([part, scene.name])[:-1] + ","
    # All that was ever done with these programs.
    for key, line in list(ledger.done.items()):
        if key.startswith(prefix):
            note(options, module, count, scene, json.loads(key)[2], line["word"], line["text"])
    for point in points:
        if json.dumps([part, scene.name, point]) not in ledger.done:
            running[pool.submit(work, options, part, scene, point, base)] = point
    for future in concurrent.futures.as_completed(running):
        word, text = future.result()
        ledger.add(json.dumps([part, scene.name, running[future]]), word, text)
        note(options, module, count, scene, running[future], word, text)
    return count


def note(options, module, count, scene, point, word, text):
    count["points"] += 1
    count[word] = count.get(word, 0) + 1
    bad = word in module.MUST_BE_ZERO or word not in module.COLUMNS
    if bad and count[word] <= options.show:
        indented = text.strip().replace("\n", "\n    ")
        print(f"  {scene.name} {point}: {word}\n    {indented}", file=sys.stderr)


def table(part, module, counts):
    rows = [[f"{part}: {PARTS[part]}", *module.COLUMNS]]
    for name, count in counts:
        rows.append([name, *(str(count[c]) if count else "not asked" for c in module.COLUMNS)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|---|" + "---:|" * len(module.COLUMNS), *lines[1:]])


def installed(options, build):
    """Is a build here that some commands ask?"""
    words = [os.path.join(options.programs, "facts"), "cudnn", "path", build]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def is_due(options, part, scene, cudnn):
    """Is the scene asked for, and can it be had here?"""
    slow = scene.slow or scene.name in getattr(module_of(part), "SLOW", ())
    if options.scene and scene.name not in options.scene or slow and is_few(options):
        return False
    missing = ""
    if not os.path.exists(os.path.join(options.programs, scene.program)):
        missing = "the build has no emulated GPU" if scene.program == "torture_device" else ""
    if scene.cudnn and not cudnn:
        missing = f"needs ./facts cudnn install {','.join(scenes.BUILDS)}"
    if missing:
        print(f"[SKIP] {part}, {scene.name}: {missing}", file=sys.stderr)
    return not missing


def is_bad(module, count):
    """Did something come out that may not, or nothing at all?"""
    return not count or any(count[c] for c in module.MUST_BE_ZERO) or set(count) - {*module.COLUMNS}


def main():
    options = arguments()
    build = options.gpu or ""
    os.environ["TORTURE_BUILD"] = os.path.realpath(build) if os.path.isdir(build) else build
    options.scratch = tempfile.mkdtemp(prefix="facts-torture-")
    ledger = Ledger(options.state, build_of(options.programs), options.fresh)
    text, worst = [], 0
    cudnn = all(installed(options, build) for build in scenes.BUILDS)
    pool = concurrent.futures.ProcessPoolExecutor(options.jobs, initializer=adopt_orphans)
    try:
        for part in options.part or [name for name in PARTS if options.gpu or name != "gpu"]:
            module, counts, start = module_of(part), [], time.monotonic()
            for scene in getattr(module, "SCENES", None) or scenes.named(module.NAMES):
                if is_due(options, part, scene, cudnn):
                    count = torture(options, pool, ledger, part, scene)
                    counts.append((scene.name, count))
                    worst = max(worst, 1 if is_bad(module, count) else 0)
                    seconds = time.monotonic() - start
                    print(f"{part}, {scene.name}: {count}, {seconds:.0f} s", file=sys.stderr)
            text.append(table(part, module, counts))
    finally:
        pool.shutdown()
        shutil.rmtree(options.scratch, ignore_errors=True)
    print("\n\n".join(text))
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write("\n\n".join(text) + "\n")
    return worst


if __name__ == "__main__":
    sys.exit(main())
