"""The golden matrix as JSON says what the text says."""

import unittest

import support
from facts_reports.commands import expect

HOME = support.HERE.parents[1]
SHOWN = {False: "-", "crash": "!", True: "*", None: "?"}


class Golden(unittest.TestCase):
    def test_every_answer_of_the_text_is_in_the_json(self):
        text = (HOME / "cases/golden/support.txt").read_text(encoding="utf-8")
        made = expect.as_json(text, "support.txt", HOME / "lib/devices")
        suite, versions, lines = expect.parse(text, "support.txt")
        self.assertEqual(made["suite"], suite)
        self.assertEqual([b["cudnn"] for b in made["builds"]], list(versions))
        said = {
            (group["name"], device): [
                (
                    one["from"],
                    one["to"],
                    [str(e) if type(e) is int else SHOWN[e] for e in one["engines"]],
                )
                for one in ranges
            ]
            for group in made["groups"]
            for device, ranges in group["answers"].items()
        }
        self.assertEqual(said, {at: [one[:3] for one in spans] for at, spans in lines.items()})
        for group in made["groups"]:
            marks = next(iter(group["answers"].values()))[0]["engines"]
            self.assertEqual(len(group["cases"]), len(marks), group["name"])
        self.assertEqual({d["name"]: d["sm"] for d in made["devices"]}["h100-sxm"], 90)


if __name__ == "__main__":
    unittest.main()
