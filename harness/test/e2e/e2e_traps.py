"""The traps of asking cuDNN without a GPU, each of which gives wrong answers silently, with the two builds that CI installs."""

import os
import re
import shutil

import e2e


class WithoutNvrtc(e2e.TestCase):
    """Below 9.21 a missing or foreign NVRTC looks like "no engine", with status SUCCESS."""

    def test_no_nvrtc_is_the_environment_and_never_unsupported(self):
        self.assertEnvironment(e2e.ask(e2e.need(e2e.OLD), e2e.CONTROL, nvrtc=""), "NVRTC")

    def test_a_path_that_holds_no_nvrtc_is_the_environment(self):
        self.assertEnvironment(
            e2e.ask(e2e.need(e2e.OLD), e2e.CONTROL, nvrtc=self.path("libnvrtc.so.13")),
            self.path("libnvrtc.so.13"),
        )

    def test_from_9_21_on_none_is_needed(self):
        answer = e2e.ask(e2e.need(e2e.NEW), e2e.CONTROL, nvrtc="", do="plan")
        self.assertEqual([row["verdict"] for row in answer.rows], ["supported"])

    def test_nvrtc_of_another_cuda_major_is_refused_even_where_the_loader_would_find_a_right_one(
        self,
    ):
        build = e2e.need(e2e.OLD)
        other = e2e.library(
            self.folder,
            "libnvrtc.so.12",
            "int nvrtcVersion(int *a, int *b) { *a = 12; *b = 9; return 0; }",
        )
        e2e.library(
            self.folder, "libnvrtc-builtins.so.12.9", "int __nvrtc_builtins__12_9_getArchBuiltins;"
        )
        answer = e2e.ask(
            build, e2e.CONTROL, nvrtc=other, env={"LD_LIBRARY_PATH": os.path.dirname(build.nvrtc)}
        )
        self.assertEnvironment(answer, "12.9", "13")

    def test_nvrtc_without_its_builtins_is_the_environment_before_anything_is_compiled(self):
        build = e2e.need(e2e.OLD)
        lonely = e2e.copy_file(build.nvrtc, self.path("nvrtc"))
        self.assertEnvironment(
            e2e.ask(build, e2e.CONTROL, nvrtc=lonely, do="plan"), "builtins", self.path("nvrtc")
        )

    def test_a_compile_that_fails_with_broken_builtins_is_the_environment_and_no_build_fail(self):
        build = e2e.need(e2e.OLD)
        nvrtc = e2e.copy_file(build.nvrtc, self.path("nvrtc"))
        name = next(
            n
            for n in os.listdir(os.path.dirname(build.nvrtc))
            if re.fullmatch(r"libnvrtc-builtins\.so\.\d+\.\d+", n)
        )
        e2e.library(self.path("nvrtc"), name)
        answer = e2e.ask(
            build, e2e.CONTROL, nvrtc=nvrtc, do="plan", env={"LD_LIBRARY_PATH": self.path("nvrtc")}
        )
        self.assertEqual([row["verdict"] for row in answer.rows], ["inconclusive"])
        self.assertEqual(answer.rows[0]["reason"]["class"], "environment")
        self.assertIn("builtins", answer.rows[0]["reason"]["text"])


class WithoutDriver(e2e.TestCase):
    def test_a_driver_that_is_not_there_is_the_environment(self):
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                missing = self.path("libcuda.so.1")
                self.assertEnvironment(
                    e2e.ask(e2e.need(name), e2e.CONTROL, driver=missing), missing
                )

    def test_a_driver_that_lacks_functions_is_the_environment(self):
        poor = e2e.library(
            self.folder, "libcuda.so.1", "int cuInit(unsigned flags) { return flags != 0; }"
        )
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                self.assertEnvironment(e2e.ask(e2e.need(name), e2e.CONTROL, driver=poor))

    def test_the_null_driver_is_no_gpu(self):
        answer = e2e.ask(e2e.need(e2e.NEW), e2e.CONTROL, gpu=0)
        self.assertEnvironment(answer)


class Description(e2e.TestCase):
    def test_without_memory_bus_width_9_27_is_inconclusive_by_name_and_9_20_answers(self):
        e2e.need(e2e.OLD), e2e.need(e2e.NEW)
        device = self.write(
            "narrow.json", {"name": "narrow", "device": e2e.description(without=["memoryBusWidth"])}
        )
        done = e2e.facts(
            "decide",
            e2e.CONTROL,
            "--cudnn",
            f"{e2e.OLD},{e2e.NEW}",
            "--device",
            device,
            "-o",
            self.path("r"),
        )
        self.assertStatus(done, 3)
        rows = e2e.Record(self.path("r")).by("build")
        self.assertEqual(rows[e2e.OLD,]["verdict"], "supported")
        self.assertEqual(rows[e2e.NEW,]["verdict"], "inconclusive")
        self.assertEqual(rows[e2e.NEW,]["reason"]["class"], "environment")
        self.assertIn("memoryBusWidth", rows[e2e.NEW,]["reason"]["text"])
        self.assertIn("memoryBusWidth", done.err)

    def test_a_field_that_no_version_knows_is_no_reason_to_refuse(self):
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                self.assertIsNotNone(
                    e2e.ask(e2e.need(name), device=e2e.description(fieldOfTheFuture=1)).ready
                )


STRANGER = "libcudnn_engines_precompiled.so.9"


class Contamination(e2e.TestCase):
    """Sub-libraries are found by bare name, so that a build takes parts of whatever else the loader knows."""

    def mixed(self, body, graph):
        """A folder with the body's libraries and another's libcudnn_graph."""
        for name in ("libcudnn.so.9", "libcudnn_engines_runtime_compiled.so.9"):
            os.symlink(os.path.join(body.dir, name), self.path(name))
        os.symlink(os.path.join(graph.dir, "libcudnn_graph.so.9"), self.path("libcudnn_graph.so.9"))
        return self.folder

    def test_what_the_callers_loader_would_find_is_not_mapped(self):
        other = {e2e.OLD: e2e.need(e2e.NEW), e2e.NEW: e2e.need(e2e.OLD)}
        e2e.library(self.path("strangers"), STRANGER)
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                search = f"{self.path('strangers')}:{other[name].dir}"
                done = e2e.facts(
                    "decide",
                    e2e.CONTROL,
                    "--cudnn",
                    name,
                    "--device",
                    "h100-sxm",
                    "-o",
                    self.path(name),
                    LD_LIBRARY_PATH=search,
                )
                self.assertStatus(done, 0)
                libraries = e2e.Record(self.path(name)).targets[0]["libraries"]
                cudnn = [
                    lib for lib in libraries if os.path.basename(lib["path"]).startswith("libcudnn")
                ]
                self.assertEqual(len(cudnn), 3)
                for lib in cudnn:
                    self.assertEqual(
                        (os.path.dirname(lib["path"]), lib["in_build"], lib["record"]),
                        (e2e.need(name).dir, True, "ok"),
                    )
                others = {os.path.basename(lib["path"]).split(".so")[0] for lib in libraries} - {
                    os.path.basename(lib["path"]).split(".so")[0] for lib in cudnn
                }
                self.assertLessEqual(others, {"libcuda", "libnvrtc", "libnvrtc-builtins"})

    def test_a_stranger_that_was_mapped_is_never_answered_with(self):
        stranger = e2e.library(self.path("strangers"), STRANGER)
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                # As if the supervisor forgot that this is a three-library set.
                answer = e2e.ask(
                    e2e.need(name),
                    e2e.CONTROL,
                    env={"CUDNN_LIB_CONFIG": "", "LD_LIBRARY_PATH": self.path("strangers")},
                )
                if answer.ready:
                    self.assertNotIn(stranger, [lib["path"] for lib in answer.ready["libraries"]])
                else:
                    self.assertEnvironment(answer)
                # And where somebody maps it on purpose, its path is named.
                answer = e2e.ask(e2e.need(name), e2e.CONTROL, env={"LD_PRELOAD": stranger})
                self.assertEnvironment(answer, stranger)

    def test_a_folder_with_the_graph_library_of_another_version_is_refused_before_any_verdict(self):
        folder = self.mixed(e2e.need(e2e.OLD), e2e.need(e2e.NEW))
        self.assertEnvironment(e2e.ask(e2e.need(e2e.OLD), e2e.CONTROL, cudnn_dir=folder), folder)
        done = e2e.facts(
            "decide",
            "pass=fwd d=64,128",
            "--cudnn",
            folder,
            "--device",
            "h100-sxm",
            "-o",
            self.path("r"),
        )
        self.assertStatus(done, 3)
        self.assertIn(folder, done.err)
        rows = e2e.Record(self.path("r")).rows
        self.assertEqual(
            [(row["verdict"], row["reason"]["class"]) for row in rows],
            [("inconclusive", "environment")] * 2,
        )

    def test_the_other_way_round_it_is_refused_too(self):
        folder = self.mixed(e2e.need(e2e.NEW), e2e.need(e2e.OLD))
        self.assertEnvironment(e2e.ask(e2e.need(e2e.NEW), e2e.CONTROL, cudnn_dir=folder), folder)

    def test_a_folder_of_links_to_one_build_is_that_build(self):
        folder = self.mixed(e2e.need(e2e.NEW), e2e.need(e2e.NEW))
        done = e2e.facts(
            "decide", e2e.CONTROL, "--cudnn", folder, "--device", "h100-sxm", "-o", self.path("r")
        )
        self.assertStatus(done, 0)
        self.assertEqual(e2e.Record(self.path("r")).rows[0]["build"], e2e.NEW)


class SameRelease(e2e.TestCase):
    """libcudnn.so.9 asks the loader for libcudnn_graph.so.9.20.0 first; the system's copy of the same release has that name."""

    def system(self, build):
        """A fake system folder with copies of the build's libraries under their full versions."""
        folder = self.path("system")
        os.makedirs(folder, exist_ok=True)
        for library in ("graph", "engines_runtime_compiled"):
            shutil.copyfile(
                os.path.join(build.dir, f"libcudnn_{library}.so.9"),
                os.path.join(folder, f"libcudnn_{library}.so.{build.version}"),
            )
        return folder

    def worker(self, folder, before=""):
        """A worker whose loader finds the folder after everything that the supervisor named: as a system folder is found."""
        path = self.write(
            "worker",
            f'#!/bin/sh\nexport LD_LIBRARY_PATH="${{LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}}{folder}"\n{before}\nexec {e2e.WORKER}\n',
        )
        os.chmod(path, 0o755)
        return path

    def decide(self, build, worker, *more):
        os.makedirs(self.path("tmp"), exist_ok=True)
        done = e2e.facts(
            "decide",
            "pass=fwd,bwd d=64,128",
            "--cudnn",
            build,
            "--device",
            "h100-sxm,sm80-spec",
            "--overwrite",
            "-o",
            self.path("r"),
            *more,
            FACTS_WORKER=worker,
            TMPDIR=self.path("tmp"),
        )
        self.assertEqual(os.listdir(self.path("tmp")), [], "the links are removed")
        return done

    def test_the_chosen_folder_answers_and_not_the_system(self):
        for name in e2e.CI_BUILDS:
            build = e2e.need(name)
            with self.subTest(build=name):
                self.assertStatus(self.decide(name, self.worker(self.system(build)), "-j2"), 0)
                for target in e2e.Record(self.path("r")).targets:
                    cudnn = [
                        lib
                        for lib in target["libraries"]
                        if os.path.basename(lib["path"]).startswith("libcudnn")
                    ]
                    self.assertEqual(
                        [
                            (os.path.dirname(lib["path"]), lib["in_build"], lib["record"])
                            for lib in cudnn
                        ],
                        [(build.dir, True, "ok")] * 3,
                    )

    def test_a_folder_that_nobody_may_write_to_answers_too(self):
        build = e2e.need(e2e.OLD)
        for library in (
            "libcudnn.so.9",
            "libcudnn_graph.so.9",
            "libcudnn_engines_runtime_compiled.so.9",
        ):
            e2e.copy_file(os.path.join(build.dir, library), self.path("read-only"))
        os.chmod(self.path("read-only"), 0o555)
        self.assertStatus(self.decide(self.path("read-only"), self.worker(self.system(build))), 0)
        cudnn = [
            lib["path"]
            for lib in e2e.Record(self.path("r")).targets[0]["libraries"]
            if "libcudnn" in os.path.basename(lib["path"])
        ]
        self.assertEqual({os.path.dirname(path) for path in cudnn}, {self.path("read-only")})

    def test_the_links_are_removed_after_a_worker_was_killed(self):
        worker = self.worker(
            self.system(e2e.need(e2e.NEW)),
            before='test -d "${LD_LIBRARY_PATH%%:*}" && : >"$0.linked"; kill -9 $$',
        )
        self.assertStatus(self.decide(e2e.NEW, worker), 3)
        self.assertTrue(os.path.exists(worker + ".linked"), "the worker had links")

    def test_the_links_of_a_run_that_was_killed_are_removed_by_the_next(self):
        os.makedirs(self.path("tmp"))
        worker = self.worker(self.system(e2e.need(e2e.NEW)), before="kill -9 $PPID; sleep 1")
        e2e.facts(
            "decide",
            e2e.CONTROL,
            "--cudnn",
            e2e.NEW,
            "--device",
            "h100-sxm",
            "-o",
            self.path("killed"),
            FACTS_WORKER=worker,
            TMPDIR=self.path("tmp"),
        )
        self.assertEqual(len(os.listdir(self.path("tmp"))), 1)
        self.assertStatus(self.decide(e2e.NEW, self.worker(self.path("system"))), 0)

    def test_without_links_the_error_names_the_foreign_file_and_the_folder(self):
        for name in e2e.CI_BUILDS:
            build = e2e.need(name)
            with self.subTest(build=name):
                folder = self.system(build)
                answer = e2e.ask(build, e2e.CONTROL, env={"LD_LIBRARY_PATH": folder})
                self.assertEnvironment(
                    answer, f"{folder}/libcudnn_graph.so.{build.version}", build.dir
                )


class Engines(e2e.TestCase):
    NO = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=100"
    YES = "pass=bwd dtype=bf16 b=1 h=2 s=128 d=64"

    def test_fallback_lists_never_decide(self):
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                plain = e2e.ask(e2e.need(name), self.NO, self.YES).rows
                every = e2e.ask(e2e.need(name), self.NO, self.YES, explain=True).rows
                self.assertEqual([row["verdict"] for row in plain], ["unsupported", "supported"])
                self.assertEqual([row["verdict"] for row in every], ["unsupported", "supported"])
                self.assertEqual(every[0]["reason"]["class"], "unsupported")
                self.assertIn("multiple of 8", every[0]["reason"]["text"])
                self.assertIn("A", {engine["mode"] for engine in every[1]["engines"]})
                self.assertGreater(len(every[1]["engines"]), len(plain[1]["engines"]))
                self.assertEqual(
                    [e for e in every[1]["engines"] if e["mode"] == "A"], plain[1]["engines"]
                )
                self.assertEqual(every[1]["engine"], plain[1]["engine"])

    def test_an_empty_fallback_list_does_not_turn_yes_into_no(self):
        row = e2e.ask(e2e.need(e2e.NEW), e2e.CONTROL, explain=True).rows[0]
        self.assertNotIn("fallback", {engine["mode"] for engine in row["engines"]})
        self.assertEqual((row["verdict"], row["supported"]), ("supported", True))

    def test_engine_numbers_come_with_their_version(self):
        done = e2e.facts(
            "decide",
            self.YES,
            "--cudnn",
            f"{e2e.need(e2e.OLD).name},{e2e.need(e2e.NEW).name}",
            "-o",
            self.path("r"),
        )
        self.assertStatus(done, 0)
        for row in e2e.Record(self.path("r")).rows:
            self.assertIsInstance(row["engine"], int)
            self.assertEqual(row["engine"], row["engines"][0]["index"])
            self.assertTrue(row["build"].startswith(row["cudnn"] + "-"), row)


if __name__ == "__main__":
    e2e.main()
