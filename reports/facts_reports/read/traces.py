"""Traces of models as text for `facts import -`: a line for each distinct attention call, with how often it was made.

PyTorch's profiler   {"traceEvents": [...]}, of any size: it is read in pieces, and only events that name an attention are parsed.
                     `record_shapes=True` gives "Input Dims", "Input Strides", "Input type" and "Concrete Inputs".
FlashInfer           a definition (fi_trace) has heads, channels and page size; a workload of flashinfer-bench has the other extents
"""

import contextlib
import gzip
import json
import re
from collections import Counter
from types import SimpleNamespace

from .reader import InputError

MOST = 500_000  # events of attention: about 400 MB
_PIECE, _EVENT = 1 << 22, 1 << 16  # bytes; the longest event of attention
_NAME = re.compile(rb"caled(?:_dot_product|DotProduct)")
_CALL = "aten::scaled_dot_product_attention"
_DECODER = json.JSONDecoder()
_NODE = "autograd::engine::evaluate_function: ScaledDotProduct"
_WORDS = b'"traceEvents" "schemaVersion" "op_type" "definition"'.split()
_TYPES = {
    **{"c10::BFloat16": "bf16", "c10::Half": "f16", "c10::Float8_e4m3fn": "e4m3", "float": "f32"},
    **{"bfloat16": "bf16", "float16": "f16", "float8_e4m3fn": "e4m3"},
}
# Places of the arguments: query, mask, dropout, causal, scale, enable_gqa, compute_log_sumexp; -1: none.
_FORMS = {
    _CALL: (0, 3, 4, 5, 6, 7, -1),
    "aten::_scaled_dot_product_attention_math": (0, 3, 4, 5, 7, 8, -1),
    "aten::_scaled_dot_product_flash_attention": (0, -1, 3, 4, 6, -1, -1),
    "aten::_scaled_dot_product_flash_attention_backward": (1, -1, 10, 11, 14, -1, -1),
    "aten::_scaled_dot_product_flash_attention_for_cpu": (0, 5, 3, 4, 6, -1, -1),
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": (1, 8, 6, 7, 9, -1, -1),
    "aten::_scaled_dot_product_efficient_attention": (0, 3, 5, 6, 7, -1, 4),
    "aten::_scaled_dot_product_efficient_attention_backward": (1, 4, 9, 11, 12, -1, -1),
    "aten::_scaled_dot_product_cudnn_attention": (0, 3, 5, 6, 8, -1, 4),
    "aten::_scaled_dot_product_cudnn_attention_backward": (1, 8, 13, 14, 15, -1, -1),
}


def is_trace(path):
    """Is it a file for this module? (cmd_import.c asks the same.)"""
    with open(path, "rb") as file:
        head = file.read(1 << 14)
    is_object = head.lstrip()[:1] == b"{" and any(word in head for word in _WORDS)
    return is_object or head[:2] == b"\x1f\x8b"


def text_of(paths):
    """Lines for `facts import -`. Raises InputError."""
    lines, objects = [], []
    for path in paths:
        try:
            with open(path, "rb") as file:
                packed = file.read(2) == b"\x1f\x8b"
            with (gzip.open if packed else open)(path, "rb") as file:
                head = file.read(1 << 14)
                file.seek(0)
                if any(word in head for word in _WORDS[2:]):
                    said = file.read(1 << 26).decode()
                    one_a_line = said.splitlines() if path.endswith("l") else [said]
                    objects += map(json.loads, one_a_line)
                else:
                    lines += _of_profiler(file)
            found = _of_flashinfer(objects) if path == paths[-1] else []
        except (EOFError, KeyError, TypeError, IndexError, AttributeError, ValueError) as error:
            said = error if isinstance(error, (InputError, EOFError)) else f"broken: {error!r}"
            raise InputError(f"{path}: {said}") from None
    return "".join(f"{line}\n" for line in lines + found)


# ---- PyTorch's profiler ----


def _object_at(held, place):
    """The innermost object around a place that has a name, or {}."""
    first = max(0, place - _EVENT)
    for found in [*re.finditer(rb"{", held[first:place])][:-64:-1]:
        begin = first + found.start()
        with contextlib.suppress(ValueError):
            said = held[begin : begin + _EVENT].decode("utf-8", "replace")
            if isinstance((event := _DECODER.raw_decode(said)[0]).get("name"), str):
                return event
    return {}


def _objects(file):
    """The objects of a stream that name an attention."""
    held, done, piece = b"", 0, b" "
    while piece:
        piece = file.read(_PIECE)
        held += piece
        until = len(held) - _EVENT if piece else len(held)
        for found in _NAME.finditer(held, done):
            if found.start() >= until:
                break
            done = found.end()
            yield _object_at(held, found.start())
        cut = max(0, until - _EVENT) if piece else 0
        held, done = held[cut:], max(done, until) - cut
    if not held.rstrip().endswith((b"}", b"]")):
        raise InputError("the trace is cut off")


def _events(file):
    """With `text`, the call ("" of a node of autograd), and `sequence`, which joins a forward with its node (None: gradients were off)."""
    for event in _objects(file):
        name, args = event.get("name", ""), event.get("args")
        is_node = name.startswith(_NODE)
        if event.get("ph") != "X" or not args or not (is_node or name in _FORMS):
            continue
        if not is_node and "Input Dims" not in args:
            raise InputError("the trace has no shapes: profile with record_shapes=True")
        one = SimpleNamespace(name=name, math=False, sequence=args.get("Sequence number"))
        one.text, one.keeps = ("", False) if is_node else _call(name, args)
        one.start, one.thread = float(event["ts"]), f"{event.get('pid')} {event.get('tid')}"
        one.end = one.start + float(event["dur"])
        yield one


def _call(name, args):
    """(the call as text, does it keep what a backward needs?)"""
    names = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    dims, types, strides, values = (args.get(key) or [] for key in names)

    def at(some, place):
        return some[place] if 0 <= place < len(some) else ""

    def tensor(place):
        laid = f" stride {tuple(strides[place])}" if strides else ""
        return f"{_TYPES.get(types[place], types[place])}{dims[place]}{laid}"

    query, mask, dropout, causal, scale, gqa, keeps = _FORMS[name]
    said = [f"{word}: {tensor(query + i)}" for i, word in enumerate(("query", "key", "value"))]
    said += [f"attn_mask: {tensor(mask)}"] if at(dims, mask) else []
    places = {"dropout_p": dropout, "is_causal": causal, "scale": scale, "enable_gqa": gqa}
    said += [f"{word}={at(values, place)}" for word, place in places.items() if at(values, place)]
    said += ["enable_gqa=True"] * (gqa < 0)  # an inner form has no switch for fewer heads of K
    return ", ".join(said), at(values, keeps) == "True"


def _of_profiler(file):
    """Each call once, whatever forms it has inside; a backward counts for its forward."""
    events = []
    for event in _events(file):
        events.append(event)
        if len(events) > MOST:
            raise InputError(f"more than {MOST:,} attention events; profile fewer steps")
    forwards, backwards = _nested(events)
    joined, kept, plain, back, notes = {}, Counter(), Counter(), Counter(), {}
    for one in sorted(forwards, key=lambda one: one.start):  # compiled code has no numbers
        joined.setdefault(one.text if one.sequence is None else one.sequence, []).append(one)
    for event, node in backwards:
        some = joined.get(node.sequence if node else event.text, ())
        some = [one for one in some if one.start < event.start and (node or not one.keeps)]
        back[some[-1].text if some else event.text] += 1
        for forward in some[-1:]:
            forward.keeps = True
    for one in forwards:
        (kept if one.keeps else plain)[one.text] += 1
        if one.math and one.sequence is not None and not one.keeps:
            notes[one.text] = " # assumed: no gradients: PyTorch's math form does not show them"
        if "stride" not in one.text:
            notes[one.text] = " # assumed: dense tensors: the trace has no strides"
    for text, _ in sorted((kept + plain + back).items(), key=lambda one: (-one[1], one[0])):
        call, note = f"scaled_dot_product_attention({text}, ", notes.get(text, "")
        if kept[text] + back[text]:
            yield f"{call}requires_grad=True, calls={kept[text]}/{back[text]}){note}"
        if plain[text]:
            yield f"{call}calls={plain[text]}){note}"


def _nested(events):
    """(the outermost forwards, the backwards with their nodes of autograd)"""
    forwards, backwards, stack = [], [], []
    for event in sorted(events, key=lambda one: (one.thread, one.start, -one.end)):
        while stack and (stack[-1].thread != event.thread or stack[-1].end <= event.start):
            stack.pop()
        if event.name.endswith("_backward"):
            backwards.append((event, next((one for one in stack[::-1] if not one.text), None)))
            continue
        stack.append(event)
        outer = next((one for one in stack if one.text), None)
        forwards += [event] if outer is event else []
        if event.text and event.sequence is not None:
            outer.sequence = event.sequence
        if event.name == _CALL:  # autocast calls it again, with what it has cast
            outer.text = event.text
        if outer:
            outer.keeps |= event.keeps
            outer.math |= event.name.endswith("_math")
    return forwards, backwards


# ---- FlashInfer ----


def _of_flashinfer(objects):
    """A case for each workload; of a definition without one, a case whose extents are assumed."""
    known, counted, lines = {one["name"]: one for one in objects if "op_type" in one}, Counter(), []
    for one in objects:
        if "workload" in one:
            counted[one["definition"], tuple(one["workload"]["axes"].items())] += 1
    alone = [((name, ()), 0) for name in known if name not in {name for name, _ in counted}]
    for (name, axes), count in [*counted.items(), *alone]:
        if name not in known:
            raise InputError(f"a workload of {name}: give the file of its definition, too")
        if known[name]["op_type"] in ("gqa_paged", "gqa_ragged"):
            lines.append(f"calls {count} " * bool(count) + _case(known[name], dict(axes)))
    if known and not lines:
        said = ", ".join(sorted({one["op_type"] for one in known.values()}))
        raise InputError(f"no case has the operation {said}")
    return lines


def _case(definition, given):
    """A definition with the extents of a workload: every sequence as long as the mean of all."""
    axes = {name: one.get("value") for name, one in definition["axes"].items()} | given
    inputs, page = definition["inputs"], axes.get("page_size")
    is_decode, mean = "stage:decode" in definition["tags"], "the mean of the lengths"
    batch = axes.get("batch_size") or (axes.get("len_indptr") or 3) - 1
    keys = axes.get("total_kv") or (axes.get("num_kv_indices") or 0) * (page or 0)
    lengths = [batch if is_decode else axes.get("total_q"), keys]
    sizes = [-(-some // batch) if some else 512 for some in lengths]
    said = f"{mean if all(lengths) else 'b=2, s=512'}{'' if is_decode else ', a causal mask'}"
    dtype, order = (inputs.get("q") or inputs["query"])["dtype"], "bshd" if is_decode else "thd"
    if page:
        by_head = inputs["k_cache"]["shape"][1] == "num_kv_heads"
        order += f"_{'bhsd' if by_head else 'bshd'} paged={page}"
    heads = f"{axes['num_qo_heads']}/{axes['num_kv_heads']}"
    words = (
        f"pass=fwd dtype={_TYPES.get(dtype, dtype)} b={batch} h={heads} s={sizes[0]}/{sizes[1]} "
    )
    words += f"d={axes['head_dim']} layout={order} padding=random"
    return f"{words}{'' if is_decode else ' mask=causal_br'} # assumed: {said}"
