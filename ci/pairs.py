#!/usr/bin/env python3
"""Pairs of features that some cuDNN accepts, and triples of a dozen: has a suite a case of each?

usage: ci/pairs.py [--cudnn V,V] [--device D,D] [--suite S] [--triples] [--write]
       --write   what is accepted and in no other group, as the group `pairs` (`triples`) of core

A pair is two values of two features, for the forward and the backward apart. For a pair that no
case has, FACTS asks cuDNN with a case of these two values alone. Triples are of DOZEN. Exit: 0 nothing
accepted is missing, 1 something is, 3 what `facts` says.
"""

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME / "reports"))
from facts_reports.read import cases  # noqa: E402

# feature: what is written for each of its values, and a rule where that is not how it is recognised
FEATURES = {
    "type": ["dtype=f32", "dtype=e4m3", "dtype=e5m2", "dtype=mxe4m3"],
    "layout": [
        ("layout=sbhd", lambda c: c("layout") in ("sbhd", "sb3hd", "sbh3d")),
        "layout=bhsd",
        ("layout=bs3hd", lambda c: c("layout") in ("bs3hd", "bsh3d")),
        ("layout=bshd_bhsd", lambda c: "_" in c("layout") and "t" not in c("layout")),
        ("layout=thd padding=random", lambda c: c("layout") == "thd"),
        ("layout=t3hd padding=random", lambda c: c("layout") in ("t3hd", "th3d")),
    ],
    "mask": ["mask=causal", "mask=causal_br"],
    "window": [
        ("window=32:0", lambda c: c("window.left") != "inf" and c("window.right") in ("0", "inf")),
        ("window=32:16", lambda c: "inf" not in c("window") and c("window.right") != "0"),
        ("window=inf:16", lambda c: c("window.left") == "inf" and c("window.right") != "inf"),
    ],
    "lengths": [("padding=random", lambda c: c("padding") != "none" or c("lens") != "none")],
    "pages": [("paged=16 padding=random", lambda c: c("paged") != "0")],
    "heads": [
        ("h=4/2", lambda c: c("h.q") != c("h.k")),
        ("h=4/2/1", lambda c: c("h.k") != c("h.v")),
    ],
    "queries": [
        ("s=1/300", lambda c: c("s.q") == "1" and c("s.kv") != "1"),
        ("s=200/300", lambda c: c("s.q") != c("s.kv") and c("s.q") != "1"),
    ],
    "dims": [
        ("d=128", lambda c: c("d") == "128"),
        ("d=192", lambda c: c("d") == "192"),
        ("d=256", lambda c: c("d") == "256"),
        ("d=512", lambda c: int(c("d.qk")) > 256),
        ("d=192/128", lambda c: c("d.qk") != c("d.v")),
        ("d=72", lambda c: int(c("d.qk")) % 16 == 8),
    ],
    "bias": [
        ("bias=1hss", lambda c: c("bias") in ("11ss", "1hss", "b1ss", "bhss")),
        ("bias=b11s", lambda c: c("bias") in ("111s", "b11s", "bh1s", "1h1s")),
        ("bias=bool:1hss", lambda c: c("bias").startswith("bool")),
        ("bias=1hss dbias=1", lambda c: c("dbias") == "1"),
        ("alibi=1", lambda c: c("alibi") != "0"),
        ("blockmask=random", lambda c: c("blockmask") != "none"),
    ],
    "dropout": [
        ("dropout=0.1", lambda c: c("dropout") != "0" and c("dropout_mask") == "0"),
        ("dropout=0.1 dropout_mask=1", lambda c: c("dropout_mask") == "1"),
    ],
    "softmax": ["softmax=sink", "softmax=off_by_one"],
    "mod": [
        ("mod=softcap:5", lambda c: c("mod").startswith("softcap")),
        ("mod=causal", lambda c: c("mod") == "causal"),
        ("mod=post_scale_bias", lambda c: c("mod") == "post_scale_bias"),
        ("mod=document:3", lambda c: c("mod").startswith("document")),
    ],
    "statistics": ["want=stats", "want=max+sum_exp"],
    "repeats": ["deterministic=1"],
    "call": ["exec=graph", "exec=override_shape"],
    "graph": ["impl=unified", "impl=composite"],
    "rotary": [("rope=1", lambda c: c("rope") != "0")],
    "data": ["fill=neglse", "fill=needle"],
}
# What frameworks send together.
DOZEN = {
    "layout=thd padding=random",
    "mask=causal",
    "window=32:0",
    "padding=random",
    "paged=16 padding=random",
    "h=4/2",
    "s=1/300",
    "bias=1hss",
    "dropout=0.1",
    "softmax=sink",
    "deterministic=1",
    "exec=graph",
}
OF_OTHER_PASS = {"fwd": ("deterministic", "dbias"), "bwd": ("paged", "want")}
ORDER = {}  # of what is written, below
LARGEST, DRAWS = 5, 5000  # values in a case, cases drawn to choose from
# What a case is where neither of its two values says.
BASE = {"b": "2", "h": "2", "s": "200", "d": "64"}


def values():
    """(feature, what is written, its rule) of every value."""
    for feature, listed in FEATURES.items():
        for one in listed:
            text, rule = one if isinstance(one, tuple) else (one, None)
            key, _, value = text.partition("=")
            yield feature, text, rule or (lambda c, key=key, value=value: c(key) == value)


ORDER.update({text: place for place, (_, text, _) in enumerate(values())})


def case_of(which, *texts):
    """The case of these values; None where they say one key twice, or one of the other pass."""
    said = {}
    if any(key in text for key in OF_OTHER_PASS[which] for text in texts):
        return None
    for key, value in (token.split("=") for text in texts for token in text.split()):
        if said.setdefault(key, value) != value:
            return None
    return " ".join(f"{k}={v}" for k, v in {"pass": which, **BASE, **said}.items())


def facts(*words):
    program = os.environ.get("FACTS_BIN", HOME / "build/release/bin")
    done = subprocess.run(
        [Path(program) / "facts", *words], capture_output=True, text=True, check=False
    )
    if done.returncode > 1:
        sys.exit(f"facts {words[0]}: {done.stderr.strip()[-300:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def sets(texts, size):
    """The pairs of these values, or the triples of those of the dozen."""
    return itertools.combinations(texts if size == 2 else filter(DOZEN.__contains__, texts), size)


def covered(suite, but, size):
    """(pass, text, ...) of every pair (triple) that a case of the suite has, its group `but` left out."""
    found = set()
    for row in facts("list", suite, "--json"):
        if row["group"] == but:
            continue
        ask = cases.asked_of(row["case"])
        has = [text for _, text, rule in values() if rule(ask)]
        found |= {(ask("pass"), *texts) for texts in sets(has, size)}
    return found


def accepted(candidates, cudnn, device):
    """The cases that some build accepts for some device."""
    path = HOME / "build/pairs.cases"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(candidates) + "\n", encoding="utf-8")
    rows = facts("decide", str(path), "--cudnn", cudnn, "--device", device, "--json")
    yes = {said_by(r["case"]) for r in rows if r.get("verdict") == "supported"}
    return {case for case in candidates if said_by(case) in yes}


def said_by(case):
    """What a name says that is not the default."""
    return frozenset((k, v) for k, v in cases.parse(case).items() if v != cases.defaults().get(k))


def drawn(todo, fine, dice):
    """A case of several values, each two of them accepted: it begins with a pair that is missing."""
    which, *texts = dice.choice(todo)
    pool = [text for _, text, _ in values()]
    dice.shuffle(pool)
    for text in pool:
        more = all((which, *sorted((text, t), key=ORDER.get)) in fine for t in texts)
        if len(texts) < LARGEST and more and case_of(which, *texts, text):
            texts.append(text)
    return which, tuple(sorted(texts, key=ORDER.get))


def joined(todo, fine, size, asked):
    """Accepted cases that hold all of `todo`: greedily of some thousand drawn ones, then one by one."""
    dice, listed = random.Random(1), sorted(todo)
    made = {case_of(w, *t): (w, t) for w, t in (drawn(listed, fine, dice) for _ in range(DRAWS))}
    good = {c: made[c] for c in accepted(list(made), asked.cudnn, asked.device)}
    holds = {c: {(w, *some) for some in sets(t, size)} for c, (w, t) in good.items()}
    out, left = [], set(todo)
    while left:
        best = max(holds, key=lambda c: (len(holds[c] & left), c), default=None)
        if best is None or len(holds[best] & left) < 2:
            return out + [case_of(*pair) for pair in sorted(left)]
        out.append(best)
        left -= holds.pop(best)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cudnn", default="9.20.0,9.27.0")
    parser.add_argument("--device", default="h100-sxm,sm100-spec")
    parser.add_argument("--suite", default="core")
    parser.add_argument("--triples", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    size, noun = (3, "triples") if asked.triples else (2, "pairs")
    have = covered(asked.suite, noun if asked.write else None, size)
    of = {text: feature for feature, text, _ in values()}
    absent = {}
    for texts, which in itertools.product(sets(of, size), ("fwd", "bwd")):
        case = case_of(which, *texts) if len({of[text] for text in texts}) == size else None
        if case and (which, *texts) not in have:
            absent[case] = (which, *texts)
    missing = accepted(list(absent), asked.cudnn, asked.device)
    lines = [case for case in absent if case in missing]
    print(
        f"{len(have)} {noun} in {asked.suite}; {len(absent)} are in no case, {len(lines)} accepted"
    )
    if not asked.write:
        print("\n".join(lines), end="\n" if lines else "")
        return 1 if lines else 0
    todo = {absent[case] for case in lines}
    pairs = covered(asked.suite, None, 2) if asked.triples else have | todo
    lines = joined(todo, pairs, size, asked)
    print(f"{len(lines)} cases hold them")
    path = HOME / "cases/suites/core.cases"
    text = path.read_text(encoding="utf-8")
    head, found, tail = text.partition(f"\nname: {noun}\n")
    rest = tail.partition("\nname: ")
    text = head + (found and "\nname: " + rest[2])
    count = "three" if asked.triples else "two"
    group = f"\nname: {noun}\nwhy: {count} features that some cuDNN accepts together and no other case has (ci/pairs.py)\n"
    path.write_text(text.rstrip("\n") + "\n" + group + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
