"""cudnn-frontend's configurations in the case language: one line each, its number in a comment."""

import draws

SOURCE = "cudnn-frontend 1.23's test_mhas_v2, as drawn"


def _joined(lengths):
    """256+64+64 as 256+64x2."""
    out, i = [], 0
    while i < len(lengths):
        j = i
        while j < len(lengths) and lengths[j] == lengths[i]:
            j += 1
        out.append(str(lengths[i]) + (f"x{j - i}" if j - i > 1 else ""))
        i = j
    return "+".join(out)


def _pair(a, b):
    return str(a) if a == b else f"{a}/{b}"


def _stride(c):
    """perm, gaps and wild strides of Q, K, V, O, and of what has their shape in a backward. A pool of pages has none of its own."""
    if c["dtype"] not in draws.HALF or c["kind"] == "ragged":
        return ""
    names = {"q": "q dq", "o": "o do", "k": "k dk", "v": "v dv"}
    perms, gaps, wild = [], [], False
    sides = [("qo", c["q_strides"])] + ([] if c["page"] else [("kv", c["k_strides"])])
    for tensors, (order, after, is_wild) in sides:
        wild = wild or is_wild
        for tensor, elements in zip(tensors, after):
            for name in names[tensor].split()[: 2 if c["bwd"] else 1]:
                if order != "bshd":
                    perms.append(f"{name}.{order}")
                gaps += [f"{name}.{dim}.{n}" for dim, n in zip("bhs", elements) if n]
    forms = (
        ["perm:" + "+".join(perms)] * bool(perms)
        + ["gap:" + "+".join(gaps)] * bool(gaps)
        + ["size1:wild"] * wild
    )
    return ";".join(forms)


def _band(c):
    left, right = c["left"], c["right"]
    if left is None and right is None:
        return ""
    if left is None and right == 0:
        return "mask=causal" if c["align"] == "tl" else "mask=causal_br"
    bounds = [str(x) if x is not None else "inf" for x in (left, right)]
    return f"window={':'.join(bounds)}" + (" align=br" if c["align"] == "br" else "")


def _layout(c):
    if c["kind"] == "ragged":
        return "thd"
    return "bhsd" if c["dtype"].startswith("mx") else "bshd_bhsd" if c["page"] else "bshd"


def _ragged(c):
    """Offsets of 64 bits; buffers of a multiple of 64 tokens; a backward declares that as its total."""
    tails = (
        [max(64, -(-sum(n) // 64) * 64) - sum(n) for n in (c["len_q"], c["len_kv"])]
        if c["dtype"] in draws.HALF
        else [0, 0]
    )
    words = ["offsets=i64"] + ([f"tail=q.{tails[0]}+kv.{tails[1]}"] if any(tails) else [])
    if c["bwd"] and c["dtype"] in draws.HALF:
        words.append(f"total=slack:{max(tails)}" if any(tails) else "total=declared")
    return words


def line(c):
    """A configuration as a case."""
    words = [f"pass={'bwd' if c['bwd'] else 'fwd'}", f"dtype={c['dtype']}"]
    if c["out"] != c["dtype"]:
        words += [f"out={c['out']}"] + ([f"grad={c['out']}"] if c["bwd"] else [])
        words += [f"do_dtype={c['dtype']}"] * (
            c["bwd"] and not c["dtype"].startswith("mx")
        )  # O has 16 bits, dO 8
    words += [
        f"b={c['b']}",
        f"h={_pair(c['h_q'], c['h_kv'])}",
        f"s={_pair(c['s_q'], c['s_kv'])}",
        f"d={_pair(c['d_qk'], c['d_v'])}",
        f"layout={_layout(c)}",
    ]
    stride = _stride(c)
    words += [f"stride={stride}"] * bool(stride) + [_band(c)]
    if c["kind"] != "full":
        words.append(f"lens={_joined(c['len_q'])}/{_joined(c['len_kv'])}")
    if c["kind"] == "ragged":
        words += _ragged(c)
    words += (
        ["bias=1hss" + (" dbias=1" if c["bwd"] else "")] * bool(c.get("bias"))
        + ["alibi=1"] * bool(c.get("alibi"))
        + ["blockmask=random"] * c["blocks"]
    )
    words += ["softmax=sink" + (" dsink=1" if c["bwd"] else "")] * bool(c.get("sink"))
    words += ["dropout=0.1 rng=123456:789"] * bool(c.get("dropout"))
    if c["page"]:
        words.append(f"paged={c['page']} table=linspace")
    words += [] if c["dtype"].startswith("mx") else ["scale=0.125"]
    stats = c["dtype"] not in draws.HALF and not c["bwd"]
    wanted = (
        ["stats"] * stats
        + ["max"] * bool(c.get("max"))
        + ["sum_exp"] * bool(c.get("sum_exp"))
        + ["rng_dump"] * bool(c.get("dropout"))
    )
    words += ["want=" + "+".join(wanted)] * bool(wanted) + ["deterministic=1"] * c["deterministic"]
    words += ["impl=unified"] * c["unified"] + ["knob=unfuse_fma:1"] * bool(
        c["unified"] and c.get("unfuse")
    )
    if c.get("rescale") is not None:
        words.append(f"rescale={c['rescale']}")
    return " ".join(w for w in words if w)


def groups():
    """[(group, why, [(case, comment)], [(number, why there is none)])]"""
    found = []
    for name in draws.TESTS:
        cases, lost = [], []
        for number, c in draws.configurations(name):
            if isinstance(c, str):
                lost.append((number, c))
            else:
                cases.append((line(c), f"test{number}"))
        found.append((f"fe.{name}", f"{SOURCE} by test_sdpa_{name}_L0", cases, lost))
    return found
