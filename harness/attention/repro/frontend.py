"""The words of repro.py.in: the same call on cudnn-frontend's Python API, checked by check.py."""

import program_check
from program_check import CannotSay

KINDS = {word: name.removeprefix("CUDNN_DATA_") for word, name in program_check.C_TYPES.items()}
NUMPY = {"bf16": "<u2", "f16": "<f2", "f32": "<f4", "e4m3": "|u1", "e5m2": "|u1"}


class Script:
    def __init__(self, case, row):
        self.case, self.tensors, self.arrays = case, case["tensors"], case["arrays"]
        self.program = program_check.Program(case, row)
        self.backward, self.eight = case["pass"] == "bwd", case["dtype"] in ("e4m3", "e5m2")
        self.lines, self.places, self.outputs = [], [], {}
        self.kinds = {descriptor["type"] for descriptor in case["graph"]["descriptors"]}
        self.uids = {
            program_check.SLOT_WORDS.get(one["slot"], one["slot"]): one["uid"]
            for one in case["graph"]["bindings"]
        }

    def refuse(self):
        case = self.case
        outputs = ("dq", "dk", "dv") if self.backward else ("o",)
        is_scaled = all("scale_" + word in self.arrays for word in outputs)
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
            (self.eight and not is_scaled, "an output of 16 bits beside 8 bit inputs"),
            (self.is_one_operation("BWD"), "a backward as one operation"),
        ]
        for there, what in why:
            if there:
                raise CannotSay(f"cudnn-frontend's Python API cannot be given {what}")

    def is_one_operation(self, way):
        return f"CUDNN_BACKEND_OPERATION_SDPA_{way}_DESCRIPTOR" in self.kinds

    def has(self, word):
        return word in self.tensors

    # ---- tensors

    def shape(self, word):
        """Of a pool: its pages."""
        about = self.tensors[word]
        dim, page = about["dim"], about["page"]
        return f"dim={[about['pages'], dim[1], page, dim[3]] if page else dim}, stride={about['stride']}"

    def offsets(self, word):
        if not self.tensors[word]["packed"]:
            return ""
        offsets = ("stats" if word in ("max", "sum_exp") else word) + "_offsets"
        self.small(offsets)
        return offsets

    def small(self, word, heads=False):
        """A small array as a tensor of the graph: [n,1,1,1], or [1,n,1,1]."""
        count, kind = self.arrays[word]["count"], self.program.type_of(self.uids[word], word)
        line = f"    {word} = g.tensor(name={word!r}, dim={[1, count, 1, 1] if heads else [count, 1, 1, 1]}, stride={[count, 1, 1, 1] if heads else [1, 1, 1, 1]}, data_type=KIND.{kind.removeprefix('CUDNN_DATA_')})"
        if line not in self.lines:
            self.lines.append(line)
            size = count * program_check.SIZES[kind]
            self.place(word, word, 0, self.arrays[word]["output"] and (size, "<f4"))
        return word

    def place(self, variable, buffer, start, output=None):
        """`output`: (bytes, type) of what the call writes."""
        if self.tensors.get(buffer, {}).get("skew_bytes"):
            raise CannotSay("a misaligned tensor: torch's memory is aligned")
        self.places.append(f"({variable}, {buffer!r}, {start})")
        if output:
            self.outputs[buffer] = output

    def place_tensor(self, word, variable, line, is_output):
        owner, start = self.program.add_tensor(word)
        self.lines.append(line)
        output = self.program.buffers[owner][0], NUMPY[self.tensors[word]["dtype"]]
        self.place(variable, owner, start, is_output and output)

    def tensor(self, word, variable=None):
        variable, about, offsets = variable or word, self.tensors[word], self.offsets(word)
        more = f", ragged_offset={offsets}" if offsets else ""
        line = f"    {variable} = g.tensor(name={word!r}, {self.shape(word)}, data_type=KIND.{KINDS[about['dtype']]}{more})"
        self.place_tensor(word, variable, line, about["output"])
        return variable

    def result(self, word):
        """An output that the operation returns."""
        shape, offsets = self.shape(word), self.offsets(word)
        shape = shape.replace("dim=", "dim(").replace(", stride=", ").set_stride(")
        more = f".set_ragged_offset({offsets})" if offsets else ""
        line = f"    {word}.set_output(True).set_{shape}).set_data_type(KIND.{KINDS[self.tensors[word]['dtype']]}){more}"
        self.place_tensor(word, word, line, True)

    def number(self, word):
        """An amax that the operation returns."""
        self.lines += [
            f"    {word}.set_output(True).set_dim([1, 1, 1, 1]).set_stride([1, 1, 1, 1]).set_data_type(KIND.FLOAT)"
        ]
        self.place(word, word, 0, (4, "<f4"))

    # ---- the operation

    def options(self):
        case = self.case
        in_memory = "attn_scale" in self.arrays
        yield "attn_scale", self.small("attn_scale") if in_memory else repr(case["scale"])
        if self.has("bias"):
            yield "bias", self.tensor("bias")
        if self.has("dbias"):
            yield "dBias", self.tensor("dbias")
        if case["alibi"]:
            yield "use_alibi_mask", "True"
        if case["padding"]:
            yield "use_padding_mask", "True"
            for word in ("seq_len_q", "seq_len_kv"):
                yield "cu_" * bool(case["cumulative" + word[7:]]) + word, self.small(word)
        windows = {side: case["window_" + side] for side in ("left", "right")}
        if windows != {"left": None, "right": None}:
            corner = "BOTTOM_RIGHT" if case["align"] == "br" else "TOP_LEFT"
            yield "diagonal_alignment", f"cudnn.diagonal_alignment.{corner}"
        for side, width in windows.items():
            if width is not None:
                yield "diagonal_band_" * (not self.eight) + side + "_bound", str(width)
        if self.has("dropout_mask"):
            given = [self.tensor("dropout_mask"), self.small("dropout_scale")]
            if self.backward:
                line = "    dropout_scale_inv = g.tensor(name='dropout_scale_inv', dim=[1, 1, 1, 1], stride=[1, 1, 1, 1], data_type=KIND.FLOAT)"
                self.lines.append(line)
                self.place("dropout_scale_inv", "dropout_scale_inv", 0)
                given.append("dropout_scale_inv")
            yield "dropout", f"({', '.join(given)})"
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
        names = "descale_q descale_k descale_v descale_s scale_s".split()
        names += ["scale_o"] if "scale_o" in self.arrays else []
        scales = {word: self.small(word) for word in names} if self.eight else {}
        options = dict(self.options())
        options["generate_stats"] = str(self.has("stats"))
        for word in ("max", "sum_exp"):
            if self.has(word):
                options["score_" + word] = self.tensor(word, word + "_")
        if self.case["stats_log2"]:
            options["stats_use_log2"] = "True"
        form = "UNIFIED" if self.is_one_operation("FWD") else "COMPOSITE"
        options["implementation"] = f"cudnn.attention_implementation.{form}"
        results = ["o", "stats", "amax_s", "amax_o"] if self.eight else ["o", "stats"]
        self.call("sdpa_fp8" if self.eight else "sdpa", inputs | scales | options, results)

    def backward_pass(self):
        inputs = {word: self.tensor(word) for word in ("q", "k", "v", "o")}
        inputs |= {"dO": self.tensor("do", "d_o"), "stats": self.tensor("stats")}
        words = "descale_dO descale_dP scale_dQ scale_dK scale_dV scale_dP descale_q descale_k descale_v descale_o descale_s scale_s"
        scales = {
            word: self.small(word.lower())
            for word in words.split()
            if self.eight and word.lower() in self.arrays
        }
        options = dict(self.options())
        if self.case["deterministic"]:
            options["use_deterministic_algorithm"] = "True"
        results = ["dq", "dk", "dv"]
        results += ["amax_dq", "amax_dk", "amax_dv", "amax_dp"] if self.eight else []
        name = "sdpa_fp8_backward" if self.eight else "sdpa_backward"
        self.call(name, inputs | scales | options, results)

    def call(self, name, arguments, results):
        given = ", ".join(f"{key}={value}" for key, value in arguments.items())
        names = ", ".join(results)
        self.lines += [f"    {names} = g.{name}(name='attention', {given})[:{len(results)}]"]
        for word in results:
            if word.startswith("amax_"):
                self.number(word)
            elif self.has(word):
                self.result(word)

    def text(self):
        (self.backward_pass if self.backward else self.forward)()
        self.lines.append("    places = [" + ",\n              ".join(self.places) + "]")
        return "\n".join(self.lines)


def script(case, row, title, about, engine, knobs):
    made, numbers = Script(case, row), case["knob_numbers"]
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
    return program_check.filled("repro.py.in", words)
