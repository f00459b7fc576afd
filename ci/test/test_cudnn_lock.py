"""The lock and the package index: versions that nobody knows yet, added to the lock, found, installed without a pinned sha256.

A server on 127.0.0.1 stands in for the package index, so that no network is used.
"""

import hashlib
import http.server
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import zipfile

import scripts
import wheels
from wheels import name_of

sys.path.insert(0, str(scripts.HOME / "harness/test/e2e"))
import forked  # noqa: E402

JIT13, JIT12 = "nvidia-cudnn-jit-cu13", "nvidia-cudnn-jit-cu12"
FULL13, FULL12 = "nvidia-cudnn-cu13", "nvidia-cudnn-cu12"
OTHERS = {
    "nvidia-cuda-nvrtc": "13.0.88",
    "nvidia-cuda-nvrtc-cu12": "12.9.86",
    "nvidia-cuda-nvcc": "13.0.88",
    "nvidia-nvvm": "13.0.88",
    "nvidia-cuda-crt": "13.0.88",
    "nvidia-cuda-runtime": "13.0.96",
    "nvidia-cuda-sanitizer-api": "13.5.25",
}
NOWHERE = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
DESCRIBED = ("--device", "h100-sxm", "--pinned-only")


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
        name = name_of(package, version)
        self.files[name] = data
        sha256 = sha256 or hashlib.sha256(data or name.encode()).hexdigest()
        self.packages.setdefault(package, {})[name] = (sha256, yanked)

    def page(self, package):
        files = self.packages[package].items()
        if self.html:
            form = '<a href="/files/{0}#sha256={1}"{2}>{0}</a>\n'
            links = [form.format(name, s, " data-yanked" * yanked) for name, (s, yanked) in files]
            return "text/html", f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"
        listed = []
        for name, (sha256, yanked) in files:
            about = {"filename": name, "url": f"/files/{name}", "hashes": {"sha256": sha256}}
            size = len(self.files[name]) or 5000000
            listed.append({**about, "size": size, "yanked": yanked})
        page = {"meta": {"api-version": "1.1"}, "name": package, "files": listed}
        return "application/vnd.pypi.simple.v1+json", json.dumps(page)

    def answer(self, request):
        where, name = request.path.strip("/").split("/")
        kind, data = "application/zip", self.files.get(name)
        if where == "simple":
            kind, data = self.page(name) if name in self.packages else ("", None)
            data = data and data.encode()
        if data is None:
            return request.send_error(404)
        request.send_response(200)
        request.send_header("Content-Type", kind)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        for at in range(0, len(data) if request.command == "GET" else 0, 1 << 16):
            request.wfile.write(data[at : at + (1 << 16)])
            time.sleep(self.chunk_s if where == "files" else 0)


class Home(wheels.Home):
    """A checkout with a lock of its own, and an index that knows more."""

    forks = None

    def setUp(self):
        super().setUp()
        self.index = Index()
        self.addCleanup(self.index.server.server_close)
        self.addCleanup(self.index.server.shutdown)
        locked = ((JIT13, "9.27.0.42"), (JIT12, "9.27.0.42"), (FULL13, "9.28.0.42"))
        for package, version in (*locked, (FULL12, "9.28.0.42")):
            self.index.add(package, version)
        self.lock.write_text("# head\n" + "".join(self.line(*one) for one in locked))
        kept = {
            name: value
            for name, value in os.environ.items()
            if not re.match(r"PIP_|.*_proxy$", name, re.I)
        }
        self.environment = {
            **kept,
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": self.index.url,
            "FACTS_HOME": str(self.home),
            "FACTS_PYTHON": sys.executable,
            "XDG_CACHE_HOME": str(self.cache),
        }

    def line(self, package, version, size=5000000):
        name = name_of(package, version)
        return f"{package} {version} {self.index.packages[package][name][0]} {size} {name}\n"

    def start(self, *words, **more):
        done = scripts.start(*words, env={**self.environment, **more})
        return done.returncode, done.stdout, done.stderr.strip().splitlines()

    def run_lock(self, *words, **more):
        if not Home.forks:
            Home.forks = forked.Forks("pip._internal.commands.download", self.environment)
            unittest.addModuleCleanup(Home.forks.close)
        script = str(self.home / "ci/cudnn_lock.py")
        done = Home.forks.run(script, *words, **{**self.environment, **more})
        return done.status, done.out, done.err.strip().splitlines()

    def facts(self, *words, **more):
        return self.start(scripts.FACTS, *words, **more)

    def refused(self, answer, status, said):
        """One line that says this."""
        self.assertEqual((answer[0], len(answer[2])), (status, 1), answer)
        self.assertIn(said, answer[2][0])

    def publish(self, package, version, **more):
        wheels.make_wheel(self.at / "x.whl", package=package, version=version)
        self.index.add(package, version, data=(self.at / "x.whl").read_bytes(), **more)


class Lock(Home):
    def added(self, before):
        new = set(self.lock.read_text().splitlines()) - set(before.splitlines())
        return {tuple(line.split()[:2]) for line in new}

    def test_a_version_is_added_to_the_packages_that_have_it_and_no_line_changes(self):
        for package in (JIT13, JIT12, FULL12, FULL13):
            self.index.add(package, "9.29.0.11")
        before = self.lock.read_text().splitlines()
        status, out, err = self.run_lock("9.29.0")
        self.assertEqual((status, err, out.count("added")), (0, [], 4))
        after = self.lock.read_text().splitlines()
        self.assertEqual([line for line in after if line in before], before)
        packages = [line.split()[0] for line in after[1:]]  # cu12's full package: not wanted
        self.assertEqual(packages, [JIT13, JIT13, JIT12, JIT12, FULL13, FULL13])
        status, out, _ = self.run_lock("9.29.0")
        self.assertEqual((status, "already" in out), (0, True))
        self.assertEqual(self.lock.read_text().splitlines(), after)

    def test_four_parts_a_build_and_latest(self):
        for version in ("9.29.0.11", "9.29.0.12"):
            self.index.add(FULL13, version)
        self.index.add(JIT13, "9.29.0.11")
        before = self.lock.read_text()
        for words, added in (
            ("9.29.0.11", {(JIT13, "9.29.0.11"), (FULL13, "9.29.0.11")}),
            ("9.29.0-full-cu13", {(FULL13, "9.29.0.12")}),
            ("latest", {(JIT13, "9.29.0.11"), (FULL13, "9.29.0.12")}),
            ("9.28.0-full-cu12", {(FULL12, "9.28.0.42")}),
        ):
            self.assertEqual(self.run_lock(words)[0], 0)
            self.assertEqual(self.added(before), added, words)
            self.lock.write_text(before)

    def test_without_a_version_everything_that_is_wanted_is_added(self):
        wanted = {(FULL12, "9.11.1.4"), (FULL13, "9.29.0.11"), *OTHERS.items()}
        for package, version in (*wanted, (FULL13, "9.27.0.42")):
            self.index.add(package, version)
        before = self.lock.read_text()
        self.assertEqual(self.run_lock()[0], 0)
        self.assertEqual(self.added(before), wanted)

    def test_another_machine_has_a_lock_of_its_own(self):
        name = name_of(JIT13, "9.29.0.11").replace("x86_64", "aarch64")
        self.index.add(JIT13, "9.29.0.11")
        self.index.packages[JIT13][name] = ("a" * 64, False)
        self.index.files[name] = b""
        before, other = self.lock.read_text(), self.lock.with_name("cudnn-aarch64.lock")
        other.write_text("# head\n")
        self.assertEqual(self.run_lock("9.29.0", FACTS_MACHINE="aarch64")[0], 0)
        line = f"{JIT13} 9.29.0.11 {'a' * 64} 5000000 {name}\n"
        self.assertEqual((self.lock.read_text(), other.read_text()), (before, "# head\n" + line))

    def test_killed_before_the_end_the_old_file_is_there(self):
        self.index.add(JIT13, "9.29.0.11")
        before = self.lock.read_text()
        kill = "import os, signal, sys, cudnn_lock; os.replace = lambda *a: os.kill(os.getpid(), signal.SIGKILL); cudnn_lock.main(['9.29.0'])"
        path = {"PYTHONPATH": str(self.home / "ci")}
        status, _, _ = self.start(sys.executable, "-c", kill, **path)
        self.assertEqual((status, self.lock.read_text()), (-signal.SIGKILL, before))
        left = list(self.lock.parent.glob("cudnn.lock.*.tmp"))
        self.assertEqual(len(left), 1, "it was killed where it should be")
        self.assertEqual(self.run_lock("9.29.0")[0], 0)
        self.assertEqual(list(self.lock.parent.glob("cudnn.lock.*")), [])
        self.assertNotEqual(self.lock.read_text(), before)

    def test_help_and_what_is_refused_change_nothing(self):
        before = self.lock.read_bytes(), self.lock.stat().st_ino
        self.assertEqual(self.run_lock("--help")[0], 0)
        for word, more, status, said in (
            ("9.29.0", {}, 2, "the nearest that exist are 9.28.0, 9.27.0"),
            ("newest", {}, 2, "not a version"),
            ("9.28.0", NOWHERE, 3, "cannot be reached"),
            ("9.28.0", {"PIP_NO_INDEX": "1"}, 3, "without a package index"),
        ):
            self.refused(self.run_lock(word, **more), status, said)
        self.index.add(JIT13, "9.27.0.42", sha256="0" * 64)
        self.index.add(JIT13, "9.29.0.11")
        said = f"REFUSED: the package index publishes another sha256 for {JIT13} 9.27.0.42"
        self.refused(self.run_lock("9.29.0"), 1, said)
        self.assertEqual((self.lock.read_bytes(), self.lock.stat().st_ino), before)

    def test_what_is_found_for_an_installation(self):
        for package in (FULL12, FULL13, JIT12):
            self.index.add(package, "9.29.0.11")
        self.index.add(FULL13, "9.30.0.1", yanked=True)
        self.index.add(FULL13, "9.31.0.1.dev7")
        for word, found in (
            ("9.29.0", [JIT12, "9.29.0.11"]),
            ("latest", [JIT12, "9.29.0.11"]),
            ("9.29.0-full-cu13", [FULL13, "9.29.0.11"]),
            ("9.30.0.1", [FULL13, "9.30.0.1"]),
            ("9.27", [JIT13, "9.27.0.42"]),
        ):
            status, out, _ = self.run_lock("--find", word)
            self.assertEqual((status, out.split()[:2]), (0, found), word)
        for html in (False, True):  # a version that was taken back needs all four numbers
            self.index.html = html
            status, out, _ = self.run_lock("--find", "9.30.0")
            self.assertEqual((status, "not on the package index" in out), (2, True))
        self.index.add(JIT13, "9.29.0.11", data=b"x" * 777)
        self.assertEqual(self.run_lock("9.29.0")[0], 0)
        self.assertIn(self.line(JIT13, "9.29.0.11", 777), self.lock.read_text())


class Unpinned(Home):
    """`facts cudnn install` and --cudnn with versions that the lock does not have."""

    def test_it_is_installed_and_says_that_nothing_pins_it(self):
        self.publish(FULL13, "9.28.1.4")
        name, build = name_of(FULL13, "9.28.1.4"), "9.28.1-full-cu13"
        digest = hashlib.sha256(self.index.files[name]).hexdigest()
        before = self.lock.read_text()
        status, out, err = self.facts("cudnn", "install", "latest")
        self.assertEqual((status, len(err)), (0, 2), err)
        place = str(self.cache / "facts/cudnn" / build / "lib")
        self.assertEqual(out.split("\t")[:2], [build, place])
        for part in (name, "MB", digest, "not pinned: trusted as the index says"):
            self.assertIn(part, err[0])
        self.assertEqual(self.lock.read_text(), before)
        for word in ("9.28.1.4", "9.28.1-full-cu13"):  # it is there: nothing is asked
            status, out, err = self.facts("cudnn", "install", word, **NOWHERE)
            self.assertEqual((status, out.split("\t")[0], err), (0, build, []))

    def test_another_file_than_the_index_says_installs_nothing(self):
        self.publish(FULL13, "9.28.1.4", sha256="1" * 64)
        status, _, err = self.facts("cudnn", "install", "9.28.1")
        self.assertEqual((status, len(err)), (3, 2), err)
        self.assertIn("sha256 is not the one in the package index", err[1])
        self.assertFalse((self.cache / "facts/cudnn").exists())

    def test_pinned_only_refuses_what_the_lock_does_not_have(self):
        self.publish(FULL13, "9.28.1.4")
        install = ("cudnn", "install", "--pinned-only", "9.28.1")
        gate = ("gate", "--baseline", "9.28.1", "--candidate", "9.28.1", "--pinned-only")
        for words in (install, gate):
            self.refused(self.facts(*words), 3, "facts cudnn lock 9.28.1")
        self.assertFalse(self.cache.exists())
        self.assertEqual(self.facts("cudnn", "install", "9.28.1")[0], 0)
        (self.home / "cases").symlink_to(scripts.HOME / "cases")
        (self.home / "devices").symlink_to(scripts.HOME / "lib/devices")
        for words in (
            install,
            gate,
            ("decide", "pass=fwd d=64", "--cudnn", "9.28.1", *DESCRIBED),
            ("bisect", "pass=fwd d=64", "--cudnn", "9.28.1,9.28.0", *DESCRIBED),
        ):
            self.refused(self.facts(*words), 3, "facts cudnn lock 9.28.1")
        self.assertEqual(self.run_lock("9.28.1")[0], 0)
        self.assertEqual(self.facts(*install)[0], 0)

    def test_an_unknown_version_and_no_network_are_one_line(self):
        for word, more, status, said in (
            ("9.29.0", {}, 2, "nearest that exist are 9.28.0, 9.27.0"),
            ("9.29.0", NOWHERE, 3, "facts cudnn lock 9.29.0"),
            ("9.29..9.30", {}, 2, "neither installed nor in ci/cudnn.lock"),
        ):
            self.refused(self.facts("cudnn", "install", word, **more), status, said)

    def test_latest_without_a_network_is_the_newest_of_the_lock_and_says_so(self):
        self.publish(FULL13, "9.29.0.11")
        status, _, err = self.facts("cudnn", "path", "latest")
        self.assertEqual((status, "cudnn install 9.29.0.11" in err[-1]), (3, True), err)
        status, _, err = self.facts("cudnn", "path", "latest", **NOWHERE)
        took = "took 9.28.0-full-cu13, the newest in ci/cudnn.lock (the package index cannot be reached"
        self.assertEqual((status, took in err[0]), (3, True), err)
        self.assertIn("not installed; install it with", err[1])

    def test_a_bar_on_a_terminal_and_one_line_in_a_pipe(self):
        path = self.at / "x.whl"
        wheels.make_wheel(path, package=FULL13, version="9.28.1.4")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("nvidia/large", random.Random(1).randbytes(1 << 20))
        self.index.add(FULL13, "9.28.1.4", data=path.read_bytes())
        self.index.chunk_s = 0.08
        words = [sys.executable, self.script, "--cache", self.cache, "--unpinned"]
        words.append(f"{FULL13}==9.28.1.4")
        status, _, err = self.start(*words)
        self.assertEqual((status, len(err)), (0, 1), err)
        ours, theirs = pty.openpty()
        nothing = dict.fromkeys(("stdin", "stdout"), subprocess.DEVNULL)
        child = subprocess.Popen(words, env=self.environment, stderr=theirs, **nothing)
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the terminal's end
            pass
        os.close(ours)
        self.assertEqual(child.wait(), 0)
        bars = re.findall(r"\[(#*)\.*\] \d+ of 1 MB, \d+ MB/s", shown.decode())
        self.assertGreater(len(set(bars)), 2, shown)
        self.assertEqual(bars, sorted(bars))


if __name__ == "__main__":
    unittest.main()
