"""Programs that are linked for an older glibc ask for no newer symbol, and still run. Needs zig: 101 MB, fetched where FACTS_ALL is set (the night)."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import needs

HOME = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("FACTS_BIN", HOME / "build/release/bin")).parent


def relink(*arguments):
    return subprocess.run(
        ["bash", HOME / "ci/package/relink.sh", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def newest_glibc(path):
    said = subprocess.run(
        ["objdump", "-T", path], capture_output=True, text=True, check=True
    ).stdout
    return max(tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", said))


class Relink(unittest.TestCase):
    def setUp(self):
        self.out = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_bad_input_is_one_line(self):
        for arguments, words in (
            (("only",), "usage: ci/package/relink.sh"),
            ((BUILD, self.out, "new", "bin/facts"), "new is no version of glibc"),
        ):
            done = relink(*arguments)
            self.assertEqual((done.returncode, words in done.stderr), (2, True), done.stderr)

    @needs.night
    def test_the_programs_ask_for_2_28_at_most_and_run(self):
        files = (
            "bin/facts",
            "bin/facts-worker",
            "bin/facts-self",
            f"package/{next((BUILD / 'package').glob('libfattn.so.*.*.*')).name}",
        )
        done = relink(BUILD, self.out, "2.28", *files)
        self.assertEqual(done.returncode, 0, done.stderr)
        for file in files:
            self.assertGreater(newest_glibc(BUILD / file), (2, 28), "nothing was gained")
            self.assertLessEqual(newest_glibc(self.out / pathlib.Path(file).name), (2, 28), file)
        record = self.out / "record"
        ran = subprocess.run(
            [
                self.out / "facts",
                "run",
                "pass=fwd,bwd b=1 h=2 s=64 d=32",
                "--device",
                "cpu",
                "-o",
                record,
            ],
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "FACTS_HOME": str(HOME),
                "FACTS_WORKER": str(self.out / "facts-worker"),
            },
        )
        self.assertEqual(
            (ran.returncode, record.read_text().count('"verdict":"pass"')),
            (0, 2),
            ran.stdout + ran.stderr,
        )
        asked = subprocess.run(
            [self.out / "facts", "known", "list", "--cudnn", "9.28.1"],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "FACTS_HOME": str(HOME)},
        )
        self.assertEqual(
            asked.returncode, 0, f"a program that it starts gets no environment: {asked.stderr}"
        )

    @needs.night
    def test_what_is_not_linked_is_named(self):
        done = relink(BUILD, self.out, "2.28", "bin/nothing")
        self.assertEqual(done.returncode, 2)
        self.assertIn("bin/nothing", done.stderr)


if __name__ == "__main__":
    unittest.main()
