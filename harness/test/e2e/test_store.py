"""The store of answers with real builds; a build that vanishes."""
import os
import stat

import e2e

CASES = "pass=fwd,bwd dtype=bf16 d=64,72,100,256 mask=none,causal"


class Store(e2e.TestCase):
    def decide(self, record, *arguments, **more):
        return e2e.facts("decide", CASES, "--device", "h100-sxm", "-o", self.path(record), *arguments, FACTS_STORE=self.path("answers.sqlite"), **more)

    def rows(self, record):
        read = e2e.Record(self.path(record))
        for line in read.rows + read.targets:
            line.pop("run")
        return read.by("case", "build"), {target["build"]: target for target in read.targets}

    def test_the_same_rows_and_libraries_with_and_without_it(self):
        builds = ",".join(e2e.need(name).name for name in e2e.CI_BUILDS)
        first, second = self.decide("a", "--cudnn", builds), self.decide("b", "--cudnn", builds)
        self.assertEqual((first.status, second.status), (0, 0), first.text + second.text)
        self.assertEqual(first.out.replace("/a\n", "/b\n"), second.out)
        (asked, targets), (stored, again) = self.rows("a"), self.rows("b")
        self.assertEqual(len(asked), 32)
        for row in stored.values():
            self.assertRegex(row.pop("stored"), r"^20\d\d-.*Z$")
        self.assertEqual(stored, asked)
        self.assertEqual(again, targets)

    def test_a_build_that_vanished_is_inconclusive(self):
        build, folder = e2e.need(e2e.NEW), self.path("vanishing")
        os.mkdir(folder)
        for name in os.listdir(build.dir):
            os.symlink(os.path.join(build.dir, name), os.path.join(folder, name))
        worker = self.path("worker")
        with open(worker, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nrm -rf '{folder}'\nexec '{e2e.WORKER}'\n")
        os.chmod(worker, stat.S_IRWXU)
        done = self.decide("a", "--cudnn", folder, FACTS_WORKER=worker)
        self.assertEqual(done.status, 3, done.text)
        rows, _ = self.rows("a")
        self.assertEqual({row["verdict"] for row in rows.values()}, {"inconclusive"})
        self.assertEqual(len(rows), 16)
        self.assertTrue(all(folder in row["reason"]["text"] for row in rows.values()), next(iter(rows.values())))
        self.assertEqual(done.err.count(folder), 1, done.err)


if __name__ == "__main__":
    e2e.main()
