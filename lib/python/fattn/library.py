"""libfattn.so in this process: where it is, its functions with their types, and its failures as exceptions."""

import ctypes
import functools
import html
import os
import pathlib
from typing import Any, NoReturn, Optional

from . import abi

PACKAGE = pathlib.Path(__file__).resolve().parent


class Error(Exception):
    """A call failed. The message is the library's own sentence; `status` is the contract: "bad_problem", "unsupported", "environment", ... (status.h)."""

    __module__ = "fattn"  # where users find it

    def __init__(self, status: str, text: str):
        super().__init__(text)
        self.status = status

    def __repr__(self) -> str:
        return f"fattn.Error({self.status!r}, {str(self)!r})"


class Shown:
    """A notebook shows the printed text, with its first line in bold."""

    def _repr_html_(self) -> str:
        first, _, rest = html.escape(str(self)).partition("\n")
        return f"<pre><b>{first}</b>\n{rest}</pre>"


def refuse(text: str) -> NoReturn:
    """The caller's arguments are wrong."""
    raise Error("bad_problem", text)


def path() -> str:
    """libfattn.so: $FATTN_LIBRARY, else the one beside this package, else the one that the loader finds."""
    beside = PACKAGE / "libfattn.so.1"
    return os.environ.get("FATTN_LIBRARY") or (str(beside) if beside.exists() else "libfattn.so.1")


@functools.cache
def library() -> ctypes.CDLL:
    try:
        loaded = ctypes.CDLL(path())
    except OSError as why:
        raise Error(
            "environment",
            f"libfattn cannot be loaded: {why}; set FATTN_LIBRARY to the path of libfattn.so",
        ) from None
    for name, (result, arguments) in abi.FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def check(status: int) -> None:
    """Raises the failure that the library has just reported on this thread."""
    if status:
        raise Error(
            library().fattn_status_name(status).decode(),
            library().fattn_last_error().decode(errors="replace"),
        )


def call(name: str, *arguments: Any) -> None:
    """A function that returns a status."""
    check(getattr(library(), name)(*arguments))


def text(raw: Optional[bytes]) -> str:
    return raw.decode(errors="replace") if raw else ""


def shared(*choices: str) -> Optional[pathlib.Path]:
    """The first of these files that exists: in a wheel, beside an installed library, in the sources and their build."""
    beside = pathlib.Path(path()).resolve().parent
    roots = {
        "wheel": PACKAGE.parent / "facts_cudnn/tree",
        "prefix": beside.parent,
        "lib": beside,
        "source": PACKAGE.parent.parent,
        "build": beside.parent,
        "bundle": PACKAGE.parent.parent.parent,
    }
    for choice in choices:
        root, _, name = choice.partition(":")
        if (roots[root] / name).is_file():
            return roots[root] / name
    return None
