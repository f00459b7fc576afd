"""The traps that only older builds have, and what changed since. What needs a build of the night is a test of the night."""

import os

import e2e

FIRST, BEFORE, RENUMBERED, WIDE, FORMER = (
    "9.8.0-full-cu12",
    "9.9.0-full-cu12",
    "9.10.0-full-cu12",
    "9.10.2-full-cu12",
    "9.14.0-jit-cu13",
)
BACKWARD = "pass=bwd dtype=bf16 b=1 h=2 s=256 d=64"


@e2e.night
class Nvrtc(e2e.TestCase):
    def test_a_cu12_build_with_nvrtc_13_is_refused(self):
        build = e2e.need(FIRST)
        other = e2e.need(e2e.OLD).nvrtc
        for env in ({}, {"LD_LIBRARY_PATH": os.path.dirname(build.nvrtc)}):
            self.assertEnvironment(
                e2e.ask(build, e2e.CONTROL, nvrtc=other, env=env), "NVRTC 13.", "CUDA 12"
            )

    def test_a_cu13_build_with_nvrtc_12_is_refused(self):
        build = e2e.need(e2e.OLD)
        other = e2e.need(FIRST).nvrtc
        for env in ({}, {"LD_LIBRARY_PATH": os.path.dirname(build.nvrtc)}):
            self.assertEnvironment(
                e2e.ask(build, e2e.CONTROL, nvrtc=other, env=env), "NVRTC 12.", "CUDA 13"
            )

    def test_a_cu12_build_without_nvrtc_or_driver_is_the_environment(self):
        self.assertEnvironment(e2e.ask(e2e.need(FIRST), e2e.CONTROL, nvrtc=""), "NVRTC")
        self.assertEnvironment(
            e2e.ask(e2e.need(FIRST), e2e.CONTROL, driver=self.path("libcuda.so.1")),
            self.path("libcuda.so.1"),
        )

    def test_each_build_is_given_the_nvrtc_of_its_own_major(self):
        names = f"{e2e.need(FIRST).name},{e2e.need(FORMER).name}"
        self.assertStatus(
            e2e.facts("decide", e2e.CONTROL, "--cudnn", names, "--plan", "-o", self.path("r")), 0
        )
        for target in e2e.Record(self.path("r")).targets:
            paths = [os.path.basename(lib["path"]) for lib in target["libraries"]]
            self.assertIn(
                "libnvrtc.so." + target["build"][-2:], [".".join(p.split(".")[:3]) for p in paths]
            )


class Versions(e2e.TestCase):
    def test_a_table_of_versions_speaks_of_attention(self):
        row = e2e.ask(
            e2e.need(e2e.OLD), "pass=bwd dtype=bf16 b=1 h=2 s=128 d=64 bias=1hss impl=unified"
        ).rows[0]
        self.assertEqual(
            row["reason"]["text"],
            "sliding windows, bias, ALiBi and score modifications: the unified backward has it from cuDNN 9.21 on; this is 9.20.0",
        )


@e2e.night
class Numbering(e2e.TestCase):
    def test_9_10_0_is_described_with_its_own_number(self):
        answer = e2e.ask(
            e2e.need(RENUMBERED), e2e.CONTROL, "pass=fwd dtype=bf16 b=1 h=1 s=128 d=100", do="plan"
        )
        self.assertEqual(answer.ready["cudnn"], "9.10.0")
        self.assertEqual([row["verdict"] for row in answer.rows], ["supported", "unsupported"])

    def test_engine_numbers_that_changed_are_said_with_their_versions(self):
        names = f"{e2e.need(FORMER).name},{e2e.need(e2e.OLD).name}"
        done = e2e.facts("decide", BACKWARD, "--cudnn", names, "-o", self.path("r"))
        self.assertStatus(done, 0)
        self.assertRegex(
            done.out,
            r"9\.14\.0\S* -> 9\.20\.0\S* on h100-sxm: 0 cases with another verdict, 1 with other engines",
        )
        lists = {
            row["cudnn"]: sorted({e["index"] for e in row["engines"] if e["mode"] == "A"})
            for row in e2e.Record(self.path("r")).rows
        }
        self.assertEqual(lists, {"9.14.0": [1, 2], "9.20.0": [6, 7]})

    def test_what_a_version_does_not_know_is_its_answer_and_not_want_of_memory(self):
        for name in (FIRST, FORMER):
            with self.subTest(build=name):
                row, after = e2e.ask(
                    e2e.need(name),
                    "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64 spelling=single",
                    e2e.CONTROL,
                ).rows
                self.assertEqual(
                    (row["verdict"], row["reason"]["class"]), ("unsupported", "unsupported")
                )
                self.assertIn("9.20", row["reason"]["text"])
                self.assertIn(e2e.need(name).version, row["reason"]["text"])
                self.assertNotIn("ALLOCATION", str(row["reason"]))
                self.assertEqual(after["verdict"], "supported")

    def test_fallback_lists_where_they_exist_decide_nothing(self):
        no, yes = (
            "pass=fwd dtype=bf16 b=1 h=2 s=128 d=100",
            "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64",
        )
        plain = e2e.ask(e2e.need(FORMER), no, yes).rows
        every = e2e.ask(e2e.need(FORMER), no, yes, explain=True).rows
        self.assertIn("fallback", {e["mode"] for e in every[1]["engines"]})
        self.assertEqual(
            [row["verdict"] for row in plain + every], ["unsupported", "supported"] * 2
        )
        self.assertEqual(plain[1]["engine"], every[1]["engine"])
        rows = e2e.ask(
            e2e.need(FORMER), yes, no, explain=True
        ).rows  # nor does the order of the questions
        self.assertEqual([row["verdict"] for row in rows], ["supported", "unsupported"])


@e2e.night
class Flips(e2e.TestCase):
    BUILDS = (BEFORE, WIDE, e2e.OLD, e2e.NEW)

    def test_core_shows_wide_heads_on_sm_80_from_9_10_and_nothing_lost(self):
        names = ",".join(e2e.need(name).name for name in self.BUILDS)
        done = e2e.facts(
            "decide",
            "core",
            "--where",
            "d.qk>128 & dtype=bf16 & s.q<=256 & policy=cudnn",
            "--cudnn",
            names,
            "--device",
            "h100-sxm,sm80-spec",
            "-o",
            self.path("r"),
        )
        self.assertStatus(done, 0)
        self.assertRegex(done.out, r"9\.9\.0\S* -> 9\.10\.2\S* on sm80-spec: \d+ verdicts")
        self.assertNotIn("yes -> no", done.out)
        yes = {}
        for row in e2e.Record(self.path("r")).rows:
            if row["case"].startswith("pass=fwd"):
                yes.setdefault((row["device"], row["cudnn"]), set()).update(
                    {row["case"]} if row["verdict"] == "supported" else ()
                )
        self.assertEqual(yes["sm80-spec", "9.9.0"], set())
        self.assertGreater(len(yes["sm80-spec", "9.10.2"]), 20)
        self.assertEqual(yes["sm80-spec", "9.10.2"], yes["sm80-spec", "9.27.0"])
        self.assertGreater(len(yes["h100-sxm", "9.9.0"]), 20)
        self.assertLess(yes["h100-sxm", "9.9.0"], yes["h100-sxm", "9.10.2"])


if __name__ == "__main__":
    e2e.main()
