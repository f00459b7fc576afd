"""Two records that are dropped on the page: it compares them as `facts diff` does. In a real browser."""

import gzip
import json
import lzma
import unittest

import support
import synthetic
from browser import WithPages
from facts_reports import diff
from facts_reports.page import steps
from facts_reports.vocabulary import BY_CHANGE


class Drop(WithPages):
    def dropped(self, page, files):
        """What the page says of two files: (headline, summaries of its groups, the text of them opened)."""
        page.set_input_files("#files", files)
        result = page.locator("#drop-result")
        result.locator("h3").wait_for()
        page.evaluate(
            "document.querySelectorAll('#drop-result details').forEach((e) => { e.open = true; })"
        )
        return (
            result.locator("h3 .sub").inner_text(),
            result.locator("summary").all_text_contents(),
            result.locator(".inside").all_text_contents(),
        )

    def due(self, *files):
        """The same as `facts diff` has it, and its groups."""
        found = diff.compare(files)
        step = steps.as_object(
            found, {name: place for place, name in enumerate(dict.fromkeys(found.names))}
        )
        said = [
            f"{BY_CHANGE[g['class']].mark} {g['cases']} {g['class']}{' (' + str(g['known']) + ' known)' if g['known'] else ''}: {g['words']}{g['on'] and ' on ' + g['on']}{g['before']} → {g['after']}"
            for g in step["groups"]
        ]
        return step["headline"], said, step["groups"]

    def test_two_dropped_records_get_the_groups_of_facts_diff(self):
        """Of synthetic measurements, and of decisions of two versions for two devices: by day of every third case."""
        families, places = {"9.9.0": [], "9.28.0": []}, {}
        for line in lzma.open(
            support.HERE.parent / "examples/families-decided.jsonl.xz", "rt", encoding="utf-8"
        ):
            one = json.loads(line)
            if (
                "target" not in one
                and "start" not in one
                and (support.NIGHT or places.setdefault(one.get("case", ""), len(places)) % 3 == 0)
            ):
                for version in [one["cudnn"]] if "case" in one else families:
                    families.get(version, []).append(line)
        measured = {
            version: synthetic.text(synthetic.record((version,), (synthetic.DEVICES[0],)))
            for version in ("9.20.0", "9.27.0")
        }
        page, groups = self.open(), []
        for name, lines in (("families", families), ("measured", measured)):
            files = [self.at / f"{name}-{place}.jsonl" for place in range(2)]
            for file, text in zip(files, lines.values()):
                file.write_text("".join(text), encoding="utf-8")
            headline, summaries, inside = self.dropped(page, files)
            due, said, groups = self.due(*files)
            self.assertEqual((headline.strip(), summaries), (due, said))
            self.assertGreater(len(said), 1)
            for text, group in zip(inside, groups):
                self.assertIn(
                    f"{group['where'] and group['where'] + ': '}{group['exactness']}.{group['change'] and ' ' + group['change']}",
                    text,
                )
                self.assertIn(group["repro"], text)
            page.evaluate("document.getElementById('drop-result').replaceChildren()")
        self.assertEqual([g["class"] for g in groups], ["worse", "better"])
        self.quiet()

    def test_dropped_files_that_cannot_be_compared_are_named(self):
        lines = {
            version: synthetic.text(synthetic.record((version,), (synthetic.DEVICES[0],))).encode()
            for version in ("9.14.0", "9.20.0", "9.27.0")
        }
        files = [
            {"name": "b.jsonl", "mimeType": "text/plain", "buffer": lines["9.20.0"] + b"cut"},
            {
                "name": "a.jsonl.gz",
                "mimeType": "application/gzip",
                "buffer": gzip.compress(lines["9.27.0"]),
            },
        ]
        page = self.open()
        self.assertIn(
            "1 accepted case fails now", self.dropped(page, files)[0]
        )  # the older version stands first, whatever the files are called
        self.assertIn("1 line could not be read.", page.inner_text("#drop-result"))
        self.assertIn("facts diff b.jsonl a.jsonl.gz", page.inner_text("#drop-result"))
        for wrong, said in (
            ([files[0]], "Choose two records; this was 1."),
            ([files[0], {**files[1], "name": "b.jsonl.xz"}], "b.jsonl.xz is packed with xz"),
            (
                [
                    {**files[0], "buffer": lines["9.14.0"]},
                    {**files[0], "name": "two.jsonl", "buffer": lines["9.20.0"] + lines["9.27.0"]},
                ],
                "which target is compared with which?",
            ),
            ([files[0], {**files[0], "name": "c", "buffer": b"{}"}], "c holds no row of a record"),
        ):
            page.set_input_files("#files", wrong)
            page.wait_for_function(
                "(said) => document.getElementById('drop-result').textContent.includes(said)",
                arg=said,
            )
        self.quiet()


if __name__ == "__main__":
    unittest.main()
