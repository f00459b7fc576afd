"""Known issues: what the files of cases/known say today of the answers of a record."""

from ..known import known, knowledge


def of_row(row):
    """The failures that speak of a row, one for each sentence; what is no failure says nothing."""
    found = (one for one in knowledge.today().of_row(row) if one["says"])
    return list({knowledge.sentence(one): one for one in found}.values())


def lines(row, most=3):
    """For people: a sentence for each failure that shows with the data of this row, and what to do instead."""
    for one in [one for one in of_row(row) if one["such_data"]][:most]:
        yield knowledge.sentence(one)
        if one["remedy"]:
            yield f"  instead: {one['remedy']}"


def _sentence(words):
    return words[0].upper() + words[1:]


class Issues:
    """For the page: each answer of cases/known once, and the places of those that speak of a row."""

    def __init__(self):
        self._places, self.answers = {}, []

    def of(self, row):
        return [self._place(one) for one in of_row(row)]

    def _place(self, one):
        said = knowledge.sentence(one)
        key = (one["label"], one["such_data"], said)
        if key not in self._places:
            self._places[key] = len(self.answers)
            about = {name: one[name] for name in ("id", "serious", "remedy")}
            about |= {"text": _sentence(said), "about": _sentence(knowledge.about(one))}
            self.answers.append(about)
        return self._places[key]


def entries(targets):
    """[{id, title, kind, serious, ends as, on: places of the targets where it holds}]: the files whose failures hold for some of these targets alone."""
    at = [(known.number(t["cudnn"] or "0"), t["sm"] or 0) for t in targets]
    files = {}
    for one in sorted(knowledge.today().failures, key=knowledge.rank):
        if one["says"] and any(version and sm for version, sm in at):
            files.setdefault(one["id"], []).append(one)
    out = []
    for name, failures in files.items():
        on = [
            place
            for place, (version, sm) in enumerate(at)
            if version and sm and any(knowledge.holds(one, version, sm) for one in failures)
        ]
        if 0 < len(on) < len(targets):
            first = failures[0]
            kept = {"id": name, "title": first["title"], "serious": first["serious"], "on": on}
            kept["kind"] = first["kind"].replace("-", " ")
            kept["verdicts"] = list(dict.fromkeys(v for one in failures for v in one["verdict"]))
            out.append(kept)
    return out
