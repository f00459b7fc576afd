#!/usr/bin/env python3
"""Adds packages to ci/cudnn.lock, and asks the package index for cuDNN versions. Called by `facts cudnn lock` and `facts cudnn install`.

usage: cudnn_lock.py                  adds every package that WANTED names and the file lacks
       cudnn_lock.py VERSION...       adds these: 9.28.1, 9.28.1.4, 9.28.1-full-cu13 or latest
       cudnn_lock.py --find VERSION   prints the line of the package that `facts cudnn install VERSION` takes; writes nothing

The script asks the index that pip is set up for and reads only its page for each package; it downloads no package. It adds lines and changes none:
when the index publishes another sha256 for a file of the lock, it writes nothing. The new file replaces the old one in one step.
FACTS_MACHINE=aarch64 asks for that machine's packages and adds them to cudnn-aarch64.lock; else they are this machine's.

Exit: 0 done; 1 the index publishes another sha256 for a file of the lock; 2 no such version; 3 no network, no pip, a file that cannot be written.
"""

import argparse
import collections
import fcntl
import html
import logging
import os
import pathlib
import platform
import re
import shutil
import sys
import tempfile
import urllib.parse

MACHINE = os.environ.get("FACTS_MACHINE") or platform.machine()
NAME = "cudnn.lock" if MACHINE == "x86_64" else f"cudnn-{MACHINE}.lock"
LOCK = pathlib.Path(__file__).resolve().with_name(NAME)
PLATFORM = re.compile(rf"-manylinux[^-]*_{re.escape(MACHINE)}\.whl$")
WORD = re.compile(r"(\d+(?:\.\d+){1,3})(?:-(jit|full)-cu(\d+))?")
# which one is taken first
CUDNN = [f"nvidia-cudnn-{kind}cu{number}" for kind in ("jit-", "") for number in (13, 12)]
WANTED = [  # package, which versions
    ("nvidia-cudnn-jit-cu13", lambda v: v >= (9, 12)),
    ("nvidia-cudnn-jit-cu12", lambda v: v >= (9, 12)),
    ("nvidia-cudnn-cu12", lambda v: (9, 8) <= v < (9, 12)),
    ("nvidia-cudnn-cu13", lambda v: v >= (9, 28)),
    ("nvidia-cuda-nvrtc", lambda v: v == (13, 0, 88)),
    ("nvidia-cuda-nvrtc-cu12", lambda v: v == (12, 9, 86)),
    # The oldest CUDA 13 compiles the kernels: every driver of CUDA 13 loads what it makes.
    ("nvidia-cuda-nvcc", lambda v: v == (13, 0, 88)),
    ("nvidia-nvvm", lambda v: v == (13, 0, 88)),
    ("nvidia-cuda-crt", lambda v: v == (13, 0, 88)),
    ("nvidia-cuda-runtime", lambda v: v == (13, 0, 96)),
    # the first with the program that starts what it checks
    ("nvidia-cuda-sanitizer-api", lambda v: v == (13, 5, 25)),
]


Wheel = collections.namedtuple("Wheel", "package text number sha256 name yanked size")


class Refused(Exception):
    def __init__(self, text, status=3):
        super().__init__(text)
        self.status = status


class Index:
    """The package index that pip is set up for, through pip's own session: it knows the user's proxy, certificates and passwords."""

    def __init__(self):
        try:
            from pip._internal.commands import create_command
        except ImportError:
            said = "this Python has no pip; install python3-pip or set FACTS_PYTHON"
            raise Refused(said) from None
        logging.disable(logging.CRITICAL)  # pip would report every retry
        command = create_command("download")
        options, _ = command.parse_args(["--no-input", "none"])
        self.session = command._build_session(options, retries=1)
        self.session.auth.prompting = False
        self.urls = [] if options.no_index else [options.index_url, *options.extra_index_urls]
        self.pages = {}
        if not self.urls:
            raise Refused("pip is set up without a package index (no-index)")

    def get(self, method, url):
        from pip._vendor.requests.exceptions import RequestException

        headers = {"Accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"}
        try:
            return self.session.request(method, url, headers=headers)
        except RequestException as error:
            said = f"the package index cannot be reached ({type(error).__name__})"
            raise Refused(said) from None

    def wheels(self, package):
        """The package's wheels for this platform, oldest version first; none when no index has the package."""
        if package not in self.pages:
            found = {}
            for url in reversed(self.urls):
                page = self.read_page(package, f"{url.rstrip('/')}/{package}/")
                found.update((wheel.name, wheel) for wheel in page)
            self.pages[package] = sorted(found.values(), key=lambda wheel: wheel.number)
        return self.pages[package]

    def read_page(self, package, url):
        page = self.get("GET", url)
        if page.status_code == 404:
            return
        if page.status_code != 200:
            raise Refused(f"the package index answers {page.status_code} for {package}")
        read = json_files if "json" in page.headers.get("content-type", "") else self.html_files
        for name, sha256, yanked, size in read(page):
            text = name.split("-")[1] if name.count("-") >= 4 else ""
            if PLATFORM.search(name) and re.fullmatch(r"\d+(\.\d+)+", text) and sha256:
                yield Wheel(package, text, numbers(text), sha256, name, yanked, size)

    def html_files(self, page):
        for anchor, href in re.findall(r'(<a\s[^>]*href="([^"]+)"[^>]*>)', page.text):
            link = urllib.parse.urlsplit(urllib.parse.urljoin(page.url, html.unescape(href)))
            sha256 = re.search(r"sha256=([0-9a-f]{64})", link.fragment)
            address = link._replace(fragment="").geturl()

            def size(address=address):
                return int(self.get("HEAD", address).headers.get("content-length", 0))

            name, digits = link.path.rsplit("/", 1)[-1], sha256.group(1) if sha256 else ""
            yield urllib.parse.unquote(name), digits, "data-yanked" in anchor, size


def json_files(page):
    for file in page.json()["files"]:
        yield (
            file["filename"],
            file["hashes"].get("sha256", ""),
            bool(file.get("yanked")),
            lambda file=file: file.get("size", 0),
        )


def numbers(text):
    return tuple(int(n) for n in text.split("."))


def line_of(wheel):
    return f"{wheel.package} {wheel.text} {wheel.sha256} {wheel.size()} {wheel.name}"


def understand(word):
    """(numbers, packages) of 9.28.1, 9.28.1.4 or 9.28.1-full-cu13; no numbers: latest."""
    if word == "latest":
        return (), CUDNN
    said = WORD.fullmatch(word)
    if not said:
        raise Refused(
            f'"{word}": not a version (9.28.1, 9.28.1.4), a build (9.28.1-full-cu13) or latest', 2
        )
    if not said[2]:
        return numbers(said[1]), CUDNN
    package = f"nvidia-cudnn-{'jit-' if said[2] == 'jit' else ''}cu{said[3]}"
    return numbers(said[1]), (package,) if package in CUDNN else ()


def find(index, word):
    """The wheel that an installation of this version takes: the newest that fits, jit before full, cu13 before cu12."""
    wanted, packages = understand(word)
    wheels = [wheel for package in packages for wheel in index.wheels(package)]
    every = [wheel for wheel in wheels if wheel.number[0] == 9]

    def order(wheel):
        return wheel.number[:3], -CUDNN.index(wheel.package), wheel.number

    if found := fitting(every, wanted):
        return max(found, key=order)
    raise Refused(f"cuDNN {word} is not on the package index; {nearest(every, wanted)}", 2)


def fitting(wheels, wanted):
    """A yanked version (one that its publisher took back) must be named with all four numbers."""
    found = [wheel for wheel in wheels if wheel.number[: len(wanted)] == wanted]
    return [wheel for wheel in found if len(wanted) == 4 or not wheel.yanked]


def nearest(wheels, wanted):
    def distance(number):
        both = zip((10**6, 10**3, 1), number, (*wanted, 0, 0))
        return sum(weight * abs(a - b) for weight, a, b in both), number

    versions = sorted({wheel.number[:3] for wheel in wheels if not wheel.yanked}, key=distance)
    names = ", ".join(".".join(map(str, number)) for number in versions[:3])
    return f"the nearest that exist are {names}" if names else "it has no cuDNN 9 of that kind"


def asked_for(index, word):
    """The wheels that belong into the lock for a version: of every package that WANTED names for it, else the one that is installed."""
    wanted, packages = understand(word)
    wanted = wanted or find(index, word).number[:3]
    out = []
    for package, rule in WANTED:
        if package in packages:
            found = fitting(index.wheels(package), wanted)
            out += [wheel for wheel in found if rule(wheel.number)][-1:]
    return out or [find(index, word)]


def all_wanted(index):
    for package, rule in WANTED:
        wheels = [wheel for wheel in index.wheels(package) if rule(wheel.number)]
        if not wheels:
            raise Refused(f"{package}: the package index has no version of it that FACTS uses")
        yield from wheels


def check_unchanged(index, lines):
    """Of every page that was read: the files of the lock must be what they were."""
    for line in lines:
        package, version, sha256, _, name = line.split()
        for wheel in index.pages.get(package, ()):
            if wheel.name == name and wheel.sha256 != sha256:
                raise Refused(
                    f"REFUSED: the package index publishes another sha256 for {package} {version}: {wheel.sha256}, the lock has {sha256}. "
                    f"A published file must never change: find out why before you trust either. {LOCK.name} stays as it was.",
                    1,
                )


def place(line):
    """Where a line stands: packages as WANTED orders them, others behind, versions by their numbers."""
    package, version = line.split()[:2]
    order = [name for name, _ in WANTED]
    at, behind = (order.index(package), "") if package in order else (len(order), package)
    return at, behind, numbers(version)


def replace_lock(text):
    """The file is the old or the new one, whatever happens in between."""
    for left in LOCK.parent.glob(f"{LOCK.name}.*.tmp"):
        left.unlink()  # of a run that was killed
    handle, path = tempfile.mkstemp(prefix=f"{LOCK.name}.", suffix=".tmp", dir=LOCK.parent)
    try:
        with open(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        shutil.copymode(LOCK, path)
        os.replace(path, LOCK)
    except BaseException:
        os.unlink(path)
        raise


def lock(words):
    folder = os.open(LOCK.parent, os.O_RDONLY)
    # two at once: the second waits, and keeps what the first added
    fcntl.flock(folder, fcntl.LOCK_EX)
    text = LOCK.read_text(encoding="ascii")
    head = [line for line in text.splitlines() if line.startswith("#")]
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    index = Index()
    if words:
        wheels = [wheel for word in words for wheel in asked_for(index, word)]
    else:
        wheels = list(all_wanted(index))
    check_unchanged(index, lines)
    known = {tuple(line.split()[:2]) for line in lines}
    named = {(wheel.package, wheel.text): wheel for wheel in wheels}
    new = [wheel for name, wheel in named.items() if name not in known]
    for wheel in new:
        lines.append(line_of(wheel))
        print(f"added {lines[-1]}")
    if new:
        replace_lock("\n".join(head + sorted(lines, key=place)) + "\n")
        print(f"{LOCK}: {len(new)} added; review the change like code")
    else:
        print(f"{LOCK}: has {' '.join(words) or 'everything'} already")


def main(argv):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--find", metavar="VERSION")
    parser.add_argument("versions", nargs="*", metavar="VERSION")
    args = parser.parse_args(argv)
    out = sys.stdout if args.find else sys.stderr
    try:
        if args.find:
            print(line_of(find(Index(), args.find)))
        else:
            lock(args.versions)
    except Refused as refused:  # --find: the caller shows the line
        print(*([refused] if args.find else ["facts:", refused]), file=out)
        return refused.status
    except OSError as failure:
        where, why = failure.filename or LOCK, failure.strerror or failure
        print(f"facts: {where}: {why}; the lock stays as it was", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
