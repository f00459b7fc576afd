"""The wheel, installed into a fresh environment without a network: the program and the Python module run there."""

import base64
import calendar
import hashlib
import pathlib
import platform
import re
import sys
import unittest
import zipfile

import needs
import wheels
from scripts import BUILD, HOME, VERSION, OneFolder, run, start

INFO = f"facts_cudnn-{VERSION}.dist-info"


class Wheel(OneFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.wheel = cls.made("one")
        cls.bin = cls.at / "venv/bin"
        run(wheels.python(cls.at), "-m", "venv", cls.at / "venv")
        words = "-m pip install --quiet --no-index --no-deps --no-compile"
        run(cls.bin / "python", *words.split(), cls.wheel)

    @classmethod
    def made(cls, name, **environment):
        """As it was linked; from another folder, under another umask: neither may show."""
        script, umask = HOME / "ci/package/wheel.py", 0o077 if environment else -1
        words = ("-o", cls.at / name, "--build", BUILD, "--glibc", "native", "--no-kernels")
        said = run(sys.executable, script, *words, cwd=cls.at, umask=umask, add=environment)
        return pathlib.Path(said.strip())

    def installed(self, program, *words):
        """Nothing of this machine but /usr/bin: no cache, no FACTS_ variable, another folder."""
        alone = {"PATH": "/usr/bin:/bin", "HOME": str(self.at), "TMPDIR": str(self.at)}
        return run(self.bin / program, *words, cwd=self.at, env=alone)

    def test_the_same_bytes_again(self):
        commit = run("git -C", HOME, "log", "-1", "--format=%ct").strip()
        again = self.made("two", TZ="Asia/Tokyo", SOURCE_DATE_EPOCH=commit)
        self.assertEqual(again.name, self.wheel.name)
        self.assertEqual(again.read_bytes(), self.wheel.read_bytes())
        with zipfile.ZipFile(again) as wheel:
            seconds = {calendar.timegm((*entry.date_time, 0, 0, 0)) for entry in wheel.infolist()}
        self.assertEqual(seconds, {int(commit) // 2 * 2})  # a zip file counts in twos

    def test_the_record_names_every_file_with_its_hash(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            rows = [f"{INFO}/RECORD,,"]
            for name in set(wheel.namelist()) - {f"{INFO}/RECORD"}:
                content = wheel.read(name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
                rows.append(f"{name},sha256={digest.decode()},{len(content)}")
                self.assertNotRegex(name, "libcudnn|libnvrtc|__pycache__")
            record = wheel.read(f"{INFO}/RECORD").decode()
            page = wheel.read(f"{INFO}/METADATA").decode()
        self.assertEqual(sorted(record.splitlines()), sorted(rows))
        # Its page needs no checkout.
        self.assertEqual(re.findall(r"\]\((?!https:)[^)]*\)|\./\w+|ci/\S+", page), [])
        self.assertIn("fattn.attention", page)
        for name in re.findall("^License-File: (.*)", page, re.M):
            self.assertIn(f"{INFO}/licenses/{name},", record)
        self.assertGreater(page.count("License-File"), 5)

    def test_the_tag_is_the_newest_glibc_that_is_needed(self):
        asked = []
        for path in (self.at / "venv").rglob("*"):
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
                asked += re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump -T", path))
        newest = max((int(a), int(b)) for a, b in asked)
        tag = f"py3-none-manylinux_{newest[0]}_{newest[1]}_{platform.machine()}"
        self.assertEqual(self.wheel.name, f"facts_cudnn-{VERSION}-{tag}.whl")

    def test_it_runs(self):
        for command in (("facts",), ("python", "-m", "facts_cudnn"), ("facts-cudnn",)):
            self.assertIn(VERSION, self.installed(*command, "--version"))
        self.assertRegex(start(self.bin / "facts", "doctor").stdout, r"(?m)^ *math +ok ")
        words = ("--device", "cpu", "--where", "s=128 & dtype=f16", "-o", "cpu.jsonl")
        self.assertRegex(self.installed("facts", "run", "smoke", *words), r"cpu +pass 4\n")
        words = ("--cudnn", needs.need(needs.NEW).dir, "--device", "h100-sxm", "-o", "r.jsonl")
        said = self.installed("facts", "decide", "pass=fwd,bwd s=128", *words)
        self.assertRegex(said, r"h100-sxm +yes 2\n")
        self.installed("facts", "report", "r.jsonl", "-o", "page")
        self.assertIn("h100-sxm", (self.at / "page/index.html").read_text())

    def test_the_module_is_there_with_its_library_and_the_described_devices(self):
        said = self.installed(
            "python",
            "-c",
            "import fattn; print(fattn.library.path()); p = dict(batch=1, heads_q=1, seq_q=128, seq_kv=128, dim_qk=64)\n"
            "print(fattn.decide(fattn.Problem(dtype='f32', **p)))\n"
            f"h100 = fattn.Context('h100-sxm', {needs.need(needs.NEW).dir!r}); print(fattn.decide(fattn.Problem(**p), context=h100))",
        ).splitlines()
        self.assertIn(str(self.at / "venv"), said[0])
        decisions = [line for line in said if line.startswith("supported: ")]
        self.assertRegex(" ".join(decisions), "^supported: cpu.* supported: cudnn")


if __name__ == "__main__":
    unittest.main()
