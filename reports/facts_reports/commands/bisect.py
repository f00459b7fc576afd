"""facts bisect: between which versions an answer changes, for people and as JSON.

Reads JSON lines: what was asked, the outcome and the edges, as pairs of places among the versions; then each version with its answer, oldest first.
"""

import json
from pathlib import Path

from ..compare import changes
from ..read import text
from ..read.vocabulary import is_good


def describe(said):
    """ "pass, engines 8 10"; "unsupported: SDPA only supports ..., known: TITLE (ID)"."""
    out = said["verdict"]
    if said["backend"] not in ("", "cudnn"):
        out += f", backend {said['backend']}"
    elif said["verdict"] == "unsupported" or not said["engines"]:
        out += f", engine {said['engine']}" if said["engine"] >= 0 else ""
    else:
        out += f", engine{'s' if ' ' in said['engines'] else ''} {said['engines']}"
    if not is_good(said["verdict"]) and (said["meaning"] or said["text"]):
        out += f": {said['meaning'] or said['text']}"
    if said["forward"]:
        out += f"; its forward is refused: {said['forward']}"
    return out + (f" (known: {said['known']})" if said["known"] else "")


def why_not(said):
    """Why a version has no part in the answer."""
    if said["flaky"]:
        return f"is not repeatable: {said['value']}, then {said['again']}"
    if said["verdict"] == "mistrusted":
        return "answered with data that could not show an error (mistrusted)"
    return f"could not be asked: {said['why'] or said['text'] or 'its worker gave no answer'}"


def _has_no_part(said):
    return said["silent"] or said["flaky"]


def _line(said):
    return why_not(said) if _has_no_part(said) else describe(said)


def _good(said):
    return is_good(said["verdict"])


class Bisection:
    def __init__(self, lines):
        self.about, *self.versions = lines
        self.edges = [
            (self.versions[a], self.versions[b], self.versions[a + 1 : b])
            for a, b in self.about["edges"]
        ]

    @staticmethod
    def change(before, after):
        """The gate's word for it; "changed" where the verdict is the same."""
        return changes.class_of(before["verdict"], after["verdict"]) or "changed"

    def _side(self, before, after, said):
        if self.about["by"] == "verdict" and _good(before) != _good(after):
            return "good" if _good(said) else "bad"
        return said["value"]

    def repeat(self, before, after):
        """The command that asks both sides again."""
        about = self.about
        do, plan = "run" if about["ran"] else "decide", about["plan"] and not about["ran"]
        builds = f"{before['build']},{after['build']}"
        said = f"facts {do} '{about['case']}' --cudnn {builds} --device {about['asked_device']}"
        return said + " --plan" * plan

    def _ranges(self):
        """Every version that was asked; neighbours that say the same share a line."""
        runs = []
        for said in self.versions:
            if not said["asked"]:
                runs.append(None)
            elif runs and runs[-1] and runs[-1][0] == _line(said):
                runs[-1][1].append(said["cudnn"])
            else:
                more = ("cuDNN", said["meaning"] and said["text"])
                more = (more, ("instead", said["known"] and said["remedy"]))
                runs.append((_line(said), [said["cudnn"]], more))
        for line, names, more in filter(None, runs):
            yield f"  {names[0] if len(names) == 1 else f'{names[0]} .. {names[-1]}':<18} {line}"
            yield from (f"  {'':<18} {word}: {text}" for word, text in more if text)

    def _edge(self, before, after, between):
        change = self.change(before, after)
        one, two = (self._side(before, after, said) for said in (before, after))
        if between:
            yield f"{change} between: {one} {before['cudnn']}, {two} {after['cudnn']}"
        elif self.about["by"] == "verdict":
            yield f"{change}: last {one} {before['cudnn']}, first {two} {after['cudnn']}"
        else:
            yield f"{change}: {one} up to {before['cudnn']}, {two} from {after['cudnn']}"
        yield f"  again: {self.repeat(before, after)}"

    def plain(self):
        about, versions = self.about, self.versions
        yield about["case"]
        yield f"on {about['shown_device']}, by {about['by']}, {text.count(len(versions), 'version')} of cuDNN from {versions[0]['cudnn']} to {versions[-1]['cudnn']}\n"
        yield from self._ranges()
        yield ""
        for edge in self.edges:
            yield from self._edge(*edge)
        if about["outcome"] == "equal":
            rest = "; --all also asks the versions between"
            if about["all"]:
                rest = ", and so does every version between them that answered"
            yield f"no change: {versions[about['first']]['cudnn']} and {versions[about['last']]['cudnn']} give the same answer{rest}"
            if about["wider"] not in ("", f"{versions[0]['cudnn']}..{versions[-1]['cudnn']}"):
                device = f"--device {about['asked_device']}"
                yield f"  other versions: facts bisect '{about['case']}' --cudnn {about['wider']} {device}"
        if about["outcome"] == "nothing":
            yield "no answer: fewer than two versions could be asked"
        asked = sum(said["asked"] and not said["why"] for said in versions)
        twice = "; both sides of each change were asked twice and gave the same answer"
        yield f"{asked} of {text.count(len(versions), 'version')} asked" + twice * bool(self.edges)

    # ---- for programs: an object for each edge, and one for the whole ------------------------------------------------------------

    @staticmethod
    def _said(said):
        out = {key: said[key] for key in ("cudnn", "build", "verdict")}
        if said["engine"] >= 0:
            out["engine"] = said["engine"]
        more = ("engines", "knobs", "class", "text", "meaning", "forward")
        more += ("rule", "known", "remedy")
        return {**out, **{key: said[key] for key in more if said[key]}}

    @staticmethod
    def _silent(versions):
        found = filter(_has_no_part, versions)
        return [{"cudnn": said["cudnn"], "why": why_not(said)} for said in found]

    def objects(self):
        about, versions = self.about, self.versions
        head = {key: about[key] for key in ("case", "device", "by")}
        for before, after, between in self.edges:
            yield {
                **head,
                "change": self.change(before, after),
                "before": self._said(before),
                "after": self._said(after),
                "between": self._silent(between),
                "repro": self.repeat(before, after),
            }
        yield {
            **head,
            "outcome": about["outcome"],
            "edges": len(self.edges),
            "whole": about["whole"],
            "from": versions[0]["cudnn"],
            "to": versions[-1]["cudnn"],
            "versions": len(versions),
            "asked": sum(said["asked"] and not said["why"] for said in versions),
            "silent": self._silent(versions),
        }


def main(argv):
    """FILE"""
    lines = Path(argv[0]).read_text(encoding="utf-8").splitlines()
    shown = Bisection([json.loads(line) for line in lines])
    if shown.about["json"]:
        for one in shown.objects():
            print(json.dumps(one, separators=(",", ":"), ensure_ascii=False))
    else:
        print("\n".join(shown.plain()))
    return 0
