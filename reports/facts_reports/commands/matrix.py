"""`facts matrix`: three cuDNN versions, suite smoke or the given cases, and two devices, into records and a page."""

import re
import sys
from pathlib import Path

from . import asking, report
from .options import BAD_INPUT, ENVIRONMENT, FINDINGS, INCOMPLETE, INTERRUPTED, NOTHING, OK
from .options import Command, Failed, UsageError, folder, options

_VERSIONS = ("9.14.0", "9.20.0", "9.27.0")
_BUILDS = [f"{version}-jit-cu13" for version in _VERSIONS]
COMMAND = Command(
    "matrix",
    options(
        """
    cudnn device
    -o, --output DIR  folder for the records and the page
    --json            print the rows, one JSON object a line
    jobs timeout pinned-only
    """,
        output=folder,
    ),
    ("facts matrix", "facts matrix --cudnn 9.20.0,9.27.0 --device h100-sxm,sm100-spec -o matrix"),
)


def _builds():
    """The three versions of README.md, installed where they are missing; the others here are named."""
    listed = asking.view("cudnn", "list")
    here = re.findall(r"(?m)^(\d[\d.]*-\S+) (?!.*NVRTC: MISSING)", listed)
    missing = [name for name in _BUILDS if name not in here]
    if missing:
        print(f"facts matrix: installing {', '.join(missing)}", file=sys.stderr)
        asking.view("cudnn", "install", "--pinned-only", *missing)
    if more := [name for name in here if name.split("-")[0] not in _VERSIONS]:
        said = f"asks cuDNN {', '.join(_VERSIONS)}; also here: --cudnn {','.join(more)}"
        print(f"facts matrix: {said}", file=sys.stderr)
    return ",".join(_BUILDS)


def _parts(args):
    """[(name, task, devices)]: described devices only decide, GPUs and the CPU backend run."""
    words = [word for word in asking.described("matrix", args.device).split(",") if word]
    described = [word for word in words if asking.are_described(word)]
    others = [word for word in words if word not in described]
    parts = [("decisions", "decide", described), ("runs", "run", others)]
    if not args.device:
        parts += [("gpu", "run", ["0"] * asking.gpus_here()), ("cpu", "run", ["cpu"])]
    parts = [(name, task, ",".join(found)) for name, task, found in parts if found]
    if not parts:
        raise UsageError("--device is empty")
    return parts


def _worse(a, b):
    """The worse of two exit codes: a finding comes before an incomplete answer."""
    order = (INTERRUPTED, BAD_INPUT, FINDINGS, ENVIRONMENT, INCOMPLETE, NOTHING)
    return next((code for code in order if code in (a, b)), OK)


def run(args):
    at = Path(args.output or "./facts-report")
    try:
        at.mkdir(exist_ok=True)
    except OSError as error:
        code = BAD_INPUT if at.exists() else ENVIRONMENT
        return COMMAND.fail(f"{at}: {error.strerror}; give another folder with -o DIR", code)
    cudnn, status, records = args.cudnn or _builds(), OK, []
    out = sys.stderr if args.json else sys.stdout
    for name, task, devices in _parts(args):
        record = str(at / f"{name}.jsonl")
        words = args.given("json", "jobs", "timeout", "pinned-only")
        if devices != "cpu":
            words += ["--cudnn", cudnn, "--guards", "off"]
        print(f"\n== {name}", file=out, flush=True)
        words += ["--device", devices, "-o", record, "--overwrite"]
        done, _ = asking.run(task, args.words or ["smoke"], *words, out=sys.stdout)
        status = _worse(status, done)
        if done == INTERRUPTED:
            return done
        if done == BAD_INPUT:
            break
        records.append(record)
    if records:
        done = report.COMMAND.main([*records, "-o", str(at)], report.run)
        if done in (OK, INCOMPLETE):
            print(f"\nrecords and report: {at}/\npage: {at}/index.html")
        status = _worse(status, done)
    return status
