"""Why PyTorch does not use cuDNN for a call, or gets NaN: the whole answer to one call of scaled_dot_product_attention."""

import json
import pathlib
from typing import Any, Optional, Union

from . import sdpa
from .arrays import CUDA
from .case import facts, names
from .library import Error, Shown
from .problem import of_arrays

DEVICE = "h100-sxm"  # of tensors that are on no GPU


class Why(Shown):
    """The answer of fattn.why; str() is the text that it prints.

    case      the forward in the case language, for the program facts; backward_case: the backward, "" if it was not asked
    forward   what cuDNN says, as `facts decide --json` does: verdict, reason, engines, nearest (accepted problems near a refused one); backward: None or the same
    known     the known failures of both; callers: the rules of PyTorch, TransformerEngine and cudnn-frontend that refuse one of them
    notes     what else matters; next: the commands to type next
    """

    def __init__(self, rows: list[dict[str, Any]], notes: list[str]):
        self.forward, self.backward = rows[0], rows[1] if len(rows) > 1 else None
        self.case: str = rows[0]["case"]
        self.backward_case: str = rows[1]["case"] if len(rows) > 1 else ""
        self.known = _once(rows, "known", "id")
        self.callers = _once(rows, "callers", "rule")
        self.notes = notes
        self.next = _next(rows)

    @property
    def supported(self) -> bool:
        """Does cuDNN accept the call, and the backward if it was asked?"""
        return all(row["verdict"] == "supported" for row in (self.forward, self.backward) if row)

    def __str__(self) -> str:
        lines = [self._headline()]
        for word, row in (("forward", self.forward), ("backward", self.backward)):
            if row:
                lines += _answer(word, row)
        for one in self.callers:
            does = (
                "refuses it before cuDNN sees it" if _refuses(one) else "does not try cuDNN first"
            )
            lines.append(f"{one['project']} {one['version']} {does}:")
            lines.append(f"  {one['says']} ({one['rule']})")
        for one in self.known:
            lines.append(f"known: {one['title'].rstrip('.')} ({one['id']}{_fixed(one)})")
            lines += [f"  instead: {remedy}" for remedy in [one.get("remedy")] if remedy]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines + ["next:", *(f"  {command}" for command in self.next)])

    def _headline(self) -> str:
        refused = [
            one["rule"] for one in self.callers if one["project"] == "PyTorch" and _refuses(one)
        ]
        such = [one["id"] for one in self.known if one["such_data"]]
        if refused:
            return f"PyTorch does not give this call to cuDNN ({', '.join(refused)})."
        if not self.supported:
            half = self.backward and self.backward["verdict"] == "supported"
            which = ": the backward is accepted; its forward is not" if half else ""
            return f"cuDNN refuses this call{which}."
        if such:
            return f"cuDNN accepts this call, and it is known to fail ({', '.join(such)})."
        if self.known:
            return "cuDNN accepts this call; it is known to fail for some data."
        return "cuDNN accepts this call, and nothing is known against it."

    def __repr__(self) -> str:
        return f"<fattn.Why: {self._headline()}>"


def _once(rows: list[dict[str, Any]], key: str, name: str) -> list[dict[str, Any]]:
    return list({one[name]: one for row in rows for one in row.get(key, ())}.values())


def _fixed(one: dict[str, Any]) -> str:
    return f", fixed in {one['fixed']}" if one.get("fixed") else ""


def _refuses(caller: dict[str, str]) -> bool:
    return caller["kind"] != "order"


def _answer(word: str, row: dict[str, Any]) -> list[str]:
    where = f"cuDNN {row['cudnn']} on {row['shown']}"
    engines = " ".join(dict.fromkeys(str(engine["index"]) for engine in row.get("engines", ())))
    said = f"accepts it, engines {engines}" if engines else row["verdict"]
    reason = row.get("reason") or {}
    meaning = (
        reason.get("meaning") if reason.get("chain") else None
    )  # of cuDNN's words, not of ours
    if reason.get("text"):
        said = f"{row['verdict']}: {meaning or reason['text']}"
    lines = [f"{word}: {row['case']}", f"  {where}: {said}"]
    lines += [f"  cuDNN: {reason['text']}"] if meaning else []
    near = row.get("nearest")
    if near is not None and not meaning:
        some = "; ".join(one["change"] for one in near[:3])
        lines += [f"  accepted: {some or 'nothing near it that was tried'}"]
    return lines


def _next(rows: list[dict[str, Any]]) -> list[str]:
    """The commands for the row that fails first."""
    bad = next((row for row in rows if row["verdict"] != "supported"), rows[-1])
    case, device = f"'{bad['case']}'", bad["device"]
    if bad["verdict"] != "supported":
        return [f"facts bisect {case} --device {device}    # since which version, up to which"]
    known = [f"facts known show {one['id']}" for one in bad.get("known", ())[:1]]
    return [*known, f"facts run {case} --device 0    # the numbers, on a GPU"]


def why(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    *,
    device: Union[str, int, None] = None,
    cudnn: Optional[str] = None,
    backward: Optional[bool] = None,
) -> Why:
    """Why PyTorch does not use cuDNN for this call, or gets NaN: prints the whole answer and returns it.

    The first eight arguments are those of torch.nn.functional.scaled_dot_product_attention. Tensors of PyTorch (also meta, nested), NumPy and JAX will
    do, and extents alone: fattn.why((2, 16, 1000, 100), (2, 16, 1000, 100), (2, 16, 1000, 100)), which count as bf16.

    device    a GPU's number, a product or a description ("b200", "h100-sxm", `facts devices`); None: the GPU of the query, else h100-sxm
    cudnn     a version or a folder; None: the cuDNN of this process (PyTorch's), else the default of `facts cudnn`
    backward  also ask the backward; None: if a tensor requires a gradient
    Errors    Error with status "bad_problem": the call is wrong for PyTorch, too; "environment": cuDNN or the program facts is missing
    """
    given = {"attn_mask": attn_mask, "dropout_p": dropout_p, "is_causal": is_causal, "scale": scale}
    shapes, fields = sdpa.read(query, key, value, given)
    notes = sdpa.notes(shapes, given, enable_gqa)
    if backward is None:
        backward = any(getattr(one, "requires_grad", False) for one in (query, key, value))
    problem = of_arrays(shapes, {**fields, "training": int(backward)})
    asked = [problem, *([problem.replace(pass_="bwd")] if backward else [])]
    gpu = shapes["q"].device
    where = device if device is not None else gpu[1] if gpu[0] == CUDA else DEVICE
    word = str(where).rpartition("cuda:")[2].replace("cuda", "0")
    answer = Why(_decide(names(*asked), cudnn, word), notes)
    print(answer)
    return answer


def _decide(cases: list[str], cudnn: Optional[str], device: str) -> list[dict[str, Any]]:
    """With the cuDNN of this process, also its NVRTC compiles."""
    mapped = _mapped("libcudnn.so.9")
    words = ("--device", device, "--json", "--explain", "--cudnn")
    nvrtc = "" if cudnn or not mapped else _mapped("libnvrtc.so")
    folder = str(pathlib.Path(mapped).parent) if mapped else "default"
    _, said, message = facts("decide", *cases, *words, cudnn or folder, FACTS_NVRTC=nvrtc)
    rows = {row["case"]: row for row in map(json.loads, said.splitlines()) if "verdict" in row}
    if len(rows) != len(cases):
        raise Error("environment", message.splitlines()[0] if message else "facts gave no answer")
    found = [rows[case] for case in cases]
    for row in found:  # a product is shown as it was asked for
        named = device[:1].isalpha() and row["device"].startswith("sm") and device != row["device"]
        row["shown"] = f"{row['device']} ({device})" if named else row["device"]
    return found


def _mapped(library: str) -> str:
    """The file of a library that this process has mapped; "" if there is none."""
    try:
        maps = pathlib.Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        maps = ""
    found = [line.split(maxsplit=5)[5] for line in maps.splitlines() if f"/{library}" in line]
    return found[0] if found else ""
