"""Every package, made and then used where nothing of ours is. Minutes, a network and root's Debian tools: only with FACTS_ALL (the night).

Needs the Debian packages of ci/package/packages.txt. Roots of Debian are kept in build/roots.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

import needs

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
KEPT = HOME / "build"
PACKAGE = HOME / "ci/package"
CUDNN = "9.27.0-jit-cu13"
NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs", "/etc/pip.conf")


def run(*command, seconds=1500, **more):
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        **more,
    )
    if done.returncode:
        raise AssertionError(
            f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
    return done.stdout


def tools():
    """The pinned Python packages that make and check packages."""
    venv, wanted = KEPT / "venv-package", PACKAGE / "requirements-package.txt"
    if not (venv / wanted.name).exists() or (venv / wanted.name).read_text() != wanted.read_text():
        run(sys.executable, "-m", "venv", "--clear", venv)
        run(
            venv / "bin/python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--require-hashes",
            "--only-binary=:all:",
            "-r",
            wanted,
        )
        shutil.copy(wanted, venv)
    return venv / "bin"


def root(suite, *packages):
    """A minimal Debian in a folder."""
    at = KEPT / "roots" / suite
    if not (at / ".made").exists():
        shutil.rmtree(at, ignore_errors=True)
        at.parent.mkdir(parents=True, exist_ok=True)
        # In a mount namespace: mmdebstrap mounts /proc and /sys here, and only warns where a busy machine keeps them mounted.
        run(
            "unshare",
            "--mount",
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            f"--include=ca-certificates,{','.join(packages)}",
            suite,
            at,
        )
        (at / ".made").touch()
    return at


def inside(folder, script, shown=(), keep=False):
    """Runs a script in this root: with a network, and nothing else of this machine but the folders `shown`. Without `keep` what it writes goes away."""
    with contextlib.ExitStack() as stack:
        if not keep:
            copy = stack.enter_context(tempfile.TemporaryDirectory(dir=KEPT))
            run("cp", "-a", "-x", "--reflink=auto", f"{folder}/.", copy)
            folder = copy
        words = [
            "bwrap",
            "--bind",
            folder,
            "/",
            "--proc",
            "/proc",
            "--dev",
            "/dev",
            "--perms",
            "1777",
            "--tmpfs",
            "/tmp",
            "--tmpfs",
            "/mnt",
            "--clearenv",
            "--setenv",
            "HOME",
            "/mnt",
            "--setenv",
            "PATH",
            "/mnt/v/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "--setenv",
            "DEBIAN_FRONTEND",
            "noninteractive",
        ]
        for name in NETWORK:
            if os.path.exists(name):
                words += ["--ro-bind", name, name]
        for name, value in os.environ.items():
            if re.match(r"(PIP|SSL|REQUESTS|CURL)_|https?_proxy$", name, re.I):
                words += ["--setenv", name, value]
        for at in shown:
            words += ["--ro-bind", at, f"/{at.name}"]
        return run(*words, "--chdir", "/mnt", "bash", "-ec", script)


def emulated(sysroot, *command, **environment):
    return run(
        "qemu-aarch64-static",
        "-L",
        sysroot,
        *command,
        env={**os.environ, "FACTS_HOME": str(HOME), **environment},
    )


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
        self.assertIn(
            f'platform tag: "{tag}"', run(self.bin / "auditwheel", "show", wheel).replace("\n", " ")
        )
        run(
            self.bin / "auditwheel",
            "repair",
            "--plat",
            "auto",
            "-w",
            self.at / "repaired",
            wheel,
            env={**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"},
        )
        with (
            zipfile.ZipFile(wheel) as made,
            zipfile.ZipFile(self.at / "repaired" / wheel.name) as repaired,
        ):
            files = [
                name
                for name in repaired.namelist()
                if not name.endswith("/") and not re.search(r"dist-info/(RECORD|WHEEL)$", name)
            ]
            self.assertEqual(
                {
                    name
                    for name in files
                    if name not in made.namelist() or made.read(name) != repaired.read(name)
                },
                set(),
                "auditwheel had to repair",
            )
            (self.at / "facts.spdx.json").write_bytes(
                made.read(next(name for name in files if name.endswith("sboms/facts.spdx.json")))
            )
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
            [self.wheels],
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
                "test -s facts-report/index.html; facts doctor --bundle",
                [self.wheels],
            )
            self.assertIn(f"2.28 or newer; here: {glibc}", said)

    def test_debian_packages(self):
        debs = self.at / "debs"
        run("bash", PACKAGE / "deb.sh", debs)
        run("bash", PACKAGE / "deb.sh", self.at / "again")
        for path in debs.iterdir():
            self.assertEqual(
                path.read_bytes(), (self.at / "again" / path.name).read_bytes(), path.name
            )
        run(
            "lintian",
            "--allow-root",
            "--fail-on",
            "error,warning",
            "--suppress-tags",
            "initial-upload-closes-no-bugs",
            *debs.iterdir(),
        )  # nothing is uploaded
        said = inside(
            root("bookworm", "python3-venv"),
            """
            apt-get -qq update; apt-get -qq install --no-install-recommends /debs/*.deb gcc libc6-dev pkg-config man-db >/dev/null 2>&1
            facts list smoke | wc -l; facts run "pass=fwd,bwd s=64 d=32" --device cpu -o r.jsonl; facts report r.jsonl -o page; man facts | head -n 5
            for name in first_call forward_backward decide_explain; do
                gcc -std=c11 -D_GNU_SOURCE $(pkg-config --cflags fattn) /examples/$name.c -o $name $(pkg-config --libs fattn) -lm
                ./$name --device cpu
            done
            cp /usr/lib/facts/facts.spdx.json /usr/share/doc/facts/copyright .""",
            [debs, HOME / "examples"],
        )
        for words in (
            "pass 2",
            "page/index.html",
            "facts - test fused attention",
            "first call: worst error",
        ):
            self.assertIn(words, said)
        self.check_image(next(debs.glob("facts_*.deb")))

    def check_image(self, deb):
        for name in ("one", "two"):
            run("bash", PACKAGE / "oci.sh", self.at / f"{name}.tar", deb)
        run("cmp", self.at / "one.tar", self.at / "two.tar")
        said = json.loads(
            run("skopeo", "inspect", "--config", f"oci-archive:{self.at / 'one.tar'}")
        )
        self.assertEqual(
            (
                said["os"],
                said["config"]["Entrypoint"],
                said["config"]["Labels"]["org.opencontainers.image.licenses"],
            ),
            ("linux", ["facts"], "Apache-2.0"),
        )
        layout = self.at / "layout"
        layout.mkdir()
        run("tar", "-C", layout, "-xf", self.at / "one.tar")
        run("umoci", "unpack", "--image", f"{layout}:latest", layout / "unpacked")
        process = json.loads((layout / "unpacked/config.json").read_text())["process"]
        self.assertEqual((process["args"], process["cwd"]), (["facts", "help"], "/root"))
        self.check_list(layout / "unpacked/rootfs/usr/lib/facts/facts.spdx.json")
        said = inside(
            layout / "unpacked/rootfs",
            f"facts cudnn install {CUDNN}; facts decide 'pass=fwd,bwd s=128' --cudnn {CUDNN} --device h100-sxm -o r; facts report r -o page",
            keep=True,
        )
        self.assertRegex(said, r"h100-sxm +yes 2\n")

    def test_the_bundle_and_its_conda_package(self):
        bundle = self.at / "facts.tar.xz"
        run(HOME / "facts", "bundle", "-o", bundle)
        made = run(
            self.bin / "python", "-B", PACKAGE / "conda.py", "-o", self.at / "conda", bundle
        ).strip()
        with zipfile.ZipFile(made) as package:
            package.extractall(self.at / "parts")
        prefix = self.at / "prefix"
        prefix.mkdir()
        run("tar", "-C", prefix, "-xf", next((self.at / "parts").glob("pkg-*.tar.zst")))
        self.check_list(prefix / "lib/facts/facts.spdx.json")
        self.assertIn(
            "cpu             pass 1",
            run(
                prefix / "bin/facts",
                "run",
                "pass=fwd s=64 d=32",
                "--device",
                "cpu",
                env={"PATH": "/usr/bin:/bin", "HOME": str(self.at)},
            ),
        )

    def test_aarch64_under_an_emulator(self):
        build = KEPT / "aarch64"
        run("bash", PACKAGE / "cross.sh", build)
        wheel = pathlib.Path(
            run(
                sys.executable,
                "-B",
                PACKAGE / "wheel.py",
                "-o",
                self.at / "other",
                "--build",
                build,
            ).strip()
        )
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
        run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--require-hashes",
            "--only-binary=:all:",
            "--platform",
            "manylinux_2_27_aarch64",
            "-d",
            self.at / "cudnn",
            "-r",
            self.at / "pin",
        )
        with zipfile.ZipFile(next((self.at / "cudnn").glob("*.whl"))) as packed:
            packed.extractall(self.at / "cudnn")
        facts(
            "decide",
            "smoke",
            "--cudnn",
            self.at / "cudnn/nvidia/cudnn_jit",
            "--device",
            "h100-sxm",
            "-o",
            self.at / "there.jsonl",
        )
        run(
            HOME / "facts",
            "decide",
            "smoke",
            "--cudnn",
            CUDNN,
            "--device",
            "h100-sxm",
            "-o",
            self.at / "here.jsonl",
        )
        said = run(HOME / "facts", "diff", self.at / "here.jsonl", self.at / "there.jsonl")
        self.assertRegex(said, r"nothing got worse\. (2\d\d) answers compared, \1 same")

    def run_the_module(self, wheel):
        python = KEPT / "python-aarch64"
        run(
            "bash",
            PACKAGE / "unpack.sh",
            "bookworm",
            "aarch64",
            python,
            "python3",
            "zlib1g",
            "libstdc++6",
        )
        version = re.search(
            r"^numpy==(\S+);", (HOME / "ci/requirements-test.txt").read_text(), re.M
        )[1]
        run(
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--python-version",
            "3.11",
            "--platform",
            "manylinux_2_27_aarch64",
            "--platform",
            "manylinux_2_28_aarch64",
            "-d",
            self.at / "numpy",
            f"numpy=={version}",
        )
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
