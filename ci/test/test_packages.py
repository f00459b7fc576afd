"""Every package, made and then used where nothing of ours is. Minutes, a network and root's Debian tools: only with FACTS_ALL (the night).

Needs the Debian packages of ci/package/packages.txt. Roots of Debian are kept in build/roots.
"""

import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest
import zipfile

import needs
import scripts
from scripts import HOME

KEPT = HOME / "build"
PACKAGE = HOME / "ci/package"
KERNELS = r"math +ok .*: sm_80 sm_86 sm_89 sm_90 sm_100 sm_120 compute_80"
CUDNN = "9.27.0-jit-cu13"
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs", "/etc/pip.conf")
PIP = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:")


def run(*command, **more):
    return scripts.run(*command, timeout=1500, **more)


def tools():
    """The pinned Python packages that make and check packages."""
    venv, wanted = KEPT / "venv-package", PACKAGE / "requirements-package.txt"
    if not (venv / wanted.name).exists() or (venv / wanted.name).read_text() != wanted.read_text():
        run(sys.executable, "-m", "venv", "--clear", venv)
        words = "-m pip install --quiet --require-hashes --only-binary=:all: -r".split()
        run(venv / "bin/python", *words, wanted)
        shutil.copy(wanted, venv)
    return venv / "bin"


def root(suite, *packages):
    """A minimal Debian in a folder."""
    at = KEPT / "roots" / suite
    if not (at / ".made").exists():
        shutil.rmtree(at, ignore_errors=True)
        at.parent.mkdir(parents=True, exist_ok=True)
        # In a mount namespace: mmdebstrap mounts /proc and /sys here, and only warns where a busy machine keeps them mounted.
        include = f"--include=ca-certificates,{','.join(packages)}"
        run("unshare --mount mmdebstrap --quiet --variant=minbase", include, suite, at)
        (at / ".made").touch()
    return at


def inside(root, script, shown):
    """Runs a script in a copy of this root: with a network, and nothing else of this machine but the folder `shown`."""
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        run("cp -a -x --reflink=auto", f"{root}/.", folder)
        words = ["--bind", folder, "/"]
        words += "--proc /proc --dev /dev --perms 1777 --tmpfs /tmp --tmpfs /mnt --clearenv".split()
        words += "--setenv HOME /mnt --setenv DEBIAN_FRONTEND noninteractive --chdir /mnt".split()
        words += ["--setenv", "PATH", "/mnt/v/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
        for name in NETWORK:
            if os.path.exists(name):
                words += ["--ro-bind", name, name]
        for name, value in os.environ.items():
            if re.match(r"(PIP|SSL|REQUESTS|CURL)_|https?_proxy$", name, re.I):
                words += ["--setenv", name, value]
        words += ["--ro-bind", shown, f"/{shown.name}"]
        return run("bwrap", *words, "bash", "-ec", script)


def emulated(sysroot, *command, **add):
    add = {"FACTS_HOME": str(HOME), **add}
    return run("qemu-aarch64-static", "-L", sysroot, *command, add=add)


@needs.night
class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.at = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory(dir=KEPT)))
        os.environ.setdefault(
            "SOURCE_DATE_EPOCH", run("git", "-C", HOME, "log", "-1", "--format=%ct").strip()
        )  # one commit for all, whatever happens meanwhile
        cls.bin = tools()
        cls.wheels = cls.at / "wheels"
        cls.wheel = pathlib.Path(
            run(sys.executable, "-B", PACKAGE / "wheel.py", "-o", cls.wheels).strip()
        )

    def check_list(self, path):
        """The list of contents, by the SPDX project's own rules."""
        run(self.bin / "pyspdxtools", "-i", path)

    def check_wheel(self, wheel, machine):
        tag = f"manylinux_2_28_{machine}"
        said = run(self.bin / "auditwheel", "show", wheel).replace("\n", " ")
        self.assertIn(f'platform tag: "{tag}"', said)
        words = ("repair", "--plat", "auto", "-w", self.at / "repaired", wheel)
        run(self.bin / "auditwheel", *words, add={"PATH": f"{self.bin}:{os.environ['PATH']}"})

        def files(path):
            with zipfile.ZipFile(path) as packed:
                return {name: packed.read(name) for name in packed.namelist()}

        made, repaired = files(wheel), files(self.at / "repaired" / wheel.name)
        other = {
            name
            for name, data in repaired.items()
            if not re.search(r"/$|dist-info/(RECORD|WHEEL)$", name) and made.get(name) != data
        }
        self.assertEqual(other, set(), "auditwheel had to repair")
        (listed,) = (name for name in made if name.endswith("sboms/facts.spdx.json"))
        (self.at / "facts.spdx.json").write_bytes(made[listed])
        self.check_list(self.at / "facts.spdx.json")

    def test_the_wheel_in_a_fresh_debian(self):
        self.check_wheel(self.wheel, "x86_64")
        install = (
            "! command -v gcc cc clang; python3 -m venv v; pip install --quiet /wheels/*.whl; "
        )
        module = "python -c \"import fattn; print(fattn.decide(fattn.Problem(dtype='f32', batch=1, heads_q=1, seq_q=8, seq_kv=8, dim_qk=16)))\"; "
        said = inside(
            root("bookworm", "python3-venv"),
            install + module + "facts matrix; test -s facts-report/index.html",
            self.wheels,
        )
        self.assertIn("supported: cpu", said)
        self.assertRegex(said, r"cpu +pass \d\d\d")
        # The oldest and the newest Python and glibc that Debian's mirrors have; Ubuntu 24.04 lies between them.
        for suite, glibc in (("bullseye", "2.31"), ("trixie", "2.41")):
            said = inside(
                root(suite, "python3-venv"),
                install
                + module
                + f"facts cudnn install {CUDNN}; facts matrix --cudnn {CUDNN} --device h100-sxm; "
                "test -s facts-report/index.html; facts doctor --bundle; facts doctor",
                self.wheels,
            )
            self.assertRegex(said, KERNELS)
            self.assertIn(f"2.28 or newer; here: {glibc}", said)

    def test_the_bundle_lists_its_contents(self):
        run(HOME / "facts", "bundle", "-o", self.at / "facts.tar.xz")
        run("tar -C", self.at, "-xf", self.at / "facts.tar.xz")
        self.check_list(self.at / "facts/facts.spdx.json")
        self.assertRegex(run(self.at / "facts/facts", "doctor"), KERNELS)

    def test_aarch64_under_an_emulator(self):
        build = KEPT / "aarch64"
        run("bash", PACKAGE / "cross.sh", build)
        words = ("-o", self.at / "other", "--build", build)
        wheel = pathlib.Path(run(sys.executable, "-B", PACKAGE / "wheel.py", *words).strip())
        self.check_wheel(wheel, "aarch64")
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(self.at / "wheel")
        tree, sysroot = self.at / "wheel/facts_cudnn/tree", build / "sysroot"
        for program in (tree / "bin").glob("facts*"):
            program.chmod(0o755)
        worker = self.at / "worker"
        worker.write_text(
            f'#!/bin/sh\nexec qemu-aarch64-static -L {sysroot} {tree}/bin/facts-worker "$@"\n'
        )
        worker.chmod(0o755)

        def facts(*words):
            return emulated(sysroot, tree / "bin/facts", *words, FACTS_WORKER=str(worker))

        self.assertIn("aarch64 Linux", facts("doctor", "--bundle"))
        self.assertRegex(facts("doctor"), KERNELS)
        self.assertGreater(len(facts("list", "smoke").splitlines()), 250)
        self.assertRegex(
            facts("run", "smoke", "--device", "cpu", "-o", self.at / "cpu.jsonl"),
            r"cpu +pass 2\d\d  unsupported",
        )
        self.compare_decisions(facts)
        self.run_the_module(self.at / "wheel")

    def compare_decisions(self, facts):
        """cuDNN for aarch64 decides as cuDNN for this machine does."""
        name = next(
            line.split()
            for line in (HOME / "ci/cudnn-aarch64.lock").read_text().splitlines()
            if line.startswith("nvidia-cudnn-jit-cu13 9.27.0")
        )
        (self.at / "pin").write_text(f"{name[0]}=={name[1]} --hash=sha256:{name[2]}\n")
        words = ("--require-hashes", "--platform", "manylinux_2_27_aarch64", "-r", self.at / "pin")
        run(*PIP, "-d", self.at / "cudnn", *words)
        with zipfile.ZipFile(next((self.at / "cudnn").glob("*.whl"))) as packed:
            packed.extractall(self.at / "cudnn")
        there, here = self.at / "there.jsonl", self.at / "here.jsonl"
        words = ("decide", "smoke", "--device", "h100-sxm", "--cudnn")
        facts(*words, self.at / "cudnn/nvidia/cudnn_jit", "-o", there)
        run(HOME / "facts", *words, CUDNN, "-o", here)
        said = run(HOME / "facts", "diff", here, there)
        self.assertRegex(said, r"nothing got worse\. (2\d\d) answers compared, \1 same")

    def run_the_module(self, wheel):
        python = KEPT / "python-aarch64"
        words = ("bookworm", "aarch64", python, "python3", "zlib1g", "libstdc++6")
        run("bash", PACKAGE / "unpack.sh", *words)
        listed = (HOME / "ci/requirements-test.txt").read_text()
        version = re.search(r"^numpy==(\S+) ; .*>= '3.11'", listed, re.M)[1]
        words = "--python-version 3.11 --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64"
        run(*PIP, "-d", self.at / "numpy", *words.split(), f"numpy=={version}")
        with zipfile.ZipFile(next((self.at / "numpy").glob("*.whl"))) as packed:
            packed.extractall(self.at / "numpy")
        emulated(
            python,
            python / "usr/bin/python3.11",
            "-B",
            HOME / "lib/python/test/test_attention.py",
            PYTHONHOME=str(python / "usr"),
            PYTHONPATH=f"{wheel}:{self.at / 'numpy'}",
        )


if __name__ == "__main__":
    unittest.main()
