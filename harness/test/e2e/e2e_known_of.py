"""C and Python say the same of what is known of a case: for the rows of the records in reports/, and for the suites."""

import itertools
import json
import lzma
import sys
from pathlib import Path

import e2e

sys.path.insert(0, str(Path(e2e.SOURCE) / "reports"))
from facts_reports.known import knowledge

ASKED = 4000  # of 290,000 questions; all of them take Python half an hour
EACH = 1 if e2e.needs.NIGHT else 8  # line of a record
SUITES = ("smoke", "core", "regress")
TARGETS = (("9.4.0", 90), ("9.14.0", 90), ("9.20.0", 90), ("9.28.1", 100), ("", ""), ("9.28.1", 86))


def rows():
    """(case, version, architecture, engine) of every row of every record."""
    for path in sorted((Path(e2e.SOURCE) / "reports").glob("**/*.jsonl.xz")):
        with lzma.open(path, "rt", encoding="utf-8") as file:
            for row in map(json.loads, itertools.islice(file, 0, None, EACH)):
                if "case" in row:
                    yield tuple(row.get(key, "") for key in ("case", "cudnn", "sm", "engine"))


class KnownOf(e2e.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.file = Path(e2e.BIN).parent / "known/known.jsonl"
        cls.known = knowledge.Knowledge(knowledge.read(cls.file))

    def in_c(self, questions):
        text = "".join("\t".join(map(str, one)) + "\n" for one in questions)
        command = [Path(e2e.BIN) / "facts-print-known", self.file]
        return e2e.started(command, input=text, check=True).stdout.splitlines()

    def in_python(self, case, cudnn, sm, engine):
        return "".join(
            f"{one['id']}/{one['label']} {one['sure']} {'yes' if one['such_data'] else 'no'} {one['fixed']};"
            for one in self.known.of(case, cudnn, sm, None if engine == "" else engine)
        )

    def compare(self, questions):
        answered = 0
        for one, in_c in zip(questions, self.in_c(questions), strict=True):
            if in_c != "?":  # a name of an older case language
                self.assertEqual(in_c, self.in_python(*one), one)
                answered += 1
        return answered

    def test_of_every_record(self):
        every = sorted(set(rows()), key=str)
        asked = every[:: max(1, len(every) // ASKED)]
        answered = self.compare(asked)
        print(f"{answered} of {len(every)} questions of the records")
        self.assertGreater(answered, ASKED / 2)

    def test_of_suites(self):
        done = e2e.facts("list", *SUITES)
        self.assertStatus(done, 0)
        names = done.out.splitlines()
        questions = [
            (name, *target, "")
            for n, target in enumerate(TARGETS)
            for name in names[n :: len(TARGETS)]
        ]
        self.assertGreater(self.compare(questions), 100)


if __name__ == "__main__":
    e2e.main()
