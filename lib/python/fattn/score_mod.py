"""A change of the score, written as a Python function that is recorded once.

    causal = fattn.ScoreMod(lambda score, b, h, q, k: fattn.where(k <= q, score, -inf))
    alibi = fattn.ScoreMod(lambda score, b, h, q, k, slope: score + slope * (k - q), tensors={"slope": ("f32", (1, 8, 1, 1))})

The function gets values, not numbers. Operators and the functions of this module (fattn.score_mod.tanh, exp, max, ...; OPERATIONS has all) record what
becomes of them. `if` cannot be recorded: use fattn.where.
"""

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from . import abi
from .arrays import Array
from .library import Error, call, library, refuse

OPERATIONS = tuple(abi.INPUTS)  # every operation that can be recorded
Number = Union["Value", int, float]


class Value:
    """A number for each place (batch, head, query, key), while a function is recorded."""

    __slots__ = ("recorder", "number")

    def __init__(self, recorder: int, number: int):
        self.recorder, self.number = recorder, number

    def __bool__(self) -> bool:
        refuse(
            "score_mod: a recorded value is neither true nor false: use fattn.where(condition, a, b), and & | ~ for and, or, not"
        )

    if TYPE_CHECKING:  # _operators makes them

        def __add__(self, other: Number) -> "Value": ...
        def __eq__(self, other: Number) -> "Value": ...  # type: ignore[override]
        def __neg__(self) -> "Value": ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = (
            __pow__
        ) = __rpow__ = __mod__ = __rmod__ = __add__
        __and__ = __rand__ = __or__ = __ror__ = __lt__ = __le__ = __gt__ = __ge__ = __add__
        __ne__ = __eq__  # type: ignore[assignment]
        __abs__ = __invert__ = __neg__


def record(op: str, *values: Number) -> Value:
    recorder = next((value.recorder for value in values if isinstance(value, Value)), None)
    if recorder is None:
        refuse(f"score_mod: {op} of plain numbers: at least one recorded value is needed")
    numbers = [_value(recorder, value).number for value in values]
    return Value(
        recorder,
        library().fattn_record(
            recorder, abi.WORDS["mod_op"][op], *numbers, *[0] * (3 - len(numbers))
        ),
    )


def _value(recorder: int, value: Number) -> Value:
    if isinstance(value, Value):
        return value
    try:
        return Value(recorder, library().fattn_record_constant(recorder, float(value)))
    except (TypeError, ValueError):
        refuse(f"score_mod: {value!r} is no number")


def where(condition: Number, one: Number, other: Number) -> Value:
    """`one` where the condition holds, otherwise `other`."""
    return record("select", condition, one, other)


def _operators() -> None:
    for op in ("add", "sub", "mul", "truediv", "pow", "mod", "and", "or"):
        word = "div" if op == "truediv" else op
        setattr(Value, f"__{op}__", lambda a, b, word=word: record(word, a, b))
        setattr(Value, f"__r{op}__", lambda a, b, word=word: record(word, b, a))
    for op in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(Value, f"__{op}__", lambda a, b, word=op: record(word, a, b))
    for op, word in (("neg", "neg"), ("abs", "abs"), ("invert", "not")):
        setattr(Value, f"__{op}__", lambda a, word=word: record(word, a))


_operators()


def __getattr__(name: str) -> Callable[..., Value]:
    """tanh, exp, max, ...: one function for each operation of score_mod.h."""
    if name not in abi.INPUTS:
        raise AttributeError(name)

    def operation(*values: Number) -> Value:
        if len(values) != abi.INPUTS[name]:
            refuse(f"score_mod.{name}: {abi.INPUTS[name]} values are needed, not {len(values)}")
        return record(name, *values)

    return operation


class ScoreMod:
    """A recorded change of the scaled score (fattn_score_mod_create), for Problem(score_mod=...).

    function   takes score, batch, head, query, key, then each tensor by its name; returns the new score. It is called once, here.
    gradient   takes score, gradient, batch, head, query, key and the tensors; returns d(loss)/d(score). None: derived.
    tensors    name: (dtype, shape) or an array, whose shape, strides and type count. Each extent is 1 or the problem's. The arrays of a call are given there:
               mod_tensors={"slope": array}.

    Equal      two of them are equal when what they record is, whatever function made them.
    Errors     Error with status "bad_problem" names the operation; an exception of the function passes through.
    """

    def __init__(
        self,
        function: Callable[..., Number],
        *,
        gradient: Optional[Callable[..., Number]] = None,
        tensors: Optional[Mapping[str, Any]] = None,
    ):
        self.tensors = {name: _signature(name, given) for name, given in (tensors or {}).items()}
        raised: list[BaseException] = []
        forward = abi.fattn_score_mod_callback(
            lambda recorder, score, _: self._record(function, recorder, [score], raised)
        )
        backward = abi.fattn_score_mod_gradient_callback(
            lambda recorder, score, slope, _: self._record(
                gradient, recorder, [score, slope], raised
            )
        )
        self.handle = ctypes.c_void_p()
        status = library().fattn_score_mod_create(
            ctypes.byref(self.handle),
            forward,
            backward if gradient else abi.fattn_score_mod_gradient_callback(),
            None,
        )
        if raised:
            library().fattn_score_mod_destroy(self.handle)
            raise raised[0]
        if status:
            raise Error(
                library().fattn_status_name(status).decode(), library().fattn_last_error().decode()
            )
        weakref.finalize(self, library().fattn_score_mod_destroy, self.handle).atexit = False

    def _record(
        self, function: Any, recorder: int, first: Sequence[int], raised: list[BaseException]
    ) -> int:
        try:
            tensors = {name: Value(recorder, self._tensor(recorder, name)) for name in self.tensors}
            places = [
                Value(recorder, library().fattn_record_index(recorder, axis)) for axis in range(4)
            ]
            return _value(
                recorder,
                function(*(Value(recorder, number) for number in first), *places, **tensors),
            ).number
        except BaseException as why:  # it may not leave through C
            raised.append(why)
            return -1

    def _tensor(self, recorder: int, name: str) -> int:
        dtype, shape, strides = self.tensors[name]
        four = ctypes.c_int64 * 4
        return int(
            library().fattn_record_tensor(
                recorder,
                name.encode(),
                abi.WORDS["dtype"][dtype],
                four(*shape),
                four(*strides) if strides else None,
            )
        )

    def evaluate(self, score: float, at: Sequence[int] = (0, 0, 0, 0)) -> tuple[float, float]:
        """The new score and its slope at one place (batch, head, query, key), in double; for modifications without tensors."""
        value, slope = ctypes.c_double(), ctypes.c_double()
        call(
            "fattn_score_mod_evaluate",
            self.handle,
            score,
            (ctypes.c_int64 * 4)(*at),
            None,
            ctypes.byref(value),
            ctypes.byref(slope),
        )
        return value.value, slope.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ScoreMod) and bool(
            library().fattn_score_mod_same(self.handle, other.handle)
        )

    def __hash__(self) -> int:
        out = (ctypes.c_uint64 * 2)()
        library().fattn_score_mod_hash(self.handle, out)
        return hash(tuple(out))

    def __str__(self) -> str:
        """The recording, one operation a line."""
        out = ctypes.create_string_buffer(library().fattn_score_mod_text(self.handle, None, 0) + 1)
        library().fattn_score_mod_text(self.handle, out, len(out))
        return out.value.decode()

    def __repr__(self) -> str:
        return f"<fattn.ScoreMod {'; '.join(str(self).splitlines())}>"


def _signature(name: str, given: Any) -> tuple[str, tuple[int, ...], Optional[tuple[int, ...]]]:
    if isinstance(given, tuple) and len(given) == 2:
        dtype, shape, strides = given[0], tuple(given[1]), None
    else:
        array = Array(name, given)
        dtype, shape, strides = array.dtype, array.shape, array.strides
    if dtype not in abi.WORDS["dtype"] or len(shape) != 4:
        refuse(
            f"score_mod: tensor {name}: {dtype} {shape}: bf16, f16 or f32 with four extents is needed"
        )
    return dtype, shape, strides
