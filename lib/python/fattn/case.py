"""The case of a problem: the line that names it for the program facts, which writes it from the problem's graph in the words of cudnn-frontend."""

import json
import os
import shutil
import subprocess
import sys
from typing import Any, Optional, Sequence

from .library import Error, refuse, shared
from .problem import Problem

TYPES = {
    **{"bf16": "BFLOAT16", "f16": "HALF", "f32": "FLOAT", "bool": "BOOLEAN"},
    **{"e4m3": "FP8_E4M3", "e5m2": "FP8_E5M2"},
}
UNSAID = ("rope", "dropout_mask", "scale_in_memory", "cumulative", "packed_table", "block_mask")


def facts(*words: str, given: str = "", **variables: str) -> tuple[int, str, str]:
    """Exit code, output and messages of the program facts: of the wheel, of the build or of the PATH."""
    found = shared("wheel:bin/facts", "build:bin/facts", "bundle:bin/facts")
    program = os.environ.get("FACTS_PROGRAM") or found or shutil.which("facts")
    if program is None:
        raise Error("environment", "the program facts is not here; set FACTS_PROGRAM to its path")
    done = subprocess.run(
        [str(program), *words],
        input=given,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        env={"FACTS_PYTHON": sys.executable, **os.environ, **variables},
    )
    return done.returncode, done.stdout, done.stderr.strip()


def names(*problems: Problem) -> list[str]:
    """The case of each problem. Raises Error with status "unsupported": no case has it."""
    text = "".join(graph(problem) + "\n" for problem in problems)
    _, said, why = facts("import", "-", "--json", given=text)
    rows = [json.loads(line) for line in said.splitlines()]
    found = {row["line"]: row["case"] for row in rows if "case" in row}
    if len(found) != len(problems):
        unread = rows[-1]["unread"] if rows else []
        refuse(f"no case has this problem: {(unread or [why])[0]}")
    return [found[line] for line in sorted(found)]


class _Graph:
    """Tensors of a graph, and where its one node has them."""

    def __init__(self, problem: Problem):
        self.problem, self.tensors = problem, {}  # type: ignore[var-annotated]
        self.inputs, self.outputs = {}, {}  # type: ignore[var-annotated]

    def add(
        self,
        place: str,
        dim: Sequence[int],
        strides: Optional[Sequence[int]] = None,
        dtype: str = "",
        out: bool = False,
        ragged: bool = False,
    ) -> None:
        strides = strides or [1] * len(dim)
        said = {"data_type": TYPES.get(dtype, dtype), "dim": list(dim), "stride": list(strides)}
        fixed = {"is_pass_by_value": False, "is_virtual": False, "reordering_type": "NONE"}
        self.tensors[place] = {"name": place, **said, **fixed, "uid": len(self.tensors) + 1}
        (self.outputs if out else self.inputs)[place] = place
        if ragged:
            self.add_offsets(place)

    def add_offsets(self, place: str) -> None:
        p, name = self.problem, f"{place}_offsets"
        self.tensors[place]["ragged_offset_name"] = name
        self.tensors[place]["ragged_offset_uid"] = uid = len(self.tensors) + 1
        said = {"name": name, "data_type": f"INT{p.ragged_bits}", "dim": [p.batch + 1, 1, 1, 1]}
        fixed = {"is_pass_by_value": False, "is_virtual": False, "reordering_type": "NONE"}
        self.tensors[name] = {**said, **fixed, "stride": [1] * 4, "uid": uid}

    def add_operands(self) -> None:
        p, ragged = self.problem, set(self.problem.ragged or ())
        if p.ragged_bits and not ragged:
            ragged = {"q", "k", "v", "o", "stats", "do", "dq", "dk", "dv"}
        shape = {
            "q": (p.batch, p.heads_q, p.seq_q, p.dim_qk),
            "k": (p.batch, p.heads_k, p.seq_kv, p.dim_qk),
            "v": (p.batch, p.heads_v, p.seq_kv, p.dim_v),
            "o": (p.batch, p.heads_q, p.seq_q, p.dim_v),
            "stats": (p.batch, p.heads_q, p.seq_q, 1),
        }
        for side in ("k", "v"):
            if getattr(p, f"page_size_{side}"):
                pages, rows = getattr(p, f"pages_{side}"), getattr(p, f"page_size_{side}")
                shape[side] = (pages, shape[side][1], rows, shape[side][3])
                table = getattr(p, f"table_{side}")
                self.add(f"Page_table_{side.upper()}", (p.batch, 1, table, 1), dtype="INT32")
        wanted = set(p.outputs or ()) | ({"stats"} if p.training else set())
        bwd = p.pass_ == "bwd"
        rows = [(name, name, p.dtype, False) for name in ("q", "k", "v")]
        rows += [("o", "o", p.o_dtype, not bwd)]
        rows += [("stats", "stats", p.stats_dtype or "f32", not bwd)] * (bwd or "stats" in wanted)
        if bwd:
            rows += [("do", "o", p.do_dtype or p.o_dtype, False)]
            rows += [(f"d{name}", name, p.grad_dtype, True) for name in ("q", "k", "v")]
        places = {"stats": "Stats", "do": "dO", "dq": "dQ", "dk": "dK", "dv": "dV"}
        for name, like, dtype, out in rows:
            strides = getattr(p, f"{name}_strides")
            dim: tuple[int, ...] = shape[like]
            if name != like and name != "do":  # a gradient of stride 0 is a sum
                dim = tuple(1 if not step else extent for extent, step in zip(dim, strides))
            place = places.get(name, name.upper())
            self.add(place, dim, strides, dtype, out, name in ragged)
        for name in wanted & {"max", "sum_exp"}:
            self.add(name.capitalize(), shape["stats"], p.stats_strides, "f32", True)

    def add_options(self) -> None:
        p = self.problem
        if p.has_bias:
            self.add("Bias", p.bias_dim, p.bias_strides, p.bias_dtype or p.dtype)
        if p.dbias:
            self.add("dBias", p.bias_dim, p.dbias_strides, p.bias_dtype or p.dtype, True)
        if p.padding:
            for place in ("SEQ_LEN_Q", "SEQ_LEN_KV"):
                self.add(place, (p.batch, 1, 1, 1), dtype="INT32")
        if p.dropout:
            for place in ("Seed", "Offset"):
                self.add(place, (1, 1, 1, 1), dtype=f"INT{p.rng_bits or 64}")
        if p.sink:
            self.add("SINK_TOKEN", (1, p.heads_q, 1, 1), dtype="f32")
        if p.dsink:
            self.add("DSINK_TOKEN", (1, p.heads_q, 1, 1), dtype="f32", out=True)
        if p.dtype in ("e4m3", "e5m2"):
            self.add("Descale_Q", (1, 1, 1, 1), dtype="f32")


def graph(problem: Problem) -> str:
    """The problem as cudnn-frontend logs it, in one line of JSON."""
    p = problem.resolve()
    unsaid = [name for name in UNSAID if getattr(p, name)]
    unsaid += ["score_mod"] * (p.score_mod is not None) + [p.dtype] * p.dtype.startswith("mx")
    if unsaid:
        refuse(f"{unsaid[0]}: decision.case does not say it; docs/cases.md has the keys of a case")
    made = _Graph(p)
    made.add_operands()
    made.add_options()
    bwd = p.pass_ == "bwd"
    node: dict[str, Any] = {
        "tag": "SDPA_BWD" if bwd else "SDPA_FWD",
        "name": "fattn",
        "inputs": made.inputs,
        "outputs": made.outputs,
        "attn_scale_value": p.attn_scale,
        "alibi_mask": bool(p.alibi),
        "padding_mask": bool(p.padding),
        "left_bound": p.window_left if p.has_left else None,
        "right_bound": p.window_right if p.has_right else None,
        "diagonal_alignment": "BOTTOM_RIGHT" if p.align == "br" else "TOP_LEFT",
        "dropout_probability": p.dropout or None,
        "implementation": {"unified": "UNIFIED"}.get(p.impl, "COMPOSITE"),
        "max_seq_len_kv": p.seq_kv if p.page_size_k or p.page_size_v else None,
    }
    if bwd:
        node["is_deterministic_algorithm"] = bool(p.deterministic)
    context = {"compute_data_type": "FLOAT", "intermediate_data_type": "FLOAT"}
    context["io_data_type"] = TYPES[p.dtype]
    return json.dumps(
        {"context": context, "json_version": "1.0", "nodes": [node], "tensors": made.tensors}
    )
