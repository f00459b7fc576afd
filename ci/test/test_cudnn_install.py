"""The installer against damaged, changed and unknown packages: after a failure nothing is left, and what was there stays.

A folder of tiny wheels stands in for the package index, so no network is used.
"""

import base64
import hashlib
import importlib.util
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import warnings
import zipfile

CI = pathlib.Path(__file__).resolve().parent.parent
PACKAGE, VERSION = "nvidia-cudnn-jit-cu13", "9.20.0.48"
SPEC = f"{PACKAGE}=={VERSION}"
WHEEL = f"nvidia_cudnn_jit_cu13-{VERSION}-py3-none-manylinux_2_27_x86_64.whl"
LIBRARIES = ("libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9")


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


def b64(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def make_wheel(path, seed=1, lie="", package=PACKAGE, version=VERSION):
    rng = random.Random(seed)
    files = {f"nvidia/cudnn_jit/lib/{name}": rng.randbytes(3000) for name in LIBRARIES}
    files["nvidia/cudnn_jit/lib/libcudnn_other.so.9"] = rng.randbytes(2000)
    files["nvidia/cudnn_jit/include/cudnn_version.h"] = b"#define CUDNN_MAJOR 9\n"
    files["nvidia/../../evil/lib/libcudnn.so.9.txt"] = b"a path that leads out"
    info = f"{package.replace('-', '_')}-{version}.dist-info"
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n\n".encode()
    )
    files[f"{info}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-manylinux_2_27_x86_64\n"
    )
    record = "".join(
        f"{name},{b64(data + (b'x' if lie and name.endswith(lie) else b''))},{len(data)}\n"
        for name, data in files.items()
    )
    files[f"{info}/RECORD"] = (record + f"{info}/RECORD,,\n").encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tree(folder):
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and p.name != "install.lock"
    }


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.index, self.cache, home = (
            self.folder / "index",
            self.folder / "cache",
            self.folder / "ci",
        )
        for path in (self.index, home):
            path.mkdir()
        self.script, self.lock = home / "cudnn_install.py", home / "cudnn.lock"
        shutil.copy(CI / "cudnn_install.py", self.script)
        self.pin(make_wheel(self.index / WHEEL))

    def copier(self):
        """The environment in which `python -m pip` copies."""
        (self.folder / "bin/pip").mkdir(parents=True, exist_ok=True)
        (self.folder / "bin/pip/__init__.py").write_text("")
        (self.folder / "bin/pip/__main__.py").write_text(COPY)
        return {"PYTHONPATH": str(self.folder / "bin")}

    def pin(self, sha256):
        self.lock.write_text(f"# comment\n{PACKAGE} {VERSION} {sha256} 1234 {WHEEL}\n")

    def assert_nothing_there(self):
        self.assertEqual(tree(self.cache), {})
        self.assertEqual(list(self.cache.glob("install.*/")), [])


class Install(Folder):
    def run_script(self, *packages, **more):
        env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index), **more}
        done = subprocess.run(
            [sys.executable, str(self.script), "--cache", str(self.cache), *(packages or (SPEC,))],
            env=env,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode, done.stderr.strip().splitlines()

    def module(self):
        spec = importlib.util.spec_from_file_location("cudnn_install", self.script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_keeps_three_libraries_headers_and_metadata(self):
        self.assertEqual(self.run_script()[0], 0)
        build = self.cache / "cudnn" / "9.20.0-jit-cu13"
        self.assertEqual(
            set(tree(build)),
            {f"lib/{n}" for n in LIBRARIES} | {"include/cudnn_version.h", "RECORD", "METADATA"},
        )
        self.assertEqual(self.cache.stat().st_mode & 0o777, 0o700)

    def test_truncated_wheel_installs_nothing(self):
        whole = (self.index / WHEEL).read_bytes()
        for part in (0, 1, len(whole) // 2, len(whole) - 1):
            (self.index / WHEEL).write_bytes(whole[:part])
            status, lines = self.run_script()
            self.assertEqual(status, 3, lines)
            self.assert_nothing_there()
            self.assertEqual(len(lines), 2, lines)  # what is being installed, and why not

    def test_flipped_byte_installs_nothing_and_the_old_stays(self):
        self.assertEqual(self.run_script()[0], 0)
        before = tree(self.cache)
        whole = bytearray((self.index / WHEEL).read_bytes())
        whole[len(whole) // 3] ^= 0x10
        (self.index / WHEEL).write_bytes(whole)
        status, lines = self.run_script()
        self.assertEqual(status, 3)
        self.assertIn("sha256 is not the one in cudnn.lock", lines[-1])
        self.assertEqual(tree(self.cache), before)

    def test_without_pip_any_cut_or_flip_is_refused_or_harmless(self):
        """The second line of defence: what is unpacked is compared with RECORD, whatever fetched it."""
        module = self.module()
        whole = (self.index / WHEEL).read_bytes()
        good = self.folder / "good"
        good.mkdir()
        module.unpack(self.index / WHEEL, module.KEEP_CUDNN, good)
        rng = random.Random(7)
        damaged = [whole[: len(whole) * n // 20] for n in range(20)]
        for _ in range(100):
            at = rng.randrange(len(whole))
            damaged.append(
                whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
            )
        refused = 0
        for number, data in enumerate(damaged):
            (self.folder / WHEEL).write_bytes(data)
            out = self.folder / f"out{number}"
            out.mkdir()
            try:
                module.unpack(self.folder / WHEEL, module.KEEP_CUDNN, out)
            except (
                Exception
            ):  # which one is the zip reader's choice; main() turns each into one line
                refused += 1
                continue
            mine, right = tree(out), tree(good)
            differing = {
                name for name in mine.keys() | right.keys() if mine.get(name) != right.get(name)
            }
            self.assertLessEqual(differing, {"RECORD", "METADATA"})
        self.assertGreater(refused, 90)

    def test_a_record_that_lies_is_refused(self):
        self.pin(make_wheel(self.index / WHEEL, lie="libcudnn_graph.so.9"))
        status, lines = self.run_script()
        self.assertEqual(status, 3)
        self.assertIn("RECORD", lines[-1])
        self.assert_nothing_there()

    def test_another_file_of_the_same_name_is_refused(self):
        make_wheel(self.index / WHEEL, seed=2)
        status, lines = self.run_script()
        self.assertEqual(status, 3)
        self.assert_nothing_there()

    def refused(self, change, says):
        """A wheel whose entries `change` has bent is refused in one line, and nothing is written anywhere."""
        make_wheel(self.folder / "good.whl")
        with (
            zipfile.ZipFile(self.folder / "good.whl") as good,
            zipfile.ZipFile(self.index / WHEEL, "w", zipfile.ZIP_DEFLATED) as bad,
        ):
            entries = {name: good.read(name) for name in good.namelist()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a name that is there twice
                for name, data in change(entries):
                    bad.writestr(name, data)
        self.pin(hashlib.sha256((self.index / WHEEL).read_bytes()).hexdigest())
        copier = self.copier()
        before = self.outside()
        status, lines = self.run_script(**copier)
        self.assertEqual((status, len(lines)), (3, 2), lines)
        self.assertRegex(lines[1], WHEEL + ": .*" + says)
        self.assertTrue(lines[1].isprintable())
        self.assert_nothing_there()
        self.assertEqual(self.outside(), before)

    def outside(self):
        """What lies beside the cache; the bytecode of the copier is Python's."""
        return {
            p
            for p in self.folder.rglob("*")
            if self.cache not in p.parents and "__pycache__" not in p.parts
        } - {self.cache}

    def test_a_hostile_wheel_is_refused(self):
        library, info = (
            f"nvidia/cudnn_jit/lib/{LIBRARIES[0]}",
            f"{PACKAGE.replace('-', '_')}-{VERSION}.dist-info",
        )

        def recorded(entries):
            """With a RECORD that agrees."""
            rows = "".join(
                f"{name if isinstance(name, str) else name.filename},{b64(data)},{len(data)}\n"
                for name, data in entries
                if not str(name).endswith("RECORD")
            )
            return [
                (name, rows.encode() if str(name).endswith("RECORD") else data)
                for name, data in entries
            ]

        def renamed(name):
            return lambda entries: recorded(
                [(name if old == library else old, data) for old, data in entries.items()]
            )

        def link(entries):
            info = zipfile.ZipInfo(library)
            info.external_attr = 0o120777 << 16
            return recorded(
                [
                    (info if old == library else old, b"/etc/passwd" if old == library else data)
                    for old, data in entries.items()
                ]
            )

        def content(which, data):
            return lambda entries: [
                (name, data if name == which else old) for name, old in entries.items()
            ]

        for change, says in (
            (renamed("../" * 9 + library), "does not belong"),
            (renamed("/tmp/" + library), "does not belong"),
            (renamed("a\\..\\" + library), "does not belong"),
            (link, "is no file"),
            (lambda entries: recorded([*entries.items(), (library, b"another")]), "twice"),
            (
                lambda entries: recorded(
                    [*entries.items(), ("other/lib/" + LIBRARIES[0], b"another")]
                ),
                "one place",
            ),
            (content(library, bytes(64 << 20)), "as large as the wheel"),
            (content(f"{info}/RECORD", bytes(64 << 20)), "larger than 4 MiB"),
            (content(f"{info}/RECORD", b"\xff\xfe"), "cannot be read"),
            (content(f"{info}/RECORD", b""), "not what"),
            (
                lambda entries: (
                    recorded([*entries.items(), ("nvidia/include/\x1b[31m\u202e.h", b"h")])[:-1]
                    + [("nvidia/include/\x1b[31m\u202e.h", b"x")]
                ),
                "not what",
            ),
        ):
            with self.subTest(says):
                self.refused(change, says)

    def test_a_damaged_lock_is_one_line_with_its_place(self):
        good = self.lock.read_text()
        for bad in (
            good + "a b c\n",
            good + "\xff\x1b[31m 1 2 3 4\n",
            good.replace(" 1234 ", " x "),
            good + good.split("\n")[1] + " more\n",
        ):
            self.lock.write_bytes(bad.encode("latin-1"))
            status, lines = self.run_script()
            self.assertEqual((status, len(lines)), (3, 1), lines)
            self.assertRegex(lines[0], r"cudnn\.lock:[23]: not \"package")

    def test_unknown_package_is_bad_input(self):
        status, lines = self.run_script(f"{PACKAGE}==9.99.0.1")
        self.assertEqual((status, len(lines)), (2, 1))

    def test_absent_package_is_one_line(self):
        (self.index / WHEEL).unlink()
        status, lines = self.run_script()
        self.assertEqual((status, len(lines)), (3, 2), lines)
        self.assert_nothing_there()

    def test_a_cache_that_is_a_link_is_refused(self):
        (self.folder / "elsewhere").mkdir()
        self.cache.symlink_to(self.folder / "elsewhere")
        status, lines = self.run_script()
        self.assertEqual((status, len(lines)), (3, 1))
        self.assertEqual(tree(self.folder / "elsewhere"), {})

    def test_a_cache_that_others_may_write_to_is_refused(self):
        self.cache.mkdir()
        self.cache.chmod(0o777)
        self.assertEqual(self.run_script()[0], 3)
        self.assertEqual(tree(self.cache), {})

    def test_ended_in_the_middle_leaves_nothing(self):
        env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index)}
        for wait in (0.05, 0.2, 0.4):
            child = subprocess.Popen(
                [sys.executable, str(self.script), "--cache", str(self.cache), SPEC],
                env=env,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(wait)
            child.send_signal(signal.SIGTERM)
            child.wait()
            self.assertEqual(list(self.cache.glob("install.*/")), [])
            self.assertIn(len(tree(self.cache)), (0, 6))

    def test_ended_the_moment_its_folder_is_made_leaves_nothing(self):
        (self.folder / "early").mkdir()
        (self.folder / "early/sitecustomize.py").write_text(EARLY)
        self.assertEqual(self.run_script(PYTHONPATH=str(self.folder / "early"))[0], 130)
        self.assert_nothing_there()

    def test_what_a_killed_installer_left_is_cleared(self):
        (self.cache / "install.dead" / "wheel").mkdir(parents=True)
        self.cache.chmod(0o700)
        self.assertEqual(self.run_script()[0], 0)
        self.assertEqual(list(self.cache.glob("install.*/")), [])


def make_part(index, package, files):
    """A wheel of one part of the toolkit; returns its line of the lock."""
    stem = f"{package.replace('-', '_')}-13.0.88"
    info = f"{stem}.dist-info"
    files = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 13.0.88\n\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = (
        "".join(f"{name},{b64(data)},{len(data)}\n" for name, data in files.items())
        + f"{info}/RECORD,,\n"
    )
    path = index / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, data)
    return f"{package} 13.0.88 {hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_size} {path.name}\n"


class Tool(Folder):
    """nvcc: several wheels that are one folder."""

    PARTS = {
        "nvidia-cuda-nvcc": {
            "bin/nvcc": b"#!/bin/sh\n",
            "bin/nvcc.profile": b"p",
            "bin/ptxas": b"x",
            "bin/fatbinary": b"f",
            "bin/nvlink": b"not needed",
        },
        "nvidia-nvvm": {
            "nvvm/bin/cicc": b"c",
            "nvvm/libdevice/libdevice.10.bc": b"b",
            "lib/libnvvm.so.4": b"not needed",
        },
        "nvidia-cuda-crt": {"include/crt/host_config.h": b"h"},
        "nvidia-cuda-runtime": {
            "include/cuda_fp16.h": b"h",
            "include/cooperative_groups/details/sync.h": b"h",
            "lib/libcudart.so.13": b"not needed",
        },
    }

    def setUp(self):
        super().setUp()
        self.lock.write_text(
            "".join(
                make_part(self.index, name, {f"nvidia/cu13/{k}": v for k, v in files.items()})
                for name, files in self.PARTS.items()
            )
        )
        self.tool = self.cache / "nvcc" / "13.0.88"

    def run_tool(self, **more):
        env = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index), **more}
        done = subprocess.run(
            [sys.executable, str(self.script), "--cache", str(self.cache), "--tool", "nvcc"],
            env=env,
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode, done.stdout.strip(), done.stderr.strip().splitlines()

    def test_what_compiling_needs_lies_where_nvcc_looks(self):
        status, program, lines = self.run_tool()
        self.assertEqual((status, program, len(lines)), (0, str(self.tool / "bin/nvcc"), 1), lines)
        wanted = {
            name
            for files in self.PARTS.values()
            for name, data in files.items()
            if data != b"not needed"
        }
        self.assertEqual(
            {name for name in tree(self.tool) if not name.startswith("nvidia-")}, wanted
        )
        self.assertTrue(
            os.access(self.tool / "bin/nvcc", os.X_OK)
            and os.access(self.tool / "nvvm/bin/cicc", os.X_OK)
        )

    def test_one_that_is_there_is_not_fetched_again(self):
        self.run_tool(**self.copier())
        shutil.rmtree(self.index)
        self.assertEqual(self.run_tool(), (0, str(self.tool / "bin/nvcc"), []))

    def test_with_one_part_damaged_there_is_no_compiler(self):
        for package in (list(self.PARTS)[0], list(self.PARTS)[-1]):
            path = next(self.index.glob(package.replace("-", "_") + "-*"))
            whole = path.read_bytes()
            path.write_bytes(whole[:-1] + b"?")
            status, program, lines = self.run_tool(**self.copier())
            self.assertEqual((status, program), (3, ""), lines)
            self.assertIn("sha256 is not the one in cudnn.lock", lines[-1])
            self.assert_nothing_there()
            path.write_bytes(whole)

    def test_a_name_that_leads_out_is_refused(self):
        for name in ("include/../../../evil.h", "include//evil.h", "include/.evil.h"):
            line = make_part(self.index, "nvidia-cuda-crt", {f"nvidia/cu13/{name}": b"h"})
            kept = [
                old
                for old in self.lock.read_text().splitlines(True)
                if not old.startswith("nvidia-cuda-crt ")
            ]
            self.lock.write_text("".join(kept) + line)
            status, _, lines = self.run_tool(**self.copier())
            self.assertEqual(status, 3, lines)
            self.assert_nothing_there()
            self.assertEqual([p for p in self.folder.rglob("*evil.h")], [])


if __name__ == "__main__":
    unittest.main()
