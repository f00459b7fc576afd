"""The known failures of cuDNN that speak of a decision: what `facts known CASE` says, from the file that the build makes of cases/known."""

import fnmatch
import functools
import json
import pathlib
from operator import eq, ge, gt, le, lt, ne
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional

from .library import Error, shared
from .problem import Problem

if TYPE_CHECKING:
    from .decision import Decision

Values = Mapping[str, Optional[str]]


class Known(NamedTuple):
    """A known failure: its file, what happens, for which data ("": any), how sure it is, the version of the repair, what to do instead (docs/known.md)."""

    id: str
    title: str
    kind: str
    verdict: tuple[str, ...]
    says: str
    data: str
    sure: str
    fixed: str
    contract: str
    remedy: str

    def __str__(self) -> str:
        said = f"{'suspected' if self.sure == 'suspected' else 'known'} {self.says}"
        said += f" for {self.data}" if self.data else ""
        said += f": {self.title.rstrip('.')}" + (f"; fixed in {self.fixed}" if self.fixed else "")
        return f"{said} ({self.id})" + (f"; instead: {self.remedy}" if self.remedy else "")


def file() -> Optional[pathlib.Path]:
    """known.jsonl of the wheel, the build, the installed program or the bundle; None: there is none."""
    return shared(
        "wheel:cases/known/known.jsonl",
        "build:known/known.jsonl",
        "lib:facts/cases/known/known.jsonl",
        "bundle:cases/known/known.jsonl",
    )


@functools.cache
def _failures() -> list[dict[str, Any]]:
    found = file()
    if found is None:
        raise Error("environment", "known.jsonl, which has the known failures, is not beside fattn")
    lines = map(json.loads, found.read_text(encoding="utf-8").splitlines())
    return [one for one in lines if one["says"] and one["tree"]]


# ---- what a decision says of the keys of the case language (docs/cases.md); None: it is not known ----


def _order(ragged: bool, strides: tuple[int, ...]) -> str:
    if ragged:
        return "thd"
    return "".join(axis for _, axis in sorted(zip(strides, "bhsd"), key=lambda at: -at[0]))


def _flag(value: Any) -> str:
    return str(int(bool(value)))


def _layouts(p: Problem) -> Values:
    bits = p.ragged or ("q", "k", "v", "o", "stats", "do", "dq", "dk", "dv")
    ragged = set(bits) if p.ragged_bits else set()
    q, k, v, o, do, dq = (
        _order(name in ragged, getattr(p, f"{name}_strides"))
        for name in ("q", "k", "v", "o", "do", "dq")
    )
    stats = "th1" if "stats" in ragged else "bhs1"
    if "stats" not in ragged and p.stats_strides[1] < p.stats_strides[2]:
        stats = "bsh1"
    return {
        "layout": q if q == k else f"{q}_{k}",
        "q": q,
        "k": k,
        "v": v,
        "o": "auto" if o == q else o,
        "do": "auto" if do == o else do,
        "dqkv": "auto" if dq == q else dq,
        "stats": stats,
    }


def _bias(p: Problem) -> str:
    if not p.has_bias:
        return "none"
    dims = "".join("1" if n == 1 else axis for n, axis in zip(p.bias_dim, "bhss"))
    return ("bool:" if p.bias_dtype == "bool" else "") + dims


def _scores(p: Problem) -> Values:
    left = str(p.window_left) if p.has_left else "inf"
    right = str(p.window_right) if p.has_right else "inf"
    causal = "causal" if p.align == "tl" else "causal_br"
    sizes = p.page_size_k, p.page_size_v
    paged = str(sizes[0]) if all(sizes) else f"k:{sizes[0]}" if sizes[0] else f"v:{sizes[1]}"
    return {
        "window": f"{left}:{right}",
        "window.left": left,
        "window.right": right,
        "align": p.align,
        "mask": causal if (left, right) == ("inf", "0") else "none",
        "scale": "tensor" if p.scale_in_memory else str(p.attn_scale),
        "bias": _bias(p),
        "bias_dtype": p.bias_dtype if p.has_bias else p.dtype,
        "mod": "given" if p.score_mod else "none",
        "softmax": "sink" if p.sink else "vanilla",
        "dropout": str(p.dropout),
        "paged": paged if any(sizes) else "0",
        **{key: _flag(getattr(p, key)) for key in ("dbias", "dsink", "alibi", "rope")},
        "dropout_mask": _flag(p.dropout_mask),
    }


def case_of(p: Problem) -> Values:
    """What a resolved problem says of the keys of the case language."""
    lengths = "given" if p.padding else "none"
    sides = p.cumulative or ()
    want = p.outputs or (("stats",) if p.training else ())
    forward = p.pass_ == "fwd"
    exact = "auto" if not p.deterministic else p.determinism
    return {
        "pass": p.pass_,
        "dtype": p.dtype,
        "out": p.o_dtype,
        "grad": p.grad_dtype,
        "do_dtype": p.do_dtype,
        "stats_dtype": p.stats_dtype or "f32",
        "b": str(p.batch),
        "h": "/".join(dict.fromkeys(str(n) for n in (p.heads_q, p.heads_k))),
        **{f"h.{name}": str(getattr(p, f"heads_{name}")) for name in "qkv"},
        "s.q": str(p.seq_q),
        "s.kv": str(p.seq_kv),
        "d.qk": str(p.dim_qk),
        "d.v": str(p.dim_v),
        "padding": lengths,
        "lens": lengths,
        "cu": "both" if len(sides) == 2 else sides[0] if sides else "none",
        "lens_shape": "bcast" if p.len_broadcast else "b111",
        "offsets": "i64" if p.ragged_bits == 64 else "i32",
        "rmult": "tokens" if p.ragged_tokens else "0",
        "want": "+".join(want).replace("stats_log2", "stats2") or ("none" if forward else "stats"),
        "deterministic": {"auto": _flag(p.deterministic)}.get(exact, exact),
        "impl": p.impl,
        "spelling": p.spelling,
        "exec": "graph" if p.capture else "eager",
        "guards": "off" if p.guards_off else "on",
        "policy": "cudnn",
        "case": "",  # a problem has no name
        **_layouts(p),
        **_scores(p),
    }


# ---- conditions ----


def _number(value: str) -> Optional[float]:
    try:
        return float(value)
    except ValueError:
        return None


def _equal(left: str, right: str, modulus: int) -> bool:
    a, b = _number(left), _number(right)
    return left == right if a is None or b is None else (a % modulus if modulus else a) == b


def _leaf(op: str, key: str, value: Any, modulus: int, values: Values) -> Optional[bool]:
    left = values.get(key)
    right = values.get(value) if isinstance(value, str) and "." in value else None
    right = value if right is None else right  # another key: s.kv
    if left is None:
        return None
    if op in ("~", "!~"):
        return fnmatch.fnmatchcase(left, right.replace("[", "[[]")) == (op == "~")
    if op == "in":
        return any(_equal(left, one, modulus) for one in right)
    if op in ("=", "!=") and key != "cudnn":
        return _equal(left, right, modulus) == (op == "=")
    a: Any = _version(left) if key == "cudnn" else _number(left)
    b: Any = _version(right) if key == "cudnn" else _number(right)
    if a is None or b is None:
        return False
    a = a % modulus if modulus else a
    orders: Any = dict(zip("= != < > <= >=".split(), (eq, ne, lt, gt, le, ge)))
    return bool(orders[op](a, b))


def holds(tree: list[Any], values: Values) -> Optional[bool]:
    """Does a condition hold? None: what is not known decides."""
    op = tree[0]
    if op in ("and", "or"):
        seen = [holds(one, values) for one in tree[1]]
        decides = op == "or"
        return decides if decides in seen else None if None in seen else not decides
    if op == "not":
        inner = holds(tree[1], values)
        return None if inner is None else not inner
    key, value, modulus = tree[1:]
    return _leaf(op, key, value, modulus, values)


def _version(word: str) -> tuple[int, ...]:
    return tuple(map(int, word.split("."))) if word else ()


def _within(span: Mapping[str, str], version: tuple[int, ...]) -> bool:
    return _version(span["from"]) <= version < (_version(span["to"]) or (10**6,))


def _sure(one: Mapping[str, Any], version: tuple[int, ...], sm: int) -> str:
    def has(key: str) -> bool:
        return any(low <= sm <= (high or sm) for low, high in one[key])

    if not has("sm"):
        return "suspected" if has("suspected") else ""
    seen = [_version(word) for word in one["seen"]]
    return "seen" if version in seen else "later" if seen and version > seen[-1] else "between"


def of(decision: "Decision") -> list[Known]:
    """The failures that speak of a decision for cuDNN: of a problem that it accepts, or that a guard refuses. The serious ones come first."""
    if decision.backend != "cudnn" or not (decision.supported or decision.reason == "policy"):
        return []
    info, number = decision.context.info, decision.context.info["cudnn_version"]
    version = (number // 10000, number // 100 % 100, number % 100)
    first = next((engine for engine in decision.engines if not engine.removed), None)
    values = {
        **case_of(decision.problem.resolve()),
        "cudnn": ".".join(map(str, version)),
        "sm": str(info["sm"]),
        "engine": str(first.number) if first else None,
        "config": str(first.config) if first else None,
    }
    found = []
    for one in _failures():
        span = next((r for r in reversed(one["ranges"]) if _within(r, version)), None)
        engines = [str(e["engine"]) for e in one["engines"] if _within(e, version)]
        sure = _sure(one, version, info["sm"])
        fits = not one["engines"] or (engines and (not first or values["engine"] in engines))
        if sure and span and fits and holds(one["tree"], values) is not False:
            words = {key: one[key] for key in ("id", "title", "kind", "says", "contract", "remedy")}
            more = {"data": one["for"], "sure": sure, "fixed": span["fixed"]}
            found.append((one, Known(verdict=tuple(one["verdict"]), **words, **more)))
    found.sort(key=lambda at: (bool(at[0]["data"]), not at[0]["serious"]))
    return [known for _, known in found]
