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


def plain(case="pass=fwd dtype=bf16", build="9.20.0", verdict="pass", device="h100-sxm", **more):
    """A row with the members that every reader looks at."""
    made = {"case": case, "cudnn": build, "build": f"{build}-jit-cu13", "device": device, "sm": 90}
    made |= {"run": "r1", "attempt": 1, "grade": "measured", "backend": "cudnn"}
    return made | {"verdict": verdict, "supported": verdict != "unsupported"} | more


def engines(*indices, **knobs):
    """The member `engines` of a row."""
    knobs = knobs or {"KERNEL_CFG": 7}
    return {"engines": [{"mode": "A", "index": i, "knobs": knobs} for i in indices]}


def reason(text, status="CUDNN_STATUS_NOT_SUPPORTED", kind="unsupported", **more):
    """The member `reason` of a row."""
    return {"reason": {"class": kind, "status": status, "text": text, **more}}


def head(run="r1", *targets, **about):
    """The line of a run. targets: (build, device)"""
    about["targets"] = [{"build": b, "device": d} for b, d in targets]
    return {"run": {"id": run, "started": "2026-11-21T10:00:00Z", "guards": "off", **about}}


def end(run="r1", **more):
    return {"end": {"run": run, "complete": True, **more}}


def cases():
    """[(name, group)]"""
    table = (
        (
            "basics",
            ("dtype=bf16", "dtype=f16"),
            ("", "mask=causal", "mask=causal_br", "window=129:0"),
        ),
        ("head dims", ("d=64", "d=100", "d=192/128", "d=256", "d=512"), ("", "mask=causal")),
        ("grouped heads", ("h=8/2", "h=8/1", "h=16/4"), ("", "s=1/1024", "s=257/512")),
        ("layouts", ("layout=sbhd", "layout=bhsd", "layout=bs3hd"), ("",)),
        ("layouts", ("stride=gap:8", "stride=broadcast:k.b+v.b"), ("",)),
        ("layouts", ("padding=random", "padding=zero:kv"), ("",)),
    )
    out = []
    for group, *axes in table:
        for p, a, b in itertools.product(("fwd", "bwd"), *axes):
            dtype = "" if a.startswith("dtype") else "dtype=bf16"
            out.append((" ".join(f"pass={p} {dtype} {a} {b}".split()), group))
    for s, d in itertools.product(("s=64", "s=128", "s=192", "s=704"), ("d=64", "")):
        out.append(
            (" ".join(f"pass=bwd dtype=bf16 {s} {d} fill=neglse".split()), "very negative rows")
        )
    return out


def _refusal(engine):
    shape = "CUDNN_STATUS_NOT_SUPPORTED_SHAPE"
    text = "Embedding dim per head for q and k is not a multiple of 8"
    first = {"engine": engine, "status": shape, "text": text, "condition": "d_qk % 8 != 0"}
    short = {"text": "d is not a multiple of 8", "condition": "d % 8 != 0"}
    return reason(
        f"{text} at: d_qk % 8 != 0", shape, chain=[first, {**first, "engine": 1, **short}]
    )


def refused(one, text, status="CUDNN_STATUS_NOT_SUPPORTED", **more):
    """Makes a row a refusal."""
    one |= {"verdict": "unsupported", "supported": False, "engine": None, "engines": []}
    one |= {"errors": {}, **reason(text, status, **more)}


def _numbers(rng):
    """What a row says of one tensor."""
    shares = {"ratio": rng.uniform(0.1, 0.8), "gate": "t1", "rms": rng.uniform(0.2, 0.6)}
    place = {"worst_index": [0, 3, 17, 40], "got": rng.gauss(0, 1), "want": rng.gauss(0, 1)}
    return {**shares, **place, "bound": 0.0039, "checked": 1 << 20}


def row(case, group, build, device, run, rng):
    name, sm, grade = device
    tokens = dict(t.split("=", 1) for t in case.split())
    engine = 2 if sm == 90 else 1
    out = plain(case, build, device=name, sm=sm, grade=grade, run=run, group=group)
    if tokens.get("d") == "100":
        return (
            out
            | {"decide_us": 900, "verdict": "unsupported", "supported": False}
            | _refusal(engine)
        )
    first = {"mode": "A", "index": engine, "config": 0, "knobs": {"KERNEL_CFG": 7, "TILE_M": 3}}
    second = {"mode": "A", "index": 1, "config": 1, "knobs": {"KERNEL_CFG": 3}, "notes": []}
    out |= {"engine": engine, "config": 0, "workspace_bytes": rng.choice((0, 16384, 1 << 22))}
    out |= {"decide_us": rng.uniform(800, 2400), "plan_ms": rng.uniform(250, 900)}
    first |= {"notes": ["RUNTIME_COMPILATION"], "workspace_bytes": 16384}
    out["engines"] = [first, second]
    if grade != "measured":
        return out
    tensors = ("dq", "dk", "dv") if tokens["pass"] == "bwd" else ("o",)
    errors = out["errors"] = {t: _numbers(rng) for t in tensors}
    out |= {"exec_us": rng.uniform(20, 900), "wall_ms": rng.uniform(300, 2000)}
    out["inputs_from"] = "reference"
    old = build in ("9.14.0", "9.19.0", "9.20.0")
    backward = tokens["pass"] == "bwd"
    if tokens.get("fill") == "neglse" and old and int(tokens.get("s", "512")) % 128 == 64:
        errors["dq"] |= {"ratio": "inf", "gate": "t0", "got": "nan", "want": -1.25e-7}
        link = "https://github.com/pytorch/pytorch/issues/196678"
        out["expectation"] = {"verdict": "nan", "since": "2026-08-01", "link": link}
        out["verdict"] = "nan"
    if tokens.get("padding") == "zero:kv" and not backward and old:
        errors["o"] |= {"ratio": "inf", "gate": "poison", "got": "nan", "want": 0.0}
        out["verdict"] = "unwritten"
    grouped = tokens.get("s") == "257/512" and tokens["h"] == "16/4"
    if grouped and backward and build == "9.27.0":
        errors["dk"] |= {"ratio": 7.4, "got": 0.5, "want": 0.52}
        out["verdict"] = "wrong"
    if tokens.get("stride") == "gap:8" and backward and build == "9.14.0":
        died = {"class": "internal", "text": "worker died: signal 11 in stage exec"}
        out |= {"verdict": "crash", "supported": None, "errors": {}, "reason": died}
    return out


def target(build, device, run):
    name, sm, _ = device
    libraries = []
    for lib, digest in (("libcudnn", "a1"), ("libcudnn_graph", "b2"), ("libcudnn_adv", "c3")):
        path = f"/opt/cudnn/{build}/lib/{lib}.so.9"
        libraries.append({"path": path, "bytes": 1000, "sha256": digest * 32, "record": "ok"})
    about = {"run": run, "build": f"{build}-jit-cu13", "device": name, "cudnn": build, "sm": sm}
    about["device_name"] = "NVIDIA H100 80GB HBM3" if sm == 90 else "described sm_80"
    return {**about, "driver": 13000, "libraries": libraries, "start_ms": 120.5}


def _drawn(rng, seed):
    """The name of a random case."""
    kind = f"pass={rng.choice(('fwd', 'bwd'))} dtype={rng.choice(('bf16', 'f16'))}"
    size = f"b={rng.randint(1, 32)} h={rng.choice(('8', '16/4', '32/8'))}"
    size += f" s={rng.randint(1, 4096)}/{rng.randint(1, 4096)} d={8 * rng.randint(2, 32)}"
    return f"{kind} {size} layout={rng.choice(('sbhd', 'bhsd', 'bs3hd'))} seed={seed}"


def record(builds=BUILDS, devices=DEVICES, drop=0, seed=1, extra=0, run="r1"):
    """Lines of one record. `drop` rows are left out (and `end`); `extra` random cases make it large."""
    rng = random.Random(seed)
    planned = cases() + [(_drawn(rng, i + 2), "random") for i in range(extra)]
    targets = [(b, d) for d in devices for b in builds]
    about = {"facts": "0.1.0", "started": "2026-11-20T09:30:00Z", "host": "node-7", "seed": 1}
    about |= {"suite": "smoke", "suite_hash": "5f0c3a9e12d47b68", "groups": GROUPS}
    about |= {"command": ["facts", "matrix", "-o", "out"], "planned": len(planned) * len(targets)}
    yield head(run, *((f"{b}-jit-cu13", d[0]) for b, d in targets), **about)
    rows, counts = 0, {}
    for b, d in targets:
        yield {"target": target(b, d, run)}
        for case, group in planned:
            if rows >= len(planned) * len(targets) - drop:
                return
            one = row(case, group, b, d, run, rng)
            yield started(one)
            counts[one["verdict"]] = counts.get(one["verdict"], 0) + 1
            rows += 1
            yield one
    yield end(run, rows=rows, counts=counts)


def started(one):
    """The line before a row."""
    keys = ("run", "case", "build", "device")
    return {"start": {**{key: one[key] for key in keys}, "attempt": 1, "config": 0}}


def gate(device=DEVICES[0], lost="stride=gap:8"):
    """Lines of a gate's record, 9.20.0 against 9.27.0: the newer build refuses the cases with `lost`."""
    command = "facts gate --baseline 9.20.0 --candidate=9.27.0 --device"
    for one in record(("9.20.0", "9.27.0"), (device,), run="g1"):
        if "run" in one and "facts" in one["run"]:
            one["run"]["command"] = [*command.split(), device[0]]
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
    good = plain(run="r")
    words = dict.fromkeys(("facts", "started", "suite_hash", "host"), MARKUP)
    about = {"command": [MARKUP, "\x1b[2J"], "planned": 1 << 70, "groups": {MARKUP: MARKUP}}
    said = dict.fromkeys(("class", "status"), MARKUP)
    wrong = {"ratio": "inf", "gate": MARKUP, "worst_index": MARKUP, "got": MARKUP}
    library = dict.fromkeys(("path", "sha256", "record"), MARKUP)
    target_line = {"device_name": MARKUP, "libraries": [library, 3]}
    marked = {"case": f"pass=fwd dtype=bf16 d=64 {MARKUP}", "verdict": "wrong", "group": MARKUP}
    chain = [MARKUP, {"engine": MARKUP, "text": MARKUP}]
    marked |= {"reason": {**said, "text": MARKUP * 3, "chain": chain}}
    marked |= {"errors": {MARKUP: wrong, "__proto__": {"ratio": 9}}}
    marked |= {"engines": [{"mode": MARKUP, "knobs": {MARKUP: MARKUP}, "notes": MARKUP}, 7]}
    marked |= {"expectation": {"link": "javascript:document.title='taken'", "verdict": MARKUP}}
    shell = {"case": "pass=bwd dtype=bf16 b=1'; touch /tmp/owned; '", "verdict": "crash"}
    shell |= {"device": '=HYPERLINK("http://x")'}
    shell |= {"reason": {"text": "ctrl \x00\x01\x1b[31m \u202e flipped \ud800 \u2028"}}
    long = plain("pass=bwd dtype=bf16 h=8/2", verdict="unsupported", run="r")
    long["reason"] = {"class": "unsupported", "text": "long " * 200000}
    infinite = {"o": {"ratio": float("nan"), "got": float("inf")}}
    items = [
        {"run": {"id": "r", **words, **about, "targets": [MARKUP, 3, {"build": MARKUP}]}},
        {"target": {"build": "9.20.0-jit-cu13", "device": "h100-sxm", **target_line}},
        good,
        good | marked,
        good | shell,
        long,
        good | {"case": "pass=fwd dtype=f16 constructor=1 __proto__=2", "errors": infinite},
        {**good, "case": 7},
        {**good, "verdict": "fine"},
        [1, 2],
        {"what": 1},
        {**good, "device": ""},
        {**good, "case": "x" * 2000},
    ]
    broken = (b"\xff\xfe not text", b"[" * 100000, b'{"a":' + b"9" * 6000 + b"}")
    return text(items).encode() + b"\n".join(broken) + b'\n{"case":"pass=fwd dtype=bf16 b=3","bui'
