"""A second operation behind the door: softmax on the CPU, through the commands of `facts`. Its builds are files that say a version."""

import json
import os
import unittest

import e2e

PROGRAM = os.path.join(e2e.BIN, "facts-softmax")
SUITE = os.path.join(e2e.SOURCE, "harness/test/softmax/softmax.cases")
LONG = "type=f32 columns=2048 log=1"
ENGINES = "libcudnn_engines_runtime_compiled.so.9"


@unittest.skipUnless(os.path.exists(PROGRAM), "no facts-softmax: build with tests")
class Softmax(e2e.TestCase):
    def build(self, version):
        """A folder that is identified as a build of this version."""
        major, minor, patch = version.split(".")
        folder = self.path(version)
        os.makedirs(folder)
        said = f"cudnn_version != ({major} * 10000 + {minor} * 100 + {patch})".ljust(200)
        texts = {"libcudnn.so.9": "", "libcudnn_graph.so.9": ""}
        texts[ENGINES] = said + "/cuda-13.2/bin/ptxExtDesc.txt".ljust(200)
        for name, text in texts.items():
            self.write(os.path.join(version, name), text)
        return folder

    def softmax(self, *words, status=0):
        worker = os.path.join(e2e.BIN, "facts-softmax-worker")
        env = e2e.environment(FACTS_WORKER=worker, XDG_CACHE_HOME=self.path("cache"))
        done = e2e.Done(e2e.started([PROGRAM, *words], env=env, cwd=self.folder))
        self.assertStatus(done, status)
        return done

    def test_its_keys_are_the_language(self):
        self.assertIn("numbers in a row\n", self.softmax("keys", "columns").out)
        wrong = self.softmax("run", "colums=3", "--device", "cpu", status=2)
        self.assertIn("colums is not a key; did you mean columns?", wrong.err)
        found = self.softmax("list", "rows=3..9 columns=17", "--where", "rows%2=1").out
        self.assertEqual(found.split("\n")[0], "type=f32 rows=3 columns=17")
        self.assertEqual(len(found.splitlines()), 4)

    def test_run_finds_the_planted_fault_and_shrink_its_smallest_case(self):
        record = self.path("r.jsonl")
        done = self.softmax("run", SUITE, "--device", "cpu", "-o", record, status=1)
        self.assertIn("\n10 cases\n", done.out)
        self.assertIn("pass 7  unsupported 1  wrong 2\n", done.out)
        with open(record, encoding="utf-8") as file:
            rows = [row for row in map(json.loads, file) if "verdict" in row]
        wrong = {row["case"] for row in rows if row["verdict"] == "wrong"}
        self.assertEqual(wrong, {f"type=f32 rows={rows} columns=17" for rows in (1, 64)})
        case = "rows=64 columns=145 data=masked scale=0.5 seed=9"
        done = self.softmax("shrink", case, "--device", "cpu", status=1)
        self.assertIn("\ntype=f32 rows=1 columns=17\n", done.out)
        self.assertIn("The smallest case found is `type=f32 rows=1 columns=17`.", done.out)
        done = self.softmax("run", "columns=17 engine=0,1,all,2", "--device", "cpu", status=1)
        self.assertIn("pass 1  unsupported 1  wrong 2\n", done.out)

    def test_gate_bisect_and_report_know_the_other_build(self):
        old, new, newer = map(self.build, ("9.21.0", "9.22.0", "9.24.0"))
        here = ("--device", "h100-sxm")
        self.softmax("decide", SUITE, "--cudnn", f"{old},{new}", *here, "-o", self.path("d.jsonl"))
        sides = ("--baseline", "9.21.0", "--candidate", "9.22.0")
        for asked in ((SUITE, "--baseline", old, "--candidate", new, *here), ("d.jsonl", *sides)):
            done = self.softmax("gate", *asked, status=1)
            self.assertIn("DO NOT MOVE", done.out)
            self.assertIn(f"decide '{LONG}'", done.out)
        short = self.softmax("gate", "d.jsonl", *sides, "--where", "columns<2000")
        self.assertIn("OK TO MOVE", short.out)
        done = self.softmax("bisect", LONG, "--cudnn", f"{old},{new},{newer}", *here)
        self.assertIn("lost: last good 9.21.0, first bad 9.22.0\n", done.out)
        done = self.softmax("report", self.path("d.jsonl"), "-o", self.path("page"))
        self.assertIn("10 cases", done.out)
        with open(self.path("page", "index.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertIn('"query_keys":["type","rows","columns"', page.replace(" ", ""))


if __name__ == "__main__":
    e2e.main()
