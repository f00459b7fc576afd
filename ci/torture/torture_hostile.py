"""Part hostile: each command that reads a file is given that file changed. What the report package and the installer read is read in a fork of this process:
starting them would take longer than the reading."""

import base64
import contextlib
import dataclasses
import functools
import glob
import hashlib
import io
import json
import lzma
import os
import random
import re
import resource
import runpy
import shutil
import signal
import sys
import time
import zipfile

import mutations
import torture_scenes as scenes
from torture_run import SOURCE, reap, rows

COLUMNS = (
    "points",
    "refused",
    "accepted",
    "crash",
    "hang",
    "slow",
    "fat",
    "silent",
    "mute",
    "raw",
    "orphan",
)
MUST_BE_ZERO = COLUMNS[3:]
SECONDS, BYTES = (
    10.0,
    256 << 20,
)  # of the processor, for an input of 1 MB: what takes longer is quadratic
INSTRUMENTED = 10  # times slower, and of a memory that says nothing
RECORDS = (
    "reports/examples/smoke.jsonl.xz",
    "reports/examples/numbers.jsonl.xz",
    "reports/examples/plans.jsonl.xz",
    "harness/fuzz/corpus/fuzz_record/*",
)
LOGS = ("harness/test/data/import/*", "harness/fuzz/corpus/fuzz_import/*")
SPEC = "nvidia-cudnn-jit-cu13==9.20.0.48"
RESUMED = "pass=fwd dtype=f32 b=1 h=1 s=16 d=16"
DIFF = "which target is compared with which|seed.jsonl: no answer in it|nothing to compare"
CASE = "pass=fwd dtype=bf16 b=1 h=1 s=128 d=64"


@dataclasses.dataclass(frozen=True)
class Reader:
    name: str
    words: tuple  # after `facts`; {in} is the input, {} the folder
    seeds: tuple = RECORDS
    python: tuple = ()  # the words of the report package instead
    home: str = ""  # where in the project's folder the input lies
    name_of_input: str = "input.jsonl"
    statuses: tuple = (0, 1, 4, 5)  # beside 2 and 3
    files: tuple = ()  # what people open of what is written
    cudnn: bool = False
    read: str = ""  # what an error says of a file in which nothing is wrong; a pattern
    number: int = 450  # of mutations
    slow: bool = False  # too slow for the short run of the tests
    program: str = "facts"


READERS = (
    Reader(
        "case file, list",
        ("list", "{in}"),
        ("cases/suites/smoke.cases", "cases/suites/*.cases", "harness/fuzz/corpus/fuzz_suite/*"),
        name_of_input="input.cases",
    ),
    Reader(
        "case file, list --where",
        ("list", "{in}", "--json", "--where", "d.qk>64"),
        ("cases/suites/*.cases", "harness/fuzz/corpus/fuzz_case/*"),
        name_of_input="input.cases",
    ),
    Reader(
        "suite of the project",
        ("list", "smoke", "--count"),
        ("cases/suites/smoke.cases",),
        home="cases/suites/smoke.cases",
    ),
    Reader(
        "known file, list regress",
        ("list", "regress", "--count"),
        ("cases/known/b*.known",),
        home="cases/known/zzz.known",
    ),
    Reader(
        "known file, known list",
        ("known", "list"),
        ("cases/known/b*.known",),
        ("known", "list"),
        home="cases/known/zzz.known",
    ),
    Reader(
        "known file, known show",
        ("known", "show", "zzz"),
        ("cases/known/b*.known",),
        ("known", "show", "zzz"),
        home="cases/known/zzz.known",
    ),
    Reader(
        "record, known check",
        ("known", "check", "{in}"),
        python=("known", "check", "{in}"),
    ),
    Reader(
        "record, known propose",
        ("known", "propose", "{in}"),
        python=("known", "propose", "{in}"),
    ),
    Reader(
        "device file",
        ("decide", CASE, "--cudnn", scenes.CUDNN, "--device", "{in}", "-o", "{}/r.jsonl"),
        ("lib/devices/*.json", "harness/fuzz/corpus/fuzz_device/*"),
        name_of_input="input.json",
        cudnn=True,
    ),
    Reader(
        "draws, fuzz",
        ("fuzz", "--draws", "{in}", "--cases", "1", "--device", "none", "-o", "{}/r.jsonl"),
        ("cases/fuzz.cases",),
        name_of_input="input.cases",
        read='--device "none"',
    ),
    Reader(
        "claims, audit",
        ("audit", "pt/*", "--from", "{}/audit.jsonl.xz"),
        ("cases/claims/pytorch.claims",),
        home="cases/claims/pytorch.claims",
        read="is neither a file nor a rule",
        number=200,
    ),
    Reader(
        "record, audit",
        ("audit", "pt/*", "--from", "{in}"),
        ("reports/examples/audit.jsonl.xz",),
        statuses=(0, 1, 3, 4, 5),
        read="audit them separately",
        number=200,
    ),
    Reader(
        "errata, decide",
        ("decide", CASE, "--cudnn", scenes.CUDNN, "--device", "h100-sxm", "-o", "{}/r.jsonl"),
        ("cases/errata.json",),
        home="cases/errata.json",
        cudnn=True,
        number=150,
        read="request: the line is too long",
    ),
    Reader("log, import", ("import", "{in}"), LOGS, name_of_input="input.log"),
    Reader("log, import --json", ("import", "{in}", "--json"), LOGS, name_of_input="input.log"),
    Reader("lock, cudnn list", ("cudnn", "list"), ("ci/cudnn.lock",), home="ci/cudnn.lock"),
    Reader(
        "lock, cudnn install",
        (),
        ("ci/cudnn.lock",),
        home="ci/cudnn.lock",
        statuses=(0,),
        read="==9.20.0.48: .*cudnn.lock|refusing: 0",
    ),
    Reader(
        "wheel, cudnn install",
        (),
        (),
        name_of_input="nvidia_cudnn_jit_cu13-9.20.0.48-py3-none-manylinux_2_27_x86_64.whl",
        statuses=(0,),
    ),
    Reader(
        "record, run --resume",
        ("run", RESUMED, "--device", "cpu", "-j", "1", "--resume", "-o", "{in}"),
        ("{}/good.jsonl",),
    ),
    Reader(
        "record, merge",
        ("merge", "-o", "{}/m.jsonl", "{in}"),
        python=("merge", "-o", "{}/m.jsonl", "{in}"),
    ),
    Reader(
        "record, report",
        ("report", "{in}", "-o", "{}/site"),
        python=("{in}", "-o", "{}/site"),
        files=("site",),
    ),
    Reader(
        "record .xz, report",
        ("report", "{in}", "-o", "{}/site"),
        python=("{in}", "-o", "{}/site"),
        files=("site",),
        name_of_input="input.jsonl.xz",
    ),
    Reader(
        "record .gz, report",
        ("report", "{in}", "-o", "{}/site"),
        python=("{in}", "-o", "{}/site"),
        files=("site",),
        name_of_input="input.jsonl.gz",
    ),
    Reader(
        "record, report --issue",
        ("report", "{in}", "--issue", CASE),
        python=("{in}", "--issue", CASE),
        read="no row has the case",
    ),
    Reader(
        "record, diff",
        ("diff", "{}/seed.jsonl", "{in}"),
        python=("diff", "{}/seed.jsonl", "{in}"),
        read=DIFF,
    ),
    Reader(
        "record, gate",
        (
            "gate",
            "{in}",
            "{}/seed.jsonl",
            "--markdown",
            "--junit",
            "{}/gate.xml",
            "--errata",
            "{}/errata.json",
            "--page",
            "{}/site",
        ),
        python=(
            "gate",
            "--markdown",
            "--junit={}/gate.xml",
            "--errata={}/errata.json",
            "--page={}/site",
            "{in}",
            "{}/seed.jsonl",
        ),
        files=("gate.xml", "errata.json", "site"),
        read=DIFF,
    ),
    Reader(
        "record, gate --json",
        ("gate", "{}/seed.jsonl", "{in}", "--json", "--annotations"),
        python=("gate", "--json", "--annotations", "{}/seed.jsonl", "{in}"),
        read=DIFF,
    ),
    Reader(
        "record, calibrate", ("calibrate", "--from", "{in}"), ("reports/examples/numbers.jsonl.xz",)
    ),
    Reader(
        "plan, decide --plan",
        (
            "decide",
            CASE,
            "--plan",
            "--cudnn",
            scenes.CUDNN,
            "--device",
            "h100-sxm",
            "--plan-dir",
            "{}/plans",
            "-o",
            "{}/r.jsonl",
        ),
        ("{}/plans/*",),
        name_of_input="input.plan",
        cudnn=True,
        number=150,
    ),
    Reader(
        "plan, decide --trust-plans",
        (
            "decide",
            CASE,
            "--plan",
            "--cudnn",
            scenes.CUDNN,
            "--device",
            "h100-sxm",
            "--trust-plans",
            "{}/plans",
            "-o",
            "{}/r.jsonl",
        ),
        ("{}/plans/*",),
        name_of_input="input.plan",
        cudnn=True,
        number=150,
    ),
)
SCENES = READERS


@functools.lru_cache(maxsize=None)
def contents(path):
    """A seed of at most some 20 kB, of whole lines."""
    with (lzma.open if path.endswith(".xz") else open)(path, "rb") as file:
        lines = file.read().splitlines(keepends=True)
    kept = []
    while lines and sum(map(len, kept)) < 12000:
        kept.append(lines.pop(0))
    return b"".join(kept + lines[-1:])


def seeds(reader, place):
    found = [
        path
        for seed in reader.seeds
        for path in sorted(glob.glob(os.path.join(SOURCE, seed.replace("{}", place.folder))))
    ]
    if not found and reader.seeds:
        raise FileNotFoundError(f"{reader.name}: nothing is called {' '.join(reader.seeds)}")
    return found


def base(reader, place):
    """What is there before: a good record, and for plans a folder with one. None: it could not be made."""
    made = place.run(
        (
            "facts",
            "run",
            RESUMED,
            "--device",
            "cpu",
            "-j",
            "1",
            "-o",
            "{}/good.jsonl".replace("{}", place.folder),
        )
    )
    if made.status != 0:
        return None
    with open(place.path("good.jsonl"), "rb") as file:
        found = {"good": file.read().decode()}
    if reader.cudnn:
        words = [
            os.path.join(place.programs, "facts"),
            *(
                word.replace("{in}", "h100-sxm")
                .replace("--trust-plans", "--plan-dir")
                .replace("{}", place.folder)
                for word in reader.words
            ),
        ]
        good = started(place, words, None, environment_of(reader, place, SOURCE), 60)
        if good.status != 0:
            return None
        found["cudnn"] = good.seconds
    if "{}/plans/*" in reader.seeds:
        found["plans"] = {}
        for name in os.listdir(place.path("plans")):
            with open(place.path("plans", name), "rb") as file:
                found["plans"][name] = base64.b64encode(file.read()).decode()
    return found


def points(reader, place):
    return list(range(reader.number))


def linked_home(place, relative):
    """A copy of the project's folder: links, except one file."""
    home, source = place.path("home"), SOURCE
    os.mkdir(home)
    for part in relative.split("/"):
        for name in os.listdir(source):
            if name != part and name not in ("build", ".git"):
                os.symlink(os.path.join(source, name), os.path.join(home, name))
        home, source = os.path.join(home, part), os.path.join(source, part)
        if part != relative.rsplit("/", 1)[-1]:
            os.mkdir(home)
    return home


def good_wheel():
    out, files = (
        io.BytesIO(),
        {
            f"nvidia/cudnn_jit/lib/{name}.so.9": name.encode() * 300
            for name in ("libcudnn", "libcudnn_graph", "libcudnn_engines_runtime_compiled")
        },
    )
    info = "nvidia_cudnn_jit_cu13-9.20.0.48.dist-info"
    files |= {
        "nvidia/cudnn_jit/include/cudnn_version.h": b"#define CUDNN_MAJOR 9\n",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: nvidia-cudnn-jit-cu13\nVersion: 9.20.0.48\n\n",
    }
    hashes = [
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip('=')},{len(data)}\n"
        for name, data in files.items()
    ]
    files[f"{info}/RECORD"] = ("".join(hashes) + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def install(place, path, lock):
    """The installer itself; pip's place is taken by a program that hands over the wheel."""
    os.makedirs(place.path("ci"), exist_ok=True)
    for name in ("cudnn_install.py", "cudnn_lock.py"):
        shutil.copy(os.path.join(SOURCE, "ci", name), place.path("ci"))
    with open(place.path("ci", "cudnn.lock"), "wb") as file:
        file.write(lock)
    with open(place.path("pip"), "w", encoding="utf-8") as file:
        file.write(
            f'#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" != --dest ] || {{ mkdir -p "$2" && cp \'{path}\' "$2"; }}; shift; done\n'
        )
    os.chmod(place.path("pip"), 0o700)
    sys.executable = place.path("pip")
    sys.argv = ["cudnn_install.py", "--cache", place.path("cache"), SPEC]
    runpy.run_path(place.path("ci", "cudnn_install.py"), run_name="__main__")


def report(words):
    sys.argv = ["facts_reports", *words]
    runpy.run_module("facts_reports", run_name="__main__")


def load_reports():
    if "facts_reports" not in sys.modules:
        sys.path.insert(0, os.path.join(SOURCE, "reports"))
        from facts_reports import audit, calibrate, cli, gate, known_cli, merge  # noqa: F401: so that a fork has them

        with contextlib.suppress(ModuleNotFoundError):  # Jinja2
            from facts_reports import site  # noqa: F401


@dataclasses.dataclass
class Ended:
    status: int
    out: bytes
    err: bytes
    hung: bool
    seconds: float  # of the processor
    bytes: int


def started(place, words, call, environment, limit):
    """Runs a program, or `call`, in a new process, and waits for it at most `limit` seconds."""
    pid = os.fork()
    if pid == 0:
        status = 70
        try:
            os.setsid()
            os.chdir(place.folder)
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(
                    os.open(place.path(name), os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), number
                )
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
            if not call:
                os.execve(words[0], words, environment)
            os.environ.clear()
            os.environ.update(environment)
            sys.stdout, sys.stderr = (
                open(number, "w", encoding="utf-8", errors=errors, closefd=False)
                for number, errors in ((1, "strict"), (2, "backslashreplace"))
            )
            try:
                call()
                status = 0
            except SystemExit as stop:
                status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
            except BaseException:
                sys.excepthook(*sys.exc_info())
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status)
    late, hung = time.monotonic() + limit, False
    while True:
        done, state, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > late and not hung:
            hung = True
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.002)
    with open(place.path("out"), "rb") as out, open(place.path("err"), "rb") as err:
        return Ended(
            os.waitstatus_to_exitcode(state),
            out.read(),
            err.read(),
            hung,
            usage.ru_utime + usage.ru_stime,
            usage.ru_maxrss << 10,
        )


def prepared(reader, place, number, made):
    """Writes the changed file. Returns (its path, its bytes, a call of Python or None, the project's folder)."""
    rng, home, call = random.Random(f"{reader.name} {number}"), SOURCE, None
    with open(place.path("good.jsonl"), "w", encoding="utf-8") as file:
        file.write(made["good"])
    if "{}/audit.jsonl.xz" in reader.words:
        os.symlink(
            os.path.join(SOURCE, "reports/examples/audit.jsonl.xz"), place.path("audit.jsonl.xz")
        )
    path = place.path(reader.name_of_input)
    if reader.home:
        home = place.path("home")
        path = linked_home(place, reader.home)
    if "plans" in made:
        os.mkdir(place.path("plans"), 0o700)
        name = sorted(made["plans"])[number % len(made["plans"])]
        path, data = (
            place.path("plans", name),
            mutations.mutated(rng, base64.b64decode(made["plans"][name]), number % 20 == 0),
        )
    elif reader.name.startswith("wheel"):
        data = mutations.wheel(rng, good_wheel())
    else:
        data = contents(rng.choice(seeds(reader, place)))
        with open(place.path("seed.jsonl"), "wb") as file:
            file.write(data)
        data = mutations.mutated(rng, data, number % 20 == 0)
        data = mutations.packed(rng, data, path)
    with open(path, "wb") as file:
        file.write(data)
    if reader.name.endswith("cudnn install"):
        whole = reader.name.startswith("wheel")
        wheel = path
        if not whole:
            wheel = place.path("nvidia_cudnn_jit_cu13-9.20.0.48-py3-none-manylinux_2_27_x86_64.whl")
            with open(wheel, "wb") as file:
                file.write(good_wheel())
        package, version = SPEC.split("==")
        lock = (
            f"{package} {version} {hashlib.sha256(data).hexdigest()} 3000 {os.path.basename(wheel)}\n".encode()
            if whole
            else data
        )
        call = functools.partial(install, place, wheel, lock)
    return path, data, call, home


def environment_of(reader, place, home):
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ["HOME"], ".cache")
    return {
        **place.environment(None, ""),
        "FACTS_HOME": home,
        "XDG_CACHE_HOME": cache if reader.cudnn else place.path("cache"),
    }


def attempt(reader, place, number, made):
    load_reports()
    path, data, call, home = prepared(reader, place, number, made)

    def filled(words):
        return [
            word.replace("{in}", path).replace("{home}", home).replace("{}", place.folder)
            for word in words
        ]

    if reader.python and number % 8:
        call = functools.partial(report, filled(reader.python))
    asan, programs = os.path.join(SOURCE, "build/asan/bin"), place.programs
    instrumented = (
        not call and number % 4 == 0 and os.path.exists(os.path.join(asan, "facts-worker"))
    )
    slower = INSTRUMENTED if instrumented or place.programs == asan else 1
    words = [os.path.join(asan if instrumented else programs, "facts"), *filled(reader.words)]
    ended = started(place, words, call, environment_of(reader, place, home), 20 * slower)
    word = judged(reader, place, path, data, ended, slower, 2 * made.get("cudnn", 0))
    orphans = reap()
    return (
        "orphan" if orphans else word,
        f"exit {ended.status}, {ended.seconds:.2f} s, {ended.bytes >> 20} MB: {ended.err[-400:].decode(errors='replace')}",
    )


def judged(reader, place, path, data, ended, slower, cudnn):
    """`cudnn`: what cuDNN itself may take, in seconds of the processor."""
    trouble = ended.err + ended.out
    if ended.hung:
        return "hang"
    if (
        ended.status < 0
        or ended.status in (70, 71, 99)
        or b"Traceback" in trouble
        or b"Sanitizer" in trouble
        or b"runtime error" in trouble
    ):
        return "crash"
    if ended.status not in (*reader.statuses, 2, 3):
        return "crash"
    if ended.seconds > SECONDS * slower + cudnn:
        return "slow"
    if slower == 1 and ended.bytes > BYTES * (2 if reader.cudnn else 1):
        return "fat"
    for text in (ended.out, ended.err, *written(reader, place)):
        if mutations.obeyed(text):
            return "raw"
    if ended.status in (2, 3) and ended.status not in reader.statuses:
        return (
            "accepted"
            if reader.read and re.search(reader.read.encode(), ended.err)
            else "refused"
            if says_where(ended.err, path)
            else "mute"
        )
    if ended.status == 0 and lost(reader, path, data, ended):
        return "silent"
    return "accepted"


def written(reader, place):
    for name in reader.files:
        top = place.path(name)
        for file in [top] if os.path.isfile(top) else glob.glob(os.path.join(top, "*")):
            with open(file, "rb") as stream:
                yield stream.read()


def says_where(err, path):
    """One of at most a few lines names the file."""
    lines = err.decode(errors="replace").splitlines()
    name = os.path.basename(path)
    return (
        len(lines) <= 12
        and all(len(line) < 1500 for line in lines)
        and any(name in line for line in lines)
    )


def lost(reader, path, data, ended):
    """Exit 0 with something missing: lines that are no JSON; the row that was asked for; nothing printed."""
    if "--resume" in reader.words:
        return not any(row[0] == RESUMED and row[-1] == "pass" for row in rows(path)[0])
    if not reader.home and reader.name_of_input == "input.jsonl":
        for line in data.split(b"\n"):
            try:
                if line.strip() and not isinstance(
                    json.loads(line.decode("utf-8", "replace")), dict
                ):
                    return True
            except (ValueError, RecursionError):
                return True
        return False
    return not ended.out and not ended.err
