"""Features: slices of the matrix, each a predicate of the case language, so that a cell is a query that anyone can repeat.

An axis that no case varies has nothing to show and is named as such, never dropped in silence.
"""

import base64
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from . import cases, predicate, text

# Axes whose slices are spelled out. The rest follow from the values that the records hold.
_SPELLED = {
    "Pass": (("forward", "pass=fwd"), ("backward", "pass=bwd")),
    "Mask": (
        ("no mask", "mask=none & window=inf:inf"),
        ("causal, top-left", "mask=causal"),
        ("causal, bottom-right", "mask=causal_br"),
        ("window, top-left", "mask=none & window!=inf:inf & align=tl"),
        ("window, bottom-right", "mask=none & window!=inf:inf & align=br"),
    ),
    "Head dim": (
        ("up to 64", "d.qk<=64"),
        ("65 to 128", "d.qk>64 & d.qk<=128"),
        ("129 to 256", "d.qk>128 & d.qk<=256"),
        ("above 256", "d.qk>256"),
        ("d_qk and d_v differ", "d~*/*"),
    ),
    "Heads": (
        ("one KV head each", "!h~*/*"),
        ("grouped queries", "h~*/* & h.k>1"),
        ("one KV head for all", "h~*/* & h.k=1"),
    ),
    "Lengths": (
        ("decode, s_q = 1", "s.q=1"),
        ("s_q = s_kv", "!s~*/*"),
        ("s_q and s_kv differ", "s~*/* & s.q>1"),
        ("s_kv up to 256", "s.kv<=256"),
        ("s_kv 257 to 1024", "s.kv>256 & s.kv<=1024"),
        ("s_kv above 1024", "s.kv>1024"),
    ),
    "Padding": (
        ("no padding", "padding=none & lens=none"),
        ("lengths given", "lens!=none"),
        ("random lengths", "padding=random"),
        ("empty sequences", "padding~zero*"),
        ("other padding", "padding in (full, one)"),
    ),
    "Strides": (
        ("dense", "stride=dense"),
        ("gaps", "stride~*gap*"),
        ("broadcast, stride 0", "stride~*broadcast*"),
        ("permuted", "stride~*perm*"),
        ("offset", "stride~*offset*"),
        ("misaligned", "stride~*misaligned*"),
        ("wild strides of size 1", "stride~*size1*"),
    ),
    "Outputs": (
        ("nothing but O", "want=none & pass=fwd"),
        ("stats", "pass=fwd & want~*stats*"),
        ("max", "want~*max*"),
        ("sum_exp", "want~*sum_exp*"),
    ),
}
# Axes whose slices are the values of a key.
_BY_VALUE = [
    one.split("=")
    for one in (
        "Type=dtype; Output type=out; Layout=layout; Output layout=o; Gradient layout=dqkv; "
        "Stats layout=stats; Bias=bias; ALiBi=alibi; Block mask=blockmask; Softmax=softmax; "
        "Score mod=mod; Dropout=dropout; Paged=paged; Scale=scale; Scaling=scaling; "
        "Deterministic=deterministic; Execution=exec; Implementation=impl; Spelling=spelling; "
        "Rope=rope; Data=fill; Poison=poison"
    ).split("; ")
]
_ORDER = "Pass, Type, Mask, Padding, Head dim, Heads, Lengths, Layout, Strides, Outputs".split(", ")
_SLICES_PER_AXIS = 16
# The rows of the heat map: what people ask first. A row that no case of a record has is left out.
_HEAT = (
    ("Pass", "forward", "pass=fwd"),
    ("Pass", "backward", "pass=bwd"),
    ("Type", "bf16", "dtype=bf16"),
    ("Type", "f16", "dtype=f16"),
    ("Type", "f32", "dtype=f32"),
    ("Type", "fp8", "dtype~e*"),
    ("Type", "mxfp8", "dtype~mx*"),
    ("Implementation", "unified forward", "impl=unified & pass=fwd"),
    ("Implementation", "unified backward", "impl=unified & pass=bwd"),
    ("Mask", "causal", "mask~causal*"),
    ("Mask", "sliding window", "mask=none & window!=inf:inf"),
    ("Lengths", "decode, s_q = 1", "s.q=1"),
    ("Lengths", "s_q and s_kv differ", "s~*/* & s.q>1"),
    ("Lengths", "padding", "padding!=none | lens!=none"),
    ("Lengths", "ragged (THD)", "layout~t*"),
    ("Lengths", "paged", "paged!=0"),
    ("Heads", "grouped queries", "h~*/*"),
    ("Head dim", "up to 64", "d.qk<=64"),
    ("Head dim", "65 to 128", "d.qk>64 & d.qk<=128"),
    ("Head dim", "129 to 256", "d.qk>128 & d.qk<=256"),
    ("Head dim", "above 256", "d.qk>256"),
    ("Head dim", "d_qk and d_v differ", "d~*/*"),
    ("Scores", "bias or ALiBi", "bias!=none | alibi!=0"),
    ("Scores", "block mask", "blockmask!=none"),
    ("Scores", "sink", "softmax!=vanilla"),
    ("Scores", "score mod", "mod!=none"),
    ("Scores", "dropout", "dropout!=0"),
    ("Run", "deterministic", "deterministic!=0"),
)
_LIBRARY_S = ("Library", "math backend may answer", "policy!=cudnn")


@dataclass(frozen=True)
class Feature:
    axis: str
    label: str
    where: str  # "" for a group of the suite
    why: str = ""
    heat: int = 0  # its row of the heat map, from 1; 0: none
    alone: bool = False  # in the heat map, not in the range tables
    inside: str = ""  # of the heat map: which cases, packed


def _of_cudnn(where, column):
    """The predicate for cuDNN's own answers: a case with policy= asks for the library's, which may be the math backend's."""
    if set(column("policy")) <= {"cudnn", None}:
        return where
    return f"{f'({where})' if '|' in where else where} & policy=cudnn"


def _by_value(axis, key, column):
    seen = {}
    for value, policy in zip(column(key), column("policy")):
        seen[value] = seen.get(value, 0) + (policy in ("cudnn", None))
    if len(seen) < 2:
        return []
    order = next((k.get("values", []) for k in cases.key_table() if k["key"] == key), [])
    place = {v: i for i, v in enumerate([cases.defaults()[key], *order])}
    common = sorted(seen, key=lambda v: -seen[v])[:_SLICES_PER_AXIS]
    common.sort(key=lambda v: (place.get(v, 99), v))
    safe = [v for v in common if v and not set(v) & set("()&|!=<>~, *?")]
    return [Feature(axis, v, _of_cudnn(f"{key}={v}", column)) for v in safe]


def of(column):
    """(features, names of axes that no case varies), for the distinct cases of a record: `column` is their cases.Columns."""
    found = {}
    for axis, slices in _SPELLED.items():
        known = [Feature(axis, label, _of_cudnn(said, column)) for label, said in slices]
        known = [(one, predicate.of_attention(one.where)) for one in known]
        known = [(one, tree) for one, tree in known if tree]
        hits = [one for one, tree in known if any(predicate.holding(tree, column))]
        # One slice that holds everything says nothing.
        found |= {axis: hits if len(hits) > 1 else []} if known else {}
    for axis, key in _BY_VALUE:
        found |= {axis: _by_value(axis, key, column)} if key in cases.defaults() else {}
    order = [a for a in _ORDER if a in found] + [a for a in found if a not in _ORDER]
    return [f for axis in order for f in found[axis]], [axis for axis in order if not found[axis]]


def heat(column, found):
    """The features, those of the heat map marked; what only the heat map has comes last."""
    rows = {}
    rows_of = [(axis, label, _of_cudnn(where, column)) for axis, label, where in _HEAT]
    for axis, label, where in [*rows_of, _LIBRARY_S]:
        tree = predicate.of_attention(where)
        inside = predicate.holding(tree, column) if tree else []
        if any(inside):
            rows[axis, label, where] = (len(rows) + 1, _packed(inside))
    marked = []
    for one in found:
        heat_, inside = rows.pop((one.axis, one.label, one.where), (0, ""))
        marked.append(replace(one, heat=heat_, inside=inside))
    rest = [Feature(*row, "", heat_, True, inside) for row, (heat_, inside) in rows.items()]
    return marked + rest


def _packed(flags):
    """A bit for each case, the first in the lowest bit, as base64: the page draws its map without reading a single case name."""
    eights = (flags[at : at + 8] for at in range(0, len(flags), 8))
    bits = bytes(sum(flag << i for i, flag in enumerate(eight)) for eight in eights)
    return base64.b64encode(bits).decode()


@lru_cache(maxsize=1)
def _labels():
    """{comparison: words} of the comparisons that a slice names."""
    spelled = {where: label for slices in _SPELLED.values() for label, where in slices}
    return {
        **{where: label for _, label, where in _HEAT},
        **spelled,
        "align=br": "bottom-right",
        "s.q=1": "one query",
        "h.q=1": "one head",
        "impl=unified": "cuDNN's unified operation",
        "impl=unified & pass=fwd": "cuDNN's unified forward",
        "impl=unified & pass=bwd": "cuDNN's unified backward",
        "impl=composite": "the composite graph",
        "impl=auto": "no named graph",
        "engine=all": "every engine",
    }


_NAMES = {  # of keys, before their value
    "s.q": "queries", "s.kv": "keys", "d.qk": "head dim", "d.v": "head dim of V", "h.q": "heads",
    "h.k": "heads of K", "h.v": "heads of V", "b": "batch", "want": "output", "sm": "sm_",
    "mod": "score modification", "fill": "data", "impl": "graph", "padding": "padding",
}  # fmt: skip
_WORDS = {"f32": "fp32", "f16": "fp16"}
_OPERATORS = {"<": "below ", "<=": "at most ", ">": "above ", ">=": "at least "}
_TERM = re.compile(r"([\w.]+)(?:%(\d+))?(<=|>=| in |[=<>~])(.*)")


def _term_words(term):
    """One comparison in words; itself where it is none."""
    match = _TERM.fullmatch(term)
    if not match or (term in _labels() and match[1] != "dtype"):
        return _labels().get(term, term)
    key, modulus, op, value = match.groups()
    value = " or ".join(_WORDS.get(v, v) for v in value.strip("()").split(", "))
    if key == "dtype":
        return f"{value} inputs"
    name = _NAMES.get(key, key)
    value = _NAMES.get(value, value)
    if modulus:
        is_rest = "no multiple of" if op == ">" else f"{value} above a multiple of"
        return f"{name} {is_rest} {modulus}"
    return f"{name} {_OPERATORS.get(op, '')}{value}".replace("sm_ ", "sm_")


def words_of(where, about=""):
    """A predicate of diff in words. `about`: its pass, where all of its cases have one."""
    if not where:
        return "every case" if where == "" else "no predicate found"
    terms = where.split(" & ")
    if about and "impl=unified" in terms:
        terms[terms.index("impl=unified")] += f" & pass={about}"
    first, *rest = map(_term_words, terms)
    return first + " with " * bool(rest) + ", ".join(rest)


def groups(store):
    """Groups of the suite in the order of the record, each with why it exists (run.groups: {name: why} or [{name, why}])."""
    why = {}
    for run in store.runs.values():
        said = run.get("groups")
        if isinstance(said, dict):
            why.update({k: v for k, v in said.items() if isinstance(v, str)})
        for one in text.objects(run, "groups"):
            why[str(one.get("name"))] = str(one.get("why", ""))
    named = "SELECT suite_group FROM row WHERE suite_group<>'' GROUP BY suite_group"
    names = store.db.execute(f"{named} ORDER BY min(id)")
    return [Feature("Groups of the suite", name, "", why.get(name, "")) for (name,) in names]
