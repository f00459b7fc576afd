"""Nothing stale is believed: plans and a record hold for the very bytes of the libraries, of the description and of FACTS."""

import os
import shutil

import e2e

YES, NO = "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64", "pass=fwd dtype=bf16 b=1 h=2 s=128 d=100"
CASES, BOTH = (YES, NO), "pass=fwd dtype=bf16 b=1 h=2 s=128 d=64,100"


def swap(path):
    """The last byte, in place: name, size, inode, time of writing and the linker's notes stay."""
    before = os.stat(path)
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)[0]
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = os.stat(path)
    for member in ("st_size", "st_mtime_ns", "st_ino"):
        assert getattr(before, member) == getattr(after, member)


class Stale(e2e.TestCase):
    def copy(self, name=e2e.NEW):
        """A build of our own: the small library is a copy, the large ones are links to the installed ones."""
        build, folder = e2e.need(name), self.path("build")
        os.mkdir(folder)
        for library in os.listdir(build.dir):
            path = os.path.join(build.dir, library)
            keep = shutil.copy2 if library == "libcudnn.so.9" else os.symlink
            keep(path, os.path.join(folder, library))
        self.library = os.path.join(folder, "libcudnn.so.9")
        return e2e.Build(build.name, folder, build.nvrtc)

    def loaded(self, build, **more):
        """Which answers came out of the folder."""
        rows = e2e.ask(build, *CASES, do="plan", plan_dir=self.folder, **more).rows
        self.assertEqual([row["verdict"] for row in rows], ["supported", "unsupported"])
        return bool(rows[0].get("plan_loaded"))

    def test_plans_are_of_the_librarys_bytes(self):
        build = self.copy()
        self.assertEqual(self.loaded(build), False)
        self.assertEqual(self.loaded(build), True)
        swap(self.library)
        self.assertEqual(self.loaded(build), False)
        swap(self.library)
        self.assertEqual(self.loaded(build), True, "the same bytes, written later")

    def test_a_member_of_the_description_makes_another_device(self):
        build = e2e.need(e2e.NEW)
        self.assertEqual(self.loaded(build), False)
        for change, loaded in (
            ({"maxSharedMemoryPerBlockOptin": 232440}, False),
            ({"l2CacheSize": 52428000}, False),
            ({"cudaDeviceId": 1, "pciDeviceId": 7}, True),  # another slot
        ):
            device = e2e.description(**change)
            self.assertEqual(self.loaded(build, device=device), loaded, change)

    def test_below_9_21_the_compiler_is_a_part_of_the_build(self):
        build, folder = e2e.need(e2e.OLD), self.path("nvrtc")
        beside, compiler = (
            os.path.dirname(os.path.realpath(build.nvrtc)),
            os.path.basename(build.nvrtc),
        )
        builtins = [name for name in os.listdir(beside) if "builtins.so." in name]
        os.mkdir(folder)
        for name in (*builtins, compiler):
            shutil.copyfile(os.path.join(beside, name), os.path.join(folder, name))
        build = e2e.Build(build.name, build.dir, os.path.join(folder, compiler))
        self.assertEqual(self.loaded(build), False)
        self.assertEqual(self.loaded(build), True)
        for name in e2e.some([builtins[0], compiler]):
            swap(os.path.join(folder, name))
            self.assertEqual(self.loaded(build), False, name)

    # ---- records

    def answers(self, *words, worker=e2e.WORKER):
        done = e2e.facts(*words, "-o", self.path("r"), "--resume", FACTS_WORKER=worker)
        self.assertIn(done.status, (0, 1), done.err)
        self.said = done.err
        return len(e2e.Record(self.path("r")).rows)

    def decided(self, device="h100-sxm", **more):
        where = ("--cudnn", os.path.dirname(self.library), "--device", device)
        return self.answers("decide", BOTH, *where, **more)

    def test_a_record_is_of_the_librarys_bytes_and_an_answer_counts_once(self):
        self.copy()
        self.assertEqual((self.decided(), self.decided()), (2, 2))
        swap(self.library)
        self.assertEqual(self.decided(), 4)
        self.assertIn("other libraries", self.said)
        counts = self.record().ends[-1]["counts"]
        self.assertEqual(counts, {"supported": 1, "unsupported": 1})
        self.assertEqual(self.decided(), 4)

    def test_a_record_is_of_the_description_and_of_the_worker(self):
        self.copy()

        def described(**changes):
            device = e2e.description(**changes)
            return self.write("own.json", {"name": "own", "source": "a test", "device": device})

        worker = shutil.copy2(e2e.WORKER, self.path("facts-worker"))
        self.assertEqual(self.decided(described()), 2)
        device = described(l2CacheSize=52428000)
        self.assertEqual(self.decided(device), 4)
        found = self.decided(device, worker=worker), self.decided(device)
        self.assertEqual(found, (4, 4), "the same bytes in another place")
        with open(worker, "ab") as file:
            file.write(b"\0")
        found = self.decided(device, worker=worker), self.decided(device, worker=worker)
        self.assertEqual(found, (6, 6))

    def test_the_hunts_too_ask_another_library_again(self):
        self.copy()
        folder, record = os.path.dirname(self.library), self.path("r")
        for words in e2e.some(
            [
                ("bisect", YES, "--cudnn", f"{e2e.need(e2e.OLD).name},{folder}"),
                ("fuzz", "--cases", "5", "--seed", "3", "--cudnn", folder),
            ]
        ):
            words = (*words, "--device", "h100-sxm")
            count = self.answers(*words)
            self.assertEqual(self.answers(*words), count, words)
            swap(self.library)
            self.assertGreater(self.answers(*words), count, words)
            os.unlink(record)


if __name__ == "__main__":
    e2e.main()
