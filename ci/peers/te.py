"""TransformerEngine's tables of attention configurations in the case language: te.table has the facts, here is what each test does with its table."""

from pathlib import Path

TABLE = Path(__file__).with_name("te.table")
DENSE = (
    "sb3hd",
    "sbh3d",
    "sbhd_sb2hd",
    "sbhd_sbh2d",
    "sbhd",
    "bs3hd",
    "bsh3d",
    "bshd_bs2hd",
    "bshd_bsh2d",
    "bshd",
)
RAGGED = ("t3hd", "th3d", "thd_t2hd", "thd_th2d", "thd")
# The layouts that a table is run in; without an entry the test chooses by the shape (_own_layout).
LAYOUTS = {
    "max_logit": ("sbhd", "thd"),
    "d256": ("bshd_bs2hd", "thd_t2hd"),
    "fa4_mla": ("bshd",),
    "fa4_swa": ("sbhd", "bshd"),
    "fa4_varlen": ("thd", "bshd"),
    "softmax": ("bshd", "thd"),
    "swa": ("thd", "sbhd"),
    "layout": DENSE,
    "layout_thd": RAGGED,
    "te_layer": ("sbhd", "bshd", "thd"),
    "fp8_extra_state": ("bshd",),
    "fp8_vs_f16": ("bshd", "sbhd"),
    "fp8": ("bs3hd",),
    "flash_attn": ("bshd", "thd"),
    "fused_attn": ("bshd", "sbhd", "thd"),
    "infer": ("bshd", "sbhd", "thd"),
}
LEAN = (
    "fa4_base",
    "fa4_hdim256",
    "fa4_mla",
    "fa4_swa",
    "fa4_varlen",
    "fa4_mask",
    "softmax",
    "mask",
    "bias",
    "bias_shapes",
    "swa",
    "alibi_slopes",
    "layout",
    "layout_thd",
    "flash_attn",
    "fused_attn",
)  # bf16 alone
FORWARD = ("fa4_hdim256",)
WHERE = {
    "flash_attn": "test_attention_with_cp.py, flash; on one GPU",
    "fused_attn": "test_attention_with_cp.py, fused; on one GPU",
    "infer": "test_kv_cache.py",
}


def rows():
    """[(table, name, {key: text})]"""
    found = []
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        table, name, b, s, h, d, *rest = line.split()
        found.append(
            (table, name, {"b": b, "s": s, "h": h, "d": d} | dict(word.split("=") for word in rest))
        )
    return found


def _own_layout(c):
    plain = "/" not in c["h"] and "/" not in c["d"]
    if "/" in c["s"]:
        return "bshd_bs2hd" if plain else "bshd"
    return "sb3hd" if plain else "sbhd"


def _fits(layout, c):
    """Packed Q, K, V are of one shape; packed K, V of one head dim."""
    three, two = "3" in layout, "2" in layout
    return not (three and ("/" in c["s"] or "/" in c["h"] or "/" in c["d"])) and not (
        two and "/" in c["d"]
    )


def _band(table, c):
    mask = c.get("mask", "no_mask").removeprefix("padding").removeprefix("_") or "no_mask"
    window = c.get("window", "2:2" if table == "swa" else "")
    if not window:
        return [f"mask={mask}"] if mask != "no_mask" else []
    left, right = window.split(":")
    return [f"window={int(left) + 1}:{0 if mask.startswith('causal') else right}"] + [
        "align=br"
    ] * (mask == "causal_br")


def _shape(c):
    return [f"{key}={c[key]}" for key in "bhsd"]


def _bias(c, backward):
    kind, shape = c.get("bias"), c.get("shape", "1hss")
    if kind == "alibi":
        # Slopes for each batch entry are a bias there too.
        return (
            ["alibi=1"]
            if c.get("alibi", "vanilla") == "vanilla"
            else ["alibi=custom"]
            if shape == "1hss"
            else ["bias=bhss", "bias_dtype=f32"]
        )
    if kind != "post_scale_bias":
        return []
    return [f"bias={shape}"] + ["dbias=1"] * (backward and shape != "111s")


def _softmax(c, backward):
    word = c.get("softmax", "vanilla")
    return (
        []
        if word == "vanilla"
        else [f"softmax={word}"] + ["dsink=1"] * (backward and word == "sink")
    )


def _eight_bit(table, c, layout):
    """fp8 tests: forward and backward in 8 bits, or a backward in 16."""
    shape = (
        _shape(c)
        + [f"layout={layout}"]
        + _band(table, c)
        + (["padding=random"] if "padding" in c.get("mask", "") else [])
    )
    lines = []
    for scaling in ("delayed", "current") if table == "fp8_vs_f16" else ("delayed",):
        tail = (
            ["out=f16,bf16"] * (scaling == "current")
            + shape
            + ["scales=odd"]
            + [f"scaling={scaling}"] * (scaling != "delayed")
        )
        lines.append(["pass=fwd", "dtype=e4m3"] + tail + _softmax(c, False) + ["want=stats"])
        lines.append(
            ["pass=bwd", "dtype=e4m3"]
            + ["grad=f16,bf16"] * (scaling == "current")
            + ["grad=e5m2"] * (scaling == "delayed")
            + ["do_dtype=e5m2"]
            + tail
            + _softmax(c, True)
        )
        if table == "fp8_vs_f16":
            lines.append(
                ["pass=bwd", "dtype=e4m3", "bwd_dtype=f16,bf16"] + shape + _softmax(c, True)
            )
    if table == "fp8_vs_f16":
        lines.append(
            ["pass=fwd", "dtype=mxe4m3", "out=f16,bf16"]
            + shape
            + _softmax(c, False)
            + ["want=stats"]
        )
        lines.append(["pass=bwd", "dtype=mxe4m3", "out=f16,bf16"] + shape + _softmax(c, True))
    return lines


def _cache(c, layout):
    """A prompt, then row by row against the cache, dense or paged."""
    most = int(c["s"])
    head = ["pass=fwd", "dtype=f16,bf16", f"b={c['b']}", f"h={c['h']}"]
    if layout == "thd":
        return [
            head
            + [
                f"s={rows}/{most}",
                f"d={c['d']}",
                "layout=thd_bhsd",
                "mask=causal_br",
                "padding=random",
                "paged=64",
            ]
            for rows in (int(c["context"]), 1)
        ]
    return [
        head
        + [
            f"s={rows}/{most}",
            f"d={c['d']}",
            f"layout={layout}_bshd",
            "mask=causal_br",
            "padding=random",
            "paged=0,64",
            "exec=eager,graph_update",
        ]
        for rows in (int(c["context"]), 1)
    ]


def _sixteen_bit(table, c, layout):
    dtype = "bf16" if table in LEAN else "bf16,f16"
    ragged = layout in RAGGED
    padded = ragged or "padding" in c.get("mask", "")
    passes = ("fwd",) if table in FORWARD or c.get("shape") == "111s" else ("fwd", "bwd")
    lines = []
    for one in passes:
        words = (
            [f"pass={one}", f"dtype={dtype}"]
            + _shape(c)
            + [f"layout={layout}"]
            + _band(table, c)
            + ["padding=random"] * padded
        )
        words += (
            ["slots=tight,+3"] * (table == "layout_thd")
            + _bias(c, one == "bwd")
            + _softmax(c, one == "bwd")
        )
        wanted = ["stats"] + ["max"] * (table == "max_logit" or "max_logit" in c)
        lines.append(words + ["want=" + "+".join(wanted)] * (one == "fwd"))
    return lines


def lines(table, c):
    """The cases (patterns) of one configuration."""
    found = []
    for layout in LAYOUTS.get(table) or (_own_layout(c),):
        if not _fits(layout, c):
            continue
        make = (
            _cache(c, layout)
            if table == "infer"
            else _eight_bit(table, c, layout)
            if table.startswith("fp8")
            else _sixteen_bit(table, c, layout)
        )
        found += [" ".join(words) for words in make]
    return found


def groups():
    """[(group, why, [(case, comment)], [])]"""
    found = {}
    for table, name, c in rows():
        group = found.setdefault(
            table,
            (
                f"te.{table}",
                f"TransformerEngine's table model_configs_{table} ({WHERE.get(table, 'test_attention.py')}), in the layouts that its test runs",
                [],
                [],
            ),
        )
        group[2].extend((case, name) for case in lines(table, c))
    return list(found.values())
