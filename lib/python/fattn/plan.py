"""Compiled problems, and the calls that run them."""

import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Union

from . import abi
from .arrays import CUDA, CUDA_MANAGED
from .arrays import Array, current_stream, dense, empty, same_strides, workspace as make_workspace
from .context import Context
from .decision import Engine, _engine, asked, question
from .library import call, check, library, refuse
from .problem import Problem

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .fields import Keywords, Question, Tensors

TENSORS = [
    field[0]
    for field in abi.fattn_tensors._fields_
    if field[0] not in ("struct_size", "workspace", "workspace_bytes")
]
ELEMENTS = {"float": "f32", "int32_t": "i32", "uint8_t": "u8"}
FIXED = {  # the types of tensors that have no other
    name: element for word, element in ELEMENTS.items() for name in abi.POINTEES[word].split()
}
NAMED = {"o": "out", "d_o": "d_out"}  # the module's names of tensors
OUTPUTS = {"fwd": ("o", "stats", "max", "sum_exp"), "bwd": ("dq", "dk", "dv", "dbias", "dsink")}

MOST_PLANS = 256  # that a context remembers for attention; the library's cache holds more


class Plan:
    """A compiled problem (fattn_plan_create). Made by fattn.plan.

    Threads    one plan may run in many threads at once, each call with its own workspace.
    Ownership  the caller owns every array. A captured CUDA graph refers to the plan: keep it as long as the graph.
    """

    def __init__(
        self,
        context: Context,
        problem: Problem,
        *,
        cache: bool = True,
        engine: Optional[int] = None,
        config: Optional[int] = None,
        load: Optional[bytes] = None,
    ):
        self.context, self.problem, self.handle = context, problem.resolve(), ctypes.c_void_p()
        if load is not None:
            call(
                "fattn_plan_load",
                ctypes.byref(self.handle),
                context.handle,
                ctypes.byref(problem.struct),
                load,
                len(load),
            )
        else:
            auto = abi.CONSTANTS["FATTN_ENGINE_AUTO"]
            options = abi.fattn_plan_options(
                struct_size=ctypes.sizeof(abi.fattn_plan_options),
                engine=auto if engine is None else engine,
                config=auto if config is None else config,
            )
            call(
                "fattn_plan_get" if cache else "fattn_plan_create",
                ctypes.byref(self.handle),
                context.handle,
                ctypes.byref(problem.struct),
                ctypes.byref(options),
            )
        weakref.finalize(self, library().fattn_plan_destroy, self.handle).atexit = False
        self.workspace_bytes: int = library().fattn_plan_workspace_bytes(self.handle)
        self.backend = next(
            word
            for word, value in abi.WORDS["backend"].items()
            if value == library().fattn_plan_backend(self.handle)
        )
        self.pass_: str = self.problem.pass_
        self._writes_stats = bool(
            self.problem.training or {"stats", "stats_log2"} & set(self.problem.outputs or ())
        )
        self._packed = bool(self.problem.ragged_bits)
        self._expected: dict[
            str, tuple[Optional[tuple[int, ...]], Optional[str], tuple[int, ...]]
        ] = {}
        self.ms: float = library().fattn_plan_ms(self.handle)  # time to compile or load

    def __repr__(self) -> str:
        return f"<fattn.Plan of {self.backend}: {self.problem!r}>"

    @property
    def engine(self) -> Engine:
        """The engine of this plan, with its knobs."""
        return _engine(library().fattn_plan_engine(self.handle).contents)

    def save(self) -> bytes:
        """The plan as bytes, for fattn.plan(problem, load=...) in another process. Raises Error with status "unsupported" on the cpu."""
        raw, count = ctypes.c_void_p(), ctypes.c_size_t()
        call("fattn_plan_save", self.handle, ctypes.byref(raw), ctypes.byref(count))
        try:
            return ctypes.string_at(raw, count.value)
        finally:
            library().fattn_free(raw)

    def forward(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any = None,
        stats: Any = False,
        *,
        stream: Any = None,
        workspace: Any = None,
        **tensors: "Unpack[Tensors]",
    ) -> Any:
        """O = softmax(scale * Q K^T + mask) V. Returns out; with stats=True, or an array for it, (out, stats).

        Shapes   as Problem; stats [batch, heads_q, seq_q, 1], fp32: the log-sum-exp of each query. The problem must ask for it (training=1).
        Arrays   anything with DLPack, not copied. `out` and `stats` are made by the library of q where they are not given. The other tensors of a problem
                 are given by the names of fattn_tensors: bias=, seq_len_q=, sink=, max=, ...; mod_tensors={"name": array} for a score modification.
        Order    asynchronous on the current stream of q's library (PyTorch, CuPy), or on `stream`. It may be captured in a CUDA graph. What another
                 stream makes or reads has to be ordered by the caller. The cpu backend computes before it returns.
        Errors   Error with status "bad_problem": an array does not fit the plan (nothing was launched); "device_fault": the launch failed.
        """
        self._pass("fwd")
        given = self._given(
            {
                "q": q,
                "k": k,
                "v": v,
                "o": out,
                "stats": None if isinstance(stats, bool) else stats,
                **tensors,
            }
        )
        if stats is not False and not self._writes_stats:
            refuse("stats: the plan does not write it; make the problem with training=1")
        made = self._outputs(given, ("o", "stats") if self._writes_stats else ("o",))
        self._run("fattn_forward", given, stream, workspace)
        return made["o"] if stats is False else (made["o"], made["stats"])

    def backward(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        d_out: Any,
        stats: Any,
        *,
        stream: Any = None,
        workspace: Any = None,
        **tensors: "Unpack[Tensors]",
    ) -> tuple[Any, Any, Any]:
        """(dq, dk, dv) of a forward call that wrote `out` and `stats`. dq=, dk=, dv=: arrays to write to. The rest as forward."""
        self._pass("bwd")
        given = self._given(
            {"q": q, "k": k, "v": v, "o": out, "d_o": d_out, "stats": stats, **tensors}
        )
        made = self._outputs(given, ("dq", "dk", "dv"))
        self._run("fattn_backward", given, stream, workspace)
        return made["dq"], made["dk"], made["dv"]

    def _pass(self, wanted: str) -> None:
        if self.pass_ != wanted:
            refuse(
                f"the plan is of pass {self.pass_}, not {wanted}: make one with pass_={wanted!r}"
            )

    # ---- the arrays of a call ------------------------------------------------------------------------------------------------------

    def shape(self, name: str) -> Optional[tuple[int, ...]]:
        """What the problem says of a tensor; None: nothing."""
        p = self.problem
        batch, query, key = p.batch, p.seq_q, p.seq_kv
        shapes = {
            "q": (batch, p.heads_q, query, p.dim_qk),
            "k": (batch, p.heads_k, key, p.dim_qk),
            "v": (batch, p.heads_v, key, p.dim_v),
            "o": (batch, p.heads_q, query, p.dim_v),
            "stats": (batch, p.heads_q, query, 1),
            "bias": tuple(p.bias_dim),
        }
        known = {
            "dq": "q",
            "dk": "k",
            "dv": "v",
            "d_o": "o",
            "max": "stats",
            "sum_exp": "stats",
            "dbias": "bias",
        }.get(name, name)
        # token by token, or a pool: what the arrays hold is the caller's
        if p.ragged_bits or (known in "kv" and p.page_size_k):
            return None
        shape = shapes.get(known)
        # a gradient of stride 0 is a sum
        if shape and name[0] == "d" and known != "o" and known != name:
            shape = tuple(
                1 if one == 0 and extent > 1 else extent
                for extent, one in zip(shape, self._strides(name))
            )
        return shape

    def _strides(self, name: str) -> tuple[int, ...]:
        field = {"d_o": "do", "max": "stats", "sum_exp": "stats"}.get(name, name) + "_strides"
        return tuple(getattr(self.problem, field))

    def _dtype(self, name: str) -> Optional[str]:
        p = self.problem
        fixed = FIXED.get(name)
        own = {
            "q": p.dtype,
            "k": p.dtype,
            "v": p.dtype,
            "o": p.o_dtype,
            "d_o": p.do_dtype or p.o_dtype,
            "dq": p.grad_dtype,
            "dk": p.grad_dtype,
            "dv": p.grad_dtype,
            "bias": p.bias_dtype,
            "dbias": p.bias_dtype,
        }.get(name)
        return fixed or (own.removeprefix("mx") if own else None)

    def expected(
        self, name: str
    ) -> tuple[Optional[tuple[int, ...]], Optional[str], tuple[int, ...]]:
        """(shape, dtype, strides) of a tensor, as far as the problem says them; looked up once for a plan."""
        if name not in self._expected:
            shape = self.shape(name)
            self._expected[name] = (shape, self._dtype(name), self._strides(name) if shape else ())
        return self._expected[name]

    def _given(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """Each array read and held against the problem."""
        renamed = {
            {"out": "o", "d_out": "d_o"}.get(name, name): owner
            for name, owner in arrays.items()
            if owner is not None
        }
        out: dict[str, Any] = {}
        for name, owner in renamed.items():
            if name not in TENSORS:
                refuse(
                    f"{name}: not a tensor of a call; those are {', '.join(NAMED.get(known, known) for known in TENSORS)}"
                )
            if name in ("mod_tensors", "mod_gradients"):
                out[name] = self._of_mod(name, owner)
                continue
            out[name] = Array(NAMED.get(name, name), owner)
            self._fits(name, out[name])
        if self.problem.dropout and not {"seed", "offset"} <= set(out):
            refuse(
                f'dropout: seed and offset are needed, arrays of one i{self.problem.rng_bits or 64} each: tensors={{"seed": array, "offset": array}}'
            )
        return out

    def _of_mod(self, name: str, given: Any) -> list[Optional[Array]]:
        """The arrays of a score modification, in the order of its recording."""
        recorded = self.problem.score_mod.tensors if self.problem.score_mod else {}
        names = list(recorded)
        if not isinstance(given, Mapping):
            refuse(
                f"{name}: a dictionary is needed: {{{', '.join(f'{one!r}: array' for one in names)}}}"
            )
        if unknown := [one for one in given if one not in names]:
            refuse(
                f"{name}: {unknown[0]!r}: the score modification has {', '.join(names) or 'no tensors'}"
            )
        if missing := [one for one in names if one not in given and name == "mod_tensors"]:
            refuse(f"{name}: {missing[0]!r} is missing")
        arrays = [Array(f"{name}[{one!r}]", given[one]) if one in given else None for one in names]
        for one, array in zip(names, arrays):
            dtype, shape, strides = recorded[one]
            if name == "mod_tensors" and array and (array.dtype, array.shape) != (dtype, shape):
                refuse(
                    f"{name}[{one!r}]: {array.dtype} {array.shape}; recorded was {dtype} {shape}"
                )
            if array and not same_strides(shape, array.strides, strides or dense(shape)):
                refuse(
                    f"{name}[{one!r}]: strides {array.strides}; recorded was {strides or dense(shape)}"
                )
            self._reached(f"{name}[{one!r}]", array)
        return arrays

    def _fits(self, name: str, array: Array) -> None:
        label, (shape, dtype, strides) = NAMED.get(name, name), self.expected(name)
        if shape and array.shape != shape:
            refuse(f"{label}: shape {array.shape}; the plan is for {shape}")
        if dtype and array.dtype != dtype:
            refuse(f"{label}: {array.dtype}; the plan is for {dtype}")
        if shape and not same_strides(shape, array.strides, strides):
            refuse(
                f"{label}: strides {array.strides}; the plan is for {strides}. fattn.plan(q, k, v) takes those of arrays"
            )
        if (
            not shape
            and not self._packed
            and name not in ("k", "v", "q_offsets")
            and not same_strides(array.shape, array.strides, dense(array.shape))
        ):
            refuse(f"{label}: strides {array.strides}: a dense array is needed")
        if name in OUTPUTS[self.pass_] and not array.writable:
            refuse(f"{label}: the array is read-only")
        self._reached(label, array)

    def _reached(self, name: str, array: Optional[Array]) -> None:
        if array is None:
            return
        if self.context.kind == "described":
            refuse('a described device runs nothing: use Context("cpu") or Context(0)')
        kind, number = array.device
        if self.context.kind == "cpu":
            reached = array.on_cpu
        else:
            reached = kind == CUDA_MANAGED or (kind == CUDA and number == self.context.device)
        if not reached:
            refuse(
                f"{name}: lies on device {array.device} (DLPack), the plan is for {self.context.device}"
            )

    def _outputs(self, given: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """The arrays to be written: the caller's, or new ones."""
        out = {}
        for name in names:
            if name not in given:
                shape, dtype, strides = self.expected(name)
                if shape is None:
                    refuse(
                        f"{NAMED.get(name, name)}: give an array: the problem does not say its shape"
                    )
                given[name] = Array(
                    name, empty(NAMED.get(name, name), given["q"], shape, dtype or "f32", strides)
                )
            out[name] = given[name].owner
        return out

    def _run(self, function: str, given: Mapping[str, Any], stream: Any, workspace: Any) -> None:
        tensors = abi.fattn_tensors(struct_size=ctypes.sizeof(abi.fattn_tensors))
        lists = []
        for name, array in given.items():
            if isinstance(array, list):
                lists.append(
                    (ctypes.c_void_p * max(len(array), 1))(
                        *(one.address if one else None for one in array)
                    )
                )
                setattr(tensors, name, ctypes.addressof(lists[-1]))
            else:
                setattr(tensors, name, array.address)
        q = given["q"]
        scratch = None
        if self.workspace_bytes or workspace is not None:
            scratch = Array(
                "workspace",
                workspace
                if workspace is not None
                else make_workspace(q, self.workspace_bytes, stream),
            )
            self._reached("workspace", scratch)
            if scratch.dtype != "u8" or len(scratch.shape) != 1:
                refuse(
                    f"workspace: {scratch.dtype} {scratch.shape}: an array of bytes (u8) is needed"
                )
            tensors.workspace, tensors.workspace_bytes = scratch.address, scratch.shape[0]
        check(
            getattr(library(), function)(
                self.handle, ctypes.byref(tensors), current_stream(q, stream)
            )
        )


def plan(
    q: Union[Problem, Any],
    k: Any = None,
    v: Any = None,
    *,
    context: Optional[Context] = None,
    cache: bool = True,
    engine: Optional[int] = None,
    config: Optional[int] = None,
    load: Optional[bytes] = None,
    **fields: "Unpack[Question]",
) -> Plan:
    """Compiles a problem: fattn.plan(fattn.Problem(...), context=context), or fattn.plan(q, k, v, causal=True) for the problem of these arrays.

    cache    True: a plan of the same problem, context and engine is shared in the process (fattn_plan_get)
    engine   number of the engine, config: place in mode A's list; None: the first that compiles
    load     bytes of Plan.save, instead of compiling. A plan is executable code: load what you trust alone
    Errors   Error with status "unsupported", "policy", "bad_problem" (fattn.decide says why), "build_failed", "environment", "bad_plan".
    """
    made, target = question(q, k, v, context, fields)
    return Plan(target, made, cache=cache, engine=engine, config=config, load=load)


def _shared(context: Context, problem: Problem) -> Plan:
    """The plan of an earlier call. A policy is not part of the problem, so under one the library's own cache is asked."""
    if library().fattn_policy_depth():
        return Plan(context, problem)
    found = context.plans.get(problem)
    if found is None:
        if len(context.plans) >= MOST_PLANS:
            context.plans.pop(next(iter(context.plans)), None)
        found = context.plans[problem] = Plan(context, problem)
    return found


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    out: Any = None,
    stats: Any = False,
    bias: Any = None,
    seq_len_q: Any = None,
    seq_len_kv: Any = None,
    mod_tensors: Any = None,
    context: Optional[Context] = None,
    stream: Any = None,
    tensors: Optional[Mapping[str, Any]] = None,
    **fields: "Unpack[Keywords]",
) -> Any:
    """Attention of these arrays: fattn.attention(q, k, v, causal=True). The plan is made once for a problem and shared in the process.

    Shapes   q [batch, heads_q, seq_q, dim_qk], k and v [batch, heads, seq_kv, dim]; heads_q is a multiple of theirs. Any strides whose last is 1.
    fields   of the problem: causal, window, attn_scale, score_mod, dropout, ... (Problem). `bias`, seq_len_q and seq_len_kv (int32 [batch]) and mod_tensors
             are arrays; `tensors` has others by the names of fattn_tensors.
    Returns  out, made by the library of q where it is not given; with stats=True (out, stats), for attention_backward.
    Context  None: the cpu, or the GPU of q with the cuDNN that the process has mapped.
    Order, Errors  as Plan.forward and fattn.plan. Who captures a CUDA graph keeps fattn.plan(...) of the same problem as long as the graph.
    """
    if stats is not False:
        fields.setdefault("training", 1)
    given = {
        **(tensors or {}),
        "bias": bias,
        "seq_len_q": seq_len_q,
        "seq_len_kv": seq_len_kv,
        "mod_tensors": mod_tensors,
    }
    made, target = asked(
        q, k, v, context, fields, out=out, bias=bias, seq_len_q=seq_len_q, seq_len_kv=seq_len_kv
    )
    return _shared(target, made).forward(q, k, v, out, stats, stream=stream, **given)


def attention_backward(
    q: Any,
    k: Any,
    v: Any,
    out: Any,
    d_out: Any,
    stats: Any,
    *,
    dq: Any = None,
    dk: Any = None,
    dv: Any = None,
    bias: Any = None,
    seq_len_q: Any = None,
    seq_len_kv: Any = None,
    mod_tensors: Any = None,
    context: Optional[Context] = None,
    stream: Any = None,
    tensors: Optional[Mapping[str, Any]] = None,
    **fields: "Unpack[Keywords]",
) -> tuple[Any, Any, Any]:
    """(dq, dk, dv) of attention(q, k, v, stats=True, ...) with the same arguments; dq=, dk=, dv=: arrays to write to. The rest as attention."""
    given = {
        **(tensors or {}),
        "bias": bias,
        "seq_len_q": seq_len_q,
        "seq_len_kv": seq_len_kv,
        "mod_tensors": mod_tensors,
        "dq": dq,
        "dk": dk,
        "dv": dv,
    }
    fields = {**fields, "pass_": "bwd", "training": 1}
    made, target = asked(
        q,
        k,
        v,
        context,
        fields,
        out=out,
        d_out=d_out,
        dq=dq,
        dk=dk,
        dv=dv,
        bias=bias,
        seq_len_q=seq_len_q,
        seq_len_kv=seq_len_kv,
    )
    return _shared(target, made).backward(q, k, v, out, d_out, stats, stream=stream, **given)
