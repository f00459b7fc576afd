"""The commands that are tortured: what stands there before, what must have come out, how a row may differ."""

import dataclasses
import glob
import os
import pathlib
import shlex
import shutil
import sys

from torture_run import SOURCE, rows

OLDER, CUDNN = BUILDS = ("9.20.0-jit-cu13", "9.27.0-jit-cu13")
SMALL = "b=1 h=1 s=16"
CPU = f"'pass=fwd,bwd dtype=f32,bf16 {SMALL} d=16' --device cpu"
CPU_48 = f"'pass=fwd,bwd dtype=f32,bf16,f16 {SMALL} d=16,24,32,40,48,56,64,72' --device cpu"
ALL = f"'pass=fwd,bwd dtype=f32,bf16,f16 {SMALL} d=16,24 engine=all' --device cpu"
CPU_GPU = f"'pass=fwd,bwd dtype=f32,bf16 {SMALL} d=16,24' --device cpu"
RESUMED = (
    f"facts run 'pass=fwd dtype=f32,bf16,f16 {SMALL} d=16,24' --device cpu -j 1 -o {{}}/r.jsonl"
)
FUZZ = "fuzz --cases 10 --seed 3 --where 's.q<=64 & s.kv<=64 & h.q<=4 & b<=2' --device cpu"
TWO = f"--cudnn {OLDER} --device h100-sxm,sm80-spec"  # both read the build's NVRTC
BUILD = f"--cudnn {CUDNN} --device h100-sxm"
FUZZ_ALL = f"{FUZZ} --with engine=all"
CASE = "pass=fwd dtype=bf16 b=1 h=1 s=128"
LOG = shlex.quote(os.path.join(SOURCE, "harness/test/data/import/frontend-1.32-features.log"))
HALF = tuple(
    f"facts run 'pass=fwd dtype={dtype} {SMALL} d=16,24' --device cpu -j 1 -o {{}}/{name}.jsonl"
    for dtype, name in (("f32", "one"), ("bf16", "two"))
)
LIBRARIES = tuple(
    f"cache/facts/cudnn/{CUDNN}/lib/{name}.so.9"
    for name in ("libcudnn", "libcudnn_graph", "libcudnn_engines_runtime_compiled")
)
PYTHON = "python,python3"


@dataclasses.dataclass(frozen=True)
class Scene:
    name: str
    text: str  # the command as a shell takes it; {} is the folder of the point
    program: str = "facts"  # in which the fault is
    record: str = ""  # a record that comes out
    outputs: tuple = ()  # files that must be the same each time
    before: tuple = ()  # commands that make what stands there before
    again: str = ""  # what is added to the command after a kill, so that it finishes the work
    statuses: tuple = (0,)  # of a run without a fault
    same_out: bool = False  # what is printed is the same each time
    cudnn: bool = False  # needs the builds
    slow: bool = False  # not among a few points
    seconds: float = 300
    variables: tuple = ()  # of the environment: names and values, {} as above

    def commands(self, folder, text=None):
        build = os.environ.get("TORTURE_BUILD", "")
        words = shlex.split(text or self.text)
        return [word.replace("{}", folder).replace("{build}", build) for word in words]

    def next(self, folder):
        return self.commands(folder, f"{self.text} {self.again}")

    def environment(self, folder):
        return {name: value.replace("{}", folder) for name, value in self.variables}


def recorded(name, text, **more):
    """A command that writes a record and goes on with it."""
    text = f"facts {text} -j 1 -o {{}}/r.jsonl"
    return Scene(name, text, record="r.jsonl", again="--resume", **more)


def on_gpu(name, text=f"run {CPU_GPU} --timeout 3", program="torture_device", **more):
    return recorded(name, text, program=program, **more)


def on_real_gpu(name, slow):
    text = "run 'pass=fwd,bwd dtype=bf16,f16 b=1 h=1 s=128 d=64' --device 0 --cudnn {build} --timeout 8"
    return on_gpu(name, text, "torture_gpu", statuses=(0, 1), slow=slow)


BISECT = f"bisect '{CASE} d=64' --cudnn {OLDER},{CUDNN} --device h100-sxm"
SCENES = (
    Scene("list", "facts list smoke --json", same_out=True),
    Scene("cudnn list", "facts cudnn list", same_out=True),
    Scene("import", f"facts import {LOG} --json", statuses=(0, 4), same_out=True),
    recorded("run", f"run {CPU}"),
    recorded("run, worker", f"run {CPU}", program="facts-worker"),
    recorded("run of 48", f"run {CPU_48}"),
    recorded("run of 48, worker", f"run {CPU_48}", program="facts-worker"),
    recorded("run of all", f"run {ALL}"),
    recorded("run of all, worker", f"run {ALL}", program="facts-worker"),
    recorded("stopped", f"run {CPU} --timeout 3"),
    recorded("stopped, worker", f"run {CPU} --timeout 3", program="facts-worker"),
    Scene("resume", f"{RESUMED} --resume", record="r.jsonl", before=(RESUMED, "cut r.jsonl")),
    recorded("decide", f"decide '{CASE} d=64,100' {BUILD}", cudnn=True),
    recorded("decide of two", f"decide '{CASE} d=64,100' {TWO}", cudnn=True, slow=True),
    recorded("compile", f"compile '{CASE} d=64,100' {BUILD} --plan-dir {{}}/plans", cudnn=True),
    recorded("bisect", BISECT, cudnn=True, slow=True),
    Scene("shrink", f"facts shrink '{CASE} d=100' --by class {BUILD}", cudnn=True),
    recorded(
        "shrink of a record", f"shrink '{CASE} d=100' --by class {BUILD}", cudnn=True, slow=True
    ),
    recorded(
        "gate",
        f"gate '{CASE} d=64,100' --baseline {OLDER} --candidate {CUDNN} --device h100-sxm",
        statuses=(0, 1),
        cudnn=True,
        slow=True,
    ),
    recorded("fuzz", FUZZ, statuses=(0, 1)),
    recorded("fuzz, worker", FUZZ, program="facts-worker", statuses=(0, 1)),
    recorded("fuzz of all, worker", FUZZ_ALL, program="facts-worker", statuses=(0, 1)),
    Scene(
        "merge, Python",
        "facts merge -o {}/m.jsonl {}/one.jsonl {}/two.jsonl --force",
        program=PYTHON,
        record="m.jsonl",
        before=HALF,
        again="--overwrite",
        same_out=True,
    ),
    Scene(
        "report, Python",
        "facts report {}/one.jsonl -o {}/site",
        program=PYTHON,
        before=HALF[:1],
        outputs=("site/index.html", "site/results.csv"),
    ),
    Scene(
        "cudnn install, Python",
        f"facts cudnn install {CUDNN}",
        program=PYTHON,
        before=("index",),
        outputs=LIBRARIES,
        slow=True,
        variables=(
            ("FACTS_HOME", "{}/home"),
            ("XDG_CACHE_HOME", "{}/cache"),
            ("PIP_FIND_LINKS", "{}/index"),
        ),
    ),
    on_gpu("a GPU that fails"),
    on_gpu("a GPU that hangs"),
    on_gpu("a GPU that hangs at the start", slow=True),
    on_gpu("a GPU that is gone", slow=True),
    on_gpu("a kernel that faults"),
    on_gpu("a kernel that never ends"),
    on_gpu("kernels that fault from then on", slow=True),
    on_gpu("kernels that never end from then on", slow=True),
)


def named(names):
    return [scene for scene in SCENES if scene.name in names]


def make_index(place):
    """A wheel of a build and its lock: as the installer's tests make them."""
    sys.path.insert(0, os.path.join(SOURCE, "ci/test"))
    import wheels

    version = CUDNN.split("-")[0] + ".1"
    index, home = pathlib.Path(place.path("index")), pathlib.Path(place.path("home/ci"))
    index.mkdir()
    home.mkdir(parents=True)
    name = f"nvidia_cudnn_jit_cu13-{version}-py3-none-manylinux_2_27_x86_64.whl"
    sha256 = wheels.make_wheel(index / name, version=version)
    shutil.copy(os.path.join(SOURCE, "ci/cudnn_install.py"), home)
    (home / "cudnn.lock").write_text(f"{wheels.PACKAGE} {version} {sha256} 1234 {name}\n")


def cut(path):
    """As a run leaves its record that was killed in the middle of a line."""
    with open(path, "r+b") as file:
        lines = file.read().splitlines(keepends=True)
        half = len(lines) // 2
        file.seek(0)
        file.truncate()
        file.write(b"".join(lines[:half]) + lines[half][:20])


def prepare(scene, place):
    """False: what has to stand there before could not be made."""
    for text in scene.before:
        if text == "index":
            make_index(place)
        elif text.startswith("cut "):
            cut(place.path(text[4:]))
        elif place.run(scene.commands(place.folder, text)).status != 0:
            return False
    return True


def produced(scene, place, ended):
    """What a run without a fault always gives: the rows, the files, the text."""
    paths = [place.path(name) for name in scene.outputs]
    out = ended.out
    # No terminal gets to see the second folder's own name.
    for said in (place.folder, place.folder.replace("\u202e", "\ufffd")):
        out = out.replace(said.encode(), b"{}")
    found, bad, complete = rows(place.path(scene.record)) if scene.record else ([], 0, False)
    return {
        "rows": found,
        "files": [
            *(os.path.getsize(path) > 0 if os.path.exists(path) else None for path in paths),
            len(glob.glob(place.path("plans", "*.plan"))),
        ],
        "out": out if scene.same_out else b"",
        "complete": complete,
        "bad": 0 if scene.before and "cut" in scene.before[-1] else bad,
    }
