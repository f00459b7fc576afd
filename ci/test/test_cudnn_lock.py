"""The lock and the package index: versions that nobody knows yet, added to the lock, found, installed without a pinned sha256.

A server on 127.0.0.1 stands in for the package index, so that no network is used.
"""

import hashlib
import http.server
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import needs
import test_cudnn_install as wheels

CI = pathlib.Path(__file__).resolve().parent.parent
FACTS = pathlib.Path(os.environ.get("FACTS_BIN", CI.parent / "build/release/bin")) / "facts"
JIT13, JIT12, FULL13, FULL12 = (
    "nvidia-cudnn-jit-cu13",
    "nvidia-cudnn-jit-cu12",
    "nvidia-cudnn-cu13",
    "nvidia-cudnn-cu12",
)
OTHERS = {
    "nvidia-cuda-nvrtc": "13.0.88",
    "nvidia-cuda-nvrtc-cu12": "12.9.86",
    "nvidia-cuda-nvcc": "13.0.88",
    "nvidia-nvvm": "13.0.88",
    "nvidia-cuda-crt": "13.0.88",
    "nvidia-cuda-runtime": "13.0.96",
    "nvidia-cuda-sanitizer-api": "13.5.25",
}
NOWHERE = "http://127.0.0.1:9/simple"


def wheel_name(package, version):
    return f"{package.replace('-', '_')}-{version}-py3-none-manylinux_2_27_x86_64.whl"


class Index:
    """Pages in either form, and files that may come slowly."""

    def __init__(self):
        self.packages, self.files, self.html, self.chunk_s = {}, {}, False, 0.0
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                index.answer(self)

            do_HEAD = do_GET

            def log_message(self, *words):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/simple"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, package, version, sha256=None, data=b"", yanked=False):
        name = wheel_name(package, version)
        self.files[name] = data
        self.packages.setdefault(package, {})[name] = (
            sha256 or hashlib.sha256(data or name.encode()).hexdigest(),
            yanked,
        )

    def page(self, package):
        files = self.packages[package].items()
        if self.html:
            links = "".join(
                f'<a href="/files/{name}#sha256={sha256}"{" data-yanked" if yanked else ""}>{name}</a>\n'
                for name, (sha256, yanked) in files
            )
            return "text/html", f"<!DOCTYPE html><html><body>{links}</body></html>".encode()
        listed = [
            {
                "filename": name,
                "url": f"/files/{name}",
                "hashes": {"sha256": sha256},
                "size": len(self.files[name]) or 5000000,
                "yanked": yanked,
            }
            for name, (sha256, yanked) in files
        ]
        return "application/vnd.pypi.simple.v1+json", json.dumps(
            {"meta": {"api-version": "1.1"}, "name": package, "files": listed}
        ).encode()

    def answer(self, request):
        where, name = request.path.strip("/").split("/")
        kind, data = "application/zip", self.files.get(name)
        if where == "simple":
            kind, data = self.page(name) if name in self.packages else ("", None)
        if data is None:
            return request.send_error(404)
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        for at in range(0, len(data) if request.command == "GET" else 0, 1 << 16):
            request.wfile.write(data[at : at + (1 << 16)])
            time.sleep(self.chunk_s if where == "files" else 0)


class Home(unittest.TestCase):
    """A checkout with a lock of its own, an index that knows more, a cache of its own."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.index = Index()
        self.addCleanup(self.index.server.server_close)
        self.addCleanup(self.index.server.shutdown)
        self.home, self.cache = self.folder / "home", self.folder / "cache"
        (self.home / "ci").mkdir(parents=True)
        for name in ("cudnn_install.py", "cudnn_lock.py"):
            shutil.copy(CI / name, self.home / "ci")
        self.lock = self.home / "ci/cudnn.lock"
        for package in (JIT13, JIT12):
            self.index.add(package, "9.27.0.42")
        for package in (FULL13, FULL12):
            self.index.add(package, "9.28.0.42")
        self.lock.write_text(
            "# head\n"
            + "".join(
                self.line(p, v)
                for p, v in ((JIT13, "9.27.0.42"), (JIT12, "9.27.0.42"), (FULL13, "9.28.0.42"))
            )
        )

    def line(self, package, version, size=5000000):
        name = wheel_name(package, version)
        return f"{package} {version} {self.index.packages[package][name][0]} {size} {name}\n"

    def environment(self, **more):
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("PIP_") and not name.lower().endswith("_proxy")
        }
        return {
            **kept,
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": self.index.url,
            "FACTS_HOME": str(self.home),
            "FACTS_PYTHON": sys.executable,
            "XDG_CACHE_HOME": str(self.cache),
            **more,
        }

    def run_program(self, *words, **more):
        done = subprocess.run(
            words,
            env=self.environment(**more),
            text=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr.strip().splitlines()

    def run_lock(self, *words, **more):
        return self.run_program(
            sys.executable, "-B", str(self.home / "ci/cudnn_lock.py"), *words, **more
        )

    def run_facts(self, *words, **more):
        if not FACTS.exists():
            self.skipTest(f"{FACTS} is not built")
        return self.run_program(str(FACTS), *words, **more)

    def publish(self, package, version, **more):
        path = self.folder / "x.whl"
        wheels.make_wheel(path, package=package, version=version)
        self.index.add(package, version, data=path.read_bytes(), **more)


class Lock(Home):
    def test_a_version_is_added_to_the_packages_that_have_it_and_no_line_changes(self):
        for package in (JIT13, JIT12, FULL12, FULL13):
            self.index.add(package, "9.29.0.11")
        before = self.lock.read_text().splitlines()
        status, out, err = self.run_lock("9.29.0")
        self.assertEqual((status, err), (0, []))
        after = self.lock.read_text().splitlines()
        self.assertEqual([line for line in after if line in before], before)
        self.assertEqual(
            [line.split()[0] for line in after[1:]], [JIT13, JIT13, JIT12, JIT12, FULL13, FULL13]
        )  # cu12's full package: not wanted
        self.assertEqual(out.count("added"), 4)
        status, out, _ = self.run_lock("9.29.0")
        self.assertEqual(
            (status, "already" in out, self.lock.read_text().splitlines()), (0, True, after)
        )

    def test_four_parts_a_build_and_latest(self):
        for version in ("9.29.0.11", "9.29.0.12"):
            self.index.add(FULL13, version)
        self.index.add(JIT13, "9.29.0.11")
        for words, added in (
            ("9.29.0.11", {(JIT13, "9.29.0.11"), (FULL13, "9.29.0.11")}),
            ("9.29.0-full-cu13", {(FULL13, "9.29.0.12")}),
            ("latest", {(JIT13, "9.29.0.11"), (FULL13, "9.29.0.12")}),
            ("9.28.0-full-cu12", {(FULL12, "9.28.0.42")}),
        ):
            before = self.lock.read_text()
            self.assertEqual(self.run_lock(words)[0], 0)
            new = set(self.lock.read_text().splitlines()) - set(before.splitlines())
            self.assertEqual({tuple(line.split()[:2]) for line in new}, added, words)
            self.lock.write_text(before)

    def test_without_a_version_everything_that_is_wanted_is_added(self):
        for package, version in OTHERS.items():
            self.index.add(package, version)
        self.index.add(FULL12, "9.11.1.4")
        self.index.add(FULL13, "9.29.0.11")
        self.index.add(FULL13, "9.27.0.42")
        before = set(self.lock.read_text().splitlines())
        self.assertEqual(self.run_lock()[0], 0)
        self.assertEqual(
            {tuple(line.split()[:2]) for line in set(self.lock.read_text().splitlines()) - before},
            {(FULL12, "9.11.1.4"), (FULL13, "9.29.0.11"), *OTHERS.items()},
        )

    def test_another_machine_has_a_lock_of_its_own(self):
        name = wheel_name(JIT13, "9.29.0.11").replace("x86_64", "aarch64")
        self.index.add(JIT13, "9.29.0.11")
        self.index.packages[JIT13][name] = ("a" * 64, False)
        self.index.files[name] = b""
        before, other = self.lock.read_text(), self.lock.with_name("cudnn-aarch64.lock")
        other.write_text("# head\n")
        self.assertEqual(self.run_lock("9.29.0", FACTS_MACHINE="aarch64")[0], 0)
        self.assertEqual(
            (self.lock.read_text(), other.read_text()),
            (before, f"# head\n{JIT13} 9.29.0.11 {'a' * 64} 5000000 {name}\n"),
        )

    def test_another_sha256_of_a_locked_file_is_refused_loudly(self):
        self.index.add(JIT13, "9.27.0.42", sha256="0" * 64)
        self.index.add(JIT13, "9.29.0.11")
        before = self.lock.read_text()
        status, _, err = self.run_lock("9.29.0")
        self.assertEqual((status, len(err)), (1, 1))
        self.assertIn(
            f"REFUSED: the package index publishes another sha256 for {JIT13} 9.27.0.42", err[0]
        )
        self.assertEqual(self.lock.read_text(), before)

    def test_killed_before_the_end_the_old_file_is_there(self):
        self.index.add(JIT13, "9.29.0.11")
        before = self.lock.read_text()
        kill = "import os, signal, sys, cudnn_lock; os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL); cudnn_lock.main(['9.29.0'])"
        status, _, _ = self.run_program(
            sys.executable, "-B", "-c", kill, PYTHONPATH=str(self.home / "ci")
        )
        self.assertEqual((status, self.lock.read_text()), (-signal.SIGKILL, before))
        self.assertEqual(
            len(list(self.lock.parent.glob("cudnn.lock.*.tmp"))),
            1,
            "it was killed where it should be",
        )
        self.assertEqual(self.run_lock("9.29.0")[0], 0)
        self.assertEqual(list(self.lock.parent.glob("cudnn.lock.*")), [])
        self.assertNotEqual(self.lock.read_text(), before)

    def test_help_unknown_words_and_no_network_change_nothing(self):
        before = self.lock.read_bytes(), self.lock.stat().st_ino
        self.assertEqual(self.run_lock("--help")[0], 0)
        for words, more, status, said in (
            (("9.29.0",), {}, 2, "the nearest that exist are 9.28.0, 9.27.0"),
            (("newest",), {}, 2, "not a version"),
            (("9.28.0",), {"PIP_INDEX_URL": NOWHERE}, 3, "cannot be reached"),
            (("9.28.0",), {"PIP_NO_INDEX": "1"}, 3, "without a package index"),
        ):
            code, _, err = self.run_lock(*words, **more)
            self.assertEqual((code, len(err)), (status, 1), err)
            self.assertIn(said, err[0])
        self.assertEqual((self.lock.read_bytes(), self.lock.stat().st_ino), before)

    def test_a_page_of_links_is_read_as_well(self):
        self.index.add(JIT13, "9.29.0.11", data=b"x" * 777)
        self.index.html = True
        self.assertEqual(self.run_lock("9.29.0")[0], 0)
        self.assertIn(self.line(JIT13, "9.29.0.11", 777), self.lock.read_text())

    def test_what_is_found_for_an_installation(self):
        for package in (FULL12, FULL13, JIT12):
            self.index.add(package, "9.29.0.11")
        self.index.add(FULL13, "9.30.0.1", yanked=True)
        self.index.add(FULL13, "9.31.0.1.dev7")
        words = (
            ("9.29.0", JIT12, "9.29.0.11"),
            ("latest", JIT12, "9.29.0.11"),
            ("9.29.0-full-cu13", FULL13, "9.29.0.11"),
            ("9.30.0.1", FULL13, "9.30.0.1"),
            ("9.27", JIT13, "9.27.0.42"),
        )
        for html in (False, True):
            self.index.html = html
            for word, package, version in (
                words[3:4] if html else words
            ):  # of a page of links, the one that was taken back
                status, out, _ = self.run_lock("--find", word)
                self.assertEqual((status, out.split()[:2]), (0, [package, version]), word)
            status, out, _ = self.run_lock("--find", "9.30.0")
            self.assertEqual(
                (status, "not on the package index" in out),
                (2, True),
                "a version that was taken back needs all four numbers",
            )


class Unpinned(Home):
    """`facts cudnn install` and --cudnn with versions that the lock does not have."""

    def test_it_is_installed_and_says_that_nothing_pins_it(self):
        self.publish(FULL13, "9.28.1.4")
        digest = hashlib.sha256(self.index.files[wheel_name(FULL13, "9.28.1.4")]).hexdigest()
        before = self.lock.read_text()
        for word in ("9.28.1", "9.28.1.4", "latest", "9.28.1-full-cu13")[
            :: 1 if needs.NIGHT else 2
        ]:
            shutil.rmtree(self.cache, ignore_errors=True)
            status, out, err = self.run_facts("cudnn", "install", word)
            self.assertEqual((status, len(err)), (0, 1 + (word == "latest")), err)
            self.assertEqual(
                out.split("\t")[:2],
                ["9.28.1-full-cu13", str(self.cache / "facts/cudnn/9.28.1-full-cu13/lib")],
            )
            for part in (
                wheel_name(FULL13, "9.28.1.4"),
                "MB",
                digest,
                "not pinned: trusted as the index says",
            ):
                self.assertIn(part, err[0])
        self.assertEqual(self.lock.read_text(), before)
        status, out, err = self.run_facts("cudnn", "install", "9.28.1.4", PIP_INDEX_URL=NOWHERE)
        self.assertEqual(
            (status, out.split("\t")[0], err),
            (0, "9.28.1-full-cu13", []),
            "it is there: nothing is asked",
        )

    def test_another_file_than_the_index_says_installs_nothing(self):
        self.publish(FULL13, "9.28.1.4", sha256="1" * 64)
        status, _, err = self.run_facts("cudnn", "install", "9.28.1")
        self.assertEqual((status, len(err)), (3, 2), err)
        self.assertIn("sha256 is not the one in the package index", err[1])
        self.assertFalse((self.cache / "facts/cudnn").exists())

    def test_pinned_only_refuses_what_the_lock_does_not_have(self):
        self.publish(FULL13, "9.28.1.4")
        refused = "facts cudnn lock 9.28.1"
        gate = ("gate", "--baseline", "9.28.1", "--candidate", "9.28.1", "--pinned-only")
        for words in (("cudnn", "install", "--pinned-only", "9.28.1"), gate):
            status, _, err = self.run_facts(*words)
            self.assertEqual((status, len(err)), (3, 1), err)
            self.assertIn(refused, err[0])
        self.assertFalse(self.cache.exists())
        self.assertEqual(self.run_facts("cudnn", "install", "9.28.1")[0], 0)
        (self.home / "cases").symlink_to(CI.parent / "cases")
        (self.home / "devices").symlink_to(CI.parent / "lib/devices")
        for words in (
            ("cudnn", "install", "--pinned-only", "9.28.1"),
            gate,
            (
                "decide",
                "pass=fwd d=64",
                "--cudnn",
                "9.28.1",
                "--device",
                "h100-sxm",
                "--pinned-only",
            ),
            (
                "bisect",
                "pass=fwd d=64",
                "--cudnn",
                "9.28.1,9.28.0",
                "--device",
                "h100-sxm",
                "--pinned-only",
            ),
        ):
            status, _, err = self.run_facts(*words)
            self.assertEqual((status, len(err)), (3, 1), (words, err))
            self.assertIn(refused, err[0])
        self.assertEqual(self.run_lock("9.28.1")[0], 0)
        self.assertEqual(self.run_facts("cudnn", "install", "--pinned-only", "9.28.1")[0], 0)

    def test_an_unknown_version_and_no_network_are_one_line(self):
        for word, more, status, said in (
            ("9.29.0", {}, 2, "nearest that exist are 9.28.0, 9.27.0"),
            ("9.29.0", {"PIP_INDEX_URL": NOWHERE}, 3, "facts cudnn lock 9.29.0"),
            ("9.29..9.30", {}, 2, "neither installed nor in ci/cudnn.lock"),
        ):
            code, _, err = self.run_facts("cudnn", "install", word, **more)
            self.assertEqual((code, len(err)), (status, 1), err)
            self.assertIn(said, err[0])

    def test_latest_without_a_network_is_the_newest_of_the_lock_and_says_so(self):
        self.publish(FULL13, "9.29.0.11")
        status, _, err = self.run_facts("cudnn", "path", "latest")
        self.assertEqual((status, "cudnn install 9.29.0.11" in err[-1]), (3, True), err)
        status, _, err = self.run_facts("cudnn", "path", "latest", PIP_INDEX_URL=NOWHERE)
        self.assertEqual(status, 3, err)
        self.assertIn(
            "took 9.28.0-full-cu13, the newest in ci/cudnn.lock (the package index cannot be reached",
            err[0],
        )
        self.assertIn("not installed; install it with", err[1])

    def test_a_bar_on_a_terminal_and_one_line_in_a_pipe(self):
        path = self.folder / "x.whl"
        wheels.make_wheel(path, package=FULL13, version="9.28.1.4")
        with wheels.zipfile.ZipFile(path, "a") as archive:
            archive.writestr("nvidia/large", wheels.random.Random(1).randbytes(1 << 20))
        self.index.add(FULL13, "9.28.1.4", data=path.read_bytes())
        self.index.chunk_s = 0.08
        words = (
            sys.executable,
            "-B",
            str(self.home / "ci/cudnn_install.py"),
            "--cache",
            str(self.cache),
            "--unpinned",
            f"{FULL13}==9.28.1.4",
        )
        status, _, err = self.run_program(*words)
        self.assertEqual((status, len(err)), (0, 1), err)
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            words,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the terminal's end
            pass
        os.close(ours)
        self.assertEqual(child.wait(), 0)
        lengths = [
            len(bar) for bar in re.findall(r"\[(#*)\.*\] \d+ of 1 MB, \d+ MB/s", shown.decode())
        ]
        self.assertGreater(len(set(lengths)), 2, shown)
        self.assertEqual(lengths, sorted(lengths))


if __name__ == "__main__":
    unittest.main()
