"""A bundle runs where nothing of ours is: another folder, an empty environment, no libraries but glibc's."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import unittest

import needs

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAMS = ("bin/facts", "bin/facts-worker", "bin/facts-self", "bin/nulldriver/libcuda.so.1")
GLIBC = re.compile(r"(lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-x86-64\.so\.2)")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def on_debian_12():
    try:
        text = pathlib.Path("/etc/os-release").read_text()
    except OSError:
        return False
    return re.search(r"^ID=debian$", text, re.M) is not None and 'VERSION_ID="12"' in text


class Bundle(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.folder.name)
        # Kernels for the architectures that the build has: others would compile and link the programs again, under the tests that run beside this one.
        archs = re.search(
            r"^FACTS_CUDA_ARCHS:[^=]*=(.*)$",
            (HOME / "build/release/CMakeCache.txt").read_text(),
            re.M,
        )[1]
        made = subprocess.run(
            [HOME / "facts", "bundle", "--glibc", "native", "-o", cls.at / "facts.tar"],
            capture_output=True,
            text=True,
            umask=0o077,
            env={**os.environ, "FACTS_CUDA_ARCHS": archs},
        )
        if made.returncode != 0:
            raise RuntimeError(made.stderr)
        with tarfile.open(cls.at / "facts.tar") as packed:
            cls.members = packed.getmembers()
            cls.names = packed.getnames()
            packed.extractall(cls.at)
        cls.tree = cls.at / "facts"
        python = cls.at / "bin/python3"  # -S: without the packages of this machine
        python.parent.mkdir()
        python.write_text(
            f'#!/bin/sh\nexec {shlex.quote(os.path.realpath(sys.executable))} -S "$@"\n'
        )
        python.chmod(0o755)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_facts(self, *arguments):
        """With a plain Python and nothing else of this machine: no cache, no FACTS_ variable, another folder."""
        return subprocess.run(
            [self.tree / "facts", *arguments],
            capture_output=True,
            text=True,
            cwd=self.at,
            timeout=90,
            env={
                "PATH": f"{self.at}/bin:/usr/bin:/bin",
                "HOME": str(self.at),
                "TMPDIR": str(self.at),
            },
        )

    def test_the_archive_says_nothing_of_who_made_it_and_when(self):
        commit = (
            subprocess.run(
                ["git", "-C", HOME, "log", "-1", "--format=%ct"],
                capture_output=True,
                text=True,
                check=False,
            ).stdout.strip()
            or "0"
        )
        self.assertEqual(
            {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in self.members},
            {(int(os.environ.get("SOURCE_DATE_EPOCH", commit)), 0, 0, "", "")},
        )
        self.assertEqual(
            {m.mode for m in self.members if not m.issym()}, {0o755, 0o644}, "of the umask"
        )
        folders = [name for name in self.names if name.count("/") == 1]
        self.assertEqual(folders, sorted(folders))

    def test_it_needs_nothing_but_glibc(self):
        for program in PROGRAMS:
            needed = re.findall(r"NEEDED\s+(\S+)", output("objdump", "-p", self.tree / program))
            self.assertEqual([n for n in needed if not GLIBC.fullmatch(n)], [], program)

    def test_no_build_id_tells_the_folder_that_it_was_made_in(self):
        for program in PROGRAMS:
            self.assertNotIn("build-id", output("readelf", "-SW", self.tree / program), program)

    @unittest.skipUnless(on_debian_12(), "said of bundles made on Debian 12")
    def test_made_on_debian_12_it_runs_with_glibc_2_36(self):
        for program in PROGRAMS:
            asked = re.findall(r"GLIBC_([0-9.]+)", output("objdump", "-T", self.tree / program))
            self.assertLessEqual(
                max(tuple(map(int, v.split("."))) for v in asked), (2, 36), program
            )

    def test_it_holds_no_cudnn_and_no_link_that_leads_out(self):
        self.assertEqual([n for n in self.names if "libcudnn" in n or "libnvrtc" in n], [])
        for path in self.tree.rglob("*"):
            self.assertTrue(path.resolve().is_relative_to(self.tree.resolve()), path)

    def test_it_lists_its_suites(self):
        done = self.run_facts("list", "smoke")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(done.stdout.splitlines()), 50)

    def test_it_has_the_known_failures(self):
        done = self.run_facts("known", "list", "--cudnn", "9.28.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(len(done.stdout.splitlines()), 50, done.stdout)

    def test_it_decides_and_reports(self):
        cudnn = needs.need(needs.NEW).dir
        done = self.run_facts(
            "decide",
            "pass=fwd,bwd s=128,256",
            "--cudnn",
            cudnn,
            "--device",
            "h100-sxm",
            "-o",
            "r.jsonl",
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        rows = [json.loads(line) for line in (self.at / "r.jsonl").read_text().splitlines()]
        self.assertEqual(
            [r["verdict"] for r in rows if "case" in r and "verdict" in r], ["supported"] * 4
        )
        done = self.run_facts("report", "r.jsonl", "-o", "page")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("h100-sxm", (self.at / "page/index.html").read_text())


if __name__ == "__main__":
    unittest.main()
