"""May this target run a problem, by which engines, and if not, why not and what instead?"""

import ctypes
import functools
import weakref
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional, Union

from . import abi, case, sdpa
from . import known as failures
from .arrays import Shape
from .context import Context, default_context
from .library import Shown, call, check, library, text
from .problem import Problem, of_arrays, read

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .fields import Question


class Engine(NamedTuple):
    """One configuration that the heuristics returned. workspace_bytes is -1 where it is not stated; knobs: (name, value)."""

    number: int
    config: int
    workspace_bytes: int
    removed: bool
    knobs: tuple[tuple[str, int], ...]


class Refusal(NamedTuple):
    """One step of cuDNN's own refusal. engine is -1 where it is not of one engine."""

    engine: int
    status: str
    text: str
    condition: str


class Neighbour(NamedTuple):
    """A problem near a refused one that the target accepts; `change` in words: "dim_qk 104 instead of 100"."""

    problem: Problem
    change: str

    def __repr__(self) -> str:
        return f"<fattn.Neighbour: {self.change}>"


def _engine(raw: abi.fattn_engine) -> Engine:
    knobs = tuple(
        (text(library().fattn_knob_name(knob.type)), knob.value)
        for knob in raw.knobs[: raw.knob_count]
    )
    return Engine(raw.index, raw.config, raw.workspace_bytes, bool(raw.removed), knobs)


class Decision(Shown):
    """The answer to fattn.decide. It is true when the problem is supported; printed, it says why not.

    supported  True or False
    backend    "cudnn", "math" or "cpu"
    reason     "ok", "unsupported", "policy", "environment", "bad_problem" or "internal"
    text       the reason in one line; status: cuDNN's name of it; remedy: what to do about it
    refusals   cuDNN's own chain
    engines    of mode A, best first
    known      the known failures of cuDNN that speak of the problem, the serious ones first; [] for other backends
    """

    def __init__(self, context: Context, problem: Problem):
        lib, handle = library(), ctypes.c_void_p()
        status = lib.fattn_decide(
            ctypes.byref(handle),
            context.handle,
            ctypes.byref(problem.struct),
            abi.CONSTANTS["FATTN_ASK_A"],
        )
        if not handle:
            check(status)
        weakref.finalize(self, lib.fattn_decision_destroy, handle).atexit = False
        self.context, self.problem = context, problem
        self.supported: bool = lib.fattn_decision_supported(handle)
        self.backend = next(
            word
            for word, value in abi.WORDS["backend"].items()
            if value == lib.fattn_decision_backend(handle)
        )
        # reasons have the statuses' numbers
        self.reason: str = text(lib.fattn_status_name(lib.fattn_decision_reason(handle)))
        self.status, self.text, self.remedy = (
            text(getattr(lib, f"fattn_decision_{part}")(handle))
            for part in ("status", "text", "remedy")
        )
        chain = (
            lib.fattn_decision_refusal(handle, i).contents
            for i in range(lib.fattn_decision_refusal_count(handle))
        )
        self.refusals = [
            Refusal(one.engine, text(one.status), text(one.text), text(one.condition))
            for one in chain
        ]
        mode = abi.CONSTANTS["FATTN_MODE_A"]
        self.engines = [
            _engine(lib.fattn_decision_engine(handle, mode, i).contents)
            for i in range(lib.fattn_decision_engine_count(handle, mode))
        ]

    def __bool__(self) -> bool:
        return self.supported

    @property
    def case(self) -> str:
        """The problem in the case language, for `facts decide`, `bisect`, `known` and `repro`. The program facts writes it."""
        return case.names(self.problem)[0]

    @functools.cached_property
    def known(self) -> list[failures.Known]:
        """The known failures of cuDNN that speak of the problem. Error with status "environment" where the file with these is missing."""
        return failures.of(self)

    def explain(self, budget: int = 0) -> list[Neighbour]:
        """Accepted problems near this one; see fattn.explain."""
        return explain(self.problem, context=self.context, budget=budget)

    def __repr__(self) -> str:
        lines = [
            f"{'supported' if self.supported else self.reason}: {self.backend} on {self.context!r}"
        ]
        if not self.supported:
            lines.append(f"  why: {': '.join(part for part in (self.status, self.text) if part)}")
            if self.remedy:
                lines.append(f"  remedy: {self.remedy}")
            # of each engine its first; cuDNN's callers follow it
            for step in {step.engine: step for step in reversed(self.refusals)}.values():
                who = f"engine {step.engine}" if step.engine >= 0 else "cuDNN"
                lines.append(
                    f"  {who}: {': '.join(part for part in (step.status, step.text.strip()) if part)}"
                    + (f" ({step.condition})" if step.condition else "")
                )
            if self.reason != "bad_problem":
                lines.append("  explain() finds problems near this one that are supported")
        lines += [f"  {one}" for one in (self.known if failures.file() else ())]
        for engine in self.engines:
            parts = (
                [f"workspace {engine.workspace_bytes} bytes"] if engine.workspace_bytes >= 0 else []
            )
            parts += [f"{name}={value}" for name, value in engine.knobs]
            lines.append(
                f"  engine {engine.number}{' (removed)' if engine.removed else ''}: {' '.join(parts)}".rstrip(
                    ": "
                )
            )
        return "\n".join(lines)


def question(
    q: Any, k: Any, v: Any, context: Optional[Context], fields: Mapping[str, Any]
) -> tuple[Problem, Context]:
    """What is asked without a call: a problem, or shapes with what fattn.attention takes, also in PyTorch's words."""
    if isinstance(q, Problem):
        return asked(q, k, v, context, fields)
    arrays, more = sdpa.read(q, k, v, fields)
    return asked(q, k, v, context, more, arrays)


def asked(
    q: Any,
    k: Any,
    v: Any,
    context: Optional[Context],
    fields: Mapping[str, Any],
    shapes: Optional[dict[str, Shape]] = None,
    **arrays: Any,
) -> tuple[Problem, Context]:
    """What is asked, and of whom: a problem, or arrays (their shapes) with the fields that they do not say."""
    if context is not None and not isinstance(context, Context):
        raise TypeError(
            f"context: {context!r}: a fattn.Context is needed, for example fattn.Context(0) for GPU 0"
        )
    if isinstance(q, Problem):
        return (q.replace(**fields) if fields else q), context or default_context("cpu")
    given = shapes or read({"q": q, "k": k, "v": v, **arrays})
    first = given["q"]
    return of_arrays(given, fields), context or default_context(
        "cpu" if first.on_cpu else first.device[1]
    )


def decide(
    q: Union[Problem, Any],
    k: Any = None,
    v: Any = None,
    *,
    context: Optional[Context] = None,
    **fields: "Unpack[Question]",
) -> Decision:
    """May this target run the problem, and by which engines? Heuristics alone: nothing is compiled.

    fattn.decide(fattn.Problem(...), context=context), or fattn.decide(q, k, v, causal=True): the arrays give extents, strides, types and device.
    They may be without memory: meta tensors, jax.ShapeDtypeStruct, extents. Keywords: what fattn.attention takes, or PyTorch's scaled_dot_product_attention.
    Shapes, Errors: as Problem. A refusal is an answer, not an error; Error with status "no_memory" or "internal" when there is none.
    """
    made, target = question(q, k, v, context, fields)
    return Decision(target, made)


def explain(
    q: Union[Problem, Any],
    k: Any = None,
    v: Any = None,
    *,
    context: Optional[Context] = None,
    budget: int = 0,
    **fields: "Unpack[Question]",
) -> list[Neighbour]:
    """Supported problems near a refused one, nearest first, found by at most `budget` questions (0: 200). Nothing is compiled."""
    made, target = question(q, k, v, context, fields)
    found = (abi.fattn_neighbour * abi.CONSTANTS["FATTN_MAX_NEIGHBOURS"])()
    count = ctypes.c_size_t()
    call(
        "fattn_explain",
        target.handle,
        ctypes.byref(made.struct),
        budget,
        found,
        ctypes.byref(count),
    )
    out = []
    for raw in found[: count.value]:
        near = Problem(score_mod=made.score_mod)
        ctypes.memmove(
            ctypes.byref(near.struct), ctypes.byref(raw.problem), ctypes.sizeof(near.struct)
        )
        out.append(Neighbour(near, text(raw.change)))
    return out
