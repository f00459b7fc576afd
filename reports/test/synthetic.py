"""Synthetic records for the tests: the form of real ones, invented numbers. Also a hostile one."""

import itertools
import json
import random

BUILDS = ("9.14.0", "9.19.0", "9.20.0", "9.27.0")
DEVICES = (("h100-sxm", 90, "measured"), ("sm80-spec", 80, "decided"))
DECIDED = (DEVICES[1], ("h100-spec", 90, "decided"))
GROUPS = {
    "basics": "every model starts here: plain, causal, both passes",
    "head dims": "where engines change: 64, 128, 192, 256, and a multiple of 4 only",
    "grouped heads": "grouped and single KV heads",
    "layouts": "memory orders that frameworks use",
    "very negative rows": "log-sum-exp far below -88: reported NaN in dQ",
}


def cases():
    """[(name, group)]"""
    out = []
    for p, t, m in itertools.product(
        ("fwd", "bwd"), ("bf16", "f16"), ("", "mask=causal", "mask=causal_br", "window=129:0")
    ):
        out.append((f"pass={p} dtype={t} {m}".strip(), "basics"))
    for p, d, m in itertools.product(
        ("fwd", "bwd"), ("64", "100", "192/128", "256", "512"), ("", "mask=causal")
    ):
        out.append((f"pass={p} dtype=bf16 d={d} {m}".strip(), "head dims"))
    for p, h, s in itertools.product(
        ("fwd", "bwd"), ("8/2", "8/1", "16/4"), ("", "s=1/1024", "s=257/512")
    ):
        out.append((" ".join(f"pass={p} dtype=bf16 h={h} {s}".split()), "grouped heads"))
    for p, tail in itertools.product(
        ("fwd", "bwd"),
        (
            "layout=sbhd",
            "layout=bhsd",
            "layout=bs3hd",
            "stride=gap:8",
            "stride=broadcast:k.b+v.b",
            "padding=random",
            "padding=zero:kv",
        ),
    ):
        out.append((f"pass={p} dtype=bf16 {tail}", "layouts"))
    for s, d in itertools.product(("64", "128", "192", "704"), ("64", "128")):
        tail = " ".join(
            x for x in (f"s={s}" if s != "512" else "", f"d={d}" if d != "128" else "") if x
        )
        out.append((f"pass=bwd dtype=bf16 {tail} fill=neglse", "very negative rows"))
    return out


def _refusal(engine):
    return {
        "class": "unsupported",
        "status": "CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
        "text": "Embedding dim per head for q and k is not a multiple of 8 at: d_qk % 8 != 0",
        "chain": [
            {
                "engine": engine,
                "status": "CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
                "text": "Embedding dim per head for q and k is not a multiple of 8",
                "condition": "d_qk % 8 != 0",
            },
            {
                "engine": 1,
                "status": "CUDNN_STATUS_NOT_SUPPORTED_SHAPE",
                "text": "d is not a multiple of 8",
                "condition": "d % 8 != 0",
            },
        ],
    }


def refused(one, text, status="CUDNN_STATUS_NOT_SUPPORTED", **reason):
    """Makes a row a refusal."""
    one |= {"verdict": "unsupported", "supported": False, "engine": None, "engines": []}
    one |= {
        "errors": {},
        "reason": {"class": "unsupported", "status": status, "text": text, **reason},
    }


def row(case, group, build, device, run, rng):
    name, sm, grade = device
    tokens = dict(t.split("=", 1) for t in case.split())
    engine = 2 if sm == 90 else 1
    out = {
        "case": case,
        "cudnn": build,
        "build": f"{build}-jit-cu13",
        "device": name,
        "sm": sm,
        "grade": grade,
        "backend": "cudnn",
        "attempt": 1,
        "run": run,
        "group": group,
    }
    if tokens.get("d") == "100":
        return {
            **out,
            "verdict": "unsupported",
            "supported": False,
            "reason": _refusal(engine),
            "decide_us": 900,
        }
    out |= {
        "supported": True,
        "engine": engine,
        "config": 0,
        "workspace_bytes": rng.choice((0, 16384, 1 << 22)),
        "decide_us": rng.uniform(800, 2400),
        "plan_ms": rng.uniform(250, 900),
        "engines": [
            {
                "mode": "A",
                "index": engine,
                "config": 0,
                "knobs": {"KERNEL_CFG": 7, "TILE_M": 3},
                "notes": ["RUNTIME_COMPILATION"],
                "workspace_bytes": 16384,
            },
            {"mode": "A", "index": 1, "config": 1, "knobs": {"KERNEL_CFG": 3}, "notes": []},
        ],
    }
    if grade != "measured":
        return {**out, "verdict": "pass"}
    tensors = ("dq", "dk", "dv") if tokens["pass"] == "bwd" else ("o",)
    errors = {
        t: {
            "ratio": rng.uniform(0.1, 0.8),
            "gate": "t1",
            "rms": rng.uniform(0.2, 0.6),
            "worst_index": [0, 3, 17, 40],
            "got": rng.gauss(0, 1),
            "want": rng.gauss(0, 1),
            "bound": 0.0039,
            "checked": 1 << 20,
        }
        for t in tensors
    }
    out |= {
        "verdict": "pass",
        "errors": errors,
        "exec_us": rng.uniform(20, 900),
        "wall_ms": rng.uniform(300, 2000),
        "inputs_from": "reference",
    }
    old = build in ("9.14.0", "9.19.0", "9.20.0")
    if tokens.get("fill") == "neglse" and old and int(tokens.get("s", "512")) % 128 == 64:
        errors["dq"] |= {"ratio": "inf", "gate": "t0", "got": "nan", "want": -1.25e-7}
        out |= {
            "verdict": "nan",
            "expectation": {
                "verdict": "nan",
                "since": "2026-08-01",
                "link": "https://github.com/pytorch/pytorch/issues/196678",
            },
        }
    if tokens.get("padding") == "zero:kv" and tokens["pass"] == "fwd" and old:
        errors["o"] |= {"ratio": "inf", "gate": "poison", "got": "nan", "want": 0.0}
        out["verdict"] = "unwritten"
    if (
        tokens.get("s") == "257/512"
        and tokens["h"] == "16/4"
        and tokens["pass"] == "bwd"
        and build == "9.27.0"
    ):
        errors["dk"] |= {"ratio": 7.4, "got": 0.5, "want": 0.52}
        out["verdict"] = "wrong"
    if tokens.get("stride") == "gap:8" and tokens["pass"] == "bwd" and build == "9.14.0":
        out |= {
            "verdict": "crash",
            "supported": None,
            "errors": {},
            "reason": {"class": "internal", "text": "worker died: signal 11 in stage exec"},
        }
    return out


def target(build, device, run):
    name, sm, _ = device
    return {
        "run": run,
        "build": f"{build}-jit-cu13",
        "device": name,
        "cudnn": build,
        "sm": sm,
        "driver": 13000,
        "device_name": "NVIDIA H100 80GB HBM3" if sm == 90 else "described sm_80",
        "libraries": [
            {
                "path": f"/opt/cudnn/{build}/lib/{lib}.so.9",
                "bytes": 1000,
                "sha256": f"{abs(hash((build, lib))):064x}"[:64],
                "record": "ok",
            }
            for lib in ("libcudnn", "libcudnn_graph", "libcudnn_engines_runtime_compiled")
        ],
        "start_ms": 120.5,
    }


def record(builds=BUILDS, devices=DEVICES, drop=0, seed=1, extra=0, run="r1"):
    """Lines of one record. `drop` rows are left out (and `end`); `extra` random cases make it large."""
    rng = random.Random(seed)
    planned = cases()
    for i in range(extra):
        planned.append(
            (
                f"pass={rng.choice(('fwd', 'bwd'))} dtype={rng.choice(('bf16', 'f16'))} b={rng.randint(1, 32)} h={rng.choice(('8', '16/4', '32/8'))} "
                f"s={rng.randint(1, 4096)}/{rng.randint(1, 4096)} d={8 * rng.randint(2, 32)} layout={rng.choice(('sbhd', 'bhsd', 'bs3hd'))} seed={i + 2}",
                "random",
            )
        )
    targets = [(b, d) for d in devices for b in builds]
    yield {
        "run": {
            "id": run,
            "facts": "0.1.0",
            "started": "2026-11-20T09:30:00Z",
            "command": ["facts", "matrix", "-o", "out"],
            "suite": "smoke",
            "suite_hash": "5f0c3a9e12d47b68",
            "seed": 1,
            "host": "node-7",
            "planned": len(planned) * len(targets),
            "groups": GROUPS,
            "targets": [{"build": f"{b}-jit-cu13", "device": d[0]} for b, d in targets],
        }
    }
    rows, counts = 0, {}
    for b, d in targets:
        yield {"target": target(b, d, run)}
        for case, group in planned:
            if rows >= len(planned) * len(targets) - drop:
                return
            yield {
                "start": {
                    "run": run,
                    "case": case,
                    "build": f"{b}-jit-cu13",
                    "device": d[0],
                    "attempt": 1,
                    "config": 0,
                }
            }
            one = row(case, group, b, d, run, rng)
            counts[one["verdict"]] = counts.get(one["verdict"], 0) + 1
            rows += 1
            yield one
    yield {"end": {"run": run, "complete": True, "rows": rows, "counts": counts}}


def gate(device=DEVICES[0], lost="stride=gap:8"):
    """Lines of a gate's record, 9.20.0 against 9.27.0: the newer build refuses the cases with `lost`."""
    for one in record(("9.20.0", "9.27.0"), (device,), run="g1"):
        if "run" in one and "facts" in one["run"]:
            one["run"]["command"] = [
                "facts",
                "gate",
                "--baseline",
                "9.20.0",
                "--candidate=9.27.0",
                "--device",
                device[0],
            ]
        if one.get("cudnn") == "9.27.0" and lost in one.get("case", ""):
            refused(one, "strides with gaps are not supported", "CUDNN_STATUS_NOT_SUPPORTED_LAYOUT")
        yield one


def calm(device=DECIDED[0]):
    """A gate in which nothing changes."""
    return gate(device, "no such case")


def grown():
    """A matrix in which 9.19.0 gains a mask and 9.20.0 loses a head dim."""
    for one in record(devices=DECIDED):
        case, version = one.get("case", ""), one.get("cudnn", "")
        if "verdict" in one and (
            "mask=causal_br" in case
            and version == "9.14.0"
            or "d=512" in case
            and version in ("9.20.0", "9.27.0")
        ):
            refused(one, "not in this version")
        yield one


def many():
    """34 versions. The same times everywhere: what makes changes of noise would search all of them for predicates."""
    versions = [f"9.{minor}.{patch}" for minor in range(8, 25) for patch in (0, 1)]
    return (
        {**one, "plan_ms": 300, "workspace_bytes": 0} if "case" in one else one
        for one in record(versions, (DEVICES[1],))
    )


def text(lines):
    return "".join(json.dumps(item, allow_nan=True) + "\n" for item in lines)


MARKUP = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"><!-- ]]> {{ 7*7 }}"


def hostile():
    """Bytes of a record that means harm: every text field carries markup, control bytes or a link that runs."""
    good = {
        "case": "pass=fwd dtype=bf16",
        "build": "9.20.0-jit-cu13",
        "cudnn": "9.20.0",
        "device": "h100-sxm",
        "sm": 90,
        "grade": "measured",
        "verdict": "pass",
        "supported": True,
        "run": "r",
    }
    items = [
        {
            "run": {
                "id": "r",
                "facts": MARKUP,
                "started": MARKUP,
                "command": [MARKUP, "\x1b[2J"],
                "suite_hash": MARKUP,
                "host": MARKUP,
                "planned": 1 << 70,
                "targets": [MARKUP, 3, {"build": MARKUP}],
                "groups": {MARKUP: MARKUP},
            }
        },
        {
            "target": {
                "build": "9.20.0-jit-cu13",
                "device": "h100-sxm",
                "device_name": MARKUP,
                "libraries": [{"path": MARKUP, "sha256": MARKUP, "record": MARKUP}, 3],
            }
        },
        good,
        {
            **good,
            "case": f"pass=fwd dtype=bf16 d=64 {MARKUP}",
            "verdict": "wrong",
            "reason": {
                "class": MARKUP,
                "status": MARKUP,
                "text": MARKUP * 3,
                "chain": [MARKUP, {"engine": MARKUP, "text": MARKUP}],
            },
            "errors": {
                MARKUP: {"ratio": "inf", "gate": MARKUP, "worst_index": MARKUP, "got": MARKUP},
                "__proto__": {"ratio": 9},
            },
            "engines": [{"mode": MARKUP, "knobs": {MARKUP: MARKUP}, "notes": MARKUP}, 7],
            "group": MARKUP,
            "expectation": {"link": "javascript:document.title='taken'", "verdict": MARKUP},
        },
        {
            **good,
            "case": "pass=bwd dtype=bf16 b=1'; touch /tmp/owned; '",
            "device": '=HYPERLINK("http://x")',
            "verdict": "crash",
            "reason": {"text": "ctrl \x00\x01\x1b[31m \u202e flipped \ud800 \u2028"},
        },
        {
            **good,
            "case": "pass=bwd dtype=bf16 h=8/2",
            "verdict": "unsupported",
            "supported": False,
            "reason": {"class": "unsupported", "text": "long " * 200000},
        },
        {
            **good,
            "case": "pass=fwd dtype=f16 constructor=1 __proto__=2",
            "errors": {"o": {"ratio": float("nan"), "got": float("inf")}},
        },
        {**good, "case": 7},
        {**good, "verdict": "fine"},
        [1, 2],
        {"what": 1},
        {**good, "device": ""},
        {**good, "case": "x" * 2000},
    ]
    data = text(items).encode()
    return (
        data
        + b"\xff\xfe not text\n"
        + b"[" * 100000
        + b"\n"
        + b'{"a":'
        + b"9" * 6000
        + b"}\n"
        + b'{"case":"pass=fwd dtype=bf16 b=3","bui'
    )
