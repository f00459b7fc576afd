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
    "memory": "each allocation fails once, and from there on for ever",
    "calls": "each system call on files fails once, or does half of its work",
    "kills": "SIGKILL at each system call that changes a file, then the next run",
    "surroundings": "full disks, closed files, limits, strange paths",
    "hostile": "files that were changed, for each command that reads one",
    "signals": "SIGINT, SIGTERM, both twice, SIGSTOP, then the next run",
    "device": "a call of the GPU's driver or a kernel fails, or never returns",
    "gpu": "a call of the GPU's driver or a kernel fails, or never returns, on a real GPU",
}


def arguments():
    parser = argparse.ArgumentParser(prog="ci/torture.sh", description=__doc__)
    parser.add_argument(
        "--part", action="append", choices=sorted(PARTS), help="only this part; may be given again"
    )
    parser.add_argument("--scene", action="append", help="only this scene: list, run, decide ...")
    parser.add_argument(
        "--points",
        type=int,
        default=0,
        help="at most so many points of a scene, drawn by --seed; 0: all",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--programs",
        default=os.path.join(SOURCE, "build/release/bin"),
        help="the folder of facts and facts-worker",
    )
    parser.add_argument("--injector", default=os.path.join(SOURCE, "build/torture/inject.so"))
    parser.add_argument(
        "--state",
        default=os.path.join(SOURCE, "build/torture/state"),
        help="what was done is not done again",
    )
    parser.add_argument(
        "--gpu", metavar="BUILD", help="part gpu too: on GPU 0, with this build of cuDNN"
    )
    parser.add_argument("--fresh", action="store_true", help="forgets what was done")
    parser.add_argument("--done", action="store_true", help="only prints what was done before")
    parser.add_argument("--table", help="writes the table here too")
    parser.add_argument(
        "--show", type=int, default=3, help="so many examples of each fault of ours"
    )
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


def work(options, part, scene, point, base):
    """Runs in a process of its own. Returns the result's word and the end of the output."""
    place = Place(
        os.path.join(options.scratch, str(os.getpid())), options.programs, options.injector
    )
    place.clear()
    return importlib.import_module("torture_" + part).attempt(scene, place, point, base)


def drawn(points, options, salt):
    if not options.points or len(points) <= options.points:
        return points
    return sorted(random.Random(f"{options.seed} {salt}").sample(points, options.points))


def unbroken(options, part, scene):
    """In a process of its own: what the scene gives without a fault, and the points at which there can be one. None: it does not run here."""
    place = Place(
        os.path.join(options.scratch, str(os.getpid())), options.programs, options.injector
    )
    place.clear()
    module = importlib.import_module("torture_" + part)
    if hasattr(module, "base"):
        base = module.base(scene, place)
        return base and (base, module.points(scene, place))
    if not scenes.prepare(scene, place):
        return None
    ended = place.run(
        scene.commands(place.folder), timeout=scene.seconds, **scene.environment(place.folder)
    )
    if ended.status not in scene.statuses:
        print(
            f"{part}, {scene.name}: without a fault it ends with {ended.status}: {ended.err[-500:]}",
            file=sys.stderr,
        )
        return None
    base = scenes.produced(scene, place, ended)
    place.clear()
    return base, module.points(scene, place)


def torture(options, pool, ledger, part, scene):
    module = importlib.import_module("torture_" + part)
    base, points = None, []
    if not options.done:
        found = pool.submit(unbroken, options, part, scene).result()
        if found is None:
            return None
        base, points = found[0], drawn(found[1], options, scene.name)
    count = dict.fromkeys(module.COLUMNS, 0)
    running, prefix = {}, json.dumps([part, scene.name])[:-1] + ","
    for line in [
        line for key, line in ledger.done.items() if key.startswith(prefix)
    ]:  # all that was ever done with these programs
        note(options, module, count, scene, json.loads(line["key"])[2], line["word"], line["text"])
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
    if (word in module.MUST_BE_ZERO or word not in module.COLUMNS) and count[word] <= options.show:
        print(
            f"  {scene.name} {point}: {word}\n    " + text.strip().replace("\n", "\n    "),
            file=sys.stderr,
        )


def table(part, module, counts):
    lines = [
        f"| {part}: {PARTS[part]} | " + " | ".join(module.COLUMNS) + " |",
        "|---|" + "---:|" * len(module.COLUMNS),
    ]
    for name, count in counts:
        cells = (
            [str(count[c]) for c in module.COLUMNS]
            if count
            else ["not asked"] + [""] * (len(module.COLUMNS) - 1)
        )
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def installed(options):
    """Are the builds here that some commands ask?"""
    return all(
        subprocess.run(
            [os.path.join(options.programs, "facts"), "cudnn", "path", build],
            capture_output=True,
            check=False,
        ).returncode
        == 0
        for build in scenes.BUILDS
    )


def main():
    options = arguments()
    os.environ["TORTURE_BUILD"] = (
        os.path.realpath(options.gpu) if os.path.isdir(options.gpu or "") else options.gpu or ""
    )
    options.scratch = tempfile.mkdtemp(prefix="facts-torture-")
    ledger = Ledger(options.state, build_of(options.programs), options.fresh)
    text, worst, cudnn = [], 0, installed(options)
    try:
        with concurrent.futures.ProcessPoolExecutor(
            options.jobs, initializer=adopt_orphans
        ) as pool:
            for part in options.part or [name for name in PARTS if options.gpu or name != "gpu"]:
                module, counts, start = (
                    importlib.import_module("torture_" + part),
                    [],
                    time.monotonic(),
                )
                for scene in getattr(module, "SCENES", None) or scenes.named(module.NAMES):
                    if options.scene and scene.name not in options.scene:
                        continue
                    if (
                        scene.slow or scene.name in getattr(module, "SLOW", ())
                    ) and 0 < options.points < 8:
                        continue
                    if scene.program == "torture_device" and not os.path.exists(
                        os.path.join(options.programs, scene.program)
                    ):
                        print(
                            f"[SKIP] {part}, {scene.name}: the build has no emulated GPU",
                            file=sys.stderr,
                        )
                        continue
                    if scene.cudnn and not cudnn:
                        print(
                            f"[SKIP] {part}, {scene.name}: needs ./facts cudnn install {','.join(scenes.BUILDS)}",
                            file=sys.stderr,
                        )
                        continue
                    counts.append((scene.name, torture(options, pool, ledger, part, scene)))
                    count = counts[-1][1]
                    bad = (
                        count is None
                        or any(count[c] for c in module.MUST_BE_ZERO)
                        or set(count) - set(module.COLUMNS)
                    )
                    worst = max(worst, 1 if bad else 0)
                    print(
                        f"{part}, {scene.name}: {count}, {time.monotonic() - start:.0f} s",
                        file=sys.stderr,
                    )
                text.append(table(part, module, counts))
    finally:
        shutil.rmtree(options.scratch, ignore_errors=True)
    print("\n\n".join(text))
    if options.table:
        with open(options.table, "w", encoding="utf-8") as file:
            file.write("\n\n".join(text) + "\n")
    return worst


if __name__ == "__main__":
    sys.exit(main())
