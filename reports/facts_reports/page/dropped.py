"""Comparisons that the page makes itself: of two dropped records, and of two versions among its own rows. translate.py turns this program, and all that it calls, into
JavaScript: the page runs the rule of `facts diff`."""

from .. import diff, latest, reader, sides
from ..versions import version_key
from .steps import as_object


class _Table:
    """Takes the rows that sides._Reading writes."""

    def __init__(self):
        self.rows = []

    def executemany(self, _, rows):
        self.rows += rows


class _Held:
    """sides.Sides in memory."""

    def __init__(self):
        self.records, self.slots, self.lists, self.counting, self.paired = (
            [],
            [],
            sides.Lists(),
            [],
            {},
        )

    def read(self, name, items, unreadable):
        """`items`: the parsed lines. `unreadable`: how many lines are no JSON."""
        table, record, report = (
            _Table(),
            sides.Record([name]),
            reader.FileReport(name, unreadable=unreadable),
        )
        reading = sides._Reading(table, len(self.records), record, self.lists)
        for item in items:
            why = (
                reader._dispatch(item, report, reading)
                if isinstance(item, dict)
                else "not an object"
            )
            if why:
                report.refuse(why)
        reading.finish()
        record.files.append(report)
        if not report.rows:
            raise sides.SidesError(f"{name} holds no row of a record")
        self.records.append(record)
        self.counting.append(latest.counting(table.rows))

    def pair(self, slots):
        for number, pair in enumerate(slots):
            for side, (record, build, device) in enumerate(pair):
                for row in sorted(
                    (row for row in self.counting[record] if row[1] == build and row[2] == device),
                    key=lambda row: (row[0], row[3]),
                ):
                    self.paired.setdefault((number, row[0]), ([], []))[side].append(
                        sides._unpack(row[-1], self.lists)
                    )
            self.slots.append(sides.Slot(*(tuple(side[1:]) for side in pair)))

    def apart(self, slots):
        """As sides.Sides.apart, once."""
        self.pair(slots)
        return self

    def pairs(self):
        for slot, case in sorted(self.paired):
            first, second = self.paired[slot, case]
            yield slot, case, first, second

    def offers(self):
        for slot, case, first, second in self.pairs():
            if first and second:
                yield slot, case, first[0].offered, second[0].offered

    def answers(self, slot, case):
        return self.paired[slot, case]


def _newest(record):
    return max(version_key(about["cudnn"]) for about in record.targets.values())


def compared(records):
    """`records`: two of (name, parsed lines, unreadable lines). The comparison as an object of the page, with the cases' names and answers: the older version stands first."""
    held = _Held()
    for name, items, unreadable in records:
        held.read(name, items, unreadable)
    if _newest(held.records[1]) < _newest(held.records[0]):
        return compared([records[1], records[0]])
    axes, pairs, *alone = sides.match(*held.records)
    held.pair([((0, *a), (1, *b)) for a, b in pairs])
    found = diff.filled(diff.Diff(held, axes, tuple(alone), {}, diff.FINDINGS))
    names = list(dict.fromkeys(found.names))
    said = as_object(found, {name: place for place, name in enumerate(names)})
    answers = {held.slots[slot].second[1]: {} for slot in range(len(held.slots))}
    for (slot, name), both in held.paired.items():
        answers[held.slots[slot].second[1]][name] = [
            [answer.outcome, answer.chosen[1], answer.why]
            if (answer := sides.worst(side) if side else None)
            else ["missing", "", ""]
            for side in both
        ]
    return {
        **said,
        "names": names,
        "answers": answers,
        "records": [record.names[0] for record in held.records],
        "unreadable": [record.unreadable() for record in held.records],
    }


def between(items, gpus, pairs, places):
    """Two versions of the page's own record, as an object of the page. `items`: its lines, with the rows of both versions. `gpus`: {device: as --device wants it}.
    `pairs`: [(target, target)]. `places`: {case: its place}."""
    held = _Held()
    held.read("", items, 0)
    held.records[0].gpus = gpus
    return as_object(diff.of_targets(held, pairs), places)
