"""Links, owners and modes in the places that FACTS writes to and reads from: refused with a clear line, or harmless. Nothing outside is overwritten or deleted,
and nothing of others is believed.

A file and a folder of somebody else stand outside; after each command they are as they were. Half of the layouts of each place; FACTS_ALL=1, as the night
sets it, asks all.
"""

import os
import pathlib
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import needs

SOURCE = pathlib.Path(
    os.environ.get("FACTS_SOURCE") or pathlib.Path(__file__).resolve().parent.parent.parent
)
FACTS = pathlib.Path(os.environ.get("FACTS_BIN") or SOURCE / "build/release/bin") / "facts"
CASE = "pass=fwd dtype=f32 b=1 h=1 s=16 d=16"
NOBODY = 65534
LIBRARIES = ("libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9")


def link_to_file(at, t):
    at.symlink_to(t.victim)


def link_to_nothing(at, t):
    at.symlink_to(t.outside / "new")


def link_to_folder(at, t):
    at.symlink_to(t.folder)


def link_to_itself(at, t):
    at.symlink_to(at)


def hard_link(at, t):
    os.link(t.victim, at)


def hard_link_to_empty(at, t):
    os.link(t.empty, at)


def folder(at, t):
    at.mkdir()


def fifo(at, t):
    os.mkfifo(at)


def socket(at, t):
    import socket as sockets

    with sockets.socket(sockets.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(at.parent)
        try:
            one.bind(at.name)
        finally:
            os.chdir(here)


def device(at, t):
    if os.geteuid() != 0:
        raise unittest.SkipTest("only root makes devices")
    try:
        os.mknod(at, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        raise unittest.SkipTest("no devices can be made here") from None


FILES = (
    link_to_file,
    link_to_nothing,
    link_to_folder,
    link_to_itself,
    hard_link,
    hard_link_to_empty,
    folder,
    fifo,
    socket,
    device,
)


class Layouts(unittest.TestCase):
    turn = 0

    @classmethod
    def setUpClass(cls):
        if not FACTS.exists():
            raise unittest.SkipTest(f"{FACTS} is not built")
        cls.top = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.good = cls.top / "good.jsonl"
        subprocess.run(
            [FACTS, "run", CASE, "--device", "cpu", "-o", cls.good],
            check=True,
            capture_output=True,
            env={**os.environ, "FACTS_HOME": str(SOURCE)},
        )

    def setUp(self):
        self.at = pathlib.Path(tempfile.mkdtemp(dir=self.top))
        self.outside = self.at / "outside"
        self.folder, self.victim, self.empty = (
            self.outside / "folder",
            self.outside / "victim",
            self.outside / "empty",
        )
        self.folder.mkdir(parents=True)
        self.victim.write_bytes(self.good.read_bytes())
        self.empty.touch()
        (self.folder / "victim").write_text("kept\n")
        for path in (self.victim, self.empty, self.folder / "victim"):
            path.chmod(0o640)
        self.before = self.tree()

    def tree(self):
        return {
            str(p.relative_to(self.outside)): (
                p.lstat().st_mode,
                p.read_bytes() if p.is_file() else b"",
            )
            for p in self.outside.rglob("*")
        }

    def ask(self, *words, **more):
        """(exit, stderr). What stands outside did not change; nothing hangs; an error is one line that names the place."""
        try:
            done = subprocess.run(
                [FACTS, *map(str, words)],
                cwd=self.at,
                capture_output=True,
                text=True,
                errors="replace",
                stdin=subprocess.DEVNULL,
                timeout=30,
                check=False,
                env={
                    **os.environ,
                    "FACTS_HOME": str(SOURCE),
                    "XDG_CACHE_HOME": str(self.at / "cache"),
                    "PIP_NO_INDEX": "1",
                    "FACTS_PYTHON": os.environ.get("FACTS_PYTHON") or sys.executable,
                    **more,
                },
            )
        except subprocess.TimeoutExpired:
            self.fail("hangs")
        self.assertEqual(self.tree(), self.before, done.stderr)
        self.assertIn(done.returncode, (0, 1, 2, 3, 4, 5), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.returncode, done.stderr

    def each(self, layouts, ask, place="place"):
        type(self).turn += 1
        for layout in layouts if needs.NIGHT or len(layouts) == 1 else layouts[self.turn % 2 :: 2]:
            with self.subTest(layout.__name__):
                self.setUp()
                at = self.at / place
                at.parent.mkdir(parents=True, exist_ok=True)
                try:
                    layout(at, self)
                except unittest.SkipTest:
                    continue
                self.before = self.tree()
                status, err = ask(at)
                if status in (2, 3):
                    self.assertRegex(err.strip().splitlines()[-1], re.escape(str(at.name)))

    def test_a_record_is_a_file_of_its_own(self):
        for more in ((), ("--overwrite",), ("--resume",)):
            self.each(
                FILES,
                lambda at, more=more: self.ask("run", CASE, "--device", "cpu", "-o", at, *more),
            )
        for more in ((), ("--overwrite",)):
            self.each(FILES, lambda at, more=more: self.ask("merge", self.good, "-o", at, *more))

    def test_a_record_is_refused_where_its_place_is_a_link(self):
        self.each(
            (link_to_file, link_to_nothing, hard_link, hard_link_to_empty, fifo),
            lambda at: (
                self.assertEqual(
                    self.ask("run", CASE, "--device", "cpu", "-o", at, "--overwrite")[0], 3
                ),
                (0, ""),
            )[1],
        )
        (self.at / "linked").symlink_to(self.at)
        self.assertEqual(
            self.ask("run", CASE, "--device", "cpu", "-o", self.at / "linked/new.jsonl")[0], 0
        )
        self.assertEqual(
            self.ask(
                "run",
                CASE,
                "--device",
                "cpu",
                "-o",
                self.at / "outside/../new.jsonl",
                "--overwrite",
            )[0],
            0,
        )

    def test_a_page_and_its_files(self):
        for name in ("index.html", "results.csv", "results.json", "summary.md", "junit.xml"):
            self.each(
                FILES if name == "index.html" else (link_to_file, hard_link, fifo),
                lambda at: self.ask("report", self.good, "-o", at.parent),
                f"page/{name}",
            )
        self.each(
            (link_to_file, link_to_nothing, link_to_itself, hard_link, fifo, socket, device),
            lambda at: self.ask("report", self.good, "-o", at),
        )
        self.each(
            (link_to_file, link_to_nothing, hard_link, fifo),
            lambda at: self.ask("report", self.good, "--site", at.parent),
            "site/index.html",
        )

    def test_answers_of_a_gate(self):
        for option in ("--junit", "--errata"):
            self.each(
                FILES, lambda at, option=option: self.ask("diff", self.good, self.good, option, at)
            )
        self.ask("diff", self.good, self.good, "--junit", "/dev/null")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_a_dump(self):
        for name in ("check.py", "o.npy", "q.npy"):
            self.each(
                (link_to_file, link_to_nothing, hard_link, fifo),
                lambda at: self.ask("repro", CASE, "--device", "cpu", "--dump", at.parent),
                f"dump/{name}",
            )

    def test_what_is_read_may_be_no_file(self):
        self.each(
            (link_to_nothing, link_to_itself, folder, fifo, socket, device),
            lambda at: self.ask("list", at),
            "place.cases",
        )
        self.each(
            (link_to_nothing, link_to_itself, fifo, socket, device),
            lambda at: self.ask("decide", CASE, "--device", at, "--cudnn", "9.99.0"),
            "place.json",
        )
        self.each(
            (link_to_nothing, link_to_itself, folder, socket, device),
            lambda at: self.ask("import", at),
            "place.log",
        )
        self.each(
            (link_to_nothing, link_to_itself, fifo, socket),
            lambda at: self.ask("report", at.parent, "-o", self.at / "page"),
            "records/place.jsonl",
        )

    def plans(self, at):
        return self.ask(
            "decide", CASE, "--plan", "--plan-dir", at, "--cudnn", "9.99.0", "--device", "h100-sxm"
        )

    def refused(self, answer, said):
        self.assertEqual(answer[0], 3, answer[1])
        self.assertIn(said, answer[1])
        return 0, ""

    def test_a_plan_folder_is_ours_alone(self):
        self.each(
            (
                link_to_file,
                link_to_nothing,
                link_to_folder,
                link_to_itself,
                hard_link,
                fifo,
                socket,
                device,
            ),
            lambda at: self.refused(self.plans(at), "--plan-dir"),
        )
        for mode in (0o777, 0o770, 0o1777):
            self.setUp()
            (self.at / "plans").mkdir()
            (self.at / "plans").chmod(mode)
            self.refused(self.plans(self.at / "plans"), "nobody else may write")
        if os.geteuid() == 0:
            (self.at / "theirs").mkdir(mode=0o700)
            os.chown(self.at / "theirs", NOBODY, NOBODY)
            self.refused(self.plans(self.at / "theirs"), "must be your own folder")

    def test_the_key_of_plans(self):
        if (
            "jit"
            not in subprocess.run(
                [FACTS, "cudnn", "list"], capture_output=True, text=True, check=False
            ).stdout.split("installable")[0]
        ):
            self.skipTest("no cuDNN build is installed")
        cache = (
            pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
            / "facts/cudnn"
        )

        def ask(at):
            for build in sorted(cache.glob("*-jit-*"))[-1:]:
                status, err = self.ask(
                    "decide",
                    "pass=fwd dtype=bf16 b=1 h=1 s=128 d=64",
                    "--plan",
                    "--plan-dir",
                    self.at / "plans",
                    "--cudnn",
                    build / "lib",
                    "--device",
                    "h100-sxm",
                    "-o",
                    self.at / "r.jsonl",
                )
                self.assertTrue(status == 3 and "plan.key" in err, (status, err))
            return 0, ""

        self.each(
            (link_to_file, link_to_folder, link_to_itself, hard_link, folder, socket),
            ask,
            "cache/facts/plan.key",
        )

    def build(self):
        """A build in the cache, as the installer leaves it."""
        place = self.at / "cache/facts/cudnn/9.20.0-jit-cu13"
        (place / "lib").mkdir(parents=True)
        (place / "METADATA").write_text(
            "Metadata-Version: 2.1\nName: nvidia-cudnn-jit-cu13\nVersion: 9.20.0.48\n"
        )
        (place / "RECORD").write_text(
            "".join(f"nvidia/cudnn_jit/lib/{name},sha256=x,104\n" for name in LIBRARIES)
        )
        (place / "include").mkdir()
        (place / "include/cudnn_version.h").write_text(
            "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 20\n#define CUDNN_PATCHLEVEL 0\n"
        )
        for name in LIBRARIES:
            (place / "lib" / name).write_bytes(b"\x7fELF" + bytes(100))
        nvrtc = (
            self.at / "cache/facts/nvrtc/13.0.88/lib"
        )  # a machine without a CUDA toolkit needs one for 9.20.0
        nvrtc.mkdir(parents=True)
        for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0"):
            (nvrtc / name).write_bytes(b"\x7fELF" + bytes(100))
        for path in (
            self.at / "cache/facts",
            place.parent,
            place,
            place / "lib",
            nvrtc.parent.parent,
            nvrtc.parent,
            nvrtc,
        ):
            path.chmod(0o700)
        return place

    def test_a_cache_that_others_can_change_is_not_used(self):
        place = self.build()
        self.assertEqual(self.ask("cudnn", "path", "9.20.0-jit-cu13")[0], 0)
        nvrtc = self.at / "cache/facts/nvrtc/12.9.86/lib"
        nvrtc.mkdir(parents=True, mode=0o700)
        (nvrtc / "libnvrtc.so.12").write_bytes(b"\x7fELF" + bytes(100))
        libraries = [place / "lib" / LIBRARIES[0], nvrtc / "libnvrtc.so.12"]
        folders = [
            self.at / "cache/facts",
            place.parent,
            place,
            place / "lib",
            nvrtc.parent.parent,
            nvrtc.parent,
            nvrtc,
        ]
        for path in [*libraries, *folders]:
            path.chmod(0o700)
        for path in [*libraries, *folders]:
            for mode in (0o777, 0o720):
                path.chmod(mode)
                for words in (
                    ("cudnn", "list"),
                    ("cudnn", "path", "9.20.0-jit-cu13"),
                    ("decide", CASE, "--cudnn", "9.20.0-jit-cu13"),
                ):
                    self.refused(self.ask(*words), "others may write")
                path.chmod(0o700)
            if os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
                self.refused(
                    self.ask("cudnn", "path", "9.20.0-jit-cu13"), "belongs to somebody else"
                )
                os.chown(path, 0, 0)
        self.assertEqual(self.ask("cudnn", "path", "9.20.0-jit-cu13")[0], 0)

    def test_removing_a_build_removes_nothing_else(self):
        place = self.build()
        (place / "lib/libcudnn_link.so").symlink_to(self.victim)
        (place / "include/linked").symlink_to(self.folder)
        os.link(self.victim, place / "lib/libcudnn_hard.so")
        self.before = self.tree()
        self.assertEqual(self.ask("cudnn", "remove", "9.20.0-jit-cu13")[0], 0)
        self.assertFalse(place.exists())
        shutil.rmtree(self.at / "cache")
        (self.at / "elsewhere").mkdir()
        self.build().rename(self.outside / "build")
        (self.at / "cache/facts/cudnn/9.20.0-jit-cu13").symlink_to(self.outside / "build")
        self.before = self.tree()
        self.ask("cudnn", "remove", "9.20.0-jit-cu13")

    def test_the_installer_writes_into_no_foreign_folder(self):
        spec = "9.20.0"
        self.each(
            (link_to_file, link_to_folder, link_to_itself, hard_link, fifo),
            lambda at: self.refused(self.ask("cudnn", "install", spec), str(at)),
            "cache/facts",
        )
        for name in ("cudnn", "install.lock"):
            self.each(
                (link_to_file, link_to_folder, link_to_itself, fifo),
                lambda at: self.ask("cudnn", "install", spec),
                f"cache/facts/{name}",
            )
        self.each(
            (link_to_folder,),
            lambda at: (self.ask("cudnn", "install", spec), (0, ""))[1],
            "cache/facts/install.left",
        )


if __name__ == "__main__":
    unittest.main()
