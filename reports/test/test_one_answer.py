"""One answer: of each pair of versions in one record the gate, its Markdown and its JUnit, and the page of the record say the same."""

import itertools
import json
import random
import re
import xml.etree.ElementTree as ET
from html import unescape
from pathlib import Path

import support
import synthetic
from browser import WithPages
from synthetic import engines, reason

VERSIONS = [f"9.{minor}.0" for minor in range(14, 23)]
DEVICES = (("h100-sxm", 90), ("sm80-spec", 80), ("sm100-spec", 100))
CASES = [
    f"pass={p} dtype={t} d={d}{more}"
    for p, t, d in itertools.product(("fwd", "bwd"), ("bf16", "f16"), (64, 128))
    for more in ("", " mask=causal", " policy=math")
]
GUARD = reason("a guard refuses", "", "policy", rule="some-guard")
KNOWN = {"expectation": {"verdict": "crash", "met": True, "link": "x", "title": "a crash"}}
WAYS = (
    [{"verdict": "unsupported", "supported": False} | reason("not supported")] * 3
    + [{"verdict": "crash", "supported": None}, {"verdict": "crash", "supported": None} | KNOWN]
    + [{"verdict": "unsupported", "supported": False} | GUARD, engines(3)]
    + [{"verdict": "inconclusive", "supported": None} | reason("no NVRTC", "X", "environment")]
)


def rows():
    """An answer changes seldom, so that some pairs differ in nothing."""
    rng, now = random.Random(7), {}
    for version in VERSIONS:
        for (device, sm), case in itertools.product(DEVICES, CASES):
            if rng.random() < 0.02:
                now[case, device] = rng.choice([*WAYS, {}])
            said = {"verdict": "supported"} | engines(1) | now.get((case, device), {})
            if "policy=math" in case:
                said = {"verdict": "supported", "backend": "math"}
            yield synthetic.plain(case, version, device=device, sm=sm, grade="decided", **said)


def record():
    targets = ((f"{v}-jit-cu13", d) for v in VERSIONS for d, _ in DEVICES)
    about = synthetic.head("r1", *targets, guards="off")
    return synthetic.text([about, *rows(), synthetic.end()])


def pairs():
    """Every two neighbours, and others: 4 by day, all in the night."""
    every = list(itertools.combinations(VERSIONS, 2))
    near = list(zip(VERSIONS, VERSIONS[1:]))
    return near + random.Random(1).sample(
        [pair for pair in every if pair not in near], 30 if support.NIGHT else 4
    )


def plain(said):
    """The first line of the terminal, of Markdown and of JUnit alike."""
    said = said.strip("*").removeprefix("FACTS: ").replace("→", "->")
    return re.sub(r" on [^)]*\): ", "): ", said)


def data_of(folder):
    """The comparisons of a page, and its headline."""
    html = (Path(folder) / "index.html").read_text()
    found = dict(re.findall(r'<script type="application/json" (.*?)>(.*?)</script>', html, re.S))
    head = re.search(r'<h1 class="(\w+)">(.*?)</h1>', unescape(html), re.S)
    said = re.sub(r' <span class="clause">(.*?)</span>', r": \1", head[2])
    data = json.loads(found['id="data"'])
    return data["steps"], json.loads(found['data-column="others"']), (head[1], plain(said))


class OneAnswer(support.Folder):
    def setUp(self):
        super().setUp()
        self.record = self.at / "r.jsonl"
        self.record.write_text(record())

    def gate(self, old, new, *words):
        code, out, err = support.run(
            "gate", self.record, "--baseline", old, "--candidate", new, *words
        )
        self.assertEqual(
            err.replace("page: ", ""), f"{self.at / 'page/index.html'}\n" * bool(words[1:])
        )
        return code, out.splitlines()[0]

    def agree(self, step, code, said, why):
        """A comparison of a page is the gate's, and the map marks a loss where the gate finds one."""
        marked = {mark for some in step["marks"].values() for mark in some}
        self.assertEqual(
            (step["code"], step["headline"], "lost mark" in marked), (code, said, code == 1), why
        )

    def test_every_form_of_every_pair(self):
        status, _, _ = support.run("report", self.record, "-o", self.at / "all")
        self.assertEqual(status, 0)
        steps, others, head = data_of(self.at / "all")
        held = {(s["a"].split("-")[0], s["b"].split("-")[0]): s for s in [*steps, *others]}
        codes = set()
        for pair in pairs():
            words = ("--junit", self.at / "j.xml", "--page", self.at / "page")
            code, said = self.gate(*pair, *words)
            codes.add(code)
            markdown = self.gate(*pair, "--markdown")
            self.assertEqual((markdown[0], plain(markdown[1])), (code, said))
            decision = ET.parse(self.at / "j.xml").getroot().find(".//testcase[@name='decision']")
            verdict = [(c.tag, plain(c.get("message"))) for c in decision if c.get("message")]
            tag = {1: "failure", 0: ""}.get(code, "error")
            self.assertEqual(verdict, [(tag, said)] if code else [], pair)
            tone = {0: "good", 1: "bad"}.get(code, "open")
            (own,), _, own_head = data_of(self.at / "page")
            self.assertEqual(own_head, (tone, said), pair)
            self.agree(own, code, said, pair)
            if pair in held:
                self.agree(held[pair], code, said, pair)
            if pair == tuple(VERSIONS[-2:]):
                self.assertEqual(head, (tone, said))
        self.assertEqual(codes, {0, 1, 3})
        self.assertLessEqual(set(zip(VERSIONS, VERSIONS[1:])), held.keys())


class InABrowser(WithPages):
    records = {"one": record}

    def test_the_map_and_the_address_show_what_the_comparison_says(self):
        page = self.open("one")
        steps = json.loads(page.text_content("#data"))["steps"]
        for device, _ in DEVICES:
            page.click(f"#devices button >> text={device}")
            shown = page.evaluate(
                "[...document.querySelectorAll('#heat tbody tr')].flatMap((tr) => [...tr.querySelectorAll('button.cell')].flatMap((b, i) => b.classList.contains('lost') ? [i] : []))"
            )
            due = {
                VERSIONS.index(s["b"].split("-")[0])
                for s in steps
                if "lost mark" in s["marks"].get(device, {})
            }
            self.assertEqual(set(shown), due, device)
            self.assertTrue(due)
        label = page.get_attribute("#heat button[aria-label^='forward, 9.14.0']", "aria-label")
        self.assertEqual(label, "forward, 9.14.0: 8 supported")
        label = page.get_attribute("#heat button[aria-label^='math backend']", "aria-label")
        self.assertIn("9.14.0: 8 supported", label)
        for step in steps[:3]:
            a, b = (step[side].split("-")[0] for side in "ab")
            page = self.open("one", f"?a={a}&b={b}")
            self.assertIn(step["headline"], page.inner_text("#compare-result h3"))
        self.quiet()
