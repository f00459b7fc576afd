"""facts compile and --plan-dir as commands: processes that share a folder, and plans that are made ahead."""

import os
import re
import shutil
import subprocess
import tempfile

import e2e

CASE = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64"


def started(words, environment):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([e2e.FACTS, *words], env=environment, **pipes)


class Many(e2e.TestCase):
    CASES = "pass=bwd dtype=bf16 b=1 h=2 s=128 d=64,100"

    def test_processes_share_a_cache_and_a_folder(self):
        """Two by day, eight in the night."""
        count, cache = len(e2e.some(range(8), of=4)), self.path("cache", "facts")
        os.makedirs(cache)
        user = os.path.dirname(os.path.dirname(os.path.dirname(e2e.need(e2e.NEW).dir)))
        for name in ("cudnn", "digests"):
            os.symlink(os.path.join(user, name), os.path.join(cache, name))
        plans, more = self.path("plans"), e2e.environment(XDG_CACHE_HOME=self.path("cache"))
        words = ["compile", self.CASES, "--cudnn", e2e.NEW, "-j1", "--plan-dir", plans, "-o"]
        for process in [started([*words, self.path(f"r{n}")], more) for n in range(count)]:
            said = process.communicate(timeout=300)[0]
            self.assertEqual(process.returncode, 0, said)
            self.assertNotIn("could not be used", said)
        records = [e2e.Record(self.path(f"r{n}")).rows for n in range(count)]
        rows = [sorted((row["case"], row["verdict"]) for row in found) for found in records]
        self.assertEqual(len(rows[0]), 2)
        self.assertEqual(rows, count * rows[:1])
        # One more is of the backward's own forward, and nothing is half written.
        kinds = sorted(name.split(".", 1)[1] for name in os.listdir(plans))
        self.assertEqual(kinds, 2 * ["plan"])
        self.assertEqual(sorted(os.listdir(cache)), ["cudnn", "digests"])
        said = started([*words, self.path("last")], more).communicate(timeout=300)[0]
        self.assertIn("plans: 0 compiled, 1 loaded", said)


class Full(e2e.TestCase):
    def test_a_plan_that_cannot_be_stored_is_exit_3(self):
        """A full disk and one that cannot be written to, mounted for this process alone."""
        mount = ("unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt")
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            self.skipTest("no file system can be mounted here")
        build = e2e.need(e2e.NEW).name
        disk, words = self.path("disk"), ["compile", CASE, "--cudnn", build, "-j1", "--overwrite"]
        os.mkdir(disk)
        script = f"mount -t tmpfs -o mode=755,$0 none '{disk}' && exec \"$@\""
        words += ["--plan-dir", disk, "-o", self.path("r.jsonl")]
        for options, said in (("size=4k", "No space left"), ("ro", "Read-only file system")):
            command = ["unshare", "-Urm", "bash", "-c", script, options, e2e.FACTS, *words]
            done = subprocess.run(
                command, env=e2e.environment(), capture_output=True, text=True, check=False
            )
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("--plan-dir: the plans of 1 row could not be stored", done.stderr)
            self.assertIn(said, done.stderr)


class Compile(e2e.TestCase):
    CASES = "pass=fwd dtype=bf16,f16 b=1 h=2 s=128 d=64,100"

    made = None

    def setUp(self):
        super().setUp()
        self.plans = self.path("plans")

    def files(self):
        return sorted(os.listdir(self.plans))

    def make(self):
        """What the first command makes; the others take a copy of it."""
        if not Compile.made:
            Compile.made = tempfile.mkdtemp(prefix="facts-e2e-")
            self.addClassCleanup(shutil.rmtree, Compile.made)
            self.assertEqual(self.counts(self.command()), (2, 0))
            shutil.copytree(self.plans, os.path.join(Compile.made, "plans"))
        else:
            shutil.copytree(os.path.join(Compile.made, "plans"), self.plans)

    def command(self, *more, command=("compile",), plans=None, cases=None):
        words = (*command, cases or self.CASES, "--cudnn", e2e.need(e2e.NEW).name, "--overwrite")
        place = ("--plan-dir", plans or self.plans, "-o", self.path("r"))
        done = e2e.facts(*words, *place, *more)
        self.assertStatus(done, 0)
        return done

    def counts(self, done):
        found = re.search(r"plans: (\d+) compiled, (\d+) loaded", done.text)
        self.assertIsNotNone(found, done.text)
        return tuple(int(number) for number in found.groups())

    def test_what_is_made_ahead_is_found_later(self):
        self.make()
        second = self.command()
        self.assertEqual(self.counts(second), (0, 2))
        one = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64,100"
        own = self.command("--with", "policy=any", plans=self.path("own"), cases=one)
        self.assertEqual(self.counts(own), (1, 0), "a plan of math needs no compiler")
        self.assertEqual(self.counts(self.command(command=("decide", "--plan"))), (0, 2))

    def test_each_shard_makes_its_part(self):
        parts = [
            self.counts(self.command("--shard", f"{i}/2"))
            for i in (1, 2)
            if e2e.facts("list", self.CASES, "--shard", f"{i}/2").out
        ]
        self.assertEqual(sum(part[0] for part in parts), 2)
        self.assertEqual(self.counts(self.command()), (0, 2))

    def test_plans_that_do_not_fit_are_counted(self):
        self.make()
        done = self.command("--device", "h200-sxm", cases="pass=fwd b=1 h=2 s=256 d=64")
        self.assertEqual(self.counts(done), (1, 0))
        fits = "a plan fits one build of FACTS, one of cuDNN and NVRTC, and one kind of GPU"
        self.assertIn(f"the folder had 2 plans before; {fits}", done.text)

    def test_a_damaged_file_is_one_line(self):
        self.make()
        self.CASES = self.CASES.replace("bf16,f16", "bf16")  # one plan
        for name in self.files():
            if name.endswith(".plan"):
                os.truncate(self.path("plans", name), 1000)
        done = self.command()
        self.assertEqual(self.counts(done), (1, 0))
        (said,) = [line for line in done.err.splitlines() if "--plan-dir" in line]
        made = "1 file could not be used and was made again; the first: "
        self.assertRegex(
            said, rf"^facts: --plan-dir: {made}\S+\.plan: the saved plan holds \d+ bytes of \d+$"
        )

    def test_the_folder_has_to_be_named(self):
        self.assertOneLine(e2e.facts("compile", self.CASES), 2, "--plan-dir")


if __name__ == "__main__":
    e2e.main()
