"""The commands that are tortured: what stands there before, what must have come out, how a row may differ."""

import dataclasses
import os
import pathlib
import shutil
import sys

from torture_run import SOURCE, rows

CUDNN = "9.27.0-jit-cu13"
BUILDS = ("9.20.0-jit-cu13", CUDNN)
CPU_48 = "pass=fwd,bwd dtype=f32,bf16,f16 b=1 h=1 s=16 d=16,24,32,40,48,56,64,72"
CPU = "pass=fwd,bwd dtype=f32,bf16 b=1 h=1 s=16 d=16"
LOG = os.path.join(SOURCE, "harness/test/data/import/frontend-1.32-features.log")
HALF_SUITE = "pass=fwd dtype=f32,bf16,f16 b=1 h=1 s=16 d=16,24"


@dataclasses.dataclass(frozen=True)
class Scene:
    name: str
    words: tuple  # after `facts`; {} is the folder of the point
    program: str = "facts"  # in which the fault is
    record: str = ""  # a record that comes out
    outputs: tuple = ()  # files that must be the same each time
    before: tuple = ()  # commands that make what stands there before
    again: tuple = ()  # the command after a kill, which must finish the work; empty: the same one
    statuses: tuple = (0,)  # of a run without a fault
    same_out: bool = True  # what is printed is the same each time
    cudnn: bool = False  # needs the build
    seconds: float = 300
    slow: bool = False  # not among a few points
    variables: tuple = ()  # of the environment: names and values, {} as above

    def commands(self, folder, which="words"):
        return [
            word.replace("{}", folder).replace("{build}", os.environ.get("TORTURE_BUILD", ""))
            for word in getattr(self, which)
        ]

    def environment(self, folder):
        return {name: value.replace("{}", folder) for name, value in self.variables}


def run_cpu(name, cases=CPU, **more):
    words = ("facts", "run", cases, "--device", "cpu", "-j", "1", "-o", "{}/r.jsonl")
    return Scene(name, words, record="r.jsonl", again=(*words, "--resume"), same_out=False, **more)


def decide(name, words, **more):
    words = (
        "facts",
        *words,
        "--cudnn",
        CUDNN,
        "--device",
        "h100-sxm",
        "-j",
        "1",
        "-o",
        "{}/r.jsonl",
    )
    return Scene(
        name,
        words,
        record="r.jsonl",
        again=(*words, "--resume"),
        same_out=False,
        cudnn=True,
        **more,
    )


HALF = (
    (
        "facts",
        "run",
        "pass=fwd dtype=f32 b=1 h=1 s=16 d=16,24",
        "--device",
        "cpu",
        "-j",
        "1",
        "-o",
        "{}/one.jsonl",
    ),
    (
        "facts",
        "run",
        "pass=fwd dtype=bf16 b=1 h=1 s=16 d=16,24",
        "--device",
        "cpu",
        "-j",
        "1",
        "-o",
        "{}/two.jsonl",
    ),
)
BROKEN = (
    ("facts", "run", HALF_SUITE, "--device", "cpu", "-j", "1", "-o", "{}/r.jsonl"),
    ("cut", "r.jsonl"),
)

SCENES = (
    Scene("list", ("facts", "list", "smoke", "--json")),
    Scene("known", ("facts", "known", "list")),
    Scene("cudnn list", ("facts", "cudnn", "list")),
    Scene("import", ("facts", "import", LOG, "--json"), statuses=(0, 4)),
    run_cpu("run"),
    run_cpu("run, worker", program="facts-worker"),
    run_cpu("run of 48", CPU_48),
    run_cpu("run of 48, worker", CPU_48, program="facts-worker"),
    Scene(
        "resume",
        ("facts", "run", HALF_SUITE, "--device", "cpu", "-j", "1", "-o", "{}/r.jsonl", "--resume"),
        record="r.jsonl",
        before=BROKEN,
        same_out=False,
    ),
    decide("decide", ("decide", "pass=fwd dtype=bf16 b=1 h=1 s=128 d=64,100")),
    decide(
        "compile",
        ("compile", "pass=fwd dtype=bf16 b=1 h=1 s=128 d=64,100", "--plan-dir", "{}/plans"),
    ),
    Scene(
        "bisect",
        (
            "facts",
            "bisect",
            "pass=fwd dtype=bf16 b=1 h=1 s=128 d=64",
            "--cudnn",
            f"9.20.0-jit-cu13,{CUDNN}",
            "--device",
            "h100-sxm",
            "-o",
            "{}/r.jsonl",
        ),
        record="r.jsonl",
        again=(
            "facts",
            "bisect",
            "pass=fwd dtype=bf16 b=1 h=1 s=128 d=64",
            "--cudnn",
            f"9.20.0-jit-cu13,{CUDNN}",
            "--device",
            "h100-sxm",
            "-o",
            "{}/r.jsonl",
            "--resume",
        ),
        same_out=False,
        cudnn=True,
    ),
    Scene(
        "shrink",
        (
            "facts",
            "shrink",
            "pass=fwd dtype=bf16 b=1 h=1 s=128 d=100",
            "--by",
            "class",
            "--cudnn",
            CUDNN,
            "--device",
            "h100-sxm",
        ),
        same_out=False,
        cudnn=True,
    ),
    Scene(
        "merge",
        ("facts", "merge", "-o", "{}/m.jsonl", "{}/one.jsonl", "{}/two.jsonl", "--force"),
        record="m.jsonl",
        before=HALF,
        again=(
            "facts",
            "merge",
            "-o",
            "{}/m.jsonl",
            "{}/one.jsonl",
            "{}/two.jsonl",
            "--force",
            "--overwrite",
        ),
    ),
    Scene(
        "merge, Python",
        ("facts", "merge", "-o", "{}/m.jsonl", "{}/one.jsonl", "{}/two.jsonl", "--force"),
        program="python,python3",
        record="m.jsonl",
        before=HALF,
        again=(
            "facts",
            "merge",
            "-o",
            "{}/m.jsonl",
            "{}/one.jsonl",
            "{}/two.jsonl",
            "--force",
            "--overwrite",
        ),
    ),
    Scene(
        "report, Python",
        ("facts", "report", "{}/one.jsonl", "-o", "{}/site"),
        program="python,python3",
        before=HALF[:1],
        outputs=("site/index.html", "site/results.csv"),
        same_out=False,
    ),
)


HUNT = ("--device", "cpu", "-j", "1", "-o", "{}/r.jsonl")
GATE = (
    "facts",
    "gate",
    "pass=fwd dtype=bf16 b=1 h=1 s=128 d=64,100",
    "--baseline",
    BUILDS[0],
    "--candidate",
    CUDNN,
    "--device",
    "h100-sxm",
    "-j",
    "1",
    "-o",
    "{}/r.jsonl",
)
SHRINK = (
    "facts",
    "shrink",
    "pass=fwd dtype=bf16 b=1 h=1 s=128 d=100",
    "--by",
    "class",
    "--cudnn",
    CUDNN,
    "--device",
    "h100-sxm",
    "-j",
    "1",
    "-o",
    "{}/r.jsonl",
)
FUZZ = (
    "facts",
    "fuzz",
    "--cases",
    "10",
    "--seed",
    "3",
    "--where",
    "s.q<=64 & s.kv<=64 & h.q<=4 & b<=2",
    *HUNT,
)
LIBRARIES = tuple(
    f"cache/facts/cudnn/{CUDNN}/lib/{name}"
    for name in ("libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9")
)
STOPPED = ("facts", "run", CPU, "--device", "cpu", "-j", "1", "--timeout", "3", "-o", "{}/r.jsonl")
SCENES += (
    Scene("stopped", STOPPED, record="r.jsonl", again=(*STOPPED, "--resume"), same_out=False),
    Scene(
        "stopped, worker",
        STOPPED,
        program="facts-worker",
        record="r.jsonl",
        again=(*STOPPED, "--resume"),
        same_out=False,
    ),
    Scene(
        "fuzz", FUZZ, record="r.jsonl", again=(*FUZZ, "--resume"), same_out=False, statuses=(0, 1)
    ),
    Scene(
        "gate",
        GATE,
        record="r.jsonl",
        again=(*GATE, "--resume"),
        same_out=False,
        statuses=(0, 1),
        cudnn=True,
        slow=True,
    ),
    Scene(
        "shrink of a record",
        SHRINK,
        record="r.jsonl",
        again=(*SHRINK, "--resume"),
        same_out=False,
        cudnn=True,
        slow=True,
    ),
    Scene(
        "cudnn install, Python",
        ("facts", "cudnn", "install", CUDNN),
        program="python,python3",
        before=(("index",),),
        outputs=LIBRARIES,
        same_out=False,
        slow=True,
        variables=(
            ("FACTS_HOME", "{}/home"),
            ("XDG_CACHE_HOME", "{}/cache"),
            ("PIP_FIND_LINKS", "{}/index"),
        ),
    ),
)


def make_index(place):
    """A wheel of a build and its lock: the installer's own tests make them."""
    sys.path.insert(0, os.path.join(SOURCE, "ci/test"))
    import test_cudnn_install as wheels

    version, index, home = (
        CUDNN.split("-")[0] + ".1",
        pathlib.Path(place.path("index")),
        pathlib.Path(place.path("home/ci")),
    )
    index.mkdir()
    home.mkdir(parents=True)
    name = f"nvidia_cudnn_jit_cu13-{version}-py3-none-manylinux_2_27_x86_64.whl"
    sha256 = wheels.make_wheel(index / name, version=version)
    shutil.copy(os.path.join(SOURCE, "ci/cudnn_install.py"), home)
    (home / "cudnn.lock").write_text(f"{wheels.PACKAGE} {version} {sha256} 1234 {name}\n")


def gpu(name, **more):
    words = (
        "facts",
        "run",
        "pass=fwd,bwd dtype=f32,bf16 b=1 h=1 s=16 d=16,24",
        "--device",
        "cpu",
        "-j",
        "1",
        "--timeout",
        "3",
        "-o",
        "{}/r.jsonl",
    )
    return Scene(
        name, words, program="torture_device", record="r.jsonl", same_out=False, seconds=300, **more
    )


SCENES += (
    gpu("a GPU that fails"),
    gpu("a GPU that hangs"),
    gpu("a GPU that hangs at the start", slow=True),
    gpu("a GPU that is gone", slow=True),
    gpu("a kernel that faults"),
    gpu("a kernel that never ends"),
    gpu("kernels that fault from then on", slow=True),
    gpu("kernels that never end from then on", slow=True),
)


def real_gpu(name, **more):
    """Of part gpu: cuDNN itself runs there."""
    words = (
        "facts",
        "run",
        "pass=fwd,bwd dtype=bf16,f16 b=1 h=1 s=128 d=64",
        "--device",
        "0",
        "--cudnn",
        "{build}",
        "-j",
        "1",
        "--timeout",
        "8",
        "-o",
        "{}/r.jsonl",
    )
    return Scene(
        name,
        words,
        program="torture_gpu",
        record="r.jsonl",
        statuses=(0, 1),
        same_out=False,
        seconds=300,
        **more,
    )


def named(names):
    return [scene for scene in SCENES if scene.name in names]


def prepare(scene, place):
    """False: what has to stand there before could not be made."""
    for words in scene.before:
        if words[0] == "index":
            make_index(place)
        elif words[0] == "cut":  # what a run leaves that was killed in the middle of a line
            with open(place.path(words[1]), "r+b") as file:
                lines = file.read().splitlines(keepends=True)
                half = b"".join(lines[: len(lines) // 2])
                file.seek(0)
                file.truncate()
                file.write(half + lines[len(lines) // 2][:20])
        elif place.run([word.replace("{}", place.folder) for word in words]).status != 0:
            return False
    return True


def produced(scene, place, ended):
    """What a run without a fault always gives: the rows, the files, the text."""
    files = []
    for name in scene.outputs:
        path = place.path(name)
        files.append(os.path.getsize(path) > 0 if os.path.exists(path) else None)
    out = ended.out
    for said in (
        place.folder,
        place.folder.replace("\u202e", "\ufffd"),
    ):  # no terminal gets to see the second folder's own name
        out = out.replace(said.encode(), b"{}")
    found, bad, complete = rows(place.path(scene.record)) if scene.record else ([], 0, False)
    return {
        "rows": found,
        "files": files,
        "out": out if scene.same_out else b"",
        "complete": complete,
        "bad": 0 if scene.before and "cut" in scene.before[-1] else bad,
    }
