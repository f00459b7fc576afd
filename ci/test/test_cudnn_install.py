"""The installer against damaged, changed and unknown packages: after a failure nothing is left, and what was there stays.

A folder of tiny wheels stands in for the package index, so no network is used.
"""

import hashlib
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import unittest
import warnings
import zipfile

import wheels
from wheels import LIBRARIES, PACKAGE, SPEC, VERSION, WHEEL, make_wheel, tree

# In place of pip where none of its own checks is asked: it starts in a tenth of the time, and checks no sha256.
COPY = """import os, re, shutil, sys
there, to = os.environ["PIP_FIND_LINKS"], sys.argv[sys.argv.index("--dest") + 1]
name = re.match("[^=]*", open(sys.argv[sys.argv.index("--requirement") + 1]).read())[0].replace("-", "_")
os.mkdir(to)
for file in os.listdir(there):
    if file.startswith(name + "-"):
        shutil.copy(os.path.join(there, file), to)
"""
# Ends the installer after its folder is made, and before the name of it is known.
EARLY = """import os, signal, tempfile
make = tempfile.mkdtemp
def make_and_end(*args, **more):
    folder = make(*args, **more)
    os.kill(os.getpid(), signal.SIGTERM)
    return folder
tempfile.mkdtemp = make_and_end
"""
LIBRARY = f"nvidia/cudnn_jit/lib/{LIBRARIES[0]}"
RECORD = f"{PACKAGE.replace('-', '_')}-{VERSION}.dist-info/RECORD"


def recorded(entries):
    """Entries with a RECORD that agrees with them."""
    entries = [(name, data) for name, data in entries if name != RECORD]
    names = [getattr(name, "filename", name) for name, _ in entries]
    rows = zip(names, (data for _, data in entries))
    text = "".join(f"{name},{wheels.sha256(data)},{len(data)}\n" for name, data in rows)
    return [*entries, (RECORD, text.encode())]


class Folder(wheels.Home):
    def setUp(self):
        super().setUp()
        self.pin(make_wheel(self.index / WHEEL))

    def copier(self):
        """The environment in which `python -m pip` copies."""
        self.put("bin/pip/__init__.py", "")
        self.put("bin/pip/__main__.py", COPY)
        return {"PYTHONPATH": str(self.at / "bin")}

    def pin(self, sha256):
        self.lock.write_text(f"# comment\n{PACKAGE} {VERSION} {sha256} 1234 {WHEEL}\n")


class Install(Folder):
    def fails(self, status, count, says=".", words=(), **add):
        """The installer ends so, with so many lines, and installs nothing."""
        found, _, lines = self.install(*words, **add)
        self.assertEqual((found, len(lines)), (status, count), lines)
        self.assertRegex(lines[-1], says)
        self.assertTrue("".join(lines).isprintable())
        self.assert_nothing_there()

    def test_keeps_three_libraries_headers_and_metadata_and_clears_what_a_killed_one_left(self):
        (self.cache / "install.dead" / "wheel").mkdir(parents=True)
        self.cache.chmod(0o700)
        self.assertEqual(self.install()[0], 0)
        kept = {f"lib/{name}" for name in LIBRARIES}
        kept |= {"include/cudnn_version.h", "RECORD", "METADATA"}
        self.assertEqual(set(tree(self.cache / "cudnn" / "9.20.0-jit-cu13")), kept)
        self.assertEqual(self.cache.stat().st_mode & 0o777, 0o700)
        self.assertEqual(list(self.cache.glob("install.*/")), [])
        # A flipped byte: the old build stays.
        before, whole = tree(self.cache), bytearray((self.index / WHEEL).read_bytes())
        whole[len(whole) // 3] ^= 0x10
        (self.index / WHEEL).write_bytes(whole)
        status, _, lines = self.install()
        self.assertEqual((status, tree(self.cache)), (3, before))
        self.assertIn("sha256 is not the one in cudnn.lock", lines[-1])

    def test_a_damaged_or_unknown_package_installs_nothing(self):
        whole = (self.index / WHEEL).read_bytes()
        for part in (0, len(whole) // 2):
            (self.index / WHEEL).write_bytes(whole[:part])
            self.fails(3, 2)  # what is being installed, and why not
        make_wheel(self.index / WHEEL, wheels.cudnn_files(seed=2))
        self.fails(3, 2, "sha256 is not the one in cudnn.lock")
        self.pin(make_wheel(self.index / WHEEL, lie="libcudnn_graph.so.9"))
        self.fails(3, 2, "RECORD", **self.copier())
        (self.index / WHEEL).unlink()
        self.fails(3, 2)
        self.fails(2, 1, words=[f"{PACKAGE}==9.99.0.1"])

    def test_without_pip_any_cut_or_flip_is_refused_or_harmless(self):
        """The second line of defence: what is unpacked is compared with RECORD, whatever fetched it."""
        spec = importlib.util.spec_from_file_location("cudnn_install", self.script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        whole = (self.index / WHEEL).read_bytes()
        rng = random.Random(7)
        damaged = [whole, *(whole[: len(whole) * n // 20] for n in range(20))]
        for _ in range(100):
            at = rng.randrange(len(whole))
            flipped = bytes([whole[at] ^ 1 << rng.randrange(8)])
            damaged.append(whole[:at] + flipped + whole[at + 1 :])
        refused, right = 0, {}
        for number, data in enumerate(damaged):
            (self.at / WHEEL).write_bytes(data)
            out = self.at / f"out{number}"
            out.mkdir()
            try:
                module.unpack(self.at / WHEEL, module.KEEP_CUDNN, out)
            except Exception:  # which one is the zip reader's choice; main() makes it one line
                refused += 1
                continue
            found = tree(out)
            right = right or found
            differing = {n for n in found.keys() | right.keys() if found.get(n) != right.get(n)}
            self.assertLessEqual(differing, {"RECORD", "METADATA"})
        self.assertGreater(refused, 90)

    def test_a_hostile_wheel_is_refused(self):
        link = zipfile.ZipInfo(LIBRARY)
        link.external_attr = 0o120777 << 16
        make_wheel(self.index / WHEEL)
        with zipfile.ZipFile(self.index / WHEEL) as good:
            entries = {name: good.read(name) for name in good.namelist()}
        others = [(name, data) for name, data in entries.items() if name != LIBRARY]
        data, large, header = entries[LIBRARY], bytes(64 << 20), "nvidia/include/\x1b[31m\u202e.h"
        more = lambda name: recorded([*entries.items(), (name, b"another")])
        content = lambda name, data: list({**entries, name: data}.items())
        copier = self.copier()
        for bad, says in (
            (recorded([*others, ("../" * 9 + LIBRARY, data)]), "does not belong"),
            (recorded([*others, ("/tmp/" + LIBRARY, data)]), "does not belong"),
            (recorded([*others, ("a\\..\\" + LIBRARY, data)]), "does not belong"),
            (recorded([*others, (link, b"/etc/passwd")]), "is no file"),
            (more(LIBRARY), "twice"),
            (more("other/lib/" + LIBRARIES[0]), "one place"),
            (content(LIBRARY, large), "as large as the wheel"),
            (content(RECORD, large), "larger than 4 MiB"),
            (content(RECORD, b"\xff\xfe"), "cannot be read"),
            (content(RECORD, b""), "not what"),
            (list({**dict(more(header)), header: b"x"}.items()), "not what"),
        ):
            with self.subTest(says), zipfile.ZipFile(self.index / WHEEL, "w", 8) as archive:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a name that is there twice
                    for name, data in bad:
                        archive.writestr(name, data)
                archive.close()
                self.pin(hashlib.sha256((self.index / WHEEL).read_bytes()).hexdigest())
                before = self.outside()
                self.fails(3, 2, WHEEL + ": .*" + says, **copier)
                self.assertEqual(self.outside(), before)

    def outside(self):
        """What lies beside the cache; the bytecode of the copier is Python's."""
        paths = {p for p in self.at.rglob("*") if self.cache not in p.parents}
        return {p for p in paths if "__pycache__" not in p.parts} - {self.cache}

    def test_a_damaged_lock_is_one_line_with_its_place(self):
        good = self.lock.read_text()
        for bad in (
            good + "a b c\n",
            good + "\xff\x1b[31m 1 2 3 4\n",
            good.replace(" 1234 ", " x "),
            good + good.split("\n")[1] + " more\n",
        ):
            self.lock.write_bytes(bad.encode("latin-1"))
            self.fails(3, 1, r"cudnn\.lock:[23]: not \"package")

    def test_a_cache_that_is_a_link_or_that_others_may_write_to_is_refused(self):
        (self.at / "elsewhere").mkdir()
        self.cache.symlink_to(self.at / "elsewhere")
        self.fails(3, 1)
        self.cache.unlink()
        self.cache.mkdir()
        self.cache.chmod(0o777)
        self.fails(3, 1)

    def test_ended_in_the_middle_leaves_nothing(self):
        for wait in (0.05, 0.2, 0.4):
            child = subprocess.Popen(
                [sys.executable, self.script, "--cache", self.cache, SPEC],
                env={**os.environ, **self.from_folder},
                stderr=subprocess.DEVNULL,
            )
            time.sleep(wait)
            child.send_signal(signal.SIGTERM)
            child.wait()
            self.assertEqual(list(self.cache.glob("install.*/")), [])
            self.assertIn(len(tree(self.cache)), (0, 6))
        shutil.rmtree(self.cache, ignore_errors=True)
        self.put("early/sitecustomize.py", EARLY)
        self.assertEqual(self.install(PYTHONPATH=str(self.at / "early"))[0], 130)
        self.assert_nothing_there()

    def test_it_ends_with_the_command_that_started_it_and_another_one_says_that_it_waits(self):
        """pip stands still: without the end of its command it would keep the lock."""
        self.put("bin/pip/__init__.py", "")
        self.put("bin/pip/__main__.py", "import time; time.sleep(60)")
        words = [sys.executable, self.script, "--cache", self.cache, SPEC]
        script = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        command = subprocess.Popen(
            [sys.executable, "-c", script, *words],
            env={**os.environ, **self.from_folder, "PYTHONPATH": str(self.at / "bin")},
            stderr=subprocess.DEVNULL,
        )
        while not list(self.cache.glob("install.*/requirements.txt")):
            time.sleep(0.02)
        other = subprocess.Popen(
            words, env={**os.environ, **self.from_folder}, stderr=subprocess.PIPE, text=True
        )
        self.assertIn("another installation runs; waiting", other.stderr.readline())
        command.kill()
        command.wait()
        self.assertEqual(other.wait(40), 0)  # less than pip would stand still
        self.assertEqual(list(self.cache.glob("install.*/")), [])
        self.assertEqual(len(tree(self.cache)), 6)


class Tool(Folder):
    """nvcc: several wheels that are one folder."""

    NEEDED = {
        "nvidia-cuda-nvcc": ("bin/nvcc", "bin/nvcc.profile", "bin/ptxas", "bin/fatbinary"),
        "nvidia-nvvm": ("nvvm/bin/cicc", "nvvm/libdevice/libdevice.10.bc"),
        "nvidia-cuda-crt": ("include/crt/host_config.h",),
        "nvidia-cuda-runtime": ("include/cuda_fp16.h", "include/cooperative_groups/details/sync.h"),
    }
    NOT_NEEDED = ("bin/nvlink", "lib/libnvvm.so.4", "lib/libcudart.so.13")

    def setUp(self):
        super().setUp()
        self.lines = {name: self.part(name, *files) for name, files in self.NEEDED.items()}
        self.lock.write_text("".join(self.lines.values()))
        self.tool = self.cache / "nvcc" / "13.0.88"

    def part(self, package, *names):
        """A wheel of one part of the toolkit; returns its line of the lock."""
        path = self.index / f"{package.replace('-', '_')}-13.0.88-py3-none-any.whl"
        files = {f"nvidia/cu13/{name}": name.encode() for name in (*names, *self.NOT_NEEDED)}
        digest = make_wheel(path, files, package=package, version="13.0.88")
        return f"{package} 13.0.88 {digest} {path.stat().st_size} {path.name}\n"

    def test_what_compiling_needs_lies_where_nvcc_looks_and_is_not_fetched_again(self):
        nvcc = str(self.tool / "bin/nvcc")
        status, program, lines = self.install("--tool", "nvcc")
        self.assertEqual((status, program, len(lines)), (0, nvcc, 1), lines)
        found = {name for name in tree(self.tool) if not name.startswith("nvidia-")}
        self.assertEqual(found, {name for files in self.NEEDED.values() for name in files})
        for name in ("bin/nvcc", "nvvm/bin/cicc"):
            self.assertTrue(os.access(self.tool / name, os.X_OK))
        shutil.rmtree(self.index)
        self.assertEqual(self.install("--tool", "nvcc"), (0, nvcc, []))

    def test_with_one_part_damaged_there_is_no_compiler(self):
        copier = self.copier()
        for package in (list(self.NEEDED)[0], list(self.NEEDED)[-1]):
            path = next(self.index.glob(package.replace("-", "_") + "-*"))
            whole = path.read_bytes()
            path.write_bytes(whole[:-1] + b"?")
            status, program, lines = self.install("--tool", "nvcc", **copier)
            self.assertEqual((status, program), (3, ""), lines)
            self.assertIn("sha256 is not the one in cudnn.lock", lines[-1])
            self.assert_nothing_there()
            path.write_bytes(whole)

    def test_a_name_that_leads_out_is_refused(self):
        copier = self.copier()
        for name in ("include/../../../evil.h", "include//evil.h", "include/.evil.h"):
            lines = {**self.lines, "nvidia-cuda-crt": self.part("nvidia-cuda-crt", name)}
            self.lock.write_text("".join(lines.values()))
            status, _, said = self.install("--tool", "nvcc", **copier)
            self.assertEqual(status, 3, said)
            self.assert_nothing_there()
            self.assertEqual(list(self.at.rglob("*evil.h")), [])


if __name__ == "__main__":
    unittest.main()
