"""The traps of asking cuDNN without a GPU, each of which gives wrong answers silently, with the two builds that CI installs."""

import os
import re
import shutil

import e2e


class WithoutNvrtc(e2e.TestCase):
    """Below 9.21 a missing or foreign NVRTC looks like "no engine", with status SUCCESS."""

    def ask(self, nvrtc, build=e2e.OLD, **more):
        return e2e.ask(e2e.need(build), e2e.CONTROL, nvrtc=nvrtc, **more)

    def test_no_nvrtc_is_the_environment_and_never_unsupported(self):
        self.assertEnvironment(self.ask(""), "NVRTC")
        none = self.path("libnvrtc.so.13")
        self.assertEnvironment(self.ask(none), none)

    def test_from_9_21_on_none_is_needed(self):
        rows = self.ask("", e2e.NEW, do="plan").rows
        self.assertEqual([row["verdict"] for row in rows], ["supported"])

    def test_nvrtc_of_another_cuda_major_is_refused_though_the_loader_would_find_a_right_one(self):
        version = "int nvrtcVersion(int *a, int *b) { *a = 12; *b = 9; return 0; }"
        other = e2e.library(self.folder, "libnvrtc.so.12", version)
        builtins = "int __nvrtc_builtins__12_9_getArchBuiltins;"
        e2e.library(self.folder, "libnvrtc-builtins.so.12.9", builtins)
        right = os.path.dirname(e2e.need(e2e.OLD).nvrtc)
        self.assertEnvironment(self.ask(other, env={"LD_LIBRARY_PATH": right}), "12.9", "13")

    def test_nvrtc_without_its_builtins_or_with_broken_ones_is_the_environment(self):
        build, folder = e2e.need(e2e.OLD), self.path("nvrtc")
        nvrtc = e2e.copy_file(build.nvrtc, folder)
        self.assertEnvironment(self.ask(nvrtc, do="plan"), "builtins", folder)
        names = os.listdir(os.path.dirname(build.nvrtc))
        form = r"libnvrtc-builtins\.so\.\d+\.\d+"
        e2e.library(folder, next(name for name in names if re.fullmatch(form, name)))
        answer = self.ask(nvrtc, do="plan", env={"LD_LIBRARY_PATH": folder})
        (row,) = answer.rows
        found = row["verdict"], row["reason"]["class"]
        self.assertEqual(found, ("inconclusive", "environment"), "a compile that fails")
        self.assertIn("builtins", row["reason"]["text"])


class WithoutDriver(e2e.TestCase):
    def test_a_driver_that_is_not_there_or_lacks_functions_is_the_environment(self):
        missing = self.path("libcuda.so.2")
        poor = "int cuInit(unsigned flags) { return flags != 0; }"
        poor = e2e.library(self.folder, "libcuda.so.1", poor)
        for name in e2e.CI_BUILDS:
            for driver, *words in ((missing, missing), (poor,)):
                with self.subTest(build=name, driver=driver):
                    answer = e2e.ask(e2e.need(name), e2e.CONTROL, driver=driver)
                    self.assertEnvironment(answer, *words)

    def test_the_null_driver_is_no_gpu(self):
        self.assertEnvironment(e2e.ask(e2e.need(e2e.NEW), e2e.CONTROL, gpu=0))


class Description(e2e.TestCase):
    def test_without_memory_bus_width_9_27_is_inconclusive_by_name_and_9_20_answers(self):
        narrow = {"name": "narrow", "device": e2e.description(without=["memoryBusWidth"])}
        device = self.write("narrow.json", narrow)
        how = {"cudnn": e2e.CI_BUILDS, "device": device}
        done = self.asked("decide", e2e.CONTROL, "-o", self.path("r"), **how)
        self.assertStatus(done, 3)
        rows = self.record().by("build")
        old, new = rows[e2e.OLD,], rows[e2e.NEW,]
        self.assertEqual((old["verdict"], new["verdict"]), ("supported", "inconclusive"))
        self.assertEqual(new["reason"]["class"], "environment")
        for said in (new["reason"]["text"], done.err):
            self.assertIn("memoryBusWidth", said)

    def test_a_field_that_no_version_knows_is_no_reason_to_refuse(self):
        device = e2e.description(fieldOfTheFuture=1)
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                self.assertIsNotNone(e2e.ask(e2e.need(name), device=device).ready)


def cudnn_of(target):
    """(folder, whether it is of the build, its record) of each library of cuDNN that was mapped."""
    libraries = [one for one in target["libraries"] if "libcudnn" in os.path.basename(one["path"])]
    return [(os.path.dirname(one["path"]), one["in_build"], one["record"]) for one in libraries]


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
                more = {"cudnn": name, "LD_LIBRARY_PATH": search}
                done = self.asked("decide", e2e.CONTROL, "-o", self.path(name), **more)
                self.assertStatus(done, 0)
                (target,) = self.record(name).targets
                self.assertEqual(cudnn_of(target), [(e2e.need(name).dir, True, "ok")] * 3)
                names = [os.path.basename(one["path"]) for one in target["libraries"]]
                others = {one.split(".so")[0] for one in names if not one.startswith("libcudnn")}
                self.assertLessEqual(others, {"libcuda", "libnvrtc", "libnvrtc-builtins"})

    def test_a_stranger_that_was_mapped_is_never_answered_with(self):
        stranger = e2e.library(self.path("strangers"), STRANGER)
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                # As if the supervisor forgot that this is a three-library set.
                env = {"CUDNN_LIB_CONFIG": "", "LD_LIBRARY_PATH": self.path("strangers")}
                answer = e2e.ask(e2e.need(name), e2e.CONTROL, env=env)
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
        done = self.asked("decide", "pass=fwd d=64,128", "-o", self.path("r"), cudnn=folder)
        self.assertStatus(done, 3)
        self.assertIn(folder, done.err)
        found = [(row["verdict"], row["reason"]["class"]) for row in self.record().rows]
        self.assertEqual(found, [("inconclusive", "environment")] * 2)

    def test_the_other_way_round_it_is_refused_too(self):
        folder = self.mixed(e2e.need(e2e.NEW), e2e.need(e2e.OLD))
        self.assertEnvironment(e2e.ask(e2e.need(e2e.NEW), e2e.CONTROL, cudnn_dir=folder), folder)

    def test_a_folder_of_links_to_one_build_is_that_build(self):
        folder = self.mixed(e2e.need(e2e.NEW), e2e.need(e2e.NEW))
        done = self.asked("decide", e2e.CONTROL, "-o", self.path("r"), cudnn=folder)
        self.assertStatus(done, 0)
        self.assertEqual(self.record().rows[0]["build"], e2e.NEW)


class SameRelease(e2e.TestCase):
    """libcudnn.so.9 asks the loader for libcudnn_graph.so.9.20.0 first; the system's copy of the same release has that name."""

    def system(self, build):
        """A fake system folder with copies of the build's libraries under their full versions."""
        folder = self.path("system")
        os.makedirs(folder, exist_ok=True)
        for library in ("graph", "engines_runtime_compiled"):
            source = os.path.join(build.dir, f"libcudnn_{library}.so.9")
            shutil.copyfile(source, f"{folder}/libcudnn_{library}.so.{build.version}")
        return folder

    def worker(self, folder, before=""):
        """A worker whose loader finds the folder after everything that the supervisor named: as a system folder is found."""
        search = "${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}" + folder
        script = f'#!/bin/sh\nexport LD_LIBRARY_PATH="{search}"\n{before}\nexec {e2e.WORKER}\n'
        path = self.write("worker", script)
        os.chmod(path, 0o755)
        return path

    def decide(self, build, worker, case="pass=fwd,bwd d=64,128"):
        os.makedirs(self.path("tmp"), exist_ok=True)
        how = {"cudnn": build, "device": "h100-sxm,sm80-spec", "FACTS_WORKER": worker}
        words = (case, "-j2", "--overwrite", "-o", self.path("r"))
        return self.asked("decide", *words, **how, TMPDIR=self.path("tmp"))

    def decided(self, status, *words):
        self.assertStatus(self.decide(*words), status)
        self.assertEqual(os.listdir(self.path("tmp")), [], "the links are removed")

    def test_the_chosen_folder_answers_and_not_the_system(self):
        for name in e2e.CI_BUILDS:
            build = e2e.need(name)
            with self.subTest(build=name):
                self.decided(0, name, self.worker(self.system(build)))
                for target in self.record().targets:
                    self.assertEqual(cudnn_of(target), [(build.dir, True, "ok")] * 3)

    def test_a_folder_that_nobody_may_write_to_answers_too(self):
        build, folder = e2e.need(e2e.OLD), self.path("read-only")
        for library in ("", "_graph", "_engines_runtime_compiled"):
            e2e.copy_file(os.path.join(build.dir, f"libcudnn{library}.so.9"), folder)
        os.chmod(folder, 0o555)
        self.decided(0, folder, self.worker(self.system(build)))
        self.assertEqual({where for where, _, _ in cudnn_of(self.record().targets[0])}, {folder})

    def test_the_links_are_removed_after_a_worker_was_killed(self):
        before = 'test -d "${LD_LIBRARY_PATH%%:*}" && : >"$0.linked"; kill -9 $$'
        worker = self.worker(self.system(e2e.need(e2e.NEW)), before)
        self.decided(3, e2e.NEW, worker)
        self.assertTrue(os.path.exists(worker + ".linked"), "the worker had links")

    def test_the_links_of_a_run_that_was_killed_are_removed_by_the_next(self):
        system = self.system(e2e.need(e2e.NEW))
        killer = self.worker(system, before="kill -9 $PPID; sleep 1")
        how = {"FACTS_WORKER": killer, "TMPDIR": self.path("tmp")}
        os.makedirs(self.path("tmp"))
        self.asked("decide", e2e.CONTROL, "-o", self.path("killed"), **how)
        self.assertEqual(len(os.listdir(self.path("tmp"))), 1)
        self.decided(0, e2e.NEW, self.worker(system))

    def test_without_links_the_error_names_the_foreign_file_and_the_folder(self):
        for name in e2e.CI_BUILDS:
            build = e2e.need(name)
            with self.subTest(build=name):
                folder = self.system(build)
                answer = e2e.ask(build, e2e.CONTROL, env={"LD_LIBRARY_PATH": folder})
                foreign = f"{folder}/libcudnn_graph.so.{build.version}"
                self.assertEnvironment(answer, foreign, build.dir)


class Engines(e2e.TestCase):
    NO = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=100"
    YES = "pass=bwd dtype=bf16 b=1 h=2 s=128 d=64"

    def test_fallback_lists_never_decide(self):
        for name in e2e.CI_BUILDS:
            with self.subTest(build=name):
                build = e2e.need(name)
                plain = e2e.ask(build, self.NO, self.YES).rows
                no, yes, control = e2e.ask(build, self.NO, self.YES, e2e.CONTROL, explain=True).rows
                found = [row["verdict"] for row in (*plain, no, yes)]
                self.assertEqual(found, ["unsupported", "supported"] * 2)
                self.assertEqual(no["reason"]["class"], "unsupported")
                self.assertIn("multiple of 8", no["reason"]["text"])
                listed = [engine for engine in yes["engines"] if engine["mode"] == "A"]
                self.assertEqual(listed, plain[1]["engines"])
                self.assertGreater(len(yes["engines"]), len(listed))
                self.assertEqual(yes["engine"], plain[1]["engine"])
        self.assertNotIn("fallback", {engine["mode"] for engine in control["engines"]})
        self.assertEqual((control["verdict"], control["supported"]), ("supported", True))

    def test_engine_numbers_come_with_their_version(self):
        done = self.asked("decide", self.YES, "-o", self.path("r"), cudnn=e2e.CI_BUILDS)
        self.assertStatus(done, 0)
        for row in self.record().rows:
            self.assertIsInstance(row["engine"], int)
            self.assertEqual(row["engine"], row["engines"][0]["index"])
            self.assertTrue(row["build"].startswith(row["cudnn"] + "-"), row)


if __name__ == "__main__":
    e2e.main()
