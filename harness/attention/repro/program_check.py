"""The parts of a case that program.c.in needs: buffers, views, the masks and modifications of its scores."""

import math
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
MOST_SCORES = 1 << 28  # of all heads: more take too long on a CPU

C_TYPES = {
    "bf16": "CUDNN_DATA_BFLOAT16",
    "f16": "CUDNN_DATA_HALF",
    "f32": "CUDNN_DATA_FLOAT",
    "e4m3": "CUDNN_DATA_FP8_E4M3",
    "e5m2": "CUDNN_DATA_FP8_E5M2",
    "bool": "CUDNN_DATA_UINT8",
}
BYTES = {"bf16": 2, "f16": 2, "f32": 4}
SIZES = {"CUDNN_DATA_FLOAT": 4, "CUDNN_DATA_INT32": 4, "CUDNN_DATA_INT64": 8}
SIZES |= dict.fromkeys(["CUDNN_DATA_UINT8", "CUDNN_DATA_FP8_E8M0", "CUDNN_DATA_BOOLEAN"], 1)
# unit roundoff, half the smallest subnormal step, largest number
ROUNDING = {
    "bf16": ("0x1p-8", "0x1p-126", "INFINITY"),
    "f16": ("0x1p-11", "0x1p-25", "INFINITY"),
    "f32": ("0x1p-20", "0x1p-126", "INFINITY"),
    "e4m3": ("0x1p-4", "0x1p-10", "448"),
    "e5m2": ("0x1p-3", "0x1p-17", "57344"),
}
SLOT_WORDS = {"d_o": "do", "mod_tensors[0]": "mod_a", "mod_tensors[1]": "mod_b"}


class CannotSay(Exception):
    """One line for the user."""


def casts_of_bias(dim, full, scale):
    """How often an engine casts an element of dBias, and how many parts it adds."""
    casts, parts = 0, 1
    for extent in (whole // mine for whole, mine in zip(full, dim) if whole > mine):
        casts, parts = casts + parts, parts * extent
    return casts or int(math.frexp(abs(scale))[0] != 0.5), parts


def filled(template, words):
    """A file of this folder: `//@if CONDITION`, `//@else`, `//@end` lines choose; @{word} is put in."""
    out, keep = [], [True]
    for line in (HERE / template).read_text(encoding="utf-8").splitlines():
        mark = re.fullmatch(r"//@(if|else|end) ?(.*)", line.strip())
        if not mark:
            if all(keep):
                out.append(re.sub(r"@\{(\w+)\}", lambda found: str(words[found[1]]), line))
        elif mark[1] == "if":
            keep.append(bool(eval(mark[2], {}, words)))  # the template's own words
        elif mark[1] == "else":
            keep[-1] = not keep[-1]
        else:
            keep.pop()
    text = "\n".join(out) + "\n"
    for view in re.findall(r"static const view (\w+)", text):  # those that nobody reads
        if len(re.findall(rf"\b{view}\b", text)) == 1:
            text = re.sub(rf"static const view {view} .*\n", "", text)
    return text


def rounding(dtype):
    return ROUNDING[dtype.removeprefix("mx")]


class Program:
    """One case on its way into C."""

    def __init__(self, case, row):
        self.case, self.row = case, row
        self.tensors, self.arrays, self.graph = case["tensors"], case["arrays"], case["graph"]
        self.backward, self.mx = case["pass"] == "bwd", case["dtype"].startswith("mx")
        self.narrow = case["dtype"] not in BYTES
        self.sums = {SLOT_WORDS.get(one["slot"], one["slot"]): one for one in self.graph["sums"]}
        self.buffers = {}  # {word: (bytes, output, skew)}
        self.scores = case["batch"] * case["heads_q"] * case["seq_q"] * case["seq_kv"]
        if self.scores > MOST_SCORES:
            raise CannotSay(
                "more scores than a CPU computes in minutes; take a smaller case (facts shrink)"
            )

    # ---- memory

    def size(self, word):
        return BYTES.get(self.tensors[word]["dtype"], 1)

    def add_tensor(self, word):
        """The buffer of a tensor, and where it starts there in bytes."""
        about = self.tensors[word]
        if word in self.sums:  # each element's gradient, which is summed elsewhere
            one = self.sums[word]
            last = sum((extent - 1) * stride for extent, stride in zip(one["dim"], one["strides"]))
            self.buffers[word] = ((last + 1) * self.size(word), True, 0)
            return word, 0
        owner, size = about["storage_of"], self.size(word)
        whole = self.tensors[owner]
        self.buffers[owner] = whole["elements"] * size, about["output"], whole["skew_bytes"]
        return owner, about["first"] * size

    def add_array(self, word, bytes_each):
        about = self.arrays[word]
        self.buffers[word] = (about["count"] * bytes_each, about["output"], 0)

    def type_of(self, uid, word):
        """The type of the tensor that the graph has for an array."""
        for descriptor in self.graph["descriptors"]:
            values = {one["name"]: one["values"] for one in descriptor["attributes"]}
            if values.get("CUDNN_ATTR_TENSOR_UNIQUE_ID") == [uid]:
                return values["CUDNN_ATTR_TENSOR_DATA_TYPE"][0]
        raise CannotSay(f"{word}: the graph does not know it")

    def bind(self):
        bound, constants = [], []
        sums = {one["offset"]: word for word, one in self.sums.items()}
        for binding in self.graph["bindings"]:
            uid, slot = binding["uid"], SLOT_WORDS.get(binding["slot"], binding["slot"])
            if slot == "value":
                constants.append(f"    {{ {uid}, 0x{binding['bits']:08x} }},")
                continue
            if slot == "scratch" and binding["offset"] not in sums:
                self.buffers["scratch"] = (self.graph["scratch_bytes"], True, 0)
                bound.append((uid, "scratch", binding["offset"]))
                continue
            word = sums[binding["offset"]] if slot == "scratch" else slot
            if word in self.tensors:
                bound.append((uid, *self.add_tensor(word)))
            elif word in self.arrays:
                self.add_array(word, SIZES[self.type_of(uid, word)])
                bound.append((uid, word, 0))
            else:
                raise CannotSay(f"{word}: nothing is known of it")
        if self.case["dropout"] > 0 and "dropout_mask" not in self.tensors:
            self.buffers["keep"] = (self.scores, False, 0)
        return bound, constants

    # ---- views

    def view(self, word):
        about = self.tensors[word]
        stride, owner, first = list(about["stride"]), about["storage_of"], about["first"]
        if word in self.sums:
            stride, owner, first = self.sums[word]["strides"], word, 0
        elif word in ("bias", "mod_a", "mod_b"):
            stride = [0 if extent == 1 else step for extent, step in zip(about["dim"], stride)]
        more = ""
        if self.is_ragged():
            offsets = ("stats" if word in ("max", "sum_exp") else word) + "_offsets"
            more += f", .offsets = {name(offsets) if about['packed'] else -1}"
        if self.is_paged():
            more += f", .table = {name('page_table_' + word) if about['page'] else -1}"
        return f"static const view view_{word} = {{ {name(owner)}, {C_TYPES[about['dtype'].removeprefix('mx')]}, {first}, {{ {', '.join(str(n) for n in stride)} }}{more} }};"

    def is_ragged(self):
        return any(about["packed"] for about in self.tensors.values())

    def is_paged(self):
        return any(about["page"] for about in self.tensors.values())

    def scalar(self, word):
        return f"scalar({name(word)})" if word in self.arrays else "1"

    def has(self, word):
        return word in self.tensors

    # ---- the inputs of the reference

    def read_input(self, variable, word, shape, lengths):
        factor = self.scalar("descale_" + word) if word in ("q", "k", "v", "o", "do") else "1"
        yield f"    {variable} = numbers(&view_{word}, {shape}, {lengths}, {factor});"
        if self.tensors[word]["dtype"].startswith("mx"):
            heads, rows, dim = shape.split(", ")
            at = f"{rows}, {dim}, n / {dim} % {rows}, n % {dim}"
            if word.endswith("_t") or (word == "v" and not self.backward):
                at = f"{dim}, {rows}, n % {dim}, n / {dim} % {rows}"
            yield f"    for (int64_t n = 0; n < BATCH * {heads} * (int64_t){rows} * {dim}; n++)"
            yield f"        {variable}[n] *= factor({name('sf_' + word)}, n / {dim} / {rows}, {at});"

    def inputs(self):
        of_q, of_k = ("HEADS_Q, SEQ_Q, DIM_QK", "len_q"), ("HEADS_K, SEQ_KV, DIM_QK", "len_kv")
        of_v, of_o = ("HEADS_V, SEQ_KV, DIM_V", "len_kv"), ("HEADS_Q, SEQ_Q, DIM_V", "len_q")
        wanted = {"q": of_q, "k": of_k, "v": of_v}
        if self.backward:
            wanted |= {"o": of_o, "do": of_o, "stats": ("HEADS_Q, SEQ_Q, 1", "len_q")}
        if self.backward and self.mx:
            wanted |= {"q_t": of_q, "k_t": of_k, "do_t": of_o, "do_16": of_o}
        names = {word: word.replace("_", "").upper() for word in wanted}
        lines = [
            line for word in wanted for line in self.read_input(names[word], word, *wanted[word])
        ]
        names = ["*" + one for one in names.values()]
        if self.case["rope_dim"]:
            lines.append(f"    rotate(Q, HEADS_Q, SEQ_Q, {name('rope_q')});")
            lines.append(f"    rotate(K, HEADS_K, SEQ_KV, {name('rope_k')});")
        if self.backward and not self.mx:
            names += ["*QT", "*KT", "*DOT", "*DO16"]
            lines.append("    QT = Q, KT = K, DOT = DO16 = DO;")
        names += ["GAMMA = 1", f"ETA_P = {rounding(self.case['dtype'])[1]}"]
        eight = self.narrow and not self.mx
        if eight:
            is_lazy = self.case["sm"] >= 100 and not self.backward
            more = " / 16; /* a rescale threshold of 2^4 */" if is_lazy else ";"
            lines.append("    GAMMA = scalar(B_SCALE_S) * scalar(B_DESCALE_S);")
            lines.append(f"    ETA_P /= scalar(B_SCALE_S){more}")
        if self.mx:
            lines.append(f"    ETA_P /= {256 if self.backward else 16};")
        if self.backward:
            names += ["DELTA = 1", f"ETA_DS = {0 if self.mx else rounding(self.ds_type())[1]}"]
            if eight:
                lines.append("    DELTA = scalar(B_SCALE_DP) * scalar(B_DESCALE_DP);")
                lines.append("    ETA_DS /= scalar(B_SCALE_DP);")
        return ", ".join(names), "\n".join(lines)

    def ds_type(self):
        return self.case["do_dtype"] if self.narrow else self.case["dtype"]

    def length(self, side):
        if "seq_len_" + side not in self.arrays:
            return f"SEQ_{side.upper()}"
        array = name("seq_len_" + side)
        if self.case["cumulative_" + side]:
            return f"integer({array}, b + 1) - integer({array}, b)"
        return f"integer({array}, b) < 0 ? 0 : integer({array}, b)"

    # ---- scores

    def modify(self):
        mod, (a, b) = self.case["mod"], self.case["mod_parameters"]
        sides = [f"j <= i + {b:.0f}"] if mod == "window" and b is not None else []
        sides += [f"j > i - {a:.0f}"] if mod == "window" and a is not None else []
        seen = {
            "causal": "j <= i",
            "prefix": f"j <= i || j < {a}",
            "window": " && ".join(sides) or "1",
            "document": "element(&view_mod_a, b, 0, i, 0) == element(&view_mod_b, b, 0, 0, j)",
        }
        if mod == "softcap":
            yield f"        const double t = tanh(s / {a!r});"
            yield f"        s = {a!r} * t, slope[j] = 1 - t * t;"
        elif mod == "temperature":
            yield f"        s /= {a!r}, slope[j] = 1 / {a!r};"
        elif mod == "post_scale_bias":
            yield "        s += element(&view_mod_a, b, h, i, j);"
        elif mod == "relpos":
            yield "        s += element(&view_mod_a, 0, h, 0, 0) * (double)(j - i);"
        elif mod != "none":
            yield f"        if (!({seen[mod]}))\n            s = -INFINITY;"
        if self.has("bias") and self.tensors["bias"]["dtype"] != "bool":
            yield "        s += element(&view_bias, b, h, i, j);"
        if self.case["alibi"]:
            yield "        s += number(CUDNN_DATA_FLOAT, buffers[B_ALIBI_SLOPES].host + 4 * h) * (double)(j - i);"

    def seen(self):
        case, terms = self.case, []
        shift = " + len_kv[b] - len_q[b]" if case["align"] == "br" else ""
        if case["window_right"] is not None:
            terms.append(f"j <= i{shift} + {case['window_right']}")
        if case["window_left"] is not None:
            terms.append(f"j > i{shift} - {case['window_left']}")
        if case["block_mask"]:
            rows, keys = (case["seq_q"] + 127) // 128, (case["seq_kv"] + 1023) // 1024
            terms.append(
                f"(buffers[B_BLOCK_MASK].host[((b * HEADS_Q + h) * {rows} + i / 128) * {keys} + j / 1024] >> (j / 128 % 8) & 1)"
            )
        if self.has("bias") and self.tensors["bias"]["dtype"] == "bool":
            terms.append("element(&view_bias, b, h, i, j) != 0")
        return " && ".join(terms)

    def keep(self):
        scale = float(self.case["keep_scale"])
        if self.has("dropout_mask"):
            return f" * (element(&view_dropout_mask, b, h, i, j) != 0 ? {scale!r} : 0)"
        if self.case["dropout"] > 0:
            return f" * (buffers[B_KEEP].host[((b * HEADS_Q + h) * (int64_t)SEQ_Q + i) * SEQ_KV + j] ? {scale!r} : 0)"
        return ""

    # ---- the comparison

    def rule(self, word, lengths, is_row=False, scale="1"):
        """The lines that judge one output; `lengths`: of its rows."""
        about = self.tensors[word]
        dim = self.sums.get(word, about)["dim"]
        u, eta, largest = ("0", "0", "INFINITY") if is_row else rounding(about["dtype"])
        if f"scale_{word}" in self.arrays:
            scale = self.scalar("scale_" + word)
        gradient = word.startswith("d")
        behind = "NULL" if gradient and not self.of_packed(word) else lengths
        written = lengths if about["packed"] else "NULL"
        return (
            f'    compare(&(rule){{ "{word}", {{ {", ".join(str(n) for n in dim)} }}, {u}, {eta}, {largest}, {scale}, {str(is_row).lower()}, {behind}, {written} }}, '
            f"&view_{word}, {word});"
        )

    def of_packed(self, word):
        return word[1] in "qkv" and len(word) == 2 and self.tensors[word[1]]["packed"] != ""

    def comparisons(self):
        if self.backward:
            for word, lengths in (("dq", "len_q"), ("dk", "len_kv"), ("dv", "len_kv")):
                yield self.rule(word, lengths)
            if self.has("dbias"):
                yield self.rule("dbias", "NULL")
            numbers, tops = {"amax_dp": 4}, ("dq", "dk", "dv")
        else:
            yield self.rule("o", "len_q")
            for word in filter(self.has, ("stats", "max", "sum_exp")):
                in_log2 = word == "stats" and self.case["stats_log2"]
                yield self.rule(word, "len_q", True, "1.4426950408889634" if in_log2 else "1")
            numbers, tops = {"amax_s": 6}, ("o",)
        for word, bits in numbers.items():
            if word in self.arrays:
                yield f'    compare_small("{word}", {name(word)}, 1, &(double){{ {word} }}, &(double){{ {word} * 0x1p-{bits} }});'
        for word in tops:
            if "amax_" + word in self.arrays:
                count = " * (int64_t)".join(str(n) for n in self.tensors[word]["dim"])
                yield f'    compare_top("amax_{word}", {name("amax_" + word)}, {word}, {count});'
        if "dsink" in self.arrays:
            yield "    for (int64_t h = 0; h < HEADS_Q; h++)"
            yield "        dsink.error[h] = 4 * sqrt(dsink.error[h]) + 0x1p-20 * fabs(dsink.want[h]);"
            yield '    compare_small("dsink", B_DSINK, HEADS_Q, dsink.want, dsink.error);'
        for word in ("scratch", "rng_dump"):  # not judged
            if word in self.buffers:
                yield f"    memset(buffers[{name(word)}].owned, 1, (size_t)buffers[{name(word)}].bytes);"

    def bias_words(self):
        if not self.has("dbias"):
            return "", "", "", "", ""
        dim, at = self.sums.get("dbias", self.tensors["dbias"])["dim"], "0"
        for extent, letter in zip(dim, "bhij"):
            place = letter if extent > 1 else "0"
            at = f"({at} * {extent} + {place})" if at != "0" else place
        count = " * (int64_t)".join(str(n) for n in dim)
        u, eta, _ = rounding(self.tensors["dbias"]["dtype"])
        full = [self.case[key] for key in ("batch", "heads_q", "seq_q", "seq_kv")]
        casts, parts = casts_of_bias(dim, full, self.case["scale"])
        # an engine casts scale dX, and divides
        eta = f"{eta} / {min(abs(self.case['scale']), 1.0) or 1.0!r}"
        settle = f"    for (int64_t n = 0; n < {count}; n++)\n        dbias.error[n] = sqrt(dbias.error[n]) + {eta} * (1 + sqrt({casts * parts}.0));"
        return at, f"{u} * sqrt({casts}.0)", f"    dbias = make_answer({count});", settle, ", dbias"

    def runs(self):
        is_repeated = self.case["deterministic"] or self.row.get("verdict") == "nondeterministic"
        return min(self.case["repeat"], 50) if self.case["repeat"] > 1 else 10 if is_repeated else 1


def name(word):
    return "B_" + word.upper()


def words(case, row):
    """The words of the template, except the graph and the plan."""
    p = Program(case, row)
    bound, constants = p.bind()
    numbers, inputs = p.inputs()
    at, u_bias, make_bias, settle_bias, bias_answer = p.bias_words()
    u = rounding(case["dtype"])[0]
    types = {about["dtype"].replace("mx", "") for about in p.tensors.values()}
    paged = [word for word in ("k", "v") if p.has(word) and p.tensors[word]["page"]]
    offsets = [word for word in p.arrays if word.endswith("_offsets")]
    offsets += [word for word in p.arrays if word.startswith("table_offsets")]
    wide = [w for w in offsets if p.buffers.get(w, (0,))[0] == 8 * p.arrays[w]["count"]]
    dsink = "dsink" in p.arrays
    sizes = "batch heads_q heads_k heads_v seq_q seq_kv dim_qk dim_v rope_dim"
    out = {key: case[key] for key in sizes.split()}
    fractions = {"bf16": (7, -133), "f16": (10, -24), "f32": (23, -149)}.get(case["dtype"], (0, 0))
    if case["rope_dim"] and (p.backward or fractions == (0, 0)):
        raise CannotSay("rope: the program rotates Q and K of 16 bit types, for a forward alone")
    compare = "\n".join(p.comparisons())
    sink = "number(CUDNN_DATA_FLOAT, buffers[B_SINK].host + 4 * h)"

    def start_of_table(word):
        packed = f"integer({name('table_offsets_' + word)}, b)"
        return packed if case["packed_table"] else f"b * {case['table_' + word]}"

    out.update(
        integers="integer(" in p.length("q") + p.length("kv") or p.is_ragged() or bool(paged),
        scalars="scalar(" in inputs + compare,
        fwd=not p.backward,
        ragged=p.is_ragged(),
        paged=bool(paged),
        mx=p.mx,
        rope=case["rope_dim"] > 0,
        half="f16" in types or "e5m2" in types,
        e5m2="e5m2" in types,
        e4m3="e4m3" in types,
        truth=p.has("bias") and p.tensors["bias"]["dtype"] == "bool",
        captured=case["exec"] == "graph",
        constants="\n".join(constants),
        plus_constants=" + sizeof constants / sizeof *constants" if constants else "",
        runs=p.runs(),
        scale=repr(float(case["scale"])),
        buffer_names=", ".join(name(word) for word in p.buffers),
        numbers=numbers,
        read_inputs=inputs,
        modify="\n".join(p.modify()),
        seen=p.seen(),
        keep=p.keep(),
        buffers="\n".join(
            f'    {{ "{word}", {size}, {str(output).lower()}, {skew}, NULL, NULL, NULL, NULL }},'
            for word, (size, output, skew) in p.buffers.items()
        ),
        bindings="\n".join(
            f"    {{ {uid}, {name(word)}, {offset} }}," for uid, word, offset in bound
        ),
        views="\n".join(p.view(word) for word in p.tensors if word != "rng_dump"),
        len_q=p.length("q"),
        len_kv=p.length("kv"),
        wide_integers=" || ".join(f"i == {name(word)}" for word in wide) or "0",
        offset_unit="t->stride[2]" if case["ragged_tokens"] else "1",
        page_of=by_side(paged, lambda word: p.tensors[word]["page"]),
        table_start=by_side(paged, start_of_table),
        fraction_bits=fractions[0],
        least_step=fractions[1],
        u_p=u,
        u_ds=f", U_DS = {'2 * ' if p.mx else ''}{rounding(p.ds_type())[0]}" if p.backward else "",
        noise="0x1p-11" if p.narrow else "0x1p-21",
        stats_tolerance="0x1p-9" if p.narrow else "0x1p-17",
        accumulated="0x1p-11" if p.narrow else "0x1p-20",
        sink=sink if case["sink"] else "-INFINITY",
        amax=any(word.startswith("amax") for word in p.arrays),
        small="compare_" in compare.replace("compare(", ""),
        tops="compare_top(" in compare,
        pair=p.has("max") and p.has("sum_exp") and not p.backward,
        dbias=p.has("dbias"),
        dsink=dsink,
        dbias_at=at,
        u_dbias=u_bias,
        more_answers=bias_answer + (", dsink" if dsink else ""),
        make_answers="\n".join(
            filter(None, (make_bias, "    dsink = make_answer(HEADS_Q);" * dsink))
        ),
        settle_answers=settle_bias,
        compare=compare,
    )
    return out


def by_side(paged, value):
    """What K's and V's pages differ in."""
    if len(paged) == 2:
        return f"t->buffer == B_K ? {value('k')} : {value('v')}"
    return value(paged[0]) if paged else ""
