"""The golden matrix as JSON: it says what the text says, its schema holds, and the file in the repository is the text's."""

import json
import re
import tempfile
import unittest
from pathlib import Path

import support  # noqa: F401
from facts_reports import golden, golden_json

FOLDER = Path(__file__).resolve().parents[2] / "cases" / "golden"
DEVICES = FOLDER.parents[1] / "lib" / "devices"
_KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "null": type(None),
}


def is_kind(value, kind):
    return isinstance(value, _KINDS[kind]) and not (kind == "integer" and isinstance(value, bool))


def breaches(value, schema, at="$"):
    """Where a value breaks a schema: the keywords that ours uses, and no others."""
    unknown = set(schema) - {
        "$schema",
        "title",
        "description",
        "type",
        "required",
        "properties",
        "items",
        "additionalProperties",
        "pattern",
        "const",
    }
    if unknown:
        yield f"{at}: this test does not know {unknown}"
    kinds = schema.get("type", [])
    if kinds and not any(
        is_kind(value, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)
    ):
        yield f"{at}: {value!r} is not {kinds}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{at}: {value!r} is not as {schema['pattern']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{at}: no {name}"
        for name, one in value.items():
            below = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if below is not None:
                yield from breaches(one, below, f"{at}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            yield from breaches(one, schema["items"], f"{at}[{i}]")


class GoldenJson(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text, cls.schema = (
            (FOLDER / "support.txt").read_text(encoding="utf-8"),
            json.loads((FOLDER / "golden.schema.json").read_text(encoding="utf-8")),
        )
        cls.made = golden_json.of(cls.text, "support.txt", DEVICES)

    def test_the_file_in_the_repository_is_the_text_s(self):
        self.assertEqual(
            (FOLDER / "golden.json").read_text(encoding="utf-8"),
            golden_json.as_text(self.text, "support.txt", DEVICES),
            "renew it: facts expect golden --json -o cases/golden/golden.json --overwrite",
        )
        self.assertEqual(
            json.loads(golden_json.as_text(self.text, "support.txt", DEVICES)), self.made
        )

    def test_the_schema_holds_and_refuses_what_it_should(self):
        self.assertEqual(list(breaches(self.made, self.schema)), [])
        for key, value in (
            ("format", 2),
            ("made", "yesterday"),
            ("builds", [{"cudnn": "x", "build": "b", "libcudnn_graph": ""}]),
            ("devices", [{"name": "h"}]),
            (
                "groups",
                [
                    {
                        "name": "g",
                        "cases": [],
                        "answers": {"h": [{"from": "9.8.0", "to": "9.9.0", "engines": ["no"]}]},
                    }
                ],
            ),
        ):
            self.assertNotEqual(list(breaches({**self.made, key: value}, self.schema)), [], key)

    def test_every_answer_of_the_text_is_there(self):
        _, versions, lines = golden.parse(self.text, "support.txt")
        self.assertEqual([b["cudnn"] for b in self.made["builds"]], list(versions))
        spans = 0
        for group in self.made["groups"]:
            for device, ranges in group["answers"].items():
                for one, (first, last, marks, _) in zip(ranges, lines[group["name"], device]):
                    shown = [
                        "-"
                        if e is False
                        else "!"
                        if e == "crash"
                        else "*"
                        if e is True
                        else "?"
                        if e is None
                        else str(e)
                        for e in one["engines"]
                    ]
                    self.assertEqual(
                        (one["from"], one["to"], shown, len(group["cases"])),
                        (first, last, marks, len(marks)),
                    )
                    spans += 1
        self.assertEqual(spans, sum(map(len, lines.values())))
        self.assertEqual({d["name"]: d["sm"] for d in self.made["devices"]}["h100-sxm"], 90)

    def test_the_json_beside_the_text_follows_it(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "cases" / "golden"
            folder.mkdir(parents=True)
            (folder / "support.txt").write_text(self.text, encoding="utf-8")
            golden._renew_json(folder / "support.txt")
            self.assertFalse((folder / "golden.json").exists(), "only where it is kept")
            (folder / "golden.json").write_text("{}")
            golden._renew_json(folder / "support.txt")
            self.assertEqual(
                json.loads((folder / "golden.json").read_text())["suite"], self.made["suite"]
            )


if __name__ == "__main__":
    unittest.main()
