"""A bundle runs where nothing of ours is: another folder, an empty environment, no libraries but glibc's."""

import json
import os
import re
import shlex
import sys
import tarfile
import unittest

import needs
from scripts import HOME, OneFolder, run, start

PROGRAMS = ("bin/facts", "bin/facts-worker", "bin/facts-self", "bin/nulldriver/libcuda.so.1")
GLIBC = re.compile(r"(lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-x86-64\.so\.2)")


class Bundle(OneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # All kernels would compile and link the programs again, under the tests that run beside this one.
        words = ("bundle", "--no-kernels", "--glibc", "native", "-o", cls.at / "facts.tar")
        run(HOME / "facts", *words, umask=0o077)
        with tarfile.open(cls.at / "facts.tar") as packed:
            cls.members = packed.getmembers()
            packed.extractall(cls.at)
        cls.tree = cls.at / "facts"
        python = cls.at / "bin/python3"  # -S: without the packages of this machine
        python.parent.mkdir()
        real = shlex.quote(os.path.realpath(sys.executable))
        python.write_text(f'#!/bin/sh\nexec {real} -S "$@"\n')
        python.chmod(0o755)

    def facts(self, *words):
        """With a plain Python and nothing else of this machine: no cache, no FACTS_ variable, another folder."""
        path, at = f"{self.at}/bin:/usr/bin:/bin", str(self.at)
        alone = {"PATH": path, "HOME": at, "TMPDIR": at}
        return run(self.tree / "facts", *words, cwd=self.at, env=alone)

    def test_the_archive_says_nothing_of_who_made_it_and_when(self):
        commit = start("git -C", HOME, "log", "-1", "--format=%ct").stdout.strip() or "0"
        when = int(os.environ.get("SOURCE_DATE_EPOCH", commit))
        made = {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in self.members}
        self.assertEqual(made, {(when, 0, 0, "", "")})
        modes = {m.mode for m in self.members if not m.issym()}
        self.assertEqual(modes, {0o755, 0o644}, "of the umask")
        folders = [m.name for m in self.members if m.name.count("/") == 1]
        self.assertEqual(folders, sorted(folders))

    def test_it_needs_nothing_but_glibc_and_no_build_id_tells_where_it_was_made(self):
        for program in PROGRAMS:
            needed = re.findall(r"NEEDED\s+(\S+)", run("objdump -p", self.tree / program))
            self.assertEqual([n for n in needed if not GLIBC.fullmatch(n)], [], program)
            self.assertNotIn("build-id", run("readelf -SW", self.tree / program), program)

    def test_it_holds_no_cudnn_and_no_link_that_leads_out(self):
        for path in self.tree.rglob("*"):
            self.assertNotRegex(path.name, "libcudnn|libnvrtc")
            self.assertTrue(path.resolve().is_relative_to(self.tree.resolve()), path)

    def test_it_lists_decides_and_reports(self):
        self.assertGreater(len(self.facts("list", "smoke").splitlines()), 50)
        self.assertRegex(start(self.tree / "facts", "doctor").stdout, r"(?m)^ *math +ok ")
        self.assertGreater(len(self.facts("known", "list", "--cudnn", "9.28.1").splitlines()), 50)
        words = ("--cudnn", needs.need(needs.NEW).dir, "--device", "h100-sxm", "-o", "r.jsonl")
        self.facts("decide", "pass=fwd,bwd s=128,256", *words)
        rows = [json.loads(line) for line in (self.at / "r.jsonl").read_text().splitlines()]
        verdicts = [row["verdict"] for row in rows if "case" in row and "verdict" in row]
        self.assertEqual(verdicts, ["supported"] * 4)
        self.facts("report", "r.jsonl", "-o", "page")
        self.assertIn("h100-sxm", (self.at / "page/index.html").read_text())


if __name__ == "__main__":
    unittest.main()
