"""facts compile and --plan-dir as commands: processes that share a folder, plans that are made ahead, and plans that another user wrote."""

import os
import re
import shutil
import stat
import subprocess
import tempfile

import e2e

CASE = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64"


def started(words, environment):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([e2e.FACTS, *words], env=environment, **pipes)


class Many(e2e.TestCase):
    CASES = "pass=fwd,bwd dtype=bf16 b=1 h=2 s=128 d=64,100"

    def test_processes_share_a_cache_and_a_folder(self):
        """A new cache: each makes the user's key, and one of them wins. Two by day, eight in the night."""
        count, cache = len(e2e.some(range(8), of=4)), self.path("cache", "facts")
        os.makedirs(cache)
        builds = os.path.dirname(os.path.dirname(e2e.need(e2e.NEW).dir))
        os.symlink(builds, os.path.join(cache, "cudnn"))
        plans, more = self.path("plans"), e2e.environment(XDG_CACHE_HOME=self.path("cache"))
        words = ["compile", self.CASES, "--cudnn", e2e.NEW, "-j1", "--plan-dir", plans, "-o"]
        for process in [started([*words, self.path(f"r{n}")], more) for n in range(count)]:
            said = process.communicate(timeout=300)[0]
            self.assertEqual(process.returncode, 0, said)
            self.assertNotIn("could not be used", said)
        records = [e2e.Record(self.path(f"r{n}")).rows for n in range(count)]
        rows = [sorted((row["case"], row["verdict"]) for row in found) for found in records]
        self.assertEqual(len(rows[0]), 4)
        self.assertEqual(rows, count * rows[:1])
        # One more is of the backward's own forward, and nothing is half written.
        kinds = sorted(name.split(".", 1)[1] for name in os.listdir(plans))
        self.assertEqual(kinds, 3 * ["plan"] + 2 * ["refusal"])
        self.assertEqual(sorted(os.listdir(cache)), ["cudnn", "plan.key"])
        said = started([*words, self.path("last")], more).communicate(timeout=300)[0]
        self.assertIn("plans: 0 compiled, 2 loaded; refusals loaded: 2", said)


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
            self.assertEqual(self.counts(self.command()), (2, 0, 0))
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
        found = re.search(r"plans: (\d+) compiled, (\d+) loaded; refusals loaded: (\d+)", done.text)
        self.assertIsNotNone(found, done.text)
        return tuple(int(number) for number in found.groups())

    def test_what_is_made_ahead_is_found_later(self):
        self.make()
        second = self.command()
        self.assertEqual(self.counts(second), (0, 2, 2))
        self.assertNotIn("before", second.text)
        own = self.command("--with", "policy=any", plans=self.path("own"))
        self.assertEqual(self.counts(own), (2, 0, 0), "a plan of math needs no compiler")
        self.assertEqual(self.counts(self.command(command=("decide", "--plan"))), (0, 2, 2))

    def test_each_shard_makes_its_part(self):
        parts = [
            self.counts(self.command("--shard", f"{i}/2"))
            for i in (1, 2)
            if e2e.facts("list", self.CASES, "--shard", f"{i}/2").out
        ]
        self.assertEqual(sum(part[0] for part in parts), 2)
        self.assertEqual(self.counts(self.command()), (0, 2, 2))

    def test_plans_that_do_not_fit_are_counted(self):
        self.make()
        done = self.command("--device", "h200-sxm", cases="pass=fwd b=1 h=2 s=256 d=64")
        self.assertEqual(self.counts(done), (1, 0, 0))
        fits = "a plan fits one build of FACTS, one of cuDNN and NVRTC, and one kind of GPU"
        self.assertIn(f"the folder had 2 plans before; {fits}", done.text)

    def test_a_damaged_file_is_one_line(self):
        self.make()
        self.CASES = self.CASES.replace("bf16,f16", "bf16")  # one plan
        for name in self.files():
            if name.endswith(".plan"):
                os.truncate(self.path("plans", name), 1000)
        done = self.command()
        self.assertEqual(self.counts(done), (1, 0, 1))
        (said,) = [line for line in done.err.splitlines() if "--plan-dir" in line]
        made = "1 file could not be used and was made again; the first: "
        self.assertRegex(said, rf"^facts: --plan-dir: {made}\S+\.plan: is damaged$")

    def test_the_folder_has_to_be_named(self):
        self.assertOneLine(e2e.facts("compile", self.CASES), 2, "--plan-dir")


class Sealed(e2e.TestCase):
    """A plan is native code: what this user did not write on this machine never reaches cuDNN."""

    def setUp(self):
        super().setUp()
        self.plans = self.path("plans")
        self.cache = self.cache_of("ours")

    def cache_of(self, name):
        """A cache with a key of its own, and the user's builds."""
        user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        os.makedirs(self.path(name, "facts"))
        for part in ("cudnn", "nvrtc"):
            os.symlink(os.path.join(user, "facts", part), self.path(name, "facts", part))
        return self.path(name)

    def compile(self, *more, case=CASE, cache=None, folder="--plan-dir"):
        words = ("--plan", "--cudnn", e2e.need(e2e.NEW).name, folder, self.plans, "--overwrite")
        given = {"XDG_CACHE_HOME": cache or self.cache}
        done = e2e.facts("decide", case, *words, "-o", self.path("r"), *more, **given)
        rows = e2e.Record(self.path("r")).rows if os.path.exists(self.path("r")) else []
        return done, (rows or [{}])[-1]

    def put(self, name, content):
        with open(self.path("plans", name), "wb") as file:
            file.write(content)

    def content(self):
        (name,) = os.listdir(self.plans)
        with open(self.path("plans", name), "rb") as file:
            return name, file.read()

    def test_a_byte_that_was_changed_anywhere_is_refused_and_made_again(self):
        self.compile()
        name, good = self.content()
        for at in e2e.some((0, 9, 17, 47, 60, 200, 48, len(good) // 2, len(good) - 1), of=3):
            bad = good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :]
            self.put(name, bad)
            done, row = self.compile()
            self.assertStatus(done, 0)
            self.assertNotIn("plan_loaded", row, at)
            self.assertTrue(row["not_loaded"].startswith(name), at)
            # Mark and key: somebody else's, which we leave alone.
            self.assertEqual(self.content()[1] == bad, at < 16)
        self.assertTrue(self.compile()[1].get("plan_loaded"))

    def test_under_another_name_it_is_another_plan(self):
        self.compile()
        name, good = self.content()
        other = CASE.replace("s=128", "s=256")
        self.compile(case=other)
        (second,) = set(os.listdir(self.plans)) - {name}
        self.put(second, good)
        done, row = self.compile(case=other)
        self.assertStatus(done, 0)
        self.assertIn(second + ": is damaged", row["not_loaded"])

    def test_of_another_user_it_is_left_alone_unless_it_is_trusted_and_the_record_says_so(self):
        self.compile(cache=self.cache_of("theirs"))
        before = self.content()
        done, row = self.compile()
        self.assertStatus(done, 0)
        self.assertNotIn("plan_loaded", row)
        self.assertIn("--trust-plans", row["not_loaded"])
        self.assertEqual(self.content(), before)
        self.assertNotIn("trusted_plans", e2e.Record(self.path("r")).runs[0])
        done, row = self.compile(folder="--trust-plans")
        self.assertStatus(done, 0)
        self.assertTrue(row["plan_loaded"])
        trusted = e2e.Record(self.path("r")).runs[0]["trusted_plans"]
        self.assertEqual(trusted, os.path.realpath(self.plans))

    def test_the_key_is_the_users_alone(self):
        self.compile()
        key = os.path.join(self.cache, "facts", "plan.key")
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600)
        self.assertEqual(os.path.getsize(key), 32)
        os.chmod(key, 0o644)
        self.assertOneLine(self.compile()[0], 3, key, "chmod 600")
        os.unlink(key)
        os.symlink("/dev/zero", key)
        self.assertOneLine(self.compile()[0], 3, key)

    def test_two_folders_are_bad_input(self):
        two = self.compile("--trust-plans", self.path("other"))[0]
        self.assertOneLine(two, 2, "give one folder")


if __name__ == "__main__":
    e2e.main()
