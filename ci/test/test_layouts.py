"""Links, folders, pipes, owners and modes in the places that FACTS writes to and reads from: refused with a clear line, or harmless.

A file and a folder of somebody else stand outside. After each command they are as they were.
"""

import itertools
import os
import pathlib
import shutil
import sys
import unittest

from scripts import FACTS, HOME, OneFolder, run, start

CASE = "pass=fwd dtype=f32 b=1 h=1 s=16 d=16"
NOBODY = 65534
LIBRARIES = ("libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9")
ELF = b"\x7fELF" + bytes(100)
LAYOUTS = {
    "link to a file": lambda at, t: at.symlink_to(t.victim),
    "link to nothing": lambda at, t: at.symlink_to(t.outside / "new"),
    "link to a folder": lambda at, t: at.symlink_to(t.folder),
    "hard link": lambda at, t: os.link(t.victim, at),
    "folder": lambda at, t: at.mkdir(),
    "pipe": lambda at, t: os.mkfifo(at),
}
FILES = ("link to a file", "link to nothing", "hard link", "pipe")  # in place of a file


class Layouts(OneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.top, cls.good = cls.at, cls.at / "good.jsonl"
        words = ("run", CASE, "--device", "cpu", "-o", cls.good)
        run(FACTS, *words, add={"FACTS_HOME": str(HOME)})

    def setUp(self):
        self.at = self.top / "now"
        shutil.rmtree(self.at, ignore_errors=True)
        self.outside = self.at / "outside"
        self.folder, self.victim = self.outside / "folder", self.outside / "victim"
        self.folder.mkdir(parents=True)
        self.victim.write_bytes(self.good.read_bytes())
        (self.folder / "victim").write_text("kept\n")
        for path in (self.victim, self.folder / "victim"):
            path.chmod(0o640)
        self.before = self.tree()

    def tree(self):
        paths = self.outside.rglob("*")
        return {p: (p.lstat().st_mode, p.read_bytes() if p.is_file() else b"") for p in paths}

    def ask(self, *words, status=None, said=""):
        """What stands outside did not change; nothing hangs; the answer is this status and says this."""
        add = {
            "FACTS_HOME": str(HOME),
            "XDG_CACHE_HOME": str(self.at / "cache"),
            "PIP_NO_INDEX": "1",
            "FACTS_PYTHON": os.environ.get("FACTS_PYTHON") or sys.executable,
        }
        done = start(FACTS, *words, cwd=self.at, timeout=60, add=add)
        self.assertEqual(self.tree(), self.before, done.stderr)
        self.assertIn(done.returncode, range(6) if status is None else (status,), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        if done.returncode in (2, 3):
            self.assertIn(said, done.stderr.strip().splitlines()[-1])
        return done

    def each(self, layouts, place, *words, status=None):
        """Asks with PLACE, and FOLDER above it, in the words."""
        for name in layouts:
            with self.subTest(f"{name} for {place}: {' '.join(map(str, words))}"):
                self.setUp()
                at = self.at / place
                at.parent.mkdir(parents=True, exist_ok=True)
                LAYOUTS[name](at, self)
                self.before = self.tree()
                named = {"PLACE": at, "FOLDER": at.parent}
                self.ask(*(named.get(word, word) for word in words), status=status, said=at.name)

    def test_a_record_is_a_file_of_its_own(self):
        words = ("run", CASE, "--device", "cpu", "-o", "PLACE")
        self.each(LAYOUTS, "place", *words)
        self.each(FILES, "place", *words, "--overwrite", status=3)
        self.each(("link to a file", "pipe"), "place", *words, "--resume")
        self.each(FILES, "place", "merge", self.good, "-o", "PLACE", "--overwrite")
        (self.at / "linked").symlink_to(self.at)
        for path in ("linked/new.jsonl", "outside/../new.jsonl"):
            self.ask(*words[:-1], self.at / path, "--overwrite", status=0)

    def test_a_page_a_gate_s_files_and_a_dump(self):
        self.each(LAYOUTS, "page/index.html", "report", self.good, "-o", "FOLDER")
        for place, *words in (
            ("page/results.csv", "report", self.good, "-o", "FOLDER"),
            ("page", "report", self.good, "-o", "PLACE"),
            ("site/index.html", "report", self.good, "--site", "FOLDER"),
            ("x.xml", "diff", self.good, self.good, "--junit", "PLACE"),
            ("dump/o.npy", "repro", CASE, "--device", "cpu", "--dump", "FOLDER"),
        ):
            self.each(("link to a file", "pipe"), place, *words)
        self.ask("diff", self.good, self.good, "--junit", "/dev/null")
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())

    def test_what_is_read_may_be_no_file(self):
        for place, *words in (
            ("place.cases", "list", "PLACE"),
            ("place.json", "decide", CASE, "--cudnn", "9.99.0", "--device", "PLACE"),
            ("records/place.jsonl", "report", "FOLDER", "-o", "page"),
        ):
            self.each(("link to nothing", "folder", "pipe"), place, *words)
        self.each(("link to nothing", "folder"), "place.log", "import", "PLACE")

    def test_a_plan_folder_is_ours_alone(self):
        words = ("decide", CASE, "--cudnn", "9.99.0", "--device", "h100-sxm", "--plan")
        self.each((*FILES, "link to a folder"), "place", *words, "--plan-dir", "PLACE", status=3)
        for owner, mode, said in (
            (None, 0o777, "nobody else may write"),
            (None, 0o770, "nobody else may write"),
            (NOBODY, 0o700, "must be your own folder"),
        ):
            if owner is None or os.geteuid() == 0:
                self.setUp()
                plans = self.at / "plans"
                plans.mkdir()
                plans.chmod(mode)
                os.chown(plans, owner or -1, -1)
                self.ask(*words, "--plan-dir", plans, status=3, said=said)

    def build(self):
        """A build in the cache, as the installer leaves it, and NVRTC; all folders."""
        cache = self.at / "cache/facts"
        place = cache / "cudnn/9.20.0-jit-cu13"
        files = {
            "METADATA": b"Metadata-Version: 2.1\nName: nvidia-cudnn-jit-cu13\nVersion: 9.20.0.48\n",
            "RECORD": b"".join(
                b"nvidia/cudnn_jit/lib/%s,sha256=x,104\n" % n.encode() for n in LIBRARIES
            ),
            "include/cudnn_version.h": b"#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 20\n#define CUDNN_PATCHLEVEL 0\n",
            **{f"lib/{name}": ELF for name in LIBRARIES},
        }
        files = {place / name: data for name, data in files.items()}
        for name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0"):
            files[cache / "nvrtc/13.0.88/lib" / name] = ELF
        for path, data in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        folders = [cache, *(path for path in cache.rglob("*") if path.is_dir())]
        for path in folders:
            path.chmod(0o700)
        return place, [path for path in folders if path.name != "include"]

    def test_a_cache_that_others_can_change_is_not_used(self):
        place, folders = self.build()
        asked = ("cudnn", "path", "9.20.0-jit-cu13")
        self.ask(*asked, status=0)
        decide = ("decide", CASE, "--cudnn", "9.20.0-jit-cu13")
        ways = itertools.cycle(((0o777, asked), (0o720, ("cudnn", "list")), (0o777, decide)))
        for path, (mode, words) in zip((place / "lib" / LIBRARIES[0], *folders), ways):
            old = path.stat().st_mode
            path.chmod(mode)
            self.assertIn("others may write", self.ask(*words, status=3).stderr)
            path.chmod(old)
            if os.geteuid() == 0:
                os.chown(path, NOBODY, NOBODY)
                self.assertIn("belongs to somebody else", self.ask(*asked, status=3).stderr)
                os.chown(path, 0, 0)
        self.ask(*asked, status=0)

    def test_removing_a_build_removes_nothing_else(self):
        remove = ("cudnn", "remove", "9.20.0-jit-cu13")
        place, _ = self.build()
        (place / "lib/libcudnn_link.so").symlink_to(self.victim)
        (place / "include/linked").symlink_to(self.folder)
        self.ask(*remove, status=0)
        self.assertFalse(place.exists())
        shutil.rmtree(self.at / "cache")
        self.build()[0].rename(self.outside / "build")
        place.symlink_to(self.outside / "build")
        self.before = self.tree()
        self.ask(*remove)
        self.ask("cudnn", "remove", "--all", status=0)
        place.unlink()
        self.build()
        self.ask("cudnn", "remove", "--all", status=0)
        self.assertFalse(place.exists())

    def test_the_installer_writes_into_no_foreign_folder(self):
        install = ("cudnn", "install", "9.20.0")
        linked = ("link to a file", "link to a folder", "pipe")
        self.each(linked, "cache/facts", *install, status=3)
        self.each(linked, "cache/facts/cudnn", *install)
        self.each(linked, "cache/facts/install.lock", *install)
        self.setUp()
        (self.at / "cache/facts").mkdir(mode=0o700, parents=True)
        (self.at / "cache/facts/install.left").symlink_to(self.folder)
        self.ask(*install)


if __name__ == "__main__":
    unittest.main()
