"""The attention calls of a running PyTorch model, as a file of cases with the number of each."""

import contextlib
import functools
import sys
from collections import Counter
from typing import Any, Callable, Iterator

from .arrays import Shape
from .case import facts
from .library import Error, refuse
from .sdpa import autocast


_WORDS = "query key value attn_mask dropout_p is_causal scale enable_gqa".split()


class Watch:
    """What fattn.watch() saw: shapes, strides and types, no values. `unread`: {why: how often} of calls that no case has."""

    def __init__(self) -> None:
        self.unread: Counter[str] = Counter()
        self._calls: Counter[tuple[str, str]] = Counter()  # the text before and behind the number

    def cases(self) -> str:
        """The text of a file of cases. Errors: Error with status "environment": the program facts is missing."""
        lines = [f"{before}{n}{behind}\n" for (before, behind), n in self._calls.items()]
        code, said, why = facts("import", "-", given="".join(lines)) if lines else (0, "", "")
        if code not in (0, 4):  # 4: the file says what is assumed or could not be read
            raise Error("environment", why.splitlines()[0] if why else "facts gave no answer")
        more = (f"# could not be read: {why} ({n} times)\n" for why, n in self.unread.items())
        return said + "".join(more)

    def _see(self, text: Callable[..., tuple[str, str]], *given: Any, **named: Any) -> None:
        """A call, or an object that stands for one: it must not end because of us."""
        try:
            self._calls[text(*given, **named)] += 1
        except Exception as why:
            self.unread[str(why)] += 1


def _of_call(*args: Any, **kwargs: Any) -> tuple[str, str]:
    """The call as `facts import` reads it, before and behind its number."""
    torch, said, given = sys.modules["torch"], "", {**dict(zip(_WORDS, args)), **kwargs}
    cast = autocast(torch, given["query"].device.type)
    for name, one in given.items():
        if getattr(one, "is_nested", False):
            raise ValueError("nested tensors; fattn.why takes them")
        if hasattr(one, "shape"):
            seen = Shape(name, one)
            dtype = cast if cast and seen.dtype in ("f16", "bf16", "f32") else seen.dtype
            said += f"{name}: {dtype}{list(seen.shape)} stride {seen.strides}, "
        elif one not in (None, False, 0):
            said += f"{name}={one}, "
    wants = torch.is_grad_enabled() and any(given[name].requires_grad for name in _WORDS[:3])
    return f"scaled_dot_product_attention({said}{'requires_grad=True, ' * wants}calls=", ")"


def _of_engine(params: Any) -> tuple[str, str]:
    """A configuration of TransformerEngine, in the words of its log."""
    torch = sys.modules["torch"]
    plain = (str, int, float, tuple, torch.dtype)
    said = {name: one for name, one in vars(params).items() if isinstance(one, plain)}
    said["is_training"] = bool(said.get("is_training")) and torch.is_grad_enabled()
    return f"Running with config={{{repr(said)[1:-1]}, 'calls': ", "}"


@contextlib.contextmanager
def watch(path: Any = None) -> Iterator[Watch]:
    """Records the calls of torch.nn.functional.scaled_dot_product_attention inside `with fattn.watch("model.cases"):`, and of TransformerEngine's
    DotProductAttention if it was imported before.

    The model runs as before. Functions of torch.compile run eagerly inside, so that their calls are seen; a model that asks whether it is compiled may
    call otherwise, which only a trace shows. Not seen: the replay of a CUDA graph, FlexAttention, other libraries' own attention, calls in other
    threads. Of a call that wants gradients one backward is assumed.

    path    the file of cases, written at the end; None: write Watch.cases() yourself
    Yields  the Watch
    Errors  Error with status "environment": the program facts is missing; "bad_problem": PyTorch is not imported
    """
    torch: Any = sys.modules.get("torch")
    if torch is None:
        refuse("watch: import torch first")
    facts("--version")  # better now than after hours
    seen, functional = Watch(), torch.nn.functional
    original = functional.scaled_dot_product_attention

    class Mode(torch.overrides.TorchFunctionMode):  # also a name that a module bound before
        inside = 0

        def __torch_function__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is original:
                seen._see(_of_call, *args, **(kwargs or {}))
            self.inside += 1
            try:
                return func(*args, **(kwargs or {}))
            finally:
                self.inside -= 1

    mode = Mode()

    def through(*args: Any, **kwargs: Any) -> Any:
        """nn.MultiheadAttention calls it where the mode is off."""
        with mode if mode.inside else contextlib.nullcontext():
            return original(*args, **kwargs)

    def made(of: Any, *args: Any, **kwargs: Any) -> Any:
        params = of(*args, **kwargs)
        seen._see(_of_engine, params)
        return params

    with contextlib.ExitStack() as stack:
        stack.callback(setattr, functional, "scaled_dot_product_attention", original)
        functional.scaled_dot_product_attention = through
        for name in [one for one in sys.modules if one.startswith("transformer_engine.")]:
            engine, module = getattr(sys.modules[name], "AttentionParams", None), sys.modules[name]
            if getattr(engine, "__module__", "") == name:  # it makes one for each call
                stack.callback(setattr, module, "AttentionParams", engine)
                setattr(module, "AttentionParams", functools.partial(made, engine))
        if stance := getattr(torch.compiler, "set_stance", None):  # since PyTorch 2.6
            stack.enter_context(stance("force_eager"))
        stack.enter_context(mode)
        yield seen
    if path is not None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(seen.cases())
