"""Two that should agree: the decisions for two devices, and the bits of two records."""

from ..read import latest, text, words
from ..read.cases import parse, value_of


def _decision(row):
    """Yes or no, and mode A's engines with their knobs in order: all that a decision is, nothing that only a run can know."""
    if row.get("supported") is None or row["verdict"] == "inconclusive":
        return None
    return row["supported"], tuple(
        (one.get("index"), tuple(sorted((one.get("knobs") or {}).items())))
        for one in text.offered(row)
    )


def _decision_words(decision):
    supported, engines = decision
    named = ", ".join(
        f"{index}" + (" " + " ".join(f"{k}={v}" for k, v in knobs) if knobs else "")
        for index, knobs in engines
    )
    return f"yes, engines {named}" if supported else "no"


def decisions(store, first, second):
    """{build: (how many are equal, [(case, decision of first, of second)])}, of every case and build that both devices were asked."""
    seen = {first: {}, second: {}}
    for _, row in store.rows(
        "device IN (?, ?) AND outcome <> 'missing'", (first, second), "build, case_name, config"
    ):
        answer = _decision(row)
        if answer is not None:
            seen[row["device"]].setdefault((row["build"], row["case"]), answer)
    result = {}
    for build, case in seen[first]:
        if (build, case) not in seen[second]:
            continue
        one, other = seen[first][build, case], seen[second][build, case]
        equal, differences = result.get(build, (0, []))
        differences += [(case, one, other)] if one != other else []
        result[build] = (equal + (one == other), differences)
    return result


def print_decisions(store, first, second):
    """One line a build, each difference below it. 0: all equal; 1: some differ; 5: no case has an answer for both."""
    result = decisions(store, first, second)
    for build, (equal, differences) in result.items():
        print(
            f"{build}: {equal:,} of {equal + len(differences):,} decisions equal on {first} and {second}"
        )
        for case, one, other in differences:
            print(f"  {case}")
            print(f"    {first}: {_decision_words(one)}\n    {second}: {_decision_words(other)}")
    if not result:
        named = ", ".join(store.devices())
        print(
            f"no case has an answer for both {first} and {second}; devices in the records: {named}"
        )
        return 5
    return int(any(differences for _, differences in result.values()))


def _may_differ(case, tensor):
    """dQ is summed by atomic additions unless the case asks otherwise: its bits need not repeat."""
    said = parse(case)
    return tensor == "dq" and value_of(said, "deterministic") == "0"


def bits_of(row):
    """{tensor: hash}, as a row has them."""
    errors = (row.get("errors") or {}).items()
    return {name: e["bits"] for name, e in errors if isinstance(e, dict) and e.get("bits")}


def _bits(store, with_device):
    """{(case, build, config[, device]): {tensor: hash}}"""
    found = {}
    for _, row in store.rows("outcome <> 'missing'"):
        if bits := bits_of(row):
            device = row["device"] if with_device else ""
            found[row["case"], row["build"], latest.config(row), device] = bits
    return found


def bits(one, other):
    """{equal, free, differ, alone}: tensors equal; those that differ and may; those that must not; rows with answers that only one record has."""
    with_device = len(one.devices()) > 1 or len(other.devices()) > 1
    a, b = _bits(one, with_device), _bits(other, with_device)
    result = {"equal": 0, "free": [], "differ": [], "alone": sorted(a.keys() ^ b.keys())}
    for key in sorted(a.keys() & b.keys()):
        for tensor in sorted(a[key].keys() | b[key].keys()):
            left, right = a[key].get(tensor, "none"), b[key].get(tensor, "none")
            result["equal"] += left == right
            if left != right:
                word = "free" if _may_differ(key[0], tensor) else "differ"
                result[word].append((key, tensor, left, right))
    return result


def _where(store, key):
    case, build, config, device = key
    return f"{case} @ {words.build_labels(store.builds()).get(build, build)}{f' {device}' if device else ''}{f' configuration {config}' if config >= 0 else ''}"


def print_bits(one, other, names):
    """0: equal wherever they must be; 1: some differ; 4: only one record has some of the rows; 5: nothing to compare."""
    result = bits(one, other)
    total = result["equal"] + len(result["free"]) + len(result["differ"])
    if not total:
        print("no case, build and configuration has answers in both records")
        return 5
    loaded = [
        sum(row.get("plan_loaded") is True for _, row in store.rows()) for store in (one, other)
    ]
    print(
        f"{result['equal']:,} of {total:,} tensors equal, bit for bit, in {text.line(names[0], 200)} and {text.line(names[1], 200)}; "
        f"{len(result['differ']):,} differ, {len(result['free']):,} differ that need not repeat; plans loaded: {loaded[0]:,} and {loaded[1]:,}"
    )
    for word, found in (("differs", result["differ"]), ("need not repeat", result["free"])):
        for key, tensor, left, right in found:
            print(f"  {word}: {tensor} {left} {right}: {_where(one, key)}")
    for key in result["alone"][:20]:
        print(f"  only in one record: {_where(one, key)}")
    if len(result["alone"]) > 20:
        print(f"  and {len(result['alone']) - 20:,} more")
    return 1 if result["differ"] else 4 if result["alone"] else 0
