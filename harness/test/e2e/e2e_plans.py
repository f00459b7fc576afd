"""Plans that are compiled for a description: kept in a folder, found again, and refused where they are damaged or foreign."""

import json
import os
import stat
import tempfile

import e2e

CASE = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64"


class Plans(e2e.TestCase):
    def setUp(self):
        super().setUp()
        self.plans = self.path("plans")

    def compile(self, folder=None, builds=e2e.NEW, **more):
        where = ("--plan", "--plan-dir", folder or self.plans, "--overwrite", "-o", self.path("r"))
        return self.asked("decide", CASE, *where, cudnn=builds, **more)

    def files(self):
        return sorted(os.listdir(self.plans))

    def test_what_was_compiled_is_kept_for_each_build_and_for_us_alone(self):
        self.assertStatus(self.compile(builds=e2e.CI_BUILDS), 0)
        before = self.files()
        self.assertEqual(len(before), 2)
        self.assertEqual(stat.S_IMODE(os.stat(self.plans).st_mode), 0o700)
        for name in before:
            self.assertEqual(stat.S_IMODE(os.stat(self.path("plans", name)).st_mode), 0o600)
            self.assertGreater(os.path.getsize(self.path("plans", name)), 10000)
        for row in self.record().rows:
            self.assertGreater(row["plan_ms"], 1)
        self.assertStatus(self.compile("plans", builds=e2e.CI_BUILDS, cwd=self.folder), 0)
        self.assertEqual(self.files(), before, "the same folder, relative to where the user stands")

    def test_with_engine_all_every_configuration_is_kept(self):
        answer = e2e.ask(e2e.need(e2e.NEW), CASE + " engine=all", do="plan", plan_dir=self.folder)
        self.assertGreater(len(answer.rows), 1)
        self.assertEqual({row["verdict"] for row in answer.rows}, {"supported"})
        self.assertEqual(len(os.listdir(self.folder)), len(answer.rows))

    def test_a_pin_of_any_configuration_is_compiled_whatever_is_offered_first(self):
        build = e2e.need(e2e.NEW)
        offered = e2e.ask(build, CASE).rows[-1]["engines"]
        self.assertGreater(len(offered), 1)
        offered, pins = e2e.some(offered, 1), []
        for engine in offered:
            knobs = "+".join(f"{name.lower()}:{n}" for name, n in sorted(engine["knobs"].items()))
            pins.append(f"{CASE} engine={engine['index']} knob={knobs}")
        rows = [row for row in e2e.ask(build, *pins, do="plan").rows if not row.get("more")]
        found = [(row["verdict"], row["engine"]) for row in rows]
        self.assertEqual(found, [("supported", engine["index"]) for engine in offered], rows)
        for row in rows:
            self.assertNotIn("config", row, "a pin has no place in the list")

    def test_cases_that_differ_in_their_data_alone_share_a_plan(self):
        for more, count in (
            (["", " fill=needle", " fill=neglse poison=nan"], 1),
            ([" fill=needle", " d=72"], 2),
        ):
            cases = [(CASE + one).replace("d=64 d=72", "d=72") for one in more]
            rows = e2e.ask(e2e.need(e2e.NEW), *cases, do="plan", plan_dir=self.folder).rows
            self.assertEqual((len(rows), len(os.listdir(self.folder))), (len(cases), count))

    def test_a_folder_that_others_may_write_to_is_refused_with_its_path(self):
        os.mkdir(self.plans)
        os.symlink("plans", self.path("link"))
        self.write("file", "")
        for mode, *names in (
            (0o777, "plans"),
            (0o700, "link"),
            (0o700, "file"),
            (0o700, "none", "deeper"),
        ):
            os.chmod(self.plans, mode)
            words = ["chmod"] if mode == 0o777 else []
            self.assertOneLine(self.compile(self.path(*names)), 3, self.path(*names), *words)
        self.assertEqual(self.files(), [])

    def test_a_link_in_the_place_of_a_plan_is_not_written_through(self):
        self.assertStatus(self.compile(), 0)
        (name,) = self.files()
        os.unlink(self.path("plans", name))
        os.symlink(self.write("victim", "untouched"), self.path("plans", name))
        self.assertStatus(self.compile(), 0)
        self.assertEqual(e2e.read(self.path("victim")), "untouched")
        self.assertFalse(os.path.islink(self.path("plans", name)))


def without_times(rows):
    """Rows, but for what may differ between an answer out of the folder and cuDNN's own."""
    may = ("decide_us", "plan_ms", "plan_loaded", "not_loaded")
    return [{key: value for key, value in row.items() if key not in may} for row in rows]


class Folder(e2e.TestCase):
    """The worker with a folder."""

    def ask(self, *cases, build=e2e.NEW, **more):
        return e2e.ask(e2e.need(build), *cases, plan_dir=self.folder, **{"do": "plan", **more}).rows

    kept = None

    def has_plan(self):
        """The row of CASE, whose plan is in the folder as one worker left it for all tests."""
        if not Folder.kept:
            (row,) = self.ask(CASE)
            (name,) = self.files(".plan")
            Folder.kept = row, name, self.read(name)
        else:
            self.put(*Folder.kept[1:])
        return Folder.kept[0]

    def files(self, ending):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(ending))

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def put(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)


class Damage(Folder):
    """A plan that is damaged or foreign is refused before cuDNN sees it, said once, and made again."""

    def assertRefused(self, bad, text, **more):
        (name,) = self.files(".plan")
        self.put(name, bad)
        (row,) = self.ask(CASE, **more)
        self.assertEqual(row["verdict"], "supported")
        self.assertNotIn("plan_loaded", row, text)
        self.assertIn(text, row["not_loaded"])
        self.assertTrue(row["not_loaded"].startswith(name))

    def assertMadeAgain(self):
        (row,) = self.ask(CASE)
        self.assertTrue(row["plan_loaded"])
        self.assertNotIn("not_loaded", row)
        return row

    def test_in_each_region_of_the_file(self):
        first = self.has_plan()
        (name,) = self.files(".plan")
        good = self.read(name)
        json_at = good.index(b'{"cudnnVersion"')
        places = [(0, "not a saved plan"), (8, "format"), (20, "header is damaged")]
        more = [(len(good) - 1, "is damaged"), (json_at - 300, "header is damaged")]
        more += [(json_at - 1, "header is damaged"), (json_at, "is damaged")]
        more.append((json_at + (len(good) - json_at) // 2, "is damaged"))
        for at, text in places + e2e.some(more, of=5):
            self.assertRefused(good[:at] + bytes([good[at] ^ 4]) + good[at + 1 :], text)
        short = [(good[:-1], "holds"), (good[:json_at], "holds"), (good[: json_at - 8], "cut off")]
        for bad, text in e2e.some([*short, (b"", "not a saved plan"), (good + b" ", "holds")]):
            self.assertRefused(bad, text)
        self.assertEqual(without_times([self.assertMadeAgain()]), without_times([first]))

    def plan_of(self, case=CASE, **more):
        """What would lie there for another target or case."""
        with tempfile.TemporaryDirectory() as folder:
            e2e.ask(e2e.need(more.pop("build", e2e.NEW)), case, do="plan", plan_dir=folder, **more)
            (name,) = os.listdir(folder)
            with open(os.path.join(folder, name), "rb") as file:
                return file.read()

    def test_of_another_build_device_or_case(self):
        """By day another build; lib/test/plan has the others by day too."""
        self.has_plan()
        for more, words in e2e.some(
            (
                ({"build": e2e.OLD}, "is of cuDNN 92000, this is 92700"),
                ({"device": e2e.description("h200-sxm")}, "for another device: NVIDIA H200"),
                ({"device": e2e.description("sm100-spec")}, "sm_100"),
                ({"case": CASE.replace("s=128", "s=256")}, "another problem"),
            ),
            of=4,
        ):
            self.assertRefused(self.plan_of(**more), words)
        self.assertMadeAgain()

    def test_of_the_same_version_with_other_libraries(self):
        """A build that differs in one library more."""
        build = e2e.need(e2e.NEW)
        folder = self.path("build")
        for name in os.listdir(build.dir):
            if ".so" in name:
                e2e.copy_file(os.path.join(build.dir, name), folder)
        self.has_plan()
        (same,) = self.ask(CASE, cudnn_dir=folder)
        self.assertTrue(same["plan_loaded"], "the same libraries in another folder")
        e2e.library(folder, "libcudnn_more.so.9")
        (other,) = self.ask(CASE, cudnn_dir=folder)
        self.assertNotIn("plan_loaded", other)
        one, two = self.files(".plan")
        first, second = self.read(one), self.read(two)
        self.put(one, second)
        self.put(two, first)
        (row,) = self.ask(CASE)
        said = "another build of cuDNN 92700" in row.get("not_loaded", "")
        self.assertTrue(said or row.get("plan_loaded"), row)


class Keys(Folder):
    def test_a_card_and_its_description_share_their_plans(self):
        """What a driver says of one card differs in these from what was read off another of the same kind."""
        self.has_plan()
        device = e2e.description(
            pciDeviceId=77,
            cudaDeviceId=5,
            driverVer=13010,
            totalGlobalMem=85017493504,
            smClockRateKHz=1755000,
        )
        self.assertTrue(self.ask(CASE, device=device)[0]["plan_loaded"])

    def test_a_member_that_the_version_does_not_write_makes_no_other_device(self):
        """A description was read with a newer cuDNN: what is made for it has to fit the GPU as the older one describes it."""
        later = ["smCountOrigin", "oversizedSharedMemoryPerBlock", "memoryBusWidth"]
        for build, without, same in ((e2e.OLD, later, True), (e2e.NEW, later[:1], False)):
            self.ask(CASE, build=build)
            (row,) = self.ask(CASE, build=build, device=e2e.description(without=without))
            self.assertIs(row.get("plan_loaded", False), same, build)

    def test_a_backward_brings_the_plans_that_its_run_needs(self):
        case = "pass=bwd dtype=bf16 b=1 h=2 s=128 d=64 exec=graph"
        self.ask(case)
        self.assertEqual(len(self.files(".plan")), 2)
        self.ask("pass=fwd dtype=bf16 b=1 h=2 s=128 d=64 dropout=0.1")
        self.assertEqual(len(self.files(".plan")), 4)


if __name__ == "__main__":
    e2e.main()
