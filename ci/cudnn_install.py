#!/usr/bin/env python3
"""Installs cuDNN builds, NVRTC and CUDA's compiler from their Python packages into FACTS' cache. Called by `facts cudnn install` and ./facts.

usage: cudnn_install.py --cache DIR PACKAGE==VERSION...
       cudnn_install.py --cache DIR --unpinned PACKAGE==VERSION     a package that is not in cudnn.lock: the sha256 is the package index's
       cudnn_install.py --cache DIR --tool nvcc|sanitizer       prints the path of the installed program

The cache keeps these files of a package. cuDNN: the three libraries that attention needs, the headers, RECORD and METADATA. NVRTC: libnvrtc and its
builtins. Tools: the files that compile and check a kernel. pip downloads the package, because it knows the user's index, proxy and certificates; it compares
the sha256 with cudnn.lock. This script compares the unpacked files with the package's own RECORD. It works in a folder beside the target and renames it when
it is complete. A failure leaves no file behind and does not change an earlier installation.

Exit: 0 installed; 2 not in cudnn.lock, or (unpinned) not on the index; 3 could not: no network, wrong hash, broken wheel, no space, a cache that is not ours alone.
"""

import argparse
import base64
import contextlib
import csv
import ctypes
import errno
import fcntl
import hashlib
import io
import os
import pathlib
import platform
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
import zlib

MACHINE = platform.machine()
NAME = "cudnn.lock" if MACHINE == "x86_64" else f"cudnn-{MACHINE}.lock"
LOCK = pathlib.Path(__file__).resolve().with_name(NAME)
LINE = re.compile(
    r"([a-z0-9-]{1,47}) (\d+(?:\.\d+){1,3}) ([0-9a-f]{64}) (\d{1,11}) ([A-Za-z0-9_.+-]{1,200}\.whl)",
    re.ASCII,
)
# times smaller than its contents is no wheel, but a bomb; NVIDIA's are 3 times smaller
PACKED = 200
KEEP_CUDNN = re.compile(
    r"(^|/)lib/(libcudnn|libcudnn_graph|libcudnn_engines_runtime_compiled)\.so\.9$|(^|/)include/[^/]+\.h$"
)
KEEP_NVRTC = re.compile(r"(^|/)lib/(libnvrtc\.so\.\d+|libnvrtc-builtins\.so\.\d+\.\d+)$")

# Tools of the CUDA toolkit: packages that belong in one folder, what is kept of them, the program.
TOOLKIT = re.compile(
    r"^nvidia/cu13/((?:[A-Za-z0-9_+-][A-Za-z0-9_.+-]*/)*[A-Za-z0-9_+-][A-Za-z0-9_.+-]*)$"
)
TOOLS = {
    "nvcc": (
        ("nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime"),
        re.compile(
            r"^nvidia/cu13/(bin/(nvcc|nvcc\.profile|ptxas|fatbinary)$|nvvm/(bin/cicc|libdevice/[^/]+\.bc)$|include/)"
        ),
        "bin/nvcc",
    ),
    "sanitizer": (
        ("nvidia-cuda-sanitizer-api",),
        re.compile(
            r"^nvidia/cu13/compute-sanitizer/(compute-sanitizer|TreeLauncher[A-Za-z]+|lib[A-Za-z-]+\.so)$"
        ),
        "compute-sanitizer/compute-sanitizer",
    ),
}


class Refused(Exception):
    def __init__(self, text, status=3):
        super().__init__(text)
        self.status = status


def say(text):
    print(text, file=sys.stderr, flush=True)


def plain(text):
    """A line in which nothing is left that a terminal would obey: an index and a wheel are somebody else's."""
    return "".join(c if c.isprintable() else "?" for c in str(text))[:1000]


def read_lock():
    locked, text = {}, LOCK.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith("#"):
            found = LINE.fullmatch(line)
            if not found:
                raise Refused(
                    f'{LOCK}:{number}: not "package version sha256 bytes wheel"; take it back from git'
                )
            locked[f"{found[1]}=={found[2]}"] = (found[3], int(found[4]), found[5])
    return locked


def target_of(cache, package, version):
    """Where a package's files go: the build's name is what every list of FACTS calls it."""
    cudnn = re.fullmatch(r"nvidia-cudnn-(jit-)?cu(\d+)", package)
    if cudnn:
        number, kind = ".".join(version.split(".")[:3]), "jit" if cudnn[1] else "full"
        return cache / "cudnn" / f"{number}-{kind}-cu{cudnn[2]}", KEEP_CUDNN
    return cache / "nvrtc" / version, KEEP_NVRTC


def own_folder(path):
    """A folder that only we can write to; another's, or a link, could give us another's libraries."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = path.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
        raise Refused(
            f"{path}: is a link or belongs to somebody else; remove it or set XDG_CACHE_HOME"
        )
    if info.st_mode & 0o022:
        raise Refused(f"{path}: others may write to it; chmod go-w {path}")
    return path


def open_lock(path):
    """A link would be somebody else's file; what is no file is not waited for."""
    how = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    turn = open(os.open(path, how, 0o600), "rb")
    if not stat.S_ISREG(os.fstat(turn.fileno()).st_mode):
        turn.close()
        raise Refused(f"{path}: is no file; remove it")
    return turn


def bytes_below(folder):
    """How much of the wheel is there: pip writes it below this folder, and copies it at the end."""
    most = 0
    for path in folder.rglob("*.whl"):
        with contextlib.suppress(OSError):
            most = max(most, path.stat().st_size)
    return most


def show_progress(folder, size, done):
    started = time.monotonic()
    while not done.wait(0.25):
        got = min(bytes_below(folder), size)
        filled = 30 * got // max(size, 1)
        rate = got / 1e6 / (time.monotonic() - started)
        said = f"[{'#' * filled}{'.' * (30 - filled)}] {got / 1e6:.0f} of {size / 1e6:.0f} MB, {rate:.0f} MB/s"
        print(f"\r  {said} ", end="\033[K", file=sys.stderr, flush=True)
    print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextlib.contextmanager
def progress(folder, size):
    """A bar on a terminal; in a pipe or a file nothing."""
    done = threading.Event()
    thread = threading.Thread(target=show_progress, args=(folder, size, done), daemon=True)
    if sys.stderr.isatty():
        thread.start()
    try:
        yield
    finally:
        done.set()
        if thread.is_alive():
            thread.join()


def download(spec, sha256, size, folder, source=LOCK.name):
    """pip in hash mode. Returns the wheel. `source` is who published the sha256."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{spec} --hash=sha256:{sha256}\n")
    options = "--quiet --no-deps --require-hashes --only-binary=:all: --no-cache-dir"
    options += " --disable-pip-version-check --no-input"
    command = [sys.executable, "-m", "pip", "download", *options.split()]
    command += ["--dest", str(folder / "wheel"), "--requirement", str(requirements)]
    with progress(folder, size):
        done = subprocess.run(
            command,
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    if done.returncode:
        raise Refused(f"{spec}: {why_pip_failed(done.stderr, source)}")
    wheels = list((folder / "wheel").glob("*.whl"))
    if len(wheels) != 1:
        raise Refused(f"{spec}: pip fetched {len(wheels)} files instead of one wheel")
    digest = hashlib.sha256()
    with open(wheels[0], "rb") as file:
        for chunk in iter(lambda: file.read(1 << 20), b""):
            digest.update(chunk)
    if digest.hexdigest() != sha256:
        raise Refused(f"{spec}: the wheel's sha256 is not the one in {source}")
    return wheels[0]


def why_pip_failed(text, source):
    if "DO NOT MATCH THE HASHES" in text:
        return f"the wheel's sha256 is not the one in {source} (a damaged download, or a changed package); nothing was installed"
    if "No module named pip" in text:
        return "this Python has no pip; install python3-pip or set FACTS_PYTHON"
    if "No space left" in text:
        return "no space left on the disk of the cache"
    if "No matching distribution" in text:
        return "the package index does not have it, or cannot be reached"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return "pip: " + (errors or lines or ["failed without a message"])[-1][:300]


def place_of(name, keep):
    """A library or header goes by its name into lib/ or include/; a part of the toolkit where it lies there."""
    if keep in (KEEP_CUDNN, KEEP_NVRTC):
        return "/".join(name.split("/")[-2:])
    inside = TOOLKIT.match(name)
    if not inside:
        raise Refused(f"{name}: a name that does not belong in a wheel")
    return inside[1]


def unpack(wheel, keep, out):
    """Only what is kept, each file compared with RECORD."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        refuse_hostile(wheel, archive, keep)
        about = [n for n in names if re.fullmatch(r"[^/]+\.dist-info/(RECORD|METADATA)", n)]
        info = {name.rsplit("/", 1)[-1]: name for name in about}
        if set(info) != {"RECORD", "METADATA"}:
            raise Refused(f"{wheel.name}: no RECORD and METADATA in it")
        try:
            rows = csv.reader(io.StringIO(archive.read(info["RECORD"]).decode()))
            recorded = {row[0]: row[1] for row in rows if len(row) == 3}
        except (UnicodeDecodeError, csv.Error):
            raise Refused(f"{wheel.name}: its RECORD cannot be read") from None
        kept = [name for name in names if keep.search(name)]
        absent = {name for name in recorded if keep.search(name)} - set(kept)
        fewest = 2 if keep in (KEEP_CUDNN, KEEP_NVRTC) else 0
        if absent or not kept or sum("/lib/" in name for name in kept) < fewest:
            raise Refused(f"{wheel.name}: {min(absent, default='a library')} is not in it")
        for name in kept:
            place = out / place_of(name, keep)
            place.parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256()
            with archive.open(name) as source, open(place, "wb") as file:
                for chunk in iter(lambda source=source: source.read(1 << 20), b""):
                    digest.update(chunk)
                    file.write(chunk)
            found = "sha256=" + base64.urlsafe_b64encode(digest.digest()).decode().rstrip("=")
            if recorded.get(name) != found:
                raise Refused(f"{wheel.name}: {name} is not what the package's RECORD says")
            if place.parent.name in ("bin", "compute-sanitizer"):
                place.chmod(0o700)
        for short, name in info.items():
            (out / short).write_bytes(archive.read(name))


def unpack_whole(wheel, keep, out):
    """unpack(), with one sentence for all that the reader of zip files says."""
    try:
        unpack(wheel, keep, out)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OSError) as broken:
        # of a place before the file's beginning
        if isinstance(broken, OSError) and broken.errno != errno.EINVAL:
            raise
        said = f"the wheel is damaged ({broken}); nothing was installed"
        raise Refused(f"{wheel.name}: {said}") from None


def refuse_hostile(wheel, archive, keep):
    """What no wheel has: a name twice, two libraries for one place, names that lead out, links, contents that do not end."""
    entries = archive.infolist()
    kept = [entry for entry in entries if keep.search(entry.filename)]
    about = (".dist-info/RECORD", ".dist-info/METADATA")
    read = kept + [entry for entry in entries if entry.filename.endswith(about)]
    if len({entry.filename for entry in entries}) < len(entries):
        raise Refused(f"{wheel.name}: a name is in it twice")
    if len({place_of(entry.filename, keep) for entry in kept}) < len(kept):
        raise Refused(f"{wheel.name}: a name has two files for one place")
    for entry in read:
        name = entry.filename
        if name.startswith("/") or ".." in name.split("/") or "\\" in name:
            raise Refused(f"{wheel.name}: {name}: a name that does not belong in a wheel")
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise Refused(f"{wheel.name}: {name} is no file")
    if any(entry.file_size > 4 << 20 for entry in read if ".dist-info/" in entry.filename):
        raise Refused(f"{wheel.name}: its RECORD or METADATA is larger than 4 MiB")
    if sum(entry.file_size for entry in read) > PACKED * wheel.stat().st_size:
        raise Refused(f"{wheel.name}: its files are more than {PACKED} times as large as the wheel")


def put_in_place(new, target, aside):
    own_folder(target.parent)
    for file in new.rglob("*"):
        if file.is_file():
            with open(file, "rb") as handle:
                os.fsync(handle.fileno())
    if target.is_symlink() or target.exists():
        os.rename(target, aside)
    os.rename(new, target)


def find_unpinned(spec):
    """What the package index says of a package: (sha256, bytes, wheel)."""
    import cudnn_lock

    package, version = spec.split("==")
    try:
        wheels = [wheel for wheel in cudnn_lock.Index().wheels(package) if wheel.text == version]
        if not wheels:
            raise Refused(f"{spec}: the package index does not have it for this platform", 2)
        return wheels[0].sha256, wheels[0].size(), wheels[0].name
    except cudnn_lock.Refused as refused:
        raise Refused(f"{spec}: {refused}", refused.status) from None


def install(cache, spec, sha256, size, wheel, pinned=True):
    package, version = spec.split("==")
    target, keep = target_of(cache, package, version)
    trust = "" if pinned else f": {wheel}, sha256 {sha256}, not pinned: trusted as the index says"
    what = target.name if "cudnn" in package else "NVRTC " + version
    say(f"facts: installing {what} ({size / 1e6:.0f} MB to download){trust}")
    with tempfile.TemporaryDirectory(prefix="install.", dir=cache) as name:
        folder = pathlib.Path(name)
        wheel = download(spec, sha256, size, folder, LOCK.name if pinned else "the package index")
        new = folder / "new"
        new.mkdir(mode=0o700)
        unpack_whole(wheel, keep, new)
        put_in_place(new, target, folder / "old")


def install_tool(cache, tool, locked):
    """One folder for all packages of a tool. Nothing is fetched when it is there, in the version of the lock."""
    packages, keep, program = TOOLS[tool]
    first = {spec.split("==")[0]: spec for spec in reversed(locked)}
    specs = [first.get(package) for package in packages]
    if None in specs:
        raise Refused(f"{packages[specs.index(None)]}: not in {LOCK.name}", 2)
    target = cache / tool / specs[0].split("==")[1]
    if not (target / program).exists():
        size = sum(locked[spec][1] for spec in specs) / 1e6
        say(f"facts: installing {tool} {target.name} ({size:.0f} MB to download)")
        with tempfile.TemporaryDirectory(prefix="install.", dir=cache) as name:
            folder = pathlib.Path(name)
            new = folder / "new"
            for number, spec in enumerate(specs):
                own = folder / str(number)
                own.mkdir(mode=0o700)
                unpack_whole(download(spec, *locked[spec][:2], own), keep, new)
                for short in ("RECORD", "METADATA"):
                    (new / short).rename(new / f"{spec.split('==')[0]}.{short}")
            put_in_place(new, target, folder / "old")
    print(target / program)


PDEATHSIG = 1  # of <sys/prctl.h>
STOPS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """Unlike after a KeyboardInterrupt, subprocess.run waits for pip's end, so that pip writes nothing into a folder that is removed."""


def stop(number, frame):
    for later in STOPS:
        signal.signal(later, signal.SIG_IGN)  # a second one would end the clearing
    raise Interrupted


def clear(cache):
    """Removes what this installer, or one that was killed, has not put in place: a signal can come before a folder's name is known."""
    for left in cache.glob("install.*"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("--tool", choices=sorted(TOOLS))
    parser.add_argument("--unpinned", action="append", default=[], metavar="PACKAGE==VERSION")
    parser.add_argument("packages", nargs="*", metavar="PACKAGE==VERSION")
    args = parser.parse_args()
    if not args.packages and not args.unpinned and not args.tool:
        parser.error("name a package or a tool")
    for number in STOPS:
        signal.signal(number, stop)
    ctypes.CDLL(None).prctl(PDEATHSIG, signal.SIGTERM)  # it ends with the command that started it
    os.umask(0o077)
    locked = read_lock()
    unknown = [spec for spec in args.packages if spec not in locked]
    if unknown:
        raise Refused(f"{unknown[0]}: not in {LOCK.name}, so its sha256 is not known", 2)
    found = {spec: locked.get(spec) or find_unpinned(spec) for spec in args.unpinned}
    cache = own_folder(args.cache)
    with open_lock(cache / "install.lock") as turn:
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("facts: another installation runs; waiting for its end", file=sys.stderr)
            fcntl.flock(turn, fcntl.LOCK_EX)
        clear(cache)
        try:
            for spec in args.packages:
                install(cache, spec, *locked[spec])
            for spec in found:
                install(cache, spec, *found[spec], pinned=spec in locked)
            if args.tool:
                install_tool(cache, args.tool, locked)
        finally:
            clear(cache)


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        say(f"facts: {plain(refused)}")
        sys.exit(refused.status)
    except OSError as failure:
        where, why = plain(failure.filename or "the cache"), failure.strerror or failure
        say(f"facts: {where}: {why}; nothing was installed")
        sys.exit(3)
    except (Interrupted, KeyboardInterrupt):
        say("facts: interrupted; nothing was installed")
        sys.exit(130)
