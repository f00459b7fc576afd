"""The wheel, installed into a fresh environment without a network: the program and the Python module run there."""

import base64
import calendar
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import needs

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("FACTS_BIN", HOME / "build/release/bin")).parent


def run(*command, **more):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        **more,
    )
    if done.returncode:
        raise AssertionError(
            f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        )
    return done.stdout


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.at = pathlib.Path(cls.folder.name)
        cls.wheel = cls.made("one")
        cls.version = re.search(
            r"^project\(facts VERSION ([0-9.]+)", (HOME / "CMakeLists.txt").read_text(), re.M
        )[1]
        cls.bin = cls.at / "venv/bin"
        run(sys.executable, "-m", "venv", cls.at / "venv")
        run(
            cls.bin / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-index",
            "--no-deps",
            cls.wheel,
        )

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def made(cls, name, **environment):
        """As it was linked; from another folder, under another umask: neither may show."""
        return pathlib.Path(
            run(
                sys.executable,
                HOME / "ci/package/wheel.py",
                "-o",
                cls.at / name,
                "--build",
                BUILD,
                "--glibc",
                "native",
                cwd=cls.at,
                umask=0o077 if environment else -1,
                env={**os.environ, **environment},
            ).strip()
        )

    def installed(self, *command):
        """Nothing of this machine but /usr/bin: no cache, no FACTS_ variable, another folder."""
        return run(
            self.bin / command[0],
            *command[1:],
            cwd=self.at,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.at), "TMPDIR": str(self.at)},
        )

    def cudnn(self):
        return needs.need(needs.NEW).dir

    def test_the_same_bytes_again(self):
        commit = run("git", "-C", HOME, "log", "-1", "--format=%ct").strip()
        again = self.made("two", TZ="Asia/Tokyo", SOURCE_DATE_EPOCH=commit)
        self.assertEqual(again.name, self.wheel.name)
        self.assertEqual(again.read_bytes(), self.wheel.read_bytes())
        with zipfile.ZipFile(again) as wheel:
            seconds = {calendar.timegm((*entry.date_time, 0, 0, 0)) for entry in wheel.infolist()}
        self.assertEqual(seconds, {int(commit) // 2 * 2})  # a zip file counts in twos

    def test_the_record_names_every_file_with_its_hash(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            names = wheel.namelist()
            record = f"facts_cudnn-{self.version}.dist-info/RECORD"
            rows = dict(line.split(",", 1) for line in wheel.read(record).decode().splitlines())
            self.assertEqual(set(rows), set(names))
            self.assertEqual(len(names), len(set(names)))
            for name in set(names) - {record}:
                content = wheel.read(name)
                digest = (
                    base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                )
                self.assertEqual(rows[name], f"sha256={digest},{len(content)}", name)
            self.assertEqual(
                [
                    name
                    for name in names
                    if "libcudnn" in name or "libnvrtc" in name or "__pycache__" in name
                ],
                [],
            )

    def test_its_page_needs_no_checkout(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            page = wheel.read(f"facts_cudnn-{self.version}.dist-info/METADATA").decode()
        self.assertEqual(re.findall(r"\]\((?!https:)[^)]*\)|\./\w+|ci/\S+", page), [])
        self.assertIn("fattn.attention", page)

    def test_the_tag_is_the_newest_glibc_that_is_needed(self):
        asked = []
        for path in (self.at / "venv").rglob("*"):
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
                asked += re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", path))
        newest = max((int(a), int(b)) for a, b in asked)
        self.assertEqual(
            self.wheel.name,
            f"facts_cudnn-{self.version}-py3-none-manylinux_{newest[0]}_{newest[1]}_{platform.machine()}.whl",
        )

    def test_it_runs(self):
        self.assertIn(self.version, self.installed("facts", "--version"))
        self.assertGreater(len(self.installed("facts", "list", "smoke").splitlines()), 50)
        for command in (("python", "-m", "facts_cudnn"), ("facts-cudnn",)):  # pipx run facts-cudnn
            self.assertEqual(
                self.installed(*command, "--version"), self.installed("facts", "--version")
            )

    def test_it_decides_on_a_described_device(self):
        said = self.installed(
            "facts",
            "decide",
            "pass=fwd,bwd s=128",
            "--cudnn",
            self.cudnn(),
            "--device",
            "h100-sxm",
            "-o",
            "r.jsonl",
        )
        self.assertRegex(said, r"h100-sxm +yes 2\n")
        self.installed("facts", "report", "r.jsonl", "-o", "page")
        self.assertIn("h100-sxm", (self.at / "page/index.html").read_text())

    def test_it_runs_cases_on_the_cpu(self):
        said = self.installed(
            "facts",
            "run",
            "smoke",
            "--device",
            "cpu",
            "--where",
            "s=128 & dtype=f16",
            "-o",
            "cpu.jsonl",
        )
        self.assertRegex(said, r"cpu +pass 4\n")

    def test_the_module_is_there_with_its_library(self):
        said = self.installed(
            "python",
            "-c",
            "import fattn; d = fattn.decide(fattn.Problem(dtype='f32', batch=1, heads_q=1, seq_q=8, seq_kv=8, dim_qk=16)); print(d); "
            "print(fattn.library.path())",
        )
        self.assertTrue(said.startswith("supported: cpu"), said)
        self.assertIn(str(self.at / "venv"), said)

    def test_the_module_knows_the_described_devices(self):
        said = self.installed(
            "python",
            "-c",
            f"import fattn; print(fattn.decide(fattn.Problem(batch=1, heads_q=1, seq_q=128, seq_kv=128, dim_qk=64), "
            f"context=fattn.Context('h100-sxm', {self.cudnn()!r})))",
        )
        self.assertTrue(said.startswith("supported: cudnn"), said)


if __name__ == "__main__":
    unittest.main()
