"""facts audit --markdown: the rules of other projects beside what the backend answered, as tables for the documentation.

Reads what `facts audit --json` prints, an object for each rule, device and run of versions. The first line has the verdicts with their meanings, gravest first.
"""
import json
from pathlib import Path

from . import text

AGREES, UNTESTABLE = "agrees", "untestable"


def _cell(said):
    for mark in "|<*_":
        said = said.replace(mark, "\\" + mark)
    return said.replace("`", " ").replace("\n", " ")


def _versions(row):
    first, last = (row[end].split("-")[0] for end in ("first", "last"))
    return first if row["first"] == row["last"] else f"{first}..{last}"


def _where(rows):
    """ "h100-sxm, sm80-spec 9.8.0..9.28.0; sm89-spec 9.27.0" """
    devices = {}
    for row in rows:
        devices.setdefault(_versions(row), []).append(row["device"])
    return "; ".join(f"{', '.join(names)} {versions}" for versions, names in devices.items())


def _table(heading, columns):
    return ["", f"## {heading[0].upper()}{heading[1:]}", "", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]


class Audit:
    def __init__(self, lines):
        head, *rows = map(json.loads, lines)
        self.meanings = head["verdicts"]
        self.words, self.rules, self.rows = list(self.meanings), {}, []
        for row in rows:
            rule = self.rules.setdefault(row["rule"], {**row, "verdict": UNTESTABLE, "why": ""})
            if row["verdict"] == UNTESTABLE:
                rule["why"] = row["why"]
            elif row["verdict"] != AGREES or row["refuses_here"]:   # where a rule refuses nothing, an accepted case says little about the rule
                self.rows.append(row)
                rule["verdict"] = min(rule["verdict"], row["verdict"], key=[*self.words, UNTESTABLE].index)

    def groups(self, word):
        """[(rule, its rows that show the word by one case)]; agreements of a rule are one group. Of a rule with a graver word, an agreement is left out."""
        found = {}
        for row in self.rows:
            rule = self.rules[row["rule"]]
            if row["verdict"] == word and (rule["verdict"] == word or self.words.index(word) < self.words.index(AGREES)):
                found.setdefault((row["rule"], "" if word == AGREES else row["case"]), []).append(row)
        return [(self.rules[rule], rows) for (rule, _), rows in found.items()]

    def counts(self):
        words = [*self.words, UNTESTABLE]
        yield f"| rules of | rules | {' | '.join(self.words)} | untestable here |"
        yield "|---|" + "---:|" * (len(words) + 1)
        projects = {}
        for rule in self.rules.values():
            projects.setdefault((rule["project"], rule["version"]), []).append(rule["verdict"])
        for (name, version), verdicts in projects.items():
            yield f"| {name} {version} | {len(verdicts)} | {' | '.join(str(verdicts.count(word)) for word in words)} |"
        yield ""
        yield from (f"- *{word}*: {meaning}" for word, meaning in self.meanings.items())

    def markdown(self):
        yield from self.counts()
        for word in self.words:
            groups, last = self.groups(word), None
            if word != AGREES and groups:
                yield from _table(word, ("rule", "kind", "says", "where", "case", "the backend"))
            for rule, rows in groups if word != AGREES else ():
                named = ("", "", "") if rule is last else (rule["rule"], rule["kind"], _cell(rule["says"]))
                yield f"| {' | '.join(named)} | {_where(rows)} | {text.code(rows[0]['case'])} | {_cell(rows[0]['backend'])} |"
                last = rule
        yield from _table(AGREES, ("rule", "kind", "refuses", "where"))
        for rule, rows in self.groups(AGREES):
            yield f"| {rule['rule']} | {rule['kind']} | {text.code(rule['refuses'])} | {_where(rows)} |"
        yield from _table("Untestable here", ("rule", "kind", "says", "why"))
        for rule in self.rules.values():
            if rule["verdict"] == UNTESTABLE:
                yield f"| {rule['rule']} | {rule['kind']} | {_cell(rule['says'])} | {_cell(rule['why'])} |"


def main(argv):
    print("\n".join(Audit(Path(argv[0]).read_text(encoding="utf-8").splitlines()).markdown()))
    return 0
