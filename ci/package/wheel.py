#!/usr/bin/env python3
"""Packs a release build into a wheel: `facts` with what it needs (the tree of ./facts bundle), libfattn.so and the Python module.

usage: ci/package/wheel.py -o FOLDER [--build build/release] [--glibc 2.28|native] [--no-kernels]

Prints the path of the wheel, facts_cudnn-VERSION-py3-none-manylinux_2_28_x86_64.whl. Everything is linked again for that glibc; `native` packs it as it was
linked. The build gets the kernels of all GPUs; with --no-kernels it keeps those that it has. The same commit and build give the same bytes: times are SOURCE_DATE_EPOCH, or else the commit's date.
cuDNN is not in the wheel: `facts cudnn install` gets it from the package index. Exit: 0 written, 3 the build failed or cannot be moved.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import sbom

HOME = pathlib.Path(__file__).resolve().parents[2]
NAME = "facts_cudnn"
LAUNCHER = '''"""FACTS, installed as a wheel: `facts` and `python -m facts_cudnn` run the program."""
import os
import pathlib
import sys

TREE = pathlib.Path(__file__).resolve().parent / "tree"


def main():
    os.environ.setdefault("FACTS_PYTHON", sys.executable)
    os.execv(TREE / "bin/facts", ["facts", *sys.argv[1:]])
'''
METADATA = """Metadata-Version: 2.4
Name: facts-cudnn
Version: {version}
Summary: Fused-Attention Conformance Test Suite for cuDNN, and the library fattn
License-Expression: Apache-2.0 AND MIT AND BSD-2-Clause AND BSD-3-Clause AND (GPL-3.0-or-later WITH GCC-exception-3.1)
{licences}
Keywords: attention,conformance,cuda,cudnn,testing
Classifier: Development Status :: 5 - Production/Stable
Classifier: Environment :: GPU :: NVIDIA CUDA
Classifier: Intended Audience :: Developers
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Testing
Requires-Python: >=3.9
Requires-Dist: pip
Project-URL: Homepage, {home}
Project-URL: Documentation, {home}/tree/v{version}/docs
Project-URL: Changelog, {home}/blob/v{version}/CHANGELOG.md
Project-URL: Issues, {home}/issues
Description-Content-Type: text/markdown

# FACTS

{about}

```sh
pipx run facts-cudnn matrix                        # asks three cuDNN versions about two GPUs; writes a page for your browser
facts gate --baseline 9.20.0 --candidate 9.27.0    # may we move to a new cuDNN?
facts help
```

No GPU and no compiler are needed to ask. cuDNN is not in the wheel: `facts cudnn install 9.27.0` installs a build.

The module `fattn` computes attention with cuDNN, on arrays of PyTorch, CuPy or NumPy:

```python
import fattn
out = fattn.attention(q, k, v, causal=True)    # q, k, v: [batch, heads, sequence, channels]
print(fattn.decide(q, k, v, causal=True))      # which engines; or why not, and what to do
```

[All pages]({home})
"""
WHEEL = """Wheel-Version: 1.0
Generator: ci/package/wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""
# The functions of ci/package/bundle.sh: only that file lists the contents of a bundle.
BUNDLE = 'set -euo pipefail; home=$1 release=$2 venv=$3 tree=$4; . "$home/ci/package/kernels.sh"; . "$home/ci/package/bundle.sh"; shift 4; "$@"'


def fail(text):
    print(f"wheel: {text}", file=sys.stderr)
    sys.exit(3)


def run(*command):
    words = list(map(str, command))
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"{' '.join(map(str, command[-3:]))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout.strip()


def stage(build, at, glibc, kernels):
    """The wheel's files as a folder. Returns the platform that they need: "manylinux_2_28_x86_64"."""
    if not (build / "CMakeCache.txt").exists():
        fail(f"{build} is no build folder; run ./facts setup once")
    tree = at / NAME / "tree"
    tree.mkdir(parents=True)

    def bundle(*step):
        return run("bash", "-c", BUNDLE, "bundle", HOME, build, HOME / "build/venv", tree, *step)

    if kernels:
        run("cmake", build, *bundle("eval", 'kernel_options "$package_archs"').splitlines())
    targets = "facts facts-worker facts-self nullcuda fattn_shared"
    run("cmake", "--build", build, "--target", *targets.split())
    if kernels:
        bundle("all_kernels", build)

    bundle("bundle_programs", tree, glibc)
    bundle("bundle_reports", tree)
    bundle("bundle_licences", tree)
    bundle("bundle_module", at, glibc)
    (tree / "facts").unlink()  # a link; the entry point stands for it
    (at / NAME / "__init__.py").write_text(LAUNCHER)
    (at / NAME / "__main__.py").write_text("from . import main\n\nmain()\n")
    files = [path for path in sorted(at.rglob("*")) if path.is_file()]
    binaries = [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]
    # which lies beside the library
    if foreign := set(bundle("foreign_libraries", *binaries).split()) - {"libgomp.so.1"}:
        fail(f"not relocatable: {', '.join(sorted(foreign))} is needed")
    newest = bundle("newest_glibc", *binaries)
    if glibc and number(newest) > number(glibc):
        fail(f"a program needs glibc {newest}")
    return f"manylinux_{(glibc or newest).replace('.', '_')}_{bundle('machine')}"


def number(version):
    return [int(part) for part in version.split(".")]


def describe(at, tag, version, listed):
    """The .dist-info folder, without RECORD."""
    info = at / f"{NAME}-{version}.dist-info"
    info.mkdir()
    about = re.search(r"^\*\*.*?\*\*$", (HOME / "README.md").read_text(), re.M | re.S)[0]
    home = re.search(r"HOMEPAGE_URL (\S+)", (HOME / "CMakeLists.txt").read_text())[1]
    shutil.copytree(at / NAME / "tree/licences", info / "licenses")
    shutil.copy(HOME / "LICENSE", info / "licenses")
    names = sorted(path.name for path in (info / "licenses").iterdir())
    licences = "\n".join(f"License-File: {name}" for name in names)
    (info / "METADATA").write_text(
        METADATA.format(version=version, about=about, home=home, licences=licences)
    )
    (info / "WHEEL").write_text(WHEEL.format(tag=tag))
    (info / "entry_points.txt").write_text(
        f"[console_scripts]\nfacts = {NAME}:main\nfacts-cudnn = {NAME}:main\n"
    )
    (info / "top_level.txt").write_text(f"{NAME}\nfattn\n")
    (info / "sboms").mkdir()  # as PEP 770 says
    (info / "sboms/facts.spdx.json").write_text(listed)
    return info


def pack(at, info, out):
    """Sorted names, one time for all, and only the two modes that pip knows."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    seconds = epoch or run("git", "-C", HOME, "log", "-1", "--format=%ct")
    when = max(time.gmtime(int(seconds))[:6], (1980, 1, 1, 0, 0, 0))
    record = []
    with zipfile.ZipFile(out, "w") as wheel:

        def add(name, content, executable=False):
            entry = zipfile.ZipInfo(name, when)
            entry.create_system, entry.compress_type = 3, zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, content, compresslevel=9)

        for path in sorted(path for path in at.rglob("*") if path.is_file()):
            name, content = path.relative_to(at).as_posix(), path.read_bytes()
            add(name, content, os.access(path, os.X_OK))
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode()
            record.append(f"{name},sha256={digest.rstrip('=')},{len(content)}\n")
        listed = f"{info.name}/RECORD"
        add(listed, "".join(record) + f"{listed},,\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", dest="out", type=pathlib.Path, required=True, metavar="FOLDER")
    release = HOME / "build/release"
    parser.add_argument("--build", type=pathlib.Path, default=release, metavar="FOLDER")
    parser.add_argument("--glibc", default="2.28", metavar="X.Y")
    parser.add_argument("--no-kernels", action="store_true")
    given = parser.parse_args()
    lists = (HOME / "CMakeLists.txt").read_text()
    version = re.search(r"^project\(facts VERSION ([0-9.]+)", lists, re.M)[1]
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        at = pathlib.Path(folder)
        build, glibc = given.build.resolve(), "" if given.glibc == "native" else given.glibc
        platform = stage(build, at, glibc, not given.no_kernels)
        openmp = pathlib.Path("/")
        if glibc:
            openmp = build.parent / f"openmp-{platform.split('_', 3)[3]}"
        tag = f"py3-none-{platform}"
        out = given.out / f"{NAME}-{version}-{tag}.whl"
        listed = sbom.document(build, at / NAME / "tree", bool(glibc), openmp)
        pack(at, describe(at, tag, version, listed), out)
    print(out)


if __name__ == "__main__":
    main()
