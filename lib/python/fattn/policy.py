"""Which backends may compute, on this thread."""

import contextlib
import ctypes
from typing import Iterator

from . import abi
from .library import call, library, refuse


@contextlib.contextmanager
def policy(*order: str) -> Iterator[None]:
    """with fattn.policy("cudnn", "math"): on this thread, until the end of the block, backends in the order of preference (fattn_policy_push).

    Without it cuDNN alone is asked on a GPU, and the cpu backend on the CPU. Backends that a device lacks are passed over.
    Errors  Error with status "bad_problem": no such backend.
    """
    words = abi.WORDS["backend"]
    if unknown := [word for word in order if word not in words]:
        refuse(f"policy: {unknown[0]!r}: one of {', '.join(words)}")
    if len(order) > len(words):
        refuse(f"policy: {len(order)} backends; at most {len(words)}, each once")
    pushed = abi.fattn_policy(struct_size=ctypes.sizeof(abi.fattn_policy), order_count=len(order))
    depth = ctypes.c_int()
    pushed.order[: len(order)] = [words[word] for word in order]
    call("fattn_policy_push", ctypes.byref(pushed), ctypes.byref(depth))
    try:
        yield
    finally:
        library().fattn_policy_pop(depth)
