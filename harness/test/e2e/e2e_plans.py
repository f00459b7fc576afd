"""Plans that are compiled for a description and kept, as `facts decide --plan --plan-dir` does. Only a GPU loads them."""
import os
import stat

import e2e

CASE = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64"


class Plans(e2e.TestCase):
    def setUp(self):
        super().setUp()
        self.plans = self.path("plans")

    def compile(self, *more, folder=None, builds=e2e.CI_BUILDS, cwd=None):
        names = ",".join(e2e.need(name).name for name in builds)
        return e2e.facts("decide", CASE, "--cudnn", names, "--plan", "--plan-dir", folder or self.plans, "--overwrite", "-o", self.path("r"), *more, cwd=cwd)

    def files(self):
        return sorted(os.listdir(self.plans))

    def test_what_was_compiled_is_kept_for_each_build_and_for_us_alone(self):
        self.assertStatus(self.compile(), 0)
        self.assertEqual(len(self.files()), 2)
        self.assertEqual(stat.S_IMODE(os.stat(self.plans).st_mode), 0o700)
        for name in self.files():
            self.assertEqual(stat.S_IMODE(os.stat(self.path("plans", name)).st_mode), 0o600)
            self.assertGreater(os.path.getsize(self.path("plans", name)), 10000)
        for row in e2e.Record(self.path("r")).rows:
            self.assertGreater(row["plan_ms"], 1)
        before = self.files()
        self.assertStatus(self.compile(), 0)
        self.assertEqual(self.files(), before)

    def test_with_engine_all_every_configuration_is_kept(self):
        answer = e2e.ask(e2e.need(e2e.NEW), CASE + " engine=all", do="plan", plan_dir=self.folder)
        self.assertGreater(len(answer.rows), 1)
        self.assertEqual({row["verdict"] for row in answer.rows}, {"pass"})
        self.assertEqual(len(os.listdir(self.folder)), len(answer.rows))

    def test_a_pin_of_any_configuration_is_compiled_whatever_is_offered_first(self):
        build = e2e.need(e2e.NEW)
        offered = e2e.ask(build, CASE, do="plan").rows[-1]["engines"]
        self.assertGreater(len(offered), 1)
        for engine in offered:
            knobs = "+".join(f"{name.lower()}:{value}" for name, value in sorted(engine["knobs"].items()))
            row = e2e.ask(build, f"{CASE} engine={engine['index']} knob={knobs}", do="plan").rows[-1]
            self.assertEqual((row["verdict"], row["engine"]), ("pass", engine["index"]), row.get("reason"))
            self.assertNotIn("config", row, "a pin has no place in the list")

    def test_cases_that_differ_in_their_data_alone_share_a_plan(self):
        for data in ("", " fill=needle", " fill=neglse poison=nan"):
            self.assertEqual(len(e2e.ask(e2e.need(e2e.NEW), CASE + data, do="plan", plan_dir=self.folder).rows), 1)
            self.assertEqual(len(os.listdir(self.folder)), 1)
        e2e.ask(e2e.need(e2e.NEW), CASE.replace("d=64", "d=72"), do="plan", plan_dir=self.folder)
        self.assertEqual(len(os.listdir(self.folder)), 2)

    def test_a_relative_folder_is_where_the_user_stands(self):
        self.assertStatus(self.compile(folder="plans", builds=[e2e.NEW], cwd=self.folder), 0)
        self.assertEqual(len(self.files()), 1)

    def test_a_folder_that_others_may_write_to_is_refused_with_its_path(self):
        os.mkdir(self.plans)
        os.chmod(self.plans, 0o777)
        self.assertOneLine(self.compile(builds=[e2e.NEW]), 3, self.plans, "chmod")
        os.chmod(self.plans, 0o700)
        os.symlink("plans", self.path("link"))
        self.assertOneLine(self.compile(folder=self.path("link"), builds=[e2e.NEW]), 3, self.path("link"))
        self.write("file", "")
        self.assertOneLine(self.compile(folder=self.path("file"), builds=[e2e.NEW]), 3, self.path("file"))
        self.assertOneLine(self.compile(folder=self.path("none", "deeper"), builds=[e2e.NEW]), 3, self.path("none", "deeper"))
        self.assertEqual(self.files(), [])

    def test_a_link_in_the_place_of_a_plan_is_not_written_through(self):
        self.assertStatus(self.compile(builds=[e2e.NEW]), 0)
        name, = self.files()
        os.unlink(self.path("plans", name))
        os.symlink(self.write("victim", "untouched"), self.path("plans", name))
        self.assertStatus(self.compile(builds=[e2e.NEW]), 0)
        with open(self.path("victim"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "untouched")
        self.assertFalse(os.path.islink(self.path("plans", name)))


if __name__ == "__main__":
    e2e.main()
