"""The traps that only older builds have, and what changed since. What needs a build of the night is a test of the night."""

import os

import e2e

FIRST, BEFORE, RENUMBERED = "9.8.0-full-cu12", "9.9.0-full-cu12", "9.10.0-full-cu12"
WIDE, FORMER = "9.10.2-full-cu12", "9.14.0-jit-cu13"
YES, NO = (f"pass=fwd dtype=bf16 b=1 h=2 s=128 d={d}" for d in (64, 100))
BACKWARD = "pass=bwd dtype=bf16 b=1 h=2 s=256 d=64"


@e2e.night
class Nvrtc(e2e.TestCase):
    def test_a_build_with_nvrtc_of_the_other_cuda_is_refused(self):
        for name, other, *words in (
            (FIRST, e2e.OLD, "NVRTC 13.", "CUDA 12"),
            (e2e.OLD, FIRST, "NVRTC 12.", "CUDA 13"),
        ):
            build, nvrtc = e2e.need(name), e2e.need(other).nvrtc
            for env in ({}, {"LD_LIBRARY_PATH": os.path.dirname(build.nvrtc)}):
                answer = e2e.ask(build, e2e.CONTROL, nvrtc=nvrtc, env=env)
                self.assertEnvironment(answer, *words)

    def test_a_cu12_build_without_nvrtc_or_driver_is_the_environment(self):
        missing = self.path("libcuda.so.1")
        for change, word in (({"nvrtc": ""}, "NVRTC"), ({"driver": missing}, missing)):
            self.assertEnvironment(e2e.ask(e2e.need(FIRST), e2e.CONTROL, **change), word)

    def test_each_build_is_given_the_nvrtc_of_its_own_major(self):
        done = self.asked(
            "decide", e2e.CONTROL, "--plan", "-o", self.path("r"), cudnn=(FIRST, FORMER)
        )
        self.assertStatus(done, 0)
        for target in self.record().targets:
            names = [os.path.basename(lib["path"]).split(".")[:3] for lib in target["libraries"]]
            self.assertIn(["libnvrtc", "so", target["build"][-2:]], names)


class Versions(e2e.TestCase):
    def test_a_table_of_versions_speaks_of_attention(self):
        case = "pass=bwd dtype=bf16 b=1 h=2 s=128 d=64 bias=1hss impl=unified"
        (row,) = e2e.ask(e2e.need(e2e.OLD), case).rows
        said = "sliding windows, bias, ALiBi and score modifications: the unified backward has it from cuDNN 9.21 on; this is 9.20.0"
        self.assertEqual(row["reason"]["text"], said)


@e2e.night
class Numbering(e2e.TestCase):
    def test_9_10_0_is_described_with_its_own_number(self):
        answer = e2e.ask(e2e.need(RENUMBERED), e2e.CONTROL, NO, do="plan")
        self.assertEqual(answer.ready["cudnn"], "9.10.0")
        self.assertEqual([row["verdict"] for row in answer.rows], ["supported", "unsupported"])

    def test_engine_numbers_that_changed_are_said_with_their_versions(self):
        done = self.asked("decide", BACKWARD, "-o", self.path("r"), cudnn=(FORMER, e2e.OLD))
        self.assertStatus(done, 0)
        said = r"9\.14\.0\S* -> 9\.20\.0\S* on h100-sxm: 0 cases with another verdict, 1 with other engines"
        self.assertRegex(done.out, said)
        lists = {
            row["cudnn"]: sorted({e["index"] for e in row["engines"] if e["mode"] == "A"})
            for row in self.record().rows
        }
        self.assertEqual(lists, {"9.14.0": [1, 2], "9.20.0": [6, 7]})

    def test_what_a_version_does_not_know_is_its_answer_and_not_want_of_memory(self):
        for name in (FIRST, FORMER):
            with self.subTest(build=name):
                build = e2e.need(name)
                row, after = e2e.ask(build, YES + " spelling=single", e2e.CONTROL).rows
                found = row["verdict"], row["reason"]["class"]
                self.assertEqual(found, ("unsupported", "unsupported"))
                self.assertIn("9.20", row["reason"]["text"])
                self.assertIn(build.version, row["reason"]["text"])
                self.assertNotIn("ALLOCATION", str(row["reason"]))
                self.assertEqual(after["verdict"], "supported")

    def test_fallback_lists_where_they_exist_decide_nothing(self):
        build = e2e.need(FORMER)
        plain = e2e.ask(build, NO, YES).rows
        every = e2e.ask(build, NO, YES, explain=True).rows
        self.assertIn("fallback", {e["mode"] for e in every[1]["engines"]})
        self.assertEqual(plain[1]["engine"], every[1]["engine"])
        other = e2e.ask(build, YES, NO, explain=True).rows  # nor does the order of the questions
        found = [row["verdict"] for row in (*plain, *every, *reversed(other))]
        self.assertEqual(found, ["unsupported", "supported"] * 3)


@e2e.night
class Flips(e2e.TestCase):
    BUILDS = (BEFORE, WIDE, e2e.OLD, e2e.NEW)

    def test_core_shows_wide_heads_on_sm_80_from_9_10_and_nothing_lost(self):
        where = "d.qk>128 & dtype=bf16 & s.q<=256 & policy=cudnn"
        words = ("core", "--where", where, "-o", self.path("r"))
        done = self.asked("decide", *words, cudnn=self.BUILDS, device="h100-sxm,sm80-spec")
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"9\.9\.0\S* -> 9\.10\.2\S* on sm80-spec: \d+ verdicts")
        self.assertNotIn("yes -> no", done.out)
        yes = {}
        for row in self.record().rows:
            if row["case"].startswith("pass=fwd"):
                kept = yes.setdefault((row["device"], row["cudnn"]), set())
                kept.update({row["case"]} if row["verdict"] == "supported" else ())
        self.assertEqual(yes["sm80-spec", "9.9.0"], set())
        self.assertGreater(len(yes["sm80-spec", "9.10.2"]), 20)
        self.assertEqual(yes["sm80-spec", "9.10.2"], yes["sm80-spec", "9.27.0"])
        self.assertGreater(len(yes["h100-sxm", "9.9.0"]), 20)
        self.assertLess(yes["h100-sxm", "9.9.0"], yes["h100-sxm", "9.10.2"])


if __name__ == "__main__":
    e2e.main()
