"""kill -9 of real workers, and of the supervisor, in the middle of real decisions: it costs the row in hand and nothing else."""
import os
import random
import signal
import stat
import subprocess
import time

import e2e

BUILDS = ",".join(e2e.CI_BUILDS)
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
    return row["verdict"], tuple((e["mode"], e["index"], e["config"]) for e in row.get("engines", ()))


class Deaths(e2e.TestCase):
    known = None

    def start(self, *more):
        command = [e2e.FACTS, "decide", "smoke", MORE, "--cudnn", BUILDS, "--device", "h100-sxm", "-j", "2", "-o", self.path("r"), *more]
        return subprocess.Popen(command, env=e2e.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

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
        """The rows, and the seconds after which a worker is surely ready; asked once for all tests."""
        if not Deaths.known:
            with self.start() as program:
                _, err = program.communicate(timeout=60)
            self.assertEqual(program.returncode, 0, err)
            record, rows = self.rows()
            os.unlink(self.path("r"))
            Deaths.known = rows, 0.1 + 2e-3 * max(target["start_ms"] for target in record.targets)
        return Deaths.known

    def kill_workers(self, program, grown, chance):
        """At random moments until it ends; of those that are still starting only one, as two in a row give a target up. How many."""
        born, kills, young_kills = {}, 0, 0
        while program.poll() is None and kills < 12:
            time.sleep(chance.uniform(0.01, 0.1))
            now = time.monotonic()
            workers = {pid: now - born.setdefault(pid, now) for pid in children(program.pid)}
            victims = [pid for pid, age in workers.items() if age > grown or (not young_kills and kills > 1)]
            if victims:
                victim = chance.choice(victims)
                young_kills += workers[victim] <= grown
                try:
                    os.kill(victim, signal.SIGKILL)
                    kills += 1
                except ProcessLookupError:
                    pass
        return kills

    def wait_until_it_grows(self, path, size):
        deadline = time.monotonic() + 30
        while (not os.path.exists(path) or os.path.getsize(path) <= size) and time.monotonic() < deadline:
            time.sleep(0.005)

    @classmethod
    def setUpClass(cls):
        for name in e2e.CI_BUILDS:
            e2e.need(name)

    def test_of_workers_cost_one_row_each(self):
        whole, grown = self.undisturbed()
        with self.start() as program:
            kills = self.kill_workers(program, grown, random.Random(5))
            out, err = program.communicate(timeout=90)
        record, rows = self.rows()
        lost = [row for row in rows.values() if row["verdict"] in ("crash", "exit_crash")]
        self.assertGreater(kills, 2)
        self.assertLessEqual(len(lost), kills)
        self.assertGreater(len(lost), 0)
        self.assertEqual(program.returncode, 1, out[-1500:] + err[-500:])
        self.assertEqual({key[:2] for key in rows}, {key[:2] for key in whole})
        for key, row in rows.items():
            if row["verdict"] == "crash":
                self.assertEqual((row["reason"]["status"], row["signal"]), ("SIGKILL", 9))
            elif row["verdict"] != "exit_crash":
                self.assertEqual(answer(row), answer(whole[key]), key)
        self.assertIs(record.ends[0]["complete"], True)
        self.assertEqual(record.bad, 0)

    def test_of_the_supervisor_and_resume_give_the_rows_of_an_unbroken_run(self):
        whole, _ = self.undisturbed()
        chance = random.Random(6)
        for attempt in range(3):
            size = os.path.getsize(self.path("r")) if attempt else 0
            with self.start(*(["--resume"] if attempt else [])) as program:
                self.wait_until_it_grows(self.path("r"), size) # a fixed time would end before the first row where much else runs
                time.sleep(chance.uniform(0, 0.2))
                workers = children(program.pid)
                program.kill()
                program.communicate(timeout=30)
            deadline = time.monotonic() + 5
            while not all(is_dead(pid) for pid in workers) and time.monotonic() < deadline:
                time.sleep(0.02)
            self.assertTrue(all(is_dead(pid) for pid in workers), "workers outlive their supervisor")
        with self.start("--resume") as program:
            out, err = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 0, out[-1500:] + err[-500:])
        record, rows = self.rows()
        self.assertGreater(len(record.runs), 2)
        self.assertEqual({key: answer(row) for key, row in rows.items()}, {key: answer(row) for key, row in whole.items()})
        self.assertIs(record.ends[-1]["complete"], True)


class Vanished(e2e.TestCase):
    def test_a_build_that_vanished_is_inconclusive(self):
        build, folder = e2e.need(e2e.NEW), self.path("vanishing")
        os.mkdir(folder)
        for name in os.listdir(build.dir):
            os.symlink(os.path.join(build.dir, name), os.path.join(folder, name))
        worker = self.write("worker", f"#!/bin/sh\nrm -rf '{folder}'\nexec '{e2e.WORKER}'\n")
        os.chmod(worker, stat.S_IRWXU)
        done = e2e.facts("decide", "pass=fwd,bwd dtype=bf16 d=64,72,100,256 mask=none,causal", "--device", "h100-sxm", "--cudnn", folder,
                         "-o", self.path("r"), FACTS_WORKER=worker)
        self.assertStatus(done, 3)
        rows = e2e.Record(self.path("r")).rows
        self.assertEqual([row["verdict"] for row in rows], ["inconclusive"] * 16)
        self.assertTrue(all(folder in row["reason"]["text"] for row in rows), rows[0])
        self.assertEqual(done.err.count(folder), 1, done.err)


if __name__ == "__main__":
    e2e.main()
