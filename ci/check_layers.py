#!/usr/bin/env python3
"""Checks that dependencies point one way (README, "Folders"), and a few promises that a compiler cannot see.

usage: ci/check_layers.py [BUILD_FOLDER]     with a build folder, what was linked is checked as well
Prints one line for each finding, "file:line: what is wrong". Exit: 0 none, 1 findings.
"""

import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import structure

HOME = pathlib.Path(__file__).resolve().parent.parent
HARNESS = (
    r"(words|language|suites|builds|record|known|search|supervisor|commands|driver|worker|"
    r"keys|numbers|import|self)/"
)

# folder (a regular expression on the path), what its text must not contain, why. Comments and strings do not count, except #include.
RULES = [
    (
        r"^reference/(src|include|test|cuda)/",
        rf'#\s*include\s*["<](fattn/|(\.\./)+lib|cudnn|cuda|jansson|{HARNESS})',
        "the reference has its own vocabulary: of lib/ it includes gpu/*.h alone, which compute nothing; nothing of the harness or of cuDNN",
    ),
    (
        r"^lib/gpu/(?!test/)",
        r'#\s*include\s*["<](?!gpu/|[a-z]+\.h>)',
        "lib/gpu knows nobody who uses it: an oracle and its subject share it",
    ),
    (r"^reference/(src|include)/", r"\bfattn_\w+", "the reference names nothing of the library"),
    (
        r"^lib/(src|include|nulldriver|cuda)/",
        rf'#\s*include\s*["<](fref/|\.\./\.\./(reference|harness)|{HARNESS})',
        "the library includes nothing of the harness or the reference",
    ),
    (
        r"^lib/include/",
        r'#\s*include\s*[<"](cuda|cudnn)',
        "the public header includes no CUDA header",
    ),
    (
        r"^examples/",
        r'#\s*include\s*["<](?!fattn/[a-z_]+\.h|common\.h|loops\.h|[a-z]+\.h>)',
        "an example uses the installed library and libc",
    ),
    (
        r"^lib/(src/(?!liars/)|gpu/(?!test/))",
        r"\b(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|exit|_exit|_Exit|abort|atexit|getenv|secure_getenv|setenv|putenv|signal|sigaction)\s*\(",
        "the library never prints, ends the process, reads the environment or handles signals",
    ),
    (
        r"^lib/(src|gpu)/",
        r"\b(cuCtxSynchronize|cudaDeviceSynchronize|cudaStreamSynchronize)\b",
        "the library does not synchronise behind the caller's back",
    ),
    (
        r"^harness/attention/numbers/",
        r"\b(fopen|open|read|write|printf|fprintf|puts|fputs|getenv|exit|abort|system|popen|time|clock_gettime)\s*\(",
        "numbers are compared without any input or output",
    ),
    (
        r"^harness/core/search/",
        r"\b(fopen|open|read|write|printf|fprintf|puts|fputs|getenv|exit|abort|system|popen|time|clock_gettime|rand)\s*\(",
        "a search draws and shrinks without any input or output: it asks through a callback",
    ),
    (
        r"^harness/core/search/",
        r'#\s*include\s*["<](\.\./)?(commands|supervisor|worker|builds)/',
        "a search knows cases and rows, not its caller",
    ),
    (
        r"^harness/attention/numbers/judge/judge",
        r'#\s*include\s*[<"](fattn/|jansson|record/|worker/)',
        "the comparison sees numbers, not their source",
    ),
    (
        r"^harness/core/(supervisor|commands|record|builds)/",
        r'#\s*include\s*["<](fattn/|fref/|cuda|cudnn|worker/)',
        "the supervisor knows cuDNN, CUDA, libfattn and libfref through its workers only",
    ),
    (
        r"^reports/facts_reports/(?!commands/asking\.py).*\.py$",
        r"^\s*(import|from)\s+(ctypes|subprocess|socket|urllib|requests)\b",
        "reports read records; they load and fetch nothing",
    ),
    (
        r"^lib/python/(?!test/).*\.py$",
        r"^\s*(import|from)\s+(numpy|torch|cupy|jax|cffi|facts_reports)\b",
        "the module needs the standard library alone: the library of the inputs makes the outputs",
    ),
]
# The folders of facts_reports, lowest first.
_FLOORS = ("read", "known", "compare", "page", "commands")
RULES += [
    (
        f"^reports/facts_reports/{floor}/",
        rf"^\s*from \.\.({'|'.join(_FLOORS[number + 1 :])})\b",
        f"{floor}/ imports nothing of a folder above it (reports/README.md)",
    )
    for number, floor in enumerate(_FLOORS[:-1])
]
# Absolute paths of somebody's own folders.
TEXT = re.compile(r"(?<![\w$.}])(/root/|/home/\w+/|/tmp/build-)")
TEXT_FREE = {"ci/check_layers.py"}


def without_comments(text):
    """The same text, same lines, with comments and string contents blanked; #include lines keep their names."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)
    kept = []
    for line in text.split("\n"):
        kept.append(
            line if re.match(r"\s*#\s*include", line) else re.sub(r'"(\\.|[^"\\])*"', '""', line)
        )
    return "\n".join(kept)


def tracked():
    listed = subprocess.run(
        ["git", "-C", str(HOME), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode == 0:
        names = listed.stdout.split("\0")
    else:
        names = (str(p.relative_to(HOME)) for p in HOME.rglob("*") if "build" not in p.parts)
    return [name for name in names if name and (HOME / name).is_file()]


def check_sources(names):
    for name in names:
        if not re.search(r"\.(c|h|cu|cuh|py)$", name):
            continue
        text = (HOME / name).read_text(errors="replace")
        if not name.endswith(".py"):
            text = without_comments(text)
        for folder, forbidden, why in RULES:
            if re.search(folder, name):
                for found in re.finditer(forbidden, text, flags=re.M):
                    yield f"{name}:{text.count(chr(10), 0, found.start()) + 1}: {found[0].strip()}: {why}"


def check_texts(names):
    for name in names:
        if name in TEXT_FREE or (HOME / name).stat().st_size > 1 << 20:
            continue
        for number, line in enumerate((HOME / name).read_text(errors="replace").split("\n"), 1):
            found = TEXT.search(line)
            if found:
                yield f"{name}:{number}: {found[0]}: no path of one machine belongs in the project"


# Modules whose parts call each other: they are one module in several files, and their README says so.
ONE_MODULE = ("lib/src", "harness/core/supervisor")
FILES_IN_A_FOLDER = 25
ROOMS = ("harness/", "lib/cuda", "lib/gpu/", "lib/src", "lib/test", "reference/", "reports/facts_")
PAGE = 9  # lines of a folder's README


def module_of(name):
    return next((module for module in ONE_MODULE if name.startswith(module + "/")), name)


def check_structure(names, build=None):
    """The tree: base names that occur once, folders of a readable size with a page each, private headers, and no circles."""
    every = structure.sources(names)
    tested = [name for name in every if structure.PRODUCTION.search(name)]
    yield from check_names(every)
    yield from check_folders(every, names)
    yield from check_pages(every)
    included = structure.includes(HOME, every)
    for a, b in sorted(included):
        planted = a.startswith("harness/attention/self/") and b.startswith("lib/src/liars/")
        if (
            b.startswith("lib/src/")
            and not a.startswith("lib/")
            and structure.PRODUCTION.search(a)
            and not planted  # `facts self` runs the faults that the library lists
        ):
            yield f"{a}:1: {b}: a private header of lib/"
    inside = {(a, b) for a, b in included if a in set(tested) and b in set(tested)}
    families = structure.grouped(inside, lambda name: module_of(structure.family(name)))
    for part in structure.circles(families):
        yield f"{part[0]}: {structure.one_circle(families, part)}: headers include each other in a circle"
    edges = inside | set(structure.links(build, tested) if build else ())
    yield from check_rooms(edges)
    folders = structure.grouped(
        edges, lambda name: module_of(structure.folder(name) + "/").rstrip("/")
    )
    for part in structure.circles(folders):
        yield f"{part[0]}: {structure.one_circle(folders, part)}: folders need each other in a circle"


def check_rooms(edges):
    """The core of the harness knows no operation: it sees one through harness/core/driver/driver.h."""
    for a, b in sorted(edges):
        if a.startswith("harness/core/") and not b.startswith("harness/core/"):
            yield f"{a}:1: {b}: the core knows no operation: a driver gives what it needs (harness/core/driver/driver.h)"


def check_names(every):
    """zstd's rule: who reads "open tile.h" finds one file."""
    places = {}
    for name in every:
        places.setdefault(structure.family(name).rsplit("/", 1)[-1], set()).add(
            structure.folder(name)
        )
    for stem, folders in sorted(places.items()):
        folders = {
            folder for folder in folders if folder != "examples" and "/include/" not in folder
        }  # what users read is named for them
        if len(folders) > 1:
            yield f"{min(folders)}/{stem}: also in {', '.join(sorted(folders)[1:])}: a base name occurs once in the tree"


def check_folders(every, names):
    names = set(names)
    count = {}
    for name in every:
        count[structure.folder(name)] = count.get(structure.folder(name), 0) + 1
    for folder, files in sorted(count.items()):
        if files > FILES_IN_A_FOLDER:
            yield f"{folder}: {files} sources: at most {FILES_IN_A_FOLDER} in a folder"
        above = re.sub(r"/test/.*", "/test", folder)  # the folders of tests share a page
        if not {f"{folder}/README.md", f"{above}/README.md"} & names:
            yield f"{folder}: no README.md: each folder has a page that says what it holds"


def check_pages(every):
    for folder in sorted(set(map(structure.folder, every))):
        page = HOME / folder / "README.md"
        if folder.startswith(ROOMS) and page.exists() and page.read_text().count("\n") > PAGE:
            yield f"{folder}/README.md: {PAGE} lines at most: what, who calls it, where to add"


def check_linked(build):
    """`facts` links nothing that computes attention, and nothing of CUDA's is linked at all: it is loaded."""
    symbols = subprocess.run(
        ["nm", str(build / "bin" / "facts")], capture_output=True, text=True, check=True
    ).stdout
    for symbol in sorted(
        set(
            re.findall(
                r"\b(fattn_\w+|fref_\w+|cudnn[A-Z]\w+|cu[A-Z][a-z]+[A-Z]\w+)$", symbols, flags=re.M
            )
        )
    ):
        yield f"bin/facts: {symbol}: the supervisor must not link the library, the reference or CUDA"
    for program in ("facts", "facts-worker", "facts-self"):
        needed = subprocess.run(
            ["objdump", "-p", str(build / "bin" / program)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for library in re.findall(r"NEEDED\s+(lib(?:cuda|cudnn|nvrtc|cublas)\S*)", needed):
            yield f"bin/{program}: {library}: must be loaded, not linked"


def main():
    names = tracked()
    build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    findings = (
        list(check_sources(names)) + list(check_texts(names)) + list(check_structure(names, build))
    )
    if build and (build / "bin" / "facts").exists():
        findings += check_linked(build)
    print("\n".join(findings) if findings else f"{len(names)} files, dependencies point one way")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
