#!/usr/bin/env python3
"""Pairs of features that some cuDNN accepts, and whether a suite has a case of each.

usage: ci/pairs.py [--cudnn V,V] [--device D,D] [--suite S] [--write]
       --write   the accepted pairs that no other group has, as the group `pairs` of core

A pair is two values of two features, for the forward and the backward apart. For a pair that no
case has, FACTS asks cuDNN with a case of these two values alone. Exit: 0 no accepted pair is missing, 1
some are, 3 what `facts` says.
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


def covered(suite, but):
    """(pass, text, text) of every pair that a case of the suite has, its group `but` left out."""
    found = set()
    for row in facts("list", suite, "--json"):
        if row["group"] == but:
            continue
        ask = cases.asked_of(row["case"])
        has = [text for _, text, rule in values() if rule(ask)]
        found |= {(ask("pass"), a, b) for a, b in itertools.combinations(has, 2)}
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


def joined(todo, fine, asked):
    """Accepted cases that hold all pairs of `todo`: greedily of some thousand drawn ones, then one by one."""
    dice, listed = random.Random(1), sorted(todo)
    made = {case_of(w, *t): (w, t) for w, t in (drawn(listed, fine, dice) for _ in range(DRAWS))}
    good = {c: made[c] for c in accepted(list(made), asked.cudnn, asked.device)}
    holds = {c: {(w, a, b) for a, b in itertools.combinations(t, 2)} for c, (w, t) in good.items()}
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
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    have = covered(asked.suite, "pairs" if asked.write else None)
    pairs = {}
    for (f, a, _), (g, b, _) in itertools.combinations(values(), 2):
        for which in ("fwd", "bwd"):
            case = case_of(which, a, b) if f != g else None
            if case and (which, a, b) not in have:
                pairs[case] = (which, a, b)
    missing = accepted(list(pairs), asked.cudnn, asked.device)
    lines = [case for case in pairs if case in missing]
    print(f"{len(have)} pairs in {asked.suite}; {len(pairs)} are in no case, {len(lines)} accepted")
    if not asked.write:
        print("\n".join(lines), end="\n" if lines else "")
        return 1 if lines else 0
    todo = {pairs[case] for case in lines}
    lines = joined(todo, have | todo, asked)
    print(f"{len(lines)} cases hold them")
    path = HOME / "cases/suites/core.cases"
    text = path.read_text(encoding="utf-8")
    head, found, tail = text.partition("\nname: pairs\n")
    rest = tail.partition("\nname: ")
    text = head + (found and "\nname: " + rest[2])
    group = "\nname: pairs\nwhy: two features that some cuDNN accepts together and no other case has (ci/pairs.py)\n"
    path.write_text(text.rstrip("\n") + "\n" + group + "\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
