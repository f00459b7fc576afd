"""Part surroundings: a full disk, a missing or closed file, limits, and paths that nobody expects."""

import os
import resource
import subprocess

import torture_scenes as scenes
from torture_calls import finishes, judged

COLUMNS = "points refused harmless crash hang silent blamed mute orphan lost".split()
MUST_BE_ZERO = COLUMNS[3:]
NAMES = (
    *("list", "cudnn list", "import", "run", "decide", "compile"),
    *("merge, Python", "report, Python"),
)
SIZES = [4 * n for n in range(1, 37)] + [192, 256, 384, 512]  # kilobytes of a file system
FULL = ("output", "cache", "TMPDIR", "plans")
STRANGE = ("a b", "a%sb%n", "a\nb", "-o", "\u202etxt", "ä")


def limit(what, least):
    return lambda: resource.setrlimit(what, (least, least))


def closed(*files):
    return lambda: [os.close(file) for file in files]


PLAIN = {
    "no HOME": {"HOME": None, "XDG_CACHE_HOME": None},
    "HOME nobody can write to": {"HOME": "/proc", "XDG_CACHE_HOME": None},
    "HOME that is a file": {"HOME": "/etc/passwd", "XDG_CACHE_HOME": None},
    "TMPDIR that is not there": {"TMPDIR": "/nowhere"},
    "decimal comma": {"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"},
    "closed stdin": {"before": closed(0)},
    "closed stdout": {"before": closed(1)},
    "closed stderr": {"before": closed(2)},
    "all three closed": {"before": closed(0, 1, 2)},
    "umask 000": {"before": lambda: os.umask(0)},
    "umask 077": {"before": lambda: os.umask(0o77)},
    "ulimit -n 8": {"before": limit(resource.RLIMIT_NOFILE, 8)},
    "ulimit -n 16": {"before": limit(resource.RLIMIT_NOFILE, 16)},
    "ulimit -s 64 kB": {"before": limit(resource.RLIMIT_STACK, 64 << 10)},
    "ulimit -f 1 kB": {"before": limit(resource.RLIMIT_FSIZE, 1024)},
    "ulimit -f 0": {"before": limit(resource.RLIMIT_FSIZE, 0)},
    "ulimit -v 64 MB": {"before": limit(resource.RLIMIT_AS, 64 << 20)},
    "ulimit -v 256 MB": {"before": limit(resource.RLIMIT_AS, 256 << 20)},
}


def points(scene, place):
    """Full file systems need a mount namespace: where there is none, they are not among the points."""
    finds = scene.name == "cudnn list"  # prints what lies in the user's folders
    found = [("plain", name) for name in PLAIN if not (finds and "HOME" in name)]
    found += [("stdout", "/dev/full"), ("stdout", "nobody reads it")]
    found += [("folder", name) for name in STRANGE]
    unused = ["cache"] * finds + ["plans"] * ("/plans" not in scene.text)
    disks = [what for what in FULL if what not in unused] if may_mount() else ()
    return found + [("full", what, size) for what in disks for size in SIZES]


def may_mount():
    words = "unshare -Urm mount -t tmpfs -o size=16k none /mnt".split()
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def attempt(scene, place, point, base):
    if not scenes.prepare(scene, place):
        return "unprepared", ""
    kind, name = point[0], point[1]
    if kind == "folder":
        return in_folder(scene, place, name, base)
    ways = {"plain": plain, "stdout": to_stdout, "full": on_full_disk}
    ended = ways[kind](scene, place, *point[1:])
    word = judged(scene, place, ended, base)
    unseen = name in ("closed stderr", "all three closed", "ulimit -f 0") or kind == "stdout"
    no_output = (
        name in ("closed stdout", "all three closed") and ended.status == 0 and not ended.out
    )
    if word == "mute" and unseen or word in ("silent", "crash") and no_output:
        word = "refused"  # nobody reads the message
    if name == "nobody reads it" and ended.status in (-13, 0):
        word = "refused"  # as every program ends there
    if word == "refused" and kind == "full" and not finishes(scene, place, base, ("rows",)):
        word = "lost"
    return word, f"exit {ended.status}: {ended.err[-300:]}"


def plain(scene, place, name):
    return place.run_scene(scene, **PLAIN[name])


def to_stdout(scene, place, name):
    if name == "/dev/full":
        with open(name, "wb") as full:
            return place.run_scene(scene, out=full)
    read, write = os.pipe()
    os.close(read)
    try:
        return place.run_scene(scene, out=write)
    finally:
        os.close(write)


def on_full_disk(scene, place, what, size):
    """The command in a mount namespace of its own; what it wrote is copied out."""
    disk, aside = place.path("plans" if what == "plans" else "disk"), place.path("aside")
    os.mkdir(disk)
    os.mkdir(aside)
    words = scene.commands(place.folder)
    variables = {"cache": {"XDG_CACHE_HOME": disk}, "TMPDIR": {"TMPDIR": disk}}.get(what, {})
    if what == "output":
        words = [
            word.replace(place.folder, disk) if before == "-o" or word.endswith("/plans") else word
            for before, word in zip([""] + words, words)
        ]
    script = f"mount -t tmpfs -o mode=755,size={size}k none '{disk}' && \"$@\"; status=$?; cp -r '{disk}/.' '{aside}'; exit $status"
    ended = place.run(
        words,
        timeout=scene.seconds,
        prefix=("unshare", "-Urm", "bash", "-c", script, "bash"),
        **variables,
    )
    if what in ("output", "plans"):
        to = place.folder if what == "output" else disk
        for name in os.listdir(aside):
            os.rename(os.path.join(aside, name), os.path.join(to, name))
        ended.out = ended.out.replace(disk.encode(), place.folder.encode())
    return ended


def in_folder(scene, place, name, base):
    """Everything lies in a folder of that name, and so do the outputs."""
    folder = place.path(name)
    os.mkdir(folder)
    strange = type(place)(folder, place.programs, place.injector)
    if not scenes.prepare(scene, strange):
        return "unprepared", ""
    ended = strange.run_scene(scene)
    return judged(scene, strange, ended, base), f"exit {ended.status}: {ended.err[-300:]}"
