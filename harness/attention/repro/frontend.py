"""repro.py: the same call on cudnn-frontend's Python API, checked by check.py."""

import program_check
from program_check import CannotSay

KINDS = {word: name.removeprefix("CUDNN_DATA_") for word, name in program_check.C_TYPES.items()}
NUMPY = {"bf16": "<u2", "f16": "<f2", "f32": "<f4", "e4m3": "|u1", "e5m2": "|u1"}

SCRIPT = '''\
#!/usr/bin/env python3
"""@{title}

@{about}

usage: python3 repro.py        exit: 0 PASS, 1 FAIL, 3 the frontend refuses the call, or has no plan of this engine
Needs a GPU, torch, numpy and nvidia-cudnn-frontend. check.py and data/ lie beside this file.
"""
import pathlib
import re
import sys

import check
import cudnn
import numpy as np

DATA = pathlib.Path(__file__).resolve().parent / "data"
KIND = cudnn.data_type
ENGINE, KNOBS = @{engine}, @{knobs}  # None: the first plan


def make_graph(**where):
    """The graph, and its tensors with the buffer and the byte where each lies. `where`: handle=, or device_property= to plan without a GPU."""
    g = cudnn.pygraph(io_data_type=KIND.@{kind}, intermediate_data_type=KIND.FLOAT, compute_data_type=KIND.FLOAT, **where)
@{graph}
    g.validate()
    g.build_operation_graph()
    g.create_execution_plans([cudnn.heur_mode.A])
    g.check_support()
    return g, places


def choose(g):
    """The plan of the engine and the knobs that failed."""
    for index in range(g.get_execution_plan_count()):
        name = g.get_plan_name_at_index(index)
        engine = re.match(r"eng(\\d+)", name)  # the frontend has engines of its own beside cuDNN's
        if engine and ENGINE in (None, int(engine[1])) and KNOBS in (None, {int(k): int(v) for k, v in re.findall(r"k(\\d+)=(\\d+)", name)}):
            g.select_plan(index)
            return name
    print(f"cudnn-frontend offers no plan of engine {ENGINE} with these knobs", file=sys.stderr)
    sys.exit(3)


RUNS = @{runs}  # all must give the same bits
# What the call writes: {buffer: (bytes, type)}; 0xFF is NaN in every type.
OUTPUTS = {
@{outputs}
}


def memory(name):
    import torch  # not needed to plan
    if name in OUTPUTS:
        return torch.full((OUTPUTS[name][0],), 0xFF, dtype=torch.uint8, device="cuda")
    return torch.from_numpy(np.load(DATA / f"{name}.npy").view(np.uint8).reshape(-1)).cuda()


def main():
    import torch
    handle = cudnn.create_handle()
    try:
        g, places = make_graph(handle=handle)
    except (cudnn.cudnnGraphNotSupportedError, TypeError, ValueError, RuntimeError) as error:
        print(f"cudnn-frontend {cudnn.__version__} refuses: {str(error).splitlines()[0][:300]}", file=sys.stderr)
        return 3
    print(f"cuDNN {cudnn.backend_version()} on {torch.cuda.get_device_name()}: plan {choose(g)}")
    g.build_plans()
    buffers = {name: memory(name) for _, name, _ in places}
    workspace = torch.empty(g.get_workspace_size() + 1, dtype=torch.uint8, device="cuda")
    first, differ = {}, {}
    for run in range(RUNS):
        for name in OUTPUTS:
            buffers[name].fill_(0xFF)
        g.execute({tensor: buffers[name][start:] for tensor, name, start in places}, workspace, handle=handle)
        torch.cuda.synchronize()
        for name in OUTPUTS:
            got = buffers[name].cpu().numpy()
            count = int((got != first.setdefault(name, got.copy())).sum())
            if count and name not in differ:
                differ[name] = f"{name:12} run {run + 1} differs from the first in {count} bytes: FAIL"
    for name, (_, kind) in OUTPUTS.items():
        np.save(DATA / f"{name}.npy", first[name].view(kind))
    status = check.main([str(DATA)])
    if differ:
        print("\\n".join([*differ.values(), f"FAIL: the bits of {RUNS} runs are not the same"]))
    return status or bool(differ)


if __name__ == "__main__":
    sys.exit(main())
'''


class Script:
    def __init__(self, case, row):
        self.case, self.tensors, self.arrays = case, case["tensors"], case["arrays"]
        self.program = program_check.Program(case, row)
        self.backward, self.eight = case["pass"] == "bwd", case["dtype"] in ("e4m3", "e5m2")
        self.lines, self.places, self.outputs = [], [], {}
        self.types = {}
        for descriptor in case["graph"]["descriptors"]:
            values = {
                attribute["name"]: attribute["values"] for attribute in descriptor["attributes"]
            }
            if "CUDNN_ATTR_TENSOR_UNIQUE_ID" in values:
                self.types[values["CUDNN_ATTR_TENSOR_UNIQUE_ID"][0]] = values[
                    "CUDNN_ATTR_TENSOR_DATA_TYPE"
                ][0].replace("CUDNN_DATA_", "")
        self.uids = {
            program_check.SLOT_WORDS.get(one["slot"], one["slot"]): one["uid"]
            for one in case["graph"]["bindings"]
        }

    def refuse(self):
        case = self.case
        kinds = {descriptor["type"] for descriptor in self.case["graph"]["descriptors"]}
        why = [
            (case["dtype"].startswith("mx"), "block-scaled types"),
            (case["rope_dim"] > 0, "rotary embedding"),
            (case["block_mask"], "a mask of tiles"),
            (case["mod"] != "none", f"the score modification {case['mod']}"),
            (case["ragged_tokens"], "offsets in tokens"),
            (self.has("bias") and self.tensors["bias"]["dtype"] == "bool", "a boolean mask"),
            (bool(case["graph"]["sums"]), "gradients that are summed over a broadcast"),
            (case["alibi"] and not case["usual_slopes"], "given ALiBi slopes"),
            (case["packed_table"], "packed page tables"),
            (self.has("rng_dump"), "a dump of random numbers"),
            (case["exec"] != "eager", f"exec={case['exec']}"),
            (" spelling=" in case["case"], "the spelling of the softmax"),
            (
                self.eight and not self.outputs_are_scaled(),
                "an output of 16 bits beside 8 bit inputs",
            ),
            ("CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR" in kinds, "a backward as one operation"),
        ]
        for there, what in why:
            if there:
                raise CannotSay(f"cudnn-frontend's Python API cannot be given {what}")

    def outputs_are_scaled(self):
        return all(
            "scale_" + word in self.arrays
            for word in (("dq", "dk", "dv") if self.backward else ("o",))
        )

    def has(self, word):
        return word in self.tensors

    # ---- tensors

    def shape(self, word):
        """Of a pool: its pages."""
        about = self.tensors[word]
        dim = (
            [about["pages"], about["dim"][1], about["page"], about["dim"][3]]
            if about["page"]
            else about["dim"]
        )
        return f"dim={dim}, stride={about['stride']}"

    def offsets(self, word):
        if not self.tensors[word]["packed"]:
            return ""
        offsets = ("stats" if word in ("max", "sum_exp") else word) + "_offsets"
        self.small(offsets)
        return offsets

    def bytes_of(self, word):
        return {"FLOAT": 4, "INT32": 4, "INT64": 8, "UINT8": 1}[self.types[self.uids[word]]]

    def small(self, word, heads=False):
        """A small array as a tensor of the graph: [n,1,1,1], or [1,n,1,1]."""
        count = self.arrays[word]["count"]
        line = f"    {word} = g.tensor(name={word!r}, dim={[1, count, 1, 1] if heads else [count, 1, 1, 1]}, stride={[count, 1, 1, 1] if heads else [1, 1, 1, 1]}, data_type=KIND.{self.types[self.uids[word]]})"
        if line not in self.lines:
            self.lines.append(line)
            self.place(word, word, 0)
            self.note_output(word, self.arrays[word]["output"], count * self.bytes_of(word), "<f4")
        return word

    def place(self, variable, buffer, start):
        if self.program.case["tensors"].get(buffer, {}).get("skew_bytes"):
            raise CannotSay("a misaligned tensor: torch's memory is aligned")
        self.places.append(f"({variable}, {buffer!r}, {start})")

    def note_output(self, buffer, output, size, kind):
        if output:
            self.outputs[buffer] = (size, kind)

    def tensor(self, word, variable=None):
        variable = variable or word
        offsets = self.offsets(word)
        owner, start = self.program.add_tensor(word)
        self.lines.append(
            f"    {variable} = g.tensor(name={word!r}, {self.shape(word)}, data_type=KIND.{KINDS[self.tensors[word]['dtype']]}"
            + (f", ragged_offset={offsets})" if offsets else ")")
        )
        self.place(variable, owner, start)
        self.note_output(
            owner,
            self.tensors[word]["output"],
            self.program.buffers[owner][0],
            NUMPY[self.tensors[word]["dtype"]],
        )
        return variable

    def result(self, word, variable):
        """An output that the operation returns."""
        offsets = self.offsets(word)
        owner, start = self.program.add_tensor(word)
        self.lines.append(
            f"    {variable}.set_output(True).set_{self.shape(word).replace('dim=', 'dim(').replace(', stride=', ').set_stride(')}).set_data_type(KIND.{KINDS[self.tensors[word]['dtype']]})"
            + (f".set_ragged_offset({offsets})" if offsets else "")
        )
        self.place(variable, owner, start)
        self.note_output(
            owner, True, self.program.buffers[owner][0], NUMPY[self.tensors[word]["dtype"]]
        )

    def number(self, word, variable):
        """An amax that the operation returns."""
        self.lines.append(
            f"    {variable}.set_output(True).set_dim([1, 1, 1, 1]).set_stride([1, 1, 1, 1]).set_data_type(KIND.FLOAT)"
        )
        self.place(variable, word, 0)
        self.note_output(word, True, 4, "<f4")

    # ---- the operation

    def options(self):
        case = self.case
        yield (
            "attn_scale",
            self.small("attn_scale") if "attn_scale" in self.arrays else repr(case["scale"]),
        )
        if self.has("bias"):
            yield "bias", self.tensor("bias")
        if self.has("dbias"):
            yield "dBias", self.tensor("dbias")
        if case["alibi"]:
            yield "use_alibi_mask", "True"
        if case["padding"]:
            yield "use_padding_mask", "True"
            for side in ("q", "kv"):
                yield (
                    ("cu_" if case["cumulative_" + side] else "") + "seq_len_" + side,
                    self.small("seq_len_" + side),
                )
        if case["window_left"] is not None or case["window_right"] is not None:
            yield (
                "diagonal_alignment",
                f"cudnn.diagonal_alignment.{'BOTTOM_RIGHT' if case['align'] == 'br' else 'TOP_LEFT'}",
            )
        for side in ("left", "right"):
            if case["window_" + side] is not None:
                yield (
                    f"{'' if self.eight else 'diagonal_band_'}{side}_bound",
                    str(case["window_" + side]),
                )
        if self.has("dropout_mask"):
            yield "dropout", f"({self.tensor('dropout_mask')}, {self.small('dropout_scale')})"
        elif case["dropout"] > 0:
            yield "dropout", f"({case['dropout']!r}, {self.small('seed')}, {self.small('offset')})"
        for side in ("k", "v"):
            if self.has(side) and self.tensors[side]["page"]:
                table, count = f"page_table_{side}", case["table_" + side]
                self.lines.append(
                    f"    {table} = g.tensor(name={table!r}, dim={[case['batch'], 1, count, 1]}, stride={[count, count, 1, 1]}, data_type=KIND.INT32)"
                )
                self.place(table, table, 0)
                yield f"paged_attention_{side}_table", table
        if "page_table_k" in self.arrays or "page_table_v" in self.arrays:
            yield "paged_attention_max_seq_len_kv", str(case["seq_kv"])
        for side in ("q", "kv"):
            if case["total_" + side]:
                yield f"max_total_seq_len_{side}", str(case["total_" + side])
        if case["sink"] and "sink" in self.uids:  # a backward without dSink does not read it
            yield "sink_token", self.small("sink", heads=True)
        if "dsink" in self.arrays:
            yield "dSink_token", self.small("dsink", heads=True)

    def forward(self):
        inputs = {word: self.tensor(word) for word in ("q", "k", "v")}
        names = ["descale_q", "descale_k", "descale_v", "descale_s", "scale_s"] + (
            ["scale_o"] if "scale_o" in self.arrays else []
        )
        scales = {word: self.small(word) for word in names} if self.eight else {}
        options = dict(self.options())
        options["generate_stats"] = str(self.has("stats"))
        for word in ("max", "sum_exp"):
            if self.has(word):
                options["score_" + word] = self.tensor(word, word + "_")
        if self.case["stats_log2"]:
            options["stats_use_log2"] = "True"
        unified = any(
            descriptor["type"] == "CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR"
            for descriptor in self.case["graph"]["descriptors"]
        )
        options["implementation"] = (
            f"cudnn.attention_implementation.{'UNIFIED' if unified else 'COMPOSITE'}"
        )
        results = ["o", "stats", "amax_s", "amax_o"] if self.eight else ["o", "stats"]
        self.call("sdpa_fp8" if self.eight else "sdpa", inputs | scales | options, results)
        self.result("o", "o")
        if self.has("stats"):
            self.result("stats", "stats")
        for word in results[2:]:
            self.number(word, word)

    def backward_pass(self):
        inputs = {word: self.tensor(word) for word in ("q", "k", "v", "o")} | {
            "dO": self.tensor("do", "d_o"),
            "stats": self.tensor("stats"),
        }
        words = {
            "descale_dO": "descale_do",
            "descale_dP": "descale_dp",
            "scale_dQ": "scale_dq",
            "scale_dK": "scale_dk",
            "scale_dV": "scale_dv",
            "scale_dP": "scale_dp",
        }
        words |= {
            word: word
            for word in ("descale_q", "descale_k", "descale_v", "descale_o", "descale_s", "scale_s")
        }
        scales = (
            {word: self.small(array) for word, array in words.items() if array in self.arrays}
            if self.eight
            else {}
        )
        options = dict(self.options())
        if self.case["deterministic"]:
            options["use_deterministic_algorithm"] = "True"
        results = ["dq", "dk", "dv"] + (
            ["amax_dq", "amax_dk", "amax_dv", "amax_dp"] if self.eight else []
        )
        self.call(
            "sdpa_fp8_backward" if self.eight else "sdpa_backward",
            inputs | scales | options,
            results,
        )
        for word in results[:3]:
            self.result(word, word)
        for word in results[3:]:
            self.number(word, word)

    def call(self, name, arguments, results):
        given = ", ".join(f"{key}={value}" for key, value in arguments.items())
        self.lines.append(
            f"    {', '.join(results)} = g.{name}(name='attention', {given})[:{len(results)}]"
        )

    def text(self):
        (self.backward_pass if self.backward else self.forward)()
        self.lines.append("    places = [" + ",\n              ".join(self.places) + "]")
        return "\n".join(self.lines)


def script(case, row, title, about, engine, knobs, numbers):
    """`numbers`: cuDNN's numbers of knobs by name."""
    made = Script(case, row)
    made.refuse()
    graph = made.text()
    wanted = {numbers[key]: value for key, value in knobs.items()} if engine is not None else None
    outputs = "\n".join(f"    {name!r}: {value!r}," for name, value in made.outputs.items())
    words = {
        "title": title,
        "about": "\n".join(about),
        "engine": engine,
        "knobs": wanted,
        "kind": KINDS[case["dtype"]],
        "graph": graph,
        "outputs": outputs,
        "runs": made.program.runs(),
    }
    return program_check.filled(SCRIPT, words)
