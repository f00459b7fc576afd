"""One attention problem: the fields of fattn_problem (problem.h) as keyword arguments."""

import ctypes
import difflib
import functools
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from . import abi
from .arrays import Array, Shape
from .library import call, refuse
from .score_mod import Number, ScoreMod

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .fields import Fields, Keywords

FIELDS: dict[str, Any] = {
    field[0]: field[1]
    for field in abi.fattn_problem._fields_
    if field[0] not in ("struct_size", "reserved")
}
BITS = {
    "outputs": "FATTN_WANT_",
    "ragged": "FATTN_RAGGED_",
    "cumulative": "FATTN_CUMULATIVE_",
}  # sets of words
IMPLIED = {
    "attn_scale": "has_attn_scale",
    "window_left": "has_left",
    "window_right": "has_right",
}  # a given value is one to be read
SHORT = {
    "b": "batch",
    "h": "heads_q or heads_k",
    "s": "seq_q or seq_kv",
    "d": "dim_qk or dim_v",
    "mask": "causal or window",
    "scale": "attn_scale",
    "is_causal": "causal",
    "dropout_p": "dropout",
    "attn_mask": "bias",
    "bias": "has_bias, bias_dtype and bias_dim",
    "enable_gqa": "heads_k",
}  # of a case, and of PyTorch
Value = Union[int, float, str, Sequence[int], Sequence[str], ScoreMod, None]


@functools.cache
def words_of(field: str) -> Optional[Mapping[str, int]]:
    """{"bf16": 1} for dtype, o_dtype, ...; None: the field is a number."""
    for name, words in abi.WORDS.items():
        if (field == name or field.endswith(f"_{name}")) and FIELDS.get(field) is ctypes.c_int32:
            return (
                {**words, "bool": abi.CONSTANTS["FATTN_BOOL"]} if field == "bias_dtype" else words
            )
    if prefix := BITS.get(field):
        return {
            name.removeprefix(prefix).lower(): bit
            for name, bit in abi.CONSTANTS.items()
            if name.startswith(prefix) and name != "FATTN_RAGGED_TENSORS"
        }
    return None


def number(field: str, value: Value) -> Any:
    """What the struct holds for a word, a set of words, or a number."""
    words = words_of(field)
    given = [value] if isinstance(value, str) else value
    if words is None or not isinstance(given, (list, tuple, set)):
        return value
    if unknown := [word for word in given if word not in words]:
        refuse(f"{field}: {unknown[0]!r}: one of {', '.join(words)}")
    if field not in BITS and len(given) != 1:
        refuse(f"{field}: one word, not {len(given)}")
    return sum(words[word] for word in given)


class Problem:
    """One attention call: what is asked, compiled and run.

    Keywords are the fields of fattn_problem (problem.h has them all, with their defaults). Words stand for enums: dtype="bf16", `pass_`="bwd",
    align="br", outputs=("stats", "max"). `pass_` is the field `pass`, a word that Python keeps for itself. Besides:

    causal=True            a query sees the keys up to its own place
    window=(left, right)   a sliding window; None: open. The left bound counts the diagonal, the right one does not
    attn_scale, window_left, window_right set their has_ fields
    score_mod=             a fattn.ScoreMod, or a function that becomes one; each Problem then records the function again

    Shapes  Q [batch, heads_q, seq_q, dim_qk], K [batch, heads_k, seq_kv, dim_qk], V [batch, heads_v, seq_kv, dim_v], O [batch, heads_q, seq_q, dim_v],
            always in the order b,h,s,d, with any strides whose last is 1. Defaults are dense b,s,h,d.
    Errors  Error with status "bad_problem" names the field.
    Equal   two problems are equal when their fields are.
    """

    __slots__ = {
        "struct": "the fattn_problem of the C library",
        "score_mod": "the fattn.ScoreMod that changes the scores, or None",
    }

    def __init__(
        self,
        *,
        causal: bool = False,
        window: Optional[tuple[Optional[int], Optional[int]]] = None,
        score_mod: Union[ScoreMod, Callable[..., Number], None] = None,
        **fields: "Unpack[Fields]",
    ):
        self.struct = abi.fattn_problem(struct_size=ctypes.sizeof(abi.fattn_problem))
        if score_mod is not None and not isinstance(score_mod, ScoreMod):
            if not callable(score_mod):
                raise TypeError(
                    f"score_mod: {score_mod!r}: a fattn.ScoreMod or a function of score, batch, head, query and key is needed"
                )
            score_mod = ScoreMod(score_mod)
        self.score_mod = score_mod
        if score_mod is not None:
            self.struct.score_mod = score_mod.handle
        if window is not None and not (isinstance(window, (tuple, list)) and len(window) == 2):
            raise TypeError(
                f"window: {window!r}: a pair (left, right) is needed; None in it is an open side"
            )
        left, right = window or (None, None)
        if causal and right is not None:
            refuse("causal: the window has a right bound already")
        sides = {"window_left": left, "window_right": 0 if causal else right}
        given: dict[str, Any] = {name: at for name, at in sides.items() if at is not None}
        for name, value in {**given, **fields}.items():
            self._set("pass" if name == "pass_" else name, value)

    def _set(self, name: str, value: Value) -> None:
        if name not in FIELDS or name == "score_mod":
            known = ["causal", "window", *FIELDS]
            near = SHORT.get(name) or next(iter(difflib.get_close_matches(name, known, 1)), None)
            refuse(
                f"{name}: not a field of a problem; {f'did you mean {near}? ' if near else ''}lib/include/fattn/problem.h lists the fields (fattn_problem)"
            )
        if value is None:
            return
        try:
            if issubclass(FIELDS[name], ctypes.Array):
                setattr(self.struct, name, FIELDS[name](*value))  # type: ignore[misc]
            else:
                setattr(self.struct, name, number(name, value))
        except (TypeError, ValueError, IndexError, RuntimeError) as why:
            refuse(f"{name}: {value!r}: {why}")
        if name in IMPLIED:
            setattr(self.struct, IMPLIED[name], 1)

    def __getattr__(self, name: str) -> Any:
        name = "pass" if name == "pass_" else name
        if name not in FIELDS:
            raise AttributeError(name)
        value = getattr(self.struct, name)
        if isinstance(value, ctypes.Array):
            return tuple(value)
        words = words_of(name)
        if words is None or (not value and 0 not in words.values()):
            return value
        if name in BITS:
            return tuple(
                word for word, bit in words.items() if value & bit == bit and word != "all"
            )
        return next((word for word, number_ in words.items() if number_ == value), value)

    def fields(self) -> dict[str, Any]:
        """The fields that are not 0, as keywords of Problem."""
        out = {name: getattr(self, name) for name in FIELDS if name != "score_mod"}
        out = {
            name: value
            for name, value in out.items()
            if value
            and any(value if isinstance(value, tuple) else (1,))
            and getattr(self.struct, name) != 0
        }
        for name, has in IMPLIED.items():
            if out.pop(has, None):
                out.setdefault(name, getattr(self, name))
            else:
                out.pop(name, None)
        return out

    def _keywords(self) -> dict[str, Any]:
        """fields() with the name of `pass` that Python takes."""
        return {"pass_" if name == "pass" else name: at for name, at in self.fields().items()}

    def replace(self, **changes: "Unpack[Keywords]") -> "Problem":
        """The same problem with other fields."""
        return Problem(**{"score_mod": self.score_mod, **self._keywords(), **changes})

    def __reduce__(self) -> Any:
        if self.score_mod:
            raise TypeError("a Problem with a score_mod cannot be pickled: it holds a recording")
        return functools.partial(Problem, **self._keywords()), ()

    def resolve(self) -> "Problem":
        """With every derived field filled in: dtypes, heads, dim_v, strides, scale. Raises Error with status "bad_problem"."""
        out = Problem(score_mod=self.score_mod)
        call("fattn_problem_resolve", ctypes.byref(self.struct), ctypes.byref(out.struct))
        return out

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and bytes(self.struct) == bytes(other.struct)

    def __hash__(self) -> int:
        return hash(bytes(self.struct))

    def __repr__(self) -> str:
        shown = {**self._keywords(), **({"score_mod": self.score_mod} if self.score_mod else {})}
        return f"fattn.Problem({', '.join(f'{name}={value!r}' for name, value in shown.items())})"


def read(arrays: Mapping[str, Any]) -> dict[str, Array]:
    return {name: Array(name, owner) for name, owner in arrays.items() if owner is not None}


def of_arrays(given: Mapping[str, Union[Array, Shape]], fields: Mapping[str, Any]) -> Problem:
    """The problem of these arrays: extents, strides and types are theirs, everything else the caller's."""
    q, k, v = (given[name] for name in "qkv")
    for name, array in (("q", q), ("k", k), ("v", v)):
        if len(array.shape) != 4:
            refuse(
                f"{name}: shape {array.shape}; four extents are needed: batch, heads, sequence, channels"
            )
    if k.dtype != q.dtype or v.dtype != q.dtype or q.dtype not in abi.WORDS["dtype"]:
        refuse(
            f"q, k, v are of {q.dtype}, {k.dtype}, {v.dtype}; one of {', '.join(abi.WORDS['dtype'])} is needed for all three"
        )
    for name, one, other, axis in (("k", k, q, 0), ("v", v, q, 0), ("k", k, q, 3), ("v", v, k, 2)):
        if one.shape[axis] != other.shape[axis]:
            refuse(
                f"{name}: shape {one.shape} does not fit q {q.shape}, k {k.shape}: extent {axis} differs"
            )
    found = dict(
        dtype=q.dtype,
        batch=q.shape[0],
        heads_q=q.shape[1],
        heads_k=k.shape[1],
        heads_v=v.shape[1],
        seq_q=q.shape[2],
        seq_kv=k.shape[2],
        dim_qk=q.shape[3],
        dim_v=v.shape[3],
    )
    for name, array in given.items():
        field = {"out": "o", "d_out": "do"}.get(name, name) + "_strides"
        if field in FIELDS and len(array.shape) == 4:
            found[field] = array.strides
    if "out" in given:
        found["o_dtype"] = given["out"].dtype
    if "bias" in given:
        found.update(has_bias=1, bias_dtype=given["bias"].dtype, bias_dim=given["bias"].shape)
    if "seq_len_q" in given or "seq_len_kv" in given:
        found["padding"] = 1
    return Problem(**{**found, **fields})
