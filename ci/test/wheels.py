"""A stand-in for the package index: tiny wheels, a folder of them, and a project of its own with a lock and a cache."""

import base64
import hashlib
import pathlib
import random
import shutil
import sys
import zipfile

import needs
import pip
from scripts import CI, Folder, start

PACKAGE, VERSION = "nvidia-cudnn-jit-cu13", "9.20.0.48"
SPEC = f"{PACKAGE}=={VERSION}"
LIBRARIES = ("libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn_engines_runtime_compiled.so.9")


def name_of(package, version):
    return f"{package.replace('-', '_')}-{version}-py3-none-manylinux_2_27_x86_64.whl"


WHEEL = name_of(PACKAGE, VERSION)


def sha256(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def cudnn_files(seed=1):
    rng = random.Random(seed)
    files = {f"nvidia/cudnn_jit/lib/{name}": rng.randbytes(3000) for name in LIBRARIES}
    files["nvidia/cudnn_jit/lib/libcudnn_other.so.9"] = rng.randbytes(2000)
    files["nvidia/cudnn_jit/include/cudnn_version.h"] = b"#define CUDNN_MAJOR 9\n"
    files["nvidia/../../evil/lib/libcudnn.so.9.txt"] = b"a path that leads out"
    return files


def make_wheel(path, files=None, lie="", package=PACKAGE, version=VERSION):
    """Returns its sha256. RECORD is wrong for the files whose name ends with `lie`."""
    info = f"{package.replace('-', '_')}-{version}.dist-info"
    files = {
        **(files or cudnn_files()),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD,,\n"
    for name, data in files.items():
        record += f"{name},{sha256(data + b'x' * bool(lie and name.endswith(lie)))},{len(data)}\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, data)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tree(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files if p.name != "install.lock"}


def python(folder):
    """A python3 whose virtual environments have the pip of this one. The night's have their own, which takes seconds to install."""
    path = folder / "python/python3"
    path.parent.mkdir()
    if needs.NIGHT:
        path.symlink_to(sys.executable)
        return path
    (folder / "python/pip").symlink_to(pathlib.Path(pip.__file__).parent)
    path.write_text(f"""#!/bin/bash
[[ "$1 $2" == "-m venv" ]] || exec {sys.executable} "$@"
{sys.executable} -m venv --without-pip "$3" && echo {path.parent} >"$(echo "$3"/lib/python*/site-packages)/pip.pth"
""")
    path.chmod(0o755)
    return path


class Home(Folder):
    """A checkout's ci/ with a lock of its own, a cache, and a folder that stands in for the index."""

    def setUp(self):
        super().setUp()
        self.index, self.cache, self.home = self.at / "index", self.at / "cache", self.at / "home"
        for path in (self.index, self.home / "ci"):
            path.mkdir(parents=True)
        for name in ("cudnn_install.py", "cudnn_lock.py"):
            shutil.copy(CI / name, self.home / "ci")
        self.script, self.lock = self.home / "ci/cudnn_install.py", self.home / "ci/cudnn.lock"
        self.from_folder = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.index)}

    def install(self, *words, **add):
        """(exit, stdout, lines of stderr) of the installer."""
        words = ("--cache", self.cache, *(words or (SPEC,)))
        done = start(sys.executable, self.script, *words, add={**self.from_folder, **add})
        return done.returncode, done.stdout.strip(), done.stderr.strip().splitlines()

    def assert_nothing_there(self):
        self.assertEqual(tree(self.cache), {})
        self.assertEqual(list(self.cache.glob("install.*/")), [])
