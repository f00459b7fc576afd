"""Programs that are linked for an older glibc ask for no newer symbol, and still run. Needs zig: 101 MB, fetched where FACTS_ALL is set (the night)."""

import re
import unittest

import needs
from scripts import BUILD, HOME, Folder, run, start


def relink(*arguments):
    return start("bash", HOME / "ci/package/relink.sh", *arguments)


def newest_glibc(path):
    said = run("objdump -T", path)
    return max(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", said))


class Relink(Folder):
    def test_bad_input_is_one_line(self):
        for arguments, words in (
            (("only",), "usage: ci/package/relink.sh"),
            ((BUILD, self.at, "new", "bin/facts"), "new is no version of glibc"),
        ):
            done = relink(*arguments)
            self.assertEqual((done.returncode, words in done.stderr), (2, True), done.stderr)

    @needs.night
    def test_the_programs_ask_for_2_28_at_most_and_run(self):
        library = next((BUILD / "package").glob("libfattn.so.*.*.*"))
        files = ["bin/facts", "bin/facts-worker", "bin/facts-self", f"package/{library.name}"]
        done = relink(BUILD, self.at, "2.28", *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        for file in files:
            self.assertGreater(newest_glibc(BUILD / file), (2, 28), "nothing was gained")
            self.assertLessEqual(newest_glibc(self.at / file.rpartition("/")[2]), (2, 28), file)
        add = {"FACTS_HOME": str(HOME), "FACTS_WORKER": str(self.at / "facts-worker")}
        words = ("pass=fwd,bwd b=1 h=2 s=64 d=32", "--device", "cpu", "-o", self.at / "record")
        run(self.at / "facts", "run", *words, add=add)
        self.assertEqual((self.at / "record").read_text().count('"verdict":"pass"'), 2)
        # A program that it starts gets its environment.
        run(self.at / "facts", "known", "list", "--cudnn", "9.28.1", add={"FACTS_HOME": str(HOME)})
        done = relink(BUILD, self.at, "2.28", "bin/nothing")
        self.assertEqual((done.returncode, "bin/nothing" in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
