"""What the tests of facts repro --standalone share: compiling the programs that it writes."""

import glob
import json
import os
import sys

import e2e

CC = os.environ.get("FACTS_CC") or "cc"
SHIMS = os.path.join(e2e.SOURCE, "harness/test/e2e/shims")


def cuda_headers():
    """The folder with cuda_runtime_api.h: the toolkit's, or that of NVIDIA's packages in the cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    places = [
        os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "include"),
        *glob.glob(os.path.join(cache, "facts/nvcc/*/include")),
        *glob.glob(os.path.join(cache, "facts/*/nvcc/*/include")),
    ]
    return next(
        (place for place in places if os.path.exists(os.path.join(place, "cuda_runtime_api.h"))),
        None,
    )


def standalone(folder, row, *more):
    """Writes the program of a row into a folder with its data."""
    with open(os.path.join(folder, "data", "rows.jsonl"), "w", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    script = os.path.join(e2e.SOURCE, "harness/attention/repro/standalone.py")
    return e2e.Done(e2e.started([sys.executable, script, folder, *more]))


class Compiling(e2e.TestCase):
    """Programs can be compiled here."""

    def setUp(self):
        super().setUp()
        self.cuda = cuda_headers()
        if not self.cuda:
            self.skipTest("no headers of the CUDA runtime: install a toolkit, or set CUDA_HOME")

    def compile(self, build, sources, out, *more):
        """Compiles C without one warning."""
        include = os.path.join(os.path.dirname(os.path.realpath(build.dir)), "include")
        flags = "-O1 -std=gnu11 -Wall -Wextra -Wno-unused-parameter -Werror -I".split()
        words = [*flags, include, "-I", self.cuda, "-o", out, *sources, *more]
        done = e2e.Done(e2e.started([CC, *words]))
        self.assertEqual((done.status, done.err), (0, ""))
        return out

    def described(self, name="h100-sxm"):
        return self.write("device.json", json.dumps(e2e.description(name), separators=(",", ":")))
