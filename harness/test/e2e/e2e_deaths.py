"""kill -9 of real workers, and of the supervisor, in the middle of real decisions: it costs the row in hand and nothing else."""

import os
import stat
import subprocess
import time

import e2e

BUILDS = ",".join(e2e.CI_BUILDS)
FEW = "pass=fwd,bwd dtype=bf16,f16 b=1 h=2 s=64,128,192 d=32,64,96,128"
MORE = "pass=fwd,bwd dtype=bf16,f16 b=1,3 h=2 s=100..500:50 d=64..256:64"


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def is_dead(pid):
    """Gone, or a zombie that nobody has buried yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def answer(row):
    engines = [(e["mode"], e["index"], e["config"]) for e in row.get("engines", ())]
    return row["verdict"], engines


class Deaths(e2e.TestCase):
    known = None

    def rows_after(self, size):
        """Has the record a row behind this place?"""
        with open(self.path("r"), "rb") as file:
            file.seek(size)
            return b'"verdict"' in file.read()

    def start(self, *more, **environment):
        words = ["--cudnn", BUILDS, "--device", "h100-sxm", "-j2", "-o", self.path("r"), *more]
        return subprocess.Popen(
            [e2e.FACTS, "decide", *e2e.some([FEW, "smoke", MORE], of=3), *words],
            env=e2e.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def rows(self):
        """By target, case and configuration (none in a row of a death between two); there are no two of one."""
        record = e2e.Record(self.path("r"))
        rows = {}
        for row in record.rows:
            key = row["build"], row["case"], row.get("config")
            self.assertNotIn(key, rows)
            rows[key] = row
        return record, rows

    def undisturbed(self):
        """The rows of a run that nothing disturbs; asked once for all tests."""
        if not Deaths.known:
            with self.start() as program:
                _, err = program.communicate(timeout=300)
            self.assertEqual(program.returncode, 0, err)
            _, Deaths.known = self.rows()
            os.unlink(self.path("r"))
        return Deaths.known

    @classmethod
    def setUpClass(cls):
        for name in e2e.CI_BUILDS:
            e2e.need(name)

    def test_of_workers_cost_one_row_each(self):
        whole = self.undisturbed()
        worker = e2e.Between(self.path("killed"), e2e.WORKER)
        worker.set("kill", 20)
        with self.start(FACTS_WORKER=worker.worker) as program:
            out, err = program.communicate(timeout=300)
        record, rows = self.rows()
        lost = [row for row in rows.values() if row["verdict"] == "crash"]
        self.assertEqual(program.returncode, 1, out[-1500:] + err[-500:])
        self.assertGreater(len(lost), 2)
        self.assertEqual(len(lost), os.path.getsize(os.path.join(worker.folder, "killed")))
        self.assertEqual({key[:2] for key in rows}, {key[:2] for key in whole})
        for key, row in rows.items():
            if row["verdict"] == "crash":
                self.assertEqual((row["reason"]["status"], row["signal"]), ("SIGKILL", 9))
            else:
                self.assertEqual(answer(row), answer(whole[key]), key)
        self.assertIs(record.ends[0]["complete"], True)
        self.assertEqual(record.bad, 0)

    def test_of_the_supervisor_and_resume_give_the_rows_of_an_unbroken_run(self):
        whole = self.undisturbed()
        for attempt in range(2):
            size = os.path.getsize(self.path("r")) if attempt else 0
            with self.start(*(["--resume"] if attempt else [])) as program:
                ready = lambda: os.path.exists(self.path("r")) and self.rows_after(size)
                e2e.wait_for(ready, program)
                workers = children(program.pid)
                program.kill()
                program.communicate(timeout=300)
            until = time.monotonic() + 300
            while not all(is_dead(pid) for pid in workers) and time.monotonic() < until:
                time.sleep(0.02)
            outlived = [pid for pid in workers if not is_dead(pid)]
            self.assertEqual(outlived, [], "workers outlive their supervisor")
        with self.start("--resume") as program:
            out, err = program.communicate(timeout=300)
        self.assertEqual(program.returncode, 0, out[-1500:] + err[-500:])
        record, rows = self.rows()
        self.assertEqual(len(record.runs), 3)
        found, wanted = ({key: answer(row) for key, row in some.items()} for some in (rows, whole))
        self.assertEqual(found, wanted)
        self.assertIs(record.ends[-1]["complete"], True)


class Vanished(e2e.TestCase):
    def test_a_build_that_vanished_is_inconclusive(self):
        build, folder = e2e.need(e2e.NEW), self.path("vanishing")
        os.mkdir(folder)
        for name in os.listdir(build.dir):
            os.symlink(os.path.join(build.dir, name), os.path.join(folder, name))
        worker = self.write("worker", f"#!/bin/sh\nrm -rf '{folder}'\nexec '{e2e.WORKER}'\n")
        os.chmod(worker, stat.S_IRWXU)
        cases = "pass=fwd,bwd dtype=bf16 d=64,72,100,256 mask=none,causal"
        words = ("--device", "h100-sxm", "--cudnn", folder, "-o", self.path("r"))
        done = e2e.facts("decide", cases, *words, FACTS_WORKER=worker)
        self.assertStatus(done, 3)
        rows = e2e.Record(self.path("r")).rows
        self.assertEqual([row["verdict"] for row in rows], ["inconclusive"] * 16)
        self.assertTrue(all(folder in row["reason"]["text"] for row in rows), rows[0])
        self.assertEqual(done.err.count(folder), 1, done.err)


if __name__ == "__main__":
    e2e.main()
